"""Calls that are kept for a while after they ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from contextvars import copy_context
from typing import Any, cast

import pytest

import anp.sidecar.calls.events as events
import anp.sidecar.calls.journal as journal
from anp.errors import BusyError, CallError, ErrorKind, UnknownError
from anp.sidecar.calls.call import CallRequest, CallResult, CallState, KeptCall
from anp.sidecar.calls.events import EventHub
from anp.sidecar.calls.journal import CallDesk
from negotiation.need import Need
from tests.waiting import until

REQUEST = CallRequest(peer="p", need=Need("t"), arguments={})


def result(output: Any) -> CallResult:
    return CallResult(
        output=output,
        protocol=None,
        source="agreement",
        negotiation_messages=0,
        proposals=0,
        peer_did="did:key:zPeer",
        negotiation_id=None,
    )


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Looked(deque[KeptCall]):
    """Counts how often one of the calls that are over is looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        self.looks += len(self)
        return super().__iter__()


def desk_of(clock: Clock, output: Any = None) -> CallDesk:
    async def carry(request: CallRequest) -> CallResult:
        return result(output)

    return CallDesk(carry, EventHub(), clock=clock)


async def one_call(desk: CallDesk, key: str | None = None) -> KeptCall:
    call = await desk.start(REQUEST, key=key)
    await call.settled.wait()
    return call


async def test_a_result_is_forgotten_when_it_is_old_and_its_key_counts_anew() -> None:
    clock = Clock()
    desk = desk_of(clock)
    first = await one_call(desk, "k")
    clock.now += journal.KEPT_FOR
    assert await desk.start(REQUEST, key="k") is first
    clock.now += 0.1
    with pytest.raises(UnknownError):
        desk.find(first.id)
    assert await one_call(desk, "k") is not first


async def test_the_calls_that_ended_first_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "MAX_KEPT", 3)
    desk = desk_of(Clock())
    calls = [await one_call(desk, f"k{number}") for number in range(5)]
    assert desk.kept() == calls[:1:-1]
    assert sorted(desk._by_key) == ["agent:k2", "agent:k3", "agent:k4"]


async def test_results_of_many_bytes_make_room_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = len(repr("x" * 98)) + 2
    monkeypatch.setattr(journal, "MAX_KEPT_BYTES", 2 * size)
    desk = desk_of(Clock(), "x" * 98)
    calls = [await one_call(desk) for _ in range(4)]
    assert desk.kept() == calls[:1:-1]
    assert desk._over_size == 2 * size


async def test_a_key_that_was_used_again_stays_with_its_newer_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "MAX_KEPT", 1)
    desk = desk_of(Clock())
    first = await one_call(desk, "k")
    # It never ran, so the same key begins another call.
    first.state, first.error = CallState.FAILED, None
    second = await one_call(desk, "k")
    assert second is not first
    assert desk.kept() == [second]
    assert await desk.start(REQUEST, key="k") is second


async def test_a_call_looks_at_as_many_others_however_many_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []
    for kept in (10, 400):
        desk = desk_of(Clock())
        for _ in range(kept):
            await one_call(desk)
        over = Looked(desk._over)
        monkeypatch.setattr(desk, "_over", over)
        await one_call(desk)
        looks.append(over.looks)
    assert looks[0] == looks[1] <= 3


async def test_agents_cannot_take_the_owners_places() -> None:
    hub = EventHub()

    async def carry(request: CallRequest) -> CallResult:
        await asyncio.Event().wait()
        return result(None)

    desk = CallDesk(carry, hub)
    for _ in range(journal.MAX_RUNNING):
        await desk.start(REQUEST)
    with pytest.raises(BusyError, match="wait for one"):
        await desk.start(REQUEST)
    for _ in range(journal.MORE_FOR_OWNER):
        await desk.start(REQUEST, by_owner=True)
    with pytest.raises(BusyError):
        await desk.start(REQUEST, by_owner=True)
    with contextlib.ExitStack() as stack:
        for _ in range(events.MAX_WATCHERS):
            assert hub.has_room(by_owner=False)
            stack.enter_context(hub.subscribe())
        assert not hub.has_room(by_owner=False)
        for _ in range(events.MORE_FOR_OWNER):
            assert hub.has_room(by_owner=True)
            stack.enter_context(hub.subscribe())
        assert not hub.has_room(by_owner=True)
    await desk.close()


