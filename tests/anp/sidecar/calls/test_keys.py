"""Idempotency keys on disk, and the journal that asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anp.sidecar.calls.keys as keys
import cache.parts.calls as kept_calls
from anp.errors import CallError, ConflictError, ErrorKind
from anp.sidecar.calls.call import CallRequest, CallResult, CallState, KeptCall
from anp.sidecar.calls.events import EventHub
from anp.sidecar.calls.journal import CallDesk
from anp.sidecar.calls.keys import CallKeys
from cache.errors import CacheError, StoreUnavailable
from cache.store import Store
from negotiation.need import Need
from tests.anp.sidecar.calls.test_journal import REQUEST, Clock, result
from tests.waiting import until

SECRET = b"s" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


class Peer:
    """Carries calls, and writes down each request that reached it."""

    def __init__(self, outcome: Any = "done", *, repeatable: bool = False) -> None:
        self.outcome = outcome
        self.repeatable = repeatable
        self.reached = 0
        self.sends = True

    async def carry(self, request: CallRequest) -> CallResult:
        if self.sends:
            assert request.on_send is not None
            await request.on_send(self.repeatable)
            self.reached += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if isinstance(self.outcome, asyncio.Event):
            await self.outcome.wait()
        return result(self.outcome)


def desk_of(peer: Peer, store: Store, clock: Clock | None = None) -> CallDesk:
    """Return the journal of a daemon that has just started."""
    clock = clock or Clock()
    found = CallKeys(store, SECRET, wall=clock)
    return CallDesk(peer.carry, EventHub(), keys=found, clock=clock)


async def call(desk: CallDesk, request: CallRequest = REQUEST) -> KeptCall:
    made = await desk.start(request, key="k")
    await made.settled.wait()
    return made


async def test_a_result_outlives_the_daemon_and_its_id_finds_it(store: Store) -> None:
    peer = Peer({"secret": "swordfish"})
    first = await call(desk_of(peer, store))
    desk = desk_of(peer, store)
    second = await call(desk)
    assert (peer.reached, second.id) == (1, first.id)
    assert second.result is not None
    assert second.result.output == {"secret": "swordfish"}
    assert desk.find(first.id) is second
    [row] = store._database.read(lambda rows: rows.rows("call/"))
    assert "swordfish" not in str(row)


async def test_a_failure_that_may_have_run_is_told_again_and_nothing_is_sent(
    store: Store,
) -> None:
    peer = Peer(CallError(ErrorKind.TIMEOUT, "too late", may_have_run=True))
    await call(desk_of(peer, store))
    again = await call(desk_of(peer, store))
    assert isinstance(again.error, CallError)
    assert (again.error.kind, again.error.may_have_run) == (ErrorKind.TIMEOUT, True)
    assert peer.reached == 1


@pytest.mark.parametrize("sends", [True, False])
async def test_what_certainly_did_not_run_may_be_tried_again(
    store: Store, sends: bool
) -> None:
    peer = Peer(CallError(ErrorKind.PEER_UNREACHABLE, "not run"))
    peer.sends = sends
    desk = desk_of(peer, store)
    for _ in range(2):
        failed = await call(desk)
        assert failed.state is CallState.FAILED
    peer.outcome, peer.sends = "done", True
    assert (await call(desk_of(peer, store))).state is CallState.DONE


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_call_without_an_outcome_is_sent_again_only_if_that_is_harmless(
    store: Store, repeatable: bool
) -> None:
    peer = Peer(asyncio.Event(), repeatable=repeatable)
    # The daemon of this call is killed: nothing of it ends any more.
    killed = await desk_of(peer, store).start(REQUEST, key="k")
    await until(lambda: peer.reached == 1)
    peer.outcome = "done"
    again = await call(desk_of(peer, store))
    assert killed.task is not None
    killed.task.cancel()
    if repeatable:
        assert (again.state, peer.reached) == (CallState.DONE, 2)
        return
    assert isinstance(again.error, CallError)
    assert (again.error.may_have_run, peer.reached) == (True, 1)
    assert again.error.kind is ErrorKind.INTERRUPTED


async def test_another_request_with_the_key_is_refused_after_a_restart(
    store: Store,
) -> None:
    peer = Peer()
    await call(desk_of(peer, store))
    for other in (
        REQUEST._replace(arguments={"a": 1}),
        REQUEST._replace(peer="q"),
        REQUEST._replace(need=Need("u")),
    ):
        with pytest.raises(ConflictError):
            await desk_of(peer, store).start(other, key="k")
    assert peer.reached == 1


async def test_nothing_leaves_when_the_key_cannot_be_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(store, "save_call", full)
    peer = Peer()
    failed = await call(desk_of(peer, store))
    assert (failed.state, peer.reached) == (CallState.FAILED, 0)
    assert isinstance(failed.error, CacheError)


async def test_a_fault_of_ours_after_the_request_left_may_have_run(
    store: Store,
) -> None:
    for error in (StoreUnavailable("gone"), RuntimeError("a bug")):
        failed = await (desk := desk_of(Peer(error), store)).start(REQUEST)
        await failed.settled.wait()
        assert isinstance(failed.error, CallError)
        assert failed.error.may_have_run
    waiting = Peer(asyncio.Event())
    desk = desk_of(waiting, store)
    cancelled = await desk.start(REQUEST)
    await until(lambda: waiting.reached == 1)
    await desk.cancel(cancelled)
    assert isinstance(cancelled.error, CallError)
    assert cancelled.error.may_have_run


async def test_two_requests_at_once_make_one_call(store: Store) -> None:
    peer = Peer()
    desk = desk_of(peer, store)
    first, second = await asyncio.gather(call(desk), call(desk))
    assert first is second
    assert peer.reached == 1


async def test_a_key_is_kept_for_a_day(store: Store) -> None:
    peer, clock = Peer(), Clock()
    await call(desk_of(peer, store, clock))
    clock.now += kept_calls.KEEP_CALLS - 1
    await call(desk_of(peer, store, clock))
    assert peer.reached == 1
    clock.now += 1
    await call(desk_of(peer, store, clock))
    assert peer.reached == 2


async def test_a_result_too_large_to_keep_is_not_sent_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MAX_OUTCOME", 1_000)
    peer = Peer("x" * 1_000)
    first = await call(desk_of(peer, store))
    again = await call(desk_of(peer, store))
    assert (again.id, peer.reached) == (first.id, 1)
    assert isinstance(again.error, CallError)
    assert again.error.may_have_run
    assert "ended well" in again.error.detail


async def test_the_oldest_keys_make_room(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_calls, "MAX_CALLS", 3)
    clock = Clock()
    found = CallKeys(store, SECRET, wall=clock)
    for number in range(5):
        clock.now += 1
        await found.begin(f"k{number}", REQUEST, repeatable=False)
    store.prune_calls(now=clock.now)
    known = [await found.find(f"k{number}", REQUEST) for number in range(5)]
    assert [one is not None for one in known] == [False, False, True, True, True]
    monkeypatch.setattr(kept_calls, "MAX_CALL_BYTES", 1)
    store.prune_calls(now=clock.now)
    assert await found.find("k4", REQUEST) is None


async def test_outcomes_of_another_identity_are_unknown(store: Store) -> None:
    await call(desk_of(Peer(), store))
    assert await CallKeys(store, b"o" * 32).find("k", REQUEST) is None


async def test_a_damaged_record_keeps_its_call_from_being_sent_again(
    store: Store,
) -> None:
    peer = Peer()
    await call(desk_of(peer, store))
    [row] = store._database.read(lambda rows: rows.rows("call/"))
    store._database.write(lambda rows: rows.set(row.key, {"no": "record"}))
    with pytest.raises(CacheError, match="damaged"):
        await desk_of(peer, store).start(REQUEST, key="k")
    assert peer.reached == 1
