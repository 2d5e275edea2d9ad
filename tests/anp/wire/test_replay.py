"""Replay memories: bounded, and forgetting only by age or by room."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, PeerError
from anp.wire.messages import SourceHello
from anp.wire.proof import MAX_PROOF_AGE
from anp.wire.replay import MAX_IVS, HelloMemory, IvMemory
from tests.anp.wire.peers import EVE, make_initiator, read_message
from tests.clauses import clause

HELLO: dict[str, Any] = json.loads(make_initiator().messages_to_send()[0])


def hello(session: str, random: str, proof: str, did: str = "") -> SourceHello:
    value = {
        **HELLO,
        "sessionId": session,
        "random": random,
        "sourceDid": did or HELLO["sourceDid"],
        "proof": {**HELLO["proof"], "proofValue": proof},
    }
    message = read_message(json.dumps(value))
    assert isinstance(message, SourceHello)
    return message


def hellos(count: int) -> Iterator[SourceHello]:
    return (hello(f"s{n}", f"r{n}", f"p{n}") for n in range(count))


@clause("WIRE row 26")
@pytest.mark.parametrize(
    "again",
    [
        hello("s", "r", "p"),
        hello("s", "other", "other"),
        hello("other", "r", "other"),
        hello("other", "other", "p"),
        hello("other", "other", "p=="),
        hello("other", "other", "p", EVE.did),
    ],
)
def test_a_hello_that_came_before_is_refused(again: SourceHello) -> None:
    memory = HelloMemory()
    memory.check(hello("s", "r", "p"), now=0.0)
    with pytest.raises(PeerError) as caught:
        memory.check(again, now=2 * MAX_PROOF_AGE)
    assert caught.value.code is ErrorCode.NOT_ALLOWED


def test_a_refused_hello_is_not_remembered() -> None:
    memory = HelloMemory()
    memory.check(hello("s", "r", "p"), now=0.0)
    with pytest.raises(PeerError):
        memory.check(hello("s", "r2", "p2"), now=0.0)
    memory.check(hello("s2", "r2", "p2"), now=0.0)


def test_another_did_may_use_the_same_session_id_and_random() -> None:
    memory = HelloMemory()
    memory.check(hello("s", "r", "p"), now=0.0)
    memory.check(hello("s", "r", "p2", EVE.did), now=0.0)
    assert len(memory) == 2


def test_hellos_are_forgotten_when_their_proofs_are_too_old_anyway() -> None:
    memory = HelloMemory()
    for message in hellos(100):
        memory.check(message, now=0.0)
    memory.check(hello("s", "r", "p"), now=2 * MAX_PROOF_AGE + 2)
    assert len(memory) == 1


def test_a_full_memory_forgets_the_oldest_hello() -> None:
    memory = HelloMemory(max_hellos=3)
    first, *others = hellos(4)
    for now, message in enumerate([first, *others]):
        memory.check(message, now=float(now))
    assert len(memory) == 3
    for message in others:
        with pytest.raises(PeerError):
            memory.check(message, now=4.0)
    memory.check(first, now=5.0)


@given(st.lists(st.tuples(*[st.sampled_from("abc")] * 3, st.floats(0, 30))))
def test_whatever_comes_the_memory_stays_bounded(
    received: list[tuple[str, str, str, float]],
) -> None:
    memory = HelloMemory(max_hellos=2)
    now = 0.0
    for session, random, proof, seconds in received:
        now += seconds
        try:
            memory.check(hello(session, random, proof), now=now)
        except PeerError:
            continue
        assert len(memory) <= 2
        assert len(memory._seen) == 3 * len(memory)


@clause("WIRE row 26")
def test_an_iv_that_came_before_is_refused() -> None:
    memory = IvMemory([b"f" * 12])
    memory.check(b"a" * 12)
    for iv in (b"a" * 12, b"f" * 12):
        with pytest.raises(PeerError) as caught:
            memory.check(iv)
        assert caught.value.code is ErrorCode.NOT_ALLOWED


@clause("WIRE row 26")
def test_a_key_takes_2_to_the_16_ivs_and_not_one_more() -> None:
    assert MAX_IVS == 65_536
    memory = IvMemory()
    for n in range(MAX_IVS):
        memory.check(n.to_bytes(12, "big"))
    with pytest.raises(PeerError) as caught:
        memory.check(b"\xff" * 12)
    assert caught.value.code is ErrorCode.ENCRYPTION_KEY_EXPIRED
    assert len(memory) == MAX_IVS


def test_a_full_memory_still_knows_a_replay() -> None:
    memory = IvMemory(max_ivs=1)
    memory.check(b"a" * 12)
    with pytest.raises(PeerError) as caught:
        memory.check(b"a" * 12)
    assert caught.value.code is ErrorCode.NOT_ALLOWED
