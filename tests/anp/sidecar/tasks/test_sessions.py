"""A session is read whole, or not at all, while others change or delete it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from anp.interaction.errors import InteractionError
from anp.sidecar.tasks.known import utc_now
from anp.sidecar.tasks.sealed_logs import SealedLogs
from anp.sidecar.tasks.sessions import Sessions
from anp.sidecar.tasks.work.worker import Worker
from cache.store import open_store
from tests.anp.interaction.talk import session, task


class Meddled(SealedLogs):
    """Lets a test change the store while a session is being read."""

    meddle: Callable[[], object] | None = None

    def items_of_log(self, *args: Any, **options: Any) -> Any:
        """Return the items as they are behind the change."""
        meddle, self.meddle = self.meddle, None
        if meddle is not None:
            meddle()
        return super().items_of_log(*args, **options)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Meddled]:
    with open_store(tmp_path / "store", owner="did:key:z") as store:
        yield Meddled(store, bytes(32))


def sessions_in(logs: SealedLogs) -> Sessions:
    return Sessions(logs, lambda log, step: None, max_size=1_000_000)


async def begun(logs: SealedLogs) -> str:
    """Store a session with one task; return our own id of it."""
    sessions = sessions_in(logs)
    log = await sessions.begin(session())
    await sessions.apply(log, lambda c: c.create(task("one"), wall_now=utc_now()))
    return log


async def test_a_session_that_is_deleted_while_it_is_read_is_not_there(
    logs: Meddled,
) -> None:
    log = await begun(logs)
    logs.meddle = lambda: logs.drop_log(log)
    with pytest.raises(InteractionError, match="no such session"):
        await sessions_in(logs).conversation(log)


async def test_a_session_that_a_sister_changes_while_it_is_read_is_read_again(
    logs: Meddled,
) -> None:
    log = await begun(logs)
    sister = sessions_in(logs)
    await sister.conversation(log)
    loop = asyncio.get_running_loop()

    def act() -> None:
        more = sister.apply(log, lambda c: c.create(task("two"), wall_now=utc_now()))
        asyncio.run_coroutine_threadsafe(more, loop).result()

    logs.meddle = act
    found = await sessions_in(logs).conversation(log)
    assert set(found.tasks) == {"one", "two"}
    assert found.last == (await sister.conversation(log)).last


async def test_the_work_on_a_task_that_is_gone_ends_without_an_error(
    logs: Meddled, caplog: pytest.LogCaptureFixture
) -> None:
    log = await begun(logs)
    nothing = cast("Any", None)
    worker = Worker(
        log,
        task("gone"),
        sessions=sessions_in(logs),
        capabilities=nothing,
        room=nothing,
        folders=cast("Any", _Folders()),
        max_wait=1.0,
        peer="alice",
        peer_did="alice",
        chooser=nothing,
    )
    with caplog.at_level("INFO"):
        await worker.run()
    assert [one.levelname for one in caplog.records] == ["INFO"]
    assert "no such task here" in caplog.text


class _Folders:
    async def drop_inputs(self, log: str, of: object) -> None:
        await asyncio.sleep(0)
