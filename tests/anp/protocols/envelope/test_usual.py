"""Usual messages are written and read by their form, as the long way would do it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.protocols import timestamps
from anp.protocols.envelope import messages, reader
from anp.protocols.envelope.messages import (
    EnvelopeMessage,
    RequestPayload,
    ResponsePayload,
    build_message,
)
from anp.protocols.envelope.reader import EnvelopeError, read_message
from jsonic.exact_numbers import ExactFloat, write_json
from negotiation.errors import JsonError
from negotiation.strict_json import MAX_DEPTH, parse_json
from tests.anp.protocols.envelope.talk import ALICE, BOB, NOW
from tests.clauses import clause

SIZE = 100_000
OTHERS = [
    "",
    "x" * 129,
    'a"b',
    "a\\b",
    "a\nb",
    "\x7f",
    "é",
    "broadcast",
    "\ud800",
    '"},"metadata":{"correlation_id":"',
]
NAMES = st.sampled_from([*([ALICE, BOB, "m-1"] * 8), *OTHERS])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(
        [
            10**399,
            10**400,
            -(10**500),
            1e16,
            ExactFloat("0.12345678901234567890"),
            '},"metadata":{"correlation_id":"q"}}',
            "\ud800",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.dictionaries(st.integers(0, 2) | st.just("1"), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=8,
)
PAYLOADS = st.builds(
    RequestPayload, st.just("shop.lookup") | NAMES, VALUES | st.just({"sku": "A"})
) | st.builds(
    ResponsePayload,
    st.sampled_from(["success", "failure", "in_progress"]),
    VALUES | st.just({"price": 7}),
    st.sampled_from([{}, {}, {"code": "x"}]),
)
MOMENTS = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [NOW, NOW + timedelta(seconds=300, milliseconds=1), NOW - timedelta(days=1)]
)
MESSAGES = st.builds(
    EnvelopeMessage,
    message_id=NAMES,
    sender_id=NAMES,
    receiver_id=NAMES,
    message_type=st.just(""),
    payload=PAYLOADS,
    sent_at=MOMENTS,
    metadata=st.sampled_from([{}, {}, {}, {"wrapped": True}]),
    correlation_id=NAMES | st.none(),
    version=st.sampled_from(["1.0", "1.0", "1.1", "2.0", "1.01", "x"]),
).map(
    lambda one: one._replace(
        message_type="request"
        if isinstance(one.payload, RequestPayload)
        else "response"
    )
)


def written(message: EnvelopeMessage) -> bytes:
    """Return a message as the plainest writer has it; JsonError if none can read it."""
    payload = message.payload._asdict()  # type: ignore[union-attr]
    if not payload.get("error", True):
        del payload["error"]
    moment = message.sent_at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    value = {
        "protocol_version": message.version,
        "message_id": message.message_id,
        "timestamp": f"{moment}Z",
        "sender_id": message.sender_id,
        "receiver_id": message.receiver_id,
        "message_type": message.message_type,
        "payload": payload,
    }
    metadata = dict(message.metadata)
    if message.correlation_id is not None:
        metadata["correlation_id"] = message.correlation_id
    if metadata:
        value["metadata"] = metadata
    try:
        text = write_json(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        data = text.encode()
    except (TypeError, ValueError) as exc:
        raise JsonError(str(exc)) from None
    parse_json(data, max_size=SIZE)
    return data


def outcome(work: Any, *arguments: Any, **options: Any) -> Any:
    """Return a result, or the parts of an error that do not depend on blanks."""
    try:
        return work(*arguments, **options)
    except JsonError:
        return JsonError
    except EnvelopeError as exc:
        return exc.code, exc.head, exc.fault


@given(MESSAGES)
def test_a_message_has_the_same_bytes_by_its_form(message: EnvelopeMessage) -> None:
    assert outcome(build_message, message, max_size=SIZE) == outcome(written, message)


def read_both_ways(data: bytes) -> tuple[Any, Any]:
    limits: dict[str, Any] = {"max_size": SIZE, "wall_now": NOW}
    # With a blank before it no message has the usual form.
    return (
        outcome(read_message, data, **limits),
        outcome(read_message, b" " + data, **limits),
    )


@given(MESSAGES, st.data())
def test_a_message_is_read_the_same_by_its_form(
    message: EnvelopeMessage, data: st.DataObject
) -> None:
    try:
        text = written(message)
    except JsonError:
        return
    one, other = read_both_ways(text)
    assert one == other
    at = data.draw(st.integers(0, len(text) - 1))
    piece = data.draw(
        st.binary(max_size=2)
        | st.sampled_from([b'"', b"\\", b"}", b'"}}', b"0", b"24", b" ", b".", b"Z"])
    )
    for changed in (text[:at] + piece + text[at:], text[:at] + piece + text[at + 1 :]):
        one, other = read_both_ways(changed)
        assert one == other


@clause("ENV-Q10")
@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("moment", ["2026-01-31T12:00:00", "2026-01-31T12:00:00.000Z"])
def test_the_flags_of_a_message_are_the_same_by_its_form(
    kind: str, moment: str
) -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    text = written(a_call(kind, {"sku": "A"})._replace(sent_at=at))
    text = text.replace(b"2026-01-31T12:00:00.000Z", moment.encode())
    assert moment.encode() in text
    one, other = (
        read_message(data, max_size=SIZE, wall_now=at) for data in (text, b" " + text)
    )
    assert one == other
    assert len(one.flags) == (not moment.endswith("Z"))


def a_call(kind: str, value: Any) -> EnvelopeMessage:
    return EnvelopeMessage(
        message_id="00000000-0000-4000-8000-000000000001",
        sender_id=ALICE,
        receiver_id=BOB,
        message_type=kind,
        payload=RequestPayload("shop.lookup", value)
        if kind == "request"
        else ResponsePayload("success", value, {}),
        sent_at=NOW,
        correlation_id=None if kind == "request" else "m-1",
    )


@pytest.mark.parametrize("kind", ["request", "response"])
def test_a_usual_message_is_neither_parsed_whole_nor_read_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []

    def parse(data: bytes, **limits: int) -> Any:
        parsed.append(data)
        return parse_json(data, **limits)

    monkeypatch.setattr(messages, "parse_json", parse)
    monkeypatch.setattr(reader, "parse_json", parse)
    message = a_call(kind, {"text": 'a "quoted" é', "price": 7.5})
    data = build_message(message, max_size=SIZE)
    assert parsed == []
    assert read_message(data, max_size=SIZE, wall_now=NOW) == message
    (value,) = parsed
    assert json.loads(value) == {"text": 'a "quoted" é', "price": 7.5}


@pytest.mark.parametrize("kind", ["request", "response"])
def test_a_value_is_as_deep_as_a_message_may_be(kind: str) -> None:
    value: Any = {}
    for _ in range(MAX_DEPTH - 3):
        value = {"a": value}
    message = a_call(kind, value)
    data = build_message(message, max_size=SIZE)
    assert read_message(data, max_size=SIZE, wall_now=NOW) == message
    with pytest.raises(JsonError):
        build_message(a_call(kind, {"a": value}), max_size=SIZE)
    deeper = data.replace(b"{}", b'{"a":{}}')
    with pytest.raises(EnvelopeError, match="nested deeper"):
        read_message(deeper, max_size=SIZE, wall_now=NOW)


def test_a_moment_is_read_the_same_in_every_second() -> None:
    for text in (
        "2026-11-21T12:00:00.000Z",
        "2026-11-21T12:00:00.999Z",
        "2026-11-21T23:59:60.500Z",
        "2026-W47-6T12:00:00.250Z",
    ):
        # One with another zone goes the long way.
        assert timestamps.read_timestamp(text) == timestamps.read_timestamp(
            text.replace("Z", "+00")
        )
    for text in (
        "2026-11-21T24:00:00.001Z",
        "2026-11-21T12:00:00.1²3Z",
        "2026-11-21t24:00:00.500Z",
        "20261121T120000.123.200Z",
        "2026-11-31T12:00:00.000Z",
        "9999-12-31T23:59:60.000Z",
    ):
        with pytest.raises(ValueError, match=r".+"):
            timestamps.read_timestamp(text)
    assert datetime(2026, 11, 21, 12, tzinfo=UTC) == NOW