async def test_a_call_that_is_waited_for_needs_no_second_task() -> None:
    tasks: list[set[asyncio.Task[Any]]] = []

    async def carry(request: CallRequest) -> CallResult:
        await asyncio.sleep(0)
        tasks.append(asyncio.all_tasks())
        return result(1)

    desk = CallDesk(carry, EventHub())
    before = asyncio.all_tasks()
    call = await desk.open(REQUEST)
    await desk.settle(call)
    assert call.state is CallState.DONE
    assert tasks == [before]


async def test_a_call_that_waits_for_approval_goes_on_without_its_request() -> None:
    answers: list[Any] = [CallError(ErrorKind.APPROVAL_PENDING, "asked"), result(1)]

    async def carry(request: CallRequest) -> CallResult:
        answer = answers.pop(0)
        if isinstance(answer, CallError):
            raise answer
        found: CallResult = answer
        return found

    desk = CallDesk(carry, EventHub(), again_after=(60.0,))
    call = await desk.open(REQUEST)
    await desk.settle(call)
    states = [call.state]
    call.decided.set()
    await until(lambda: call.is_over)
    assert [*states, call.state] == [CallState.WAITING, CallState.DONE]
    assert not answers


@pytest.mark.parametrize("moment", ["not carried", "not begun", "waits"])
async def test_a_call_can_be_taken_back_at_any_moment(moment: str) -> None:
    async def carry(request: CallRequest) -> CallResult:
        raise CallError(ErrorKind.APPROVAL_PENDING, "asked")

    desk = CallDesk(carry, EventHub(), again_after=(60.0,))
    begin = desk.start if moment == "not begun" else desk.open
    call = await begin(REQUEST)
    if moment == "waits":
        await desk.settle(call)
    await desk.cancel(call)
    await until(lambda: call.is_over)
    assert call.state is CallState.CANCELLED
    assert isinstance(call.error, CallError)
    # Nobody carries it any more, and it has no place among those under way.
    await desk.settle(call)
    assert len(desk._calls) == len(desk._over) == 1


async def test_a_call_leaves_nothing_in_the_context_of_its_request() -> None:
    desk = desk_of(Clock())
    call = await desk.open(REQUEST)
    before = copy_context()
    await desk.settle(call)
    assert call.state is CallState.DONE
    # The next request on the same connection begins with what is here.
    assert dict(copy_context()) == dict(before)


@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_a_call_whose_outcome_is_being_stored_cannot_be_taken_back(
    way: str,
) -> None:
    storing, go_on = asyncio.Event(), asyncio.Event()
    stored: list[object] = []

    class Slow:
        async def find(self, key: str, request: CallRequest) -> None:
            pass

        async def begin(self, *_: Any, **__: Any) -> None:
            pass

        async def end(self, key: str, outcome: Any) -> None:
            storing.set()
            await go_on.wait()
            stored.append(outcome)

    async def carry(request: CallRequest) -> CallResult:
        return result("well")

    desk = CallDesk(carry, EventHub(), keys=cast(Any, Slow()))
    call = await desk.open(REQUEST, key="k")
    settling = asyncio.create_task(desk.settle(call))
    await storing.wait()
    ending = asyncio.create_task(desk.close() if way == "close" else desk.cancel(call))
    await asyncio.sleep(0)
    go_on.set()
    await ending
    await settling
    assert (call.state, len(stored)) == (CallState.DONE, 1)
