"""Calls in flight: whose a message is, and the one timer for all their deadlines."""

from __future__ import annotations

import asyncio
import time

import pytest

from anp.sidecar.bound.exchanges import Exchange
from anp.sidecar.bound.updates import UpdateTaker
from anp.sidecar.bound.waiting import WaitingCall, WaitingCalls
from anp.sidecar.bound.work import CallTerms
from anp.sidecar.halves.protocol import Answer


def waiting(calls: WaitingCalls, key: str, *, seconds: float) -> WaitingCall:
    """Let a call wait for its answer for some seconds."""
    until = time.monotonic() + seconds
    exchange = Exchange(b"", 0.0, message_id=key, request_id=f"envelope of {key}")
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    one = WaitingCall(answer, exchange, CallTerms(), UpdateTaker(None), until)
    calls.add(key, one)
    calls.watch(until)
    return one


async def test_each_call_ends_at_its_own_deadline() -> None:
    calls = WaitingCalls()
    late, soon = (waiting(calls, str(one), seconds=one) for one in (30.0, 0.01))
    next_one = waiting(calls, "next", seconds=0.02)
    for one in (soon, next_one):
        with pytest.raises(TimeoutError):
            await one.answer
        assert time.monotonic() >= one.until
    assert not late.answer.done()
    calls.unwatch()


async def test_a_call_that_ended_leaves_the_timer_for_the_others() -> None:
    calls = WaitingCalls()
    waiting(calls, "gone", seconds=0.01).answer.set_result(Answer("gone", 1, None))
    calls.remove("gone")
    timer = calls._timer
    other = waiting(calls, "other", seconds=0.03)
    # None is made for it: the one that is set comes before, and is set anew then.
    assert calls._timer is timer
    with pytest.raises(TimeoutError):
        await other.answer


async def test_a_message_belongs_to_the_call_that_it_names() -> None:
    calls = WaitingCalls()
    one = waiting(calls, "one", seconds=30.0)
    assert calls.named(None) is calls.named("one") is one
    two = waiting(calls, "two", seconds=30.0)
    assert calls.named(None) is None
    assert calls.requested("envelope of two") is two
    two.fail(ValueError())
    assert calls.named("two") is None
    assert isinstance(two.answer.exception(), ValueError)
    calls.unwatch()
