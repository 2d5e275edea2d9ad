"""Whatever a peer does, a handshake neither raises nor ends twice nor lies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.errors import ErrorCode, PeerError
from anp.wire.handshake import Initiator, Responder
from anp.wire.messages import Message, Response, SourceHello
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import (
    HandshakeCompleted,
    HandshakeFailed,
    NeedHelloReply,
    NeedKeyCheck,
)
from anp.wire.side import HandshakeState
from tests.anp.wire.peers import (
    NOW,
    VECTORS,
    WALL_NOW,
    events_of,
    make_initiator,
    make_responder,
    read_message,
    start_pair,
    tell,
)
from tests.clauses import clause

PAIR = start_pair()
SOURCE_HELLO = PAIR.source_hello
DESTINATION_HELLO, DESTINATION_FINISHED = PAIR.sent
tell(PAIR.initiator, *PAIR.sent)
PAIR.initiator.key_checked(None, now=NOW)
SOURCE_FINISHED = PAIR.initiator.messages_to_send()[-1]
REFUSAL = json.dumps(
    {
        "type": "response",
        "code": 403,
        "originalMessageId": json.loads(SOURCE_HELLO)["messageId"],
    }
)
MESSAGES = [
    SOURCE_HELLO,
    DESTINATION_HELLO,
    DESTINATION_FINISHED,
    SOURCE_FINISHED,
    REFUSAL,
    VECTORS["handshakes"][0]["source_hello"],
    VECTORS["handshakes"][0]["source_finished"],
    VECTORS["envelopes"][0]["message"],
    '{"type": "heartbeat", "messageId": "m", "message": "ping"}',
    '{"type": "register"}',
]
ACTIONS = ["check", "deny", "answer", "refuse", "timer"]


def act(side: Initiator | Responder, action: str, now: float) -> None:
    """Do what a shell may do in the state the handshake is in."""
    moment = Moment.at(now, WALL_NOW)
    match action, side.state:
        case "check", HandshakeState.EXPECT_KEY_CHECK:
            side.key_checked(None, now=moment)
        case "deny", HandshakeState.EXPECT_KEY_CHECK:
            side.key_checked("not its key", now=moment)
        case "timer", _:
            side.handle_timer(now=Moment.at(now, WALL_NOW))
        case "refuse", _ if isinstance(side, Responder):
            side.refuse(ErrorCode.NOT_ALLOWED, "no", now=moment)
        case "answer", HandshakeState.EXPECT_ANSWER if isinstance(side, Responder):
            side.answer(MetaProtocol(), now=moment)


def mutate(text: str, position: int, byte: int) -> bytes:
    """Return `text` with another byte at `position`."""
    data = bytearray(text.encode())
    data[position % len(data)] = byte
    return bytes(data)


def read_or_none(data: str | bytes) -> Message | None:
    try:
        return read_message(data)
    except PeerError:
        return None


@given(
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(MESSAGES + ACTIONS), st.floats(0, 4)), max_size=12
    ),
)
def test_no_order_of_inputs_raises_or_ends_twice(
    as_initiator: bool, steps: list[tuple[str, float]]
) -> None:
    side = make_initiator() if as_initiator else make_responder(SOURCE_HELLO)
    now = 0.0
    events = []
    sent = []
    for step, seconds in steps:
        now += seconds
        if step in ACTIONS:
            act(side, step, now)
        else:
            tell(side, step, now=now)
        events += events_of(side)
        sent += side.messages_to_send()
    ends = [e for e in events if isinstance(e, HandshakeCompleted | HandshakeFailed)]
    assert len(ends) == (side.state in {HandshakeState.DONE, HandshakeState.FAILED})
    assert sum(isinstance(read_message(text), Response) for text in sent) <= 1
    for question in (NeedKeyCheck, NeedHelloReply):
        assert sum(isinstance(event, question) for event in events) <= 1


@clause("WIRE row 9")
@settings(max_examples=200)
@given(st.integers(min_value=0), st.integers(0, 255))
def test_any_other_byte_in_a_source_hello_ends_it(position: int, byte: int) -> None:
    check_changed_hello(mutate(SOURCE_HELLO, position, byte))


@clause("WIRE row 9")
@pytest.mark.parametrize("flipped", [0x01, 0x20])
def test_no_byte_of_a_source_hello_can_be_flipped(flipped: int) -> None:
    for position, byte in enumerate(SOURCE_HELLO.encode()):
        check_changed_hello(mutate(SOURCE_HELLO, position, byte ^ flipped))


def check_changed_hello(data: bytes) -> None:
    """Check that a changed hello is refused by the parser or by the responder."""
    message = read_or_none(data)
    if data == SOURCE_HELLO.encode() or not isinstance(message, SourceHello):
        return
    responder = make_responder(data.decode())
    [event] = events_of(responder)
    assert isinstance(event, HandshakeFailed)
    assert isinstance(read_message(responder.messages_to_send()[0]), Response)


@clause("WIRE row 9")
@settings(max_examples=200)
@given(st.booleans(), st.integers(min_value=0), st.integers(0, 255))
def test_any_other_byte_in_an_answer_ends_it(
    in_hello: bool, position: int, byte: int
) -> None:
    original = DESTINATION_HELLO if in_hello else DESTINATION_FINISHED
    data = mutate(original, position, byte)
    message = read_or_none(data)
    if data == original.encode() or message is None:
        return
    initiator = make_initiator()
    if not in_hello:
        tell(initiator, DESTINATION_HELLO)
        initiator.key_checked(None, now=NOW)
        events_of(initiator)
    initiator.receive(message, now=NOW)
    [event] = events_of(initiator)
    if in_hello or changes_what_counts(json.loads(data), json.loads(original)):
        assert isinstance(event, HandshakeFailed)
    else:
        assert isinstance(event, HandshakeCompleted)


def changes_what_counts(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two `finished` differ in more than their unauthenticated fields."""
    names = ("type", "sessionId", "sourceDid", "destinationDid", "verifyData")
    return any(one.get(name) != other.get(name) for name in names)


@clause("WIRE row 9")
@pytest.mark.parametrize("text", [SOURCE_HELLO, DESTINATION_HELLO])
def test_any_field_left_out_or_added_ends_it(text: str) -> None:
    hello = json.loads(text)
    changed = [{k: v for k, v in hello.items() if k != name} for name in hello]
    changed += [{**hello, "note": ""}, {**hello, "proof": {**hello["proof"], "x": 1}}]
    for value in changed:
        message = read_or_none(json.dumps(value))
        if message is None:
            continue
        side: Initiator | Responder
        if isinstance(message, SourceHello):
            side = make_responder(value)
        else:
            side = make_initiator()
            side.receive(message, now=NOW)
        [event] = events_of(side)
        assert isinstance(event, HandshakeFailed)
