"""Tasks that last in a fleet: two daemons with one identity and one store."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from anp.interaction.elements import Part, TaskChange
from anp.interaction.operations import TaskCancel
from anp.interaction.states import is_terminal
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.sidecar.tasks.known import KnownTask, receive
from tests.cache.servers import Server, find_server, is_wanted, running
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    not is_wanted() or find_server() is None,
    reason="needs a Redis server (run by `make test-redis`)",
)

SOURCE = '''
import time
from pathlib import Path


def late(folder: str) -> str:
    """Answer when the file is there."""
    with open(Path(folder) / "began", "a") as file:
        file.write("x")
    while not (Path(folder) / "go").exists():
        time.sleep(0.02)
    return "late"
'''


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "server") as started:
        yield started


def made(folder: Path, name: str, **settings: object) -> Daemon:
    home = Home(folder / name)
    home.create()
    config = load_config(
        home,
        home_given=True,
        flags={"listen.port": 0, **settings},
        environ={},
        cwd=folder,
    )
    return Daemon(home, config)


@asynccontextmanager
async def at_work(
    folder: Path, server: Server, **marks: tuple[str, ...]
) -> AsyncIterator[tuple[Daemon, Daemon, KnownTask, Daemon]]:
    """Have a task at work at one daemon of a fleet.

    Yields:
        The caller, the daemon at work, the task, and a sister that is not started.
    """
    (folder / "late_agent.py").write_text(SOURCE)
    store = {
        "cache.url": f"redis://127.0.0.1:{server.port}/0",
        "cache.prefix": "shop",
    }
    one = made(folder, "one", **store)
    spec = AttachmentSpec(
        kind="python",
        name="agent",
        target="late_agent",
        cwd=folder,
        expose=("*",),
        **marks,  # type: ignore[arg-type]  # the names of tools
    )
    save_attachment(one.home.attachments, spec)
    shutil.copytree(folder / "one", folder / "other")
    other = made(folder, "other", **store)
    caller = made(folder, "caller")
    async with asyncio.timeout(90), caller.running(), one.running():
        task = await caller.tasks.start_task(
            f"{one.url}#{one.did}",
            capability="agent.late",
            parts=[Part.value({"folder": str(folder)})],
        )
        await until((folder / "began").exists)
        yield caller, one, task, other


async def end_of(caller: Daemon, task: KnownTask) -> TaskChange:
    async for event in caller.tasks.watch(task.log):
        content = event.content
        if isinstance(content, TaskChange) and is_terminal(content.state):
            return content
    raise AssertionError("the events ended before the task")


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_sister_that_starts_leaves_the_work_of_others_alone(
    tmp_path: Path, server: Server, repeatable: bool
) -> None:
    marks = {"idempotent": ("*",)} if repeatable else {}
    async with (
        at_work(tmp_path, server, **marks) as (caller, _, task, other),
        other.running(),
    ):
        await asyncio.sleep(0.5)
        assert other.tasks.working == 0
        (tmp_path / "go").touch()
        end = await end_of(caller, task)
        assert (end.state, end.reason) == ("completed", "")
        assert (tmp_path / "began").read_text() == "x"


async def test_a_cancel_that_reaches_a_sister_ends_the_work(
    tmp_path: Path, server: Server
) -> None:
    async with (
        at_work(tmp_path, server) as (_, one, task, other),
        other.running(),
    ):
        log = await anext(aiter(other.tasks.sessions.busy()))
        name, requester = task.task.id, task.task.requester
        cancel = TaskCancel(session=task.task.session, task=name)
        # Above all that the requester told the daemon at work.
        await other.tasks.sessions.apply(
            log, receive(cancel, sender=requester, ref=1_000)
        )
        assert one.tasks.working == 1
        # The caller has asked for nothing, and would refuse the end.
        await until(lambda: one.tasks.working == 0)
        found = (await other.tasks.sessions.refresh(log)).tasks[name]
        assert (found.state, found.may_have_run) == ("canceled", True)


async def test_a_sister_decides_about_the_work_of_one_that_is_gone(
    tmp_path: Path, server: Server
) -> None:
    async with (
        at_work(tmp_path, server) as (caller, one, task, other),
        other.running(),
    ):
        # Nobody looks, and nobody renews: the daemon is gone for the fleet.
        assert one.tasks._renewing is not None
        one.tasks._renewing.cancel()
        await other.tasks.leases.look()
        assert (await caller.tasks.task(task.id)).task.state != "failed"
        await asyncio.to_thread(
            one.store.lease_items,
            one.tasks.leases._own,
            owner=one.tasks.leases.owner,
            now=0.0,
            until=1.0,
        )
        await other.tasks.leases.look()
        log = await anext(aiter(other.tasks.sessions.busy()))
        found = await other.tasks.sessions.conversation(log)
        (ended,) = found.tasks.values()
        assert (ended.state, ended.may_have_run) == ("failed", True)
        assert await asyncio.to_thread(one.store.leases) == {}
        (tmp_path / "go").touch()
