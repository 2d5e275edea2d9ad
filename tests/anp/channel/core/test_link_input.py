"""Messages that are none, and those beside channels: nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.channel.core.events import (
    LinkFault,
)
from anp.wire.messages import make_heartbeat
from tests.anp.channel.core.link_ends import (
    ends,
)
from tests.anp.wire.peers import BOB, WALL_NOW
from tests.clauses import clause


@clause("WIRE row 31")
def test_a_heartbeat_is_answered_before_any_handshake() -> None:
    [bob, _] = ends()
    [pong] = bob.give(make_heartbeat("ping", message_id="7", timestamp=WALL_NOW))
    assert (pong["type"], pong["message"]) == ("heartbeat", "pong")
    assert bob.give(json.dumps(pong)) == []
    assert not bob.events


@clause("WIRE row 32")
def test_a_registration_for_a_router_is_ignored() -> None:
    [bob, _] = ends()
    assert bob.give(json.dumps({"type": "register", "messageId": "1"})) == []
    assert not bob.events


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "",
        "null",
        "[]",
        '"sourceHello"',
        "{}",
        '{"type": 1}',
        '{"type": "unheardOf"}',
        '{"type": "sourceHello"}',
        '{"type": "message", "secretKeyId": []}',
        '{"type": "response", "code": "403"}',
        '{"type": "heartbeat", "messageId": "1", "message": "pang"}',
        '{"type": "heartbeat", "type": "register"}',
        '{"type": "finished", "sessionId": "unknown"}',
        b"\xff\xfe",
        nested(30_000),
        '{"type": "sourceHello", "x": ' + nested(30_000) + "}",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_what_is_no_message_is_one_fault_and_no_exception(text: str | bytes) -> None:
    [bob, _] = ends()
    bob.give(text)
    [fault] = bob.events
    assert isinstance(fault, LinkFault)
    assert "\n" not in fault.detail
    assert len(fault.detail) < 500


KINDS = [
    *("sourceHello", "destinationHello", "finished", "message"),
    *("response", "heartbeat", "register"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner)
    ),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    [
        *("sessionId", "sourceDid", "destinationDid", "messageId", "random"),
        *("secretKeyId", "encryptedData", "verifyData", "metaProtocol", "proof"),
        *("keyShares", "keyShare", "code", "verificationMethod", "message"),
    ]
)


@given(texts=st.lists(st.text() | st.binary(), max_size=5))
def test_no_bytes_raise(texts: list[str | bytes]) -> None:
    [bob, _] = ends()
    bob.give(*texts)
    assert len(bob.of(LinkFault)) == len(bob.events)


@given(kind=st.sampled_from(KINDS), fields=st.dictionaries(FIELDS, JSON))
def test_no_fields_raise(kind: str, fields: dict[str, Any]) -> None:
    [bob, _] = ends()
    bob.give(json.dumps({"type": kind, **fields}))
    assert not bob.core.channels


@given(data=st.data())
def test_no_change_of_a_true_hello_raises_or_opens(data: st.DataObject) -> None:
    alice, bob = ends()
    alice.open(BOB)
    [hello] = alice.core.messages_to_send()
    value = json.loads(hello)
    name = data.draw(st.sampled_from(sorted(set(value) - {"type"})))
    value[name] = data.draw(JSON)
    bob.give(json.dumps(value))
    assert not bob.core.channels
