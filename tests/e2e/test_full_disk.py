"""A full disk under a running daemon: what is agreed goes on, and new peers get in."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.requests import Request

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.operations.daemon import DaemonOperations
from anp.sidecar.api.operations.peers import PeerOperations
from anp.sidecar.api.requests import PeerBody
from anp.sidecar.daemon import Daemon
from anp.sidecar.health import Condition, readiness
from anp.sidecar.library.revocation import ProtocolDesk
from cache.disk import Database
from cache.errors import StoreFull, StoreUnavailable
from tests.e2e.house import house_in


@contextmanager
def full_disk(daemon: Daemon) -> Iterator[None]:
    """Let the file of a daemon's store grow no more; SQLite then says it is full."""
    database = daemon.store._database
    assert isinstance(database, Database)

    def limit(most: int) -> None:
        def work() -> None:
            cache = database._open_cache()
            # No gaps in the file, which a small row could fill.
            cache._sql("VACUUM")
            ((pages,),) = cache._sql("PRAGMA page_count").fetchall()
            cache._sql(f"PRAGMA max_page_count = {most or pages}").fetchall()

        database._in_thread(work)

    limit(0)
    try:
        yield
    finally:
        limit(2**30)


async def ready_metric(daemon: Daemon) -> float:
    operations = DaemonOperations(daemon, Dashboard())
    answer = await operations.get_metrics(Request({"type": "http"}))
    found = re.search(rb"^anpd_ready (\S+)$", bytes(answer.body), re.MULTILINE)
    assert found is not None
    return float(found[1])


async def test_a_full_disk_of_the_provider_ends_nothing_but_what_it_cannot_keep(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with house_in(tmp_path) as house:
        await house.others_are_served()
        with full_disk(house.provider):
            await house.others_are_served()
            # A peer that was never seen gets in.
            async with asyncio.timeout(10), house.peer() as stranger:
                await stranger.open()
            # A negotiation is not even begun; its answer comes at once.
            with pytest.raises(CallError) as caught:
                async with asyncio.timeout(10):
                    await house.call("count", step=1)
            assert caught.value.kind is not ErrorKind.TIMEOUT
            await house.others_are_served()
            found = await readiness(house.provider)
            assert (found.ready, found.parts["store"].state) == (False, Condition.DOWN)
            assert "no room" in found.parts["store"].text
            assert await ready_metric(house.provider) == 0
        assert await house.call("count", step=1) == {"calls": 1, "step": 1}
        house.provider.store_watch.forget()
        assert (await readiness(house.provider)).ready
        assert await ready_metric(house.provider) == 1
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_full_disk_of_the_caller_fails_the_calls_that_need_it_and_says_so(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        await house.others_are_served()
        with full_disk(house.caller):
            with pytest.raises(CallError, match="no space left") as caught:
                await house.call("count", step=1)
            assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
            assert not caught.value.may_have_run
            await house.others_are_served()
        assert await house.call("count", step=1) == {"calls": 1, "step": 1}


def protocol_desk(daemon: Daemon) -> ProtocolDesk:
    return ProtocolDesk(
        store=daemon.store,
        sandbox=daemon.sandbox,
        requesters=daemon.binder.requesters,
        provider=daemon.provider,
        enforcer=daemon.enforcer,
        exposure=daemon.exposure,
        consensus=daemon.consensus,
        owner=daemon.agreer.desk,
    )


async def test_a_revocation_holds_at_once_also_when_it_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFull("cache: no space left")

    async with house_in(tmp_path) as house:
        found = await house.result("count", {"step": 1})
        assert found.protocol
        desk = protocol_desk(house.provider)
        with monkeypatch.context() as patched:
            patched.setattr(house.provider.store, "revoke", full)
            with pytest.raises(CallError, match="1 channels of") as caught:
                await desk.revoke(found.protocol)
        assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
        with pytest.raises(CallError):
            await house.call("count", step=2)
        assert (await desk.revoke(found.protocol)).revoked
        await desk.approve(found.protocol)
        # The refused call did not run.
        assert await house.call("count", step=3) == {"calls": 2, "step": 3}


@pytest.mark.parametrize(
    "failing",
    [("see_peer",), ("see_peer", "peers_known_as", "canonical_did", "is_revoked")],
    ids=["full", "away"],
)
async def test_a_block_holds_at_once_also_when_it_cannot_be_kept(
    failing: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise StoreUnavailable("cache: no space left")

    async with house_in(tmp_path) as house:
        assert await house.call("count", step=1) == {"calls": 1, "step": 1}
        operations = PeerOperations(house.provider)
        peer, request = PeerBody(peer=house.caller.did), Request({"type": "http"})
        with monkeypatch.context() as patched:
            for one in failing:
                patched.setattr(house.provider.store, one, fails)
            with pytest.raises(
                CallError, match="until the daemon is started"
            ) as caught:
                await operations.block_peer(request, peer)
            assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
            with pytest.raises(CallError):
                await house.call("count", step=2)
        with pytest.raises(CallError):
            await house.call("count", step=2)
        await operations.allow_peer(request, peer)
        # The refused calls did not run.
        assert await house.call("count", step=3) == {"calls": 2, "step": 3}
