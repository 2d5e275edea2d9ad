"""Parsing and building outer messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire import messages
from anp.wire.encrypted import Envelope, decode_base64, encode_base64
from anp.wire.messages import (
    Heartbeat,
    Register,
    Response,
    SourceHello,
    canonical_bytes,
    format_timestamp,
    make_heartbeat,
    make_pong,
    make_response,
    parse_message,
    render,
)
from tests.anp.wire.peers import (
    MAX_SIZE,
    VECTORS,
    WALL_NOW,
    make_initiator,
    read_message,
)
from tests.clauses import clause

HELLO: dict[str, Any] = json.loads(make_initiator().messages_to_send()[0])
FINISHED: dict[str, Any] = json.loads(VECTORS["handshakes"][0]["source_finished"])
ENVELOPE: dict[str, Any] = json.loads(VECTORS["envelopes"][0]["message"])
DESTINATION: dict[str, Any] = json.loads(VECTORS["handshakes"][0]["destination_hello"])
TYPES = [
    *("sourceHello", "destinationHello", "finished", "message"),
    *("heartbeat", "register", "response"),
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def parse(value: Any) -> Any:
    return read_message(json.dumps(value))


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside `value`."""
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    else:
        children = []
    found = [path] if path else []
    for key, child in children:
        found += paths_of(child, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of `value` with something else at `path`."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return copy


def refusal_of(value: Any) -> str:
    """Return why a message is refused, or nothing."""
    try:
        parse(value)
    except PeerError as exc:
        return exc.detail
    return ""


def is_one_short_line(text: str) -> bool:
    return "\n" not in text and len(text) < 400


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes | str) -> None:
    with pytest.raises(PeerError):
        parse_message(data, max_size=MAX_SIZE)


@given(JSON, st.sampled_from(TYPES) | st.text())
def test_any_json_is_read_or_refused(value: Any, kind: str) -> None:
    if isinstance(value, dict):
        value = {**value, "type": kind}
    assert is_one_short_line(refusal_of(value))


@given(st.sampled_from([HELLO, DESTINATION, FINISHED, ENVELOPE]), st.data(), JSON)
def test_any_value_in_any_field_is_read_or_refused(
    message: dict[str, Any], data: st.DataObject, new: Any
) -> None:
    path = data.draw(st.sampled_from(paths_of(message)))
    assert is_one_short_line(refusal_of(replaced(message, path, new)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"sourceHello"',
        "{}",
        '{"type": null}',
        '{"type": ["message"]}',
        '{"type": "hello"}',
        '{"type": "heartbeat", "messageId": "a", "message": "ping", "x": NaN}',
        '{"type": "heartbeat", "messageId": "a", "message": "ping", "message": "pong"}',
        '{"type": "heartbeat", "messageId": "\\ud800", "message": "ping"}',
        '{"type": "register", "x": ' + "[" * 100_000,
        '{"type": "register", "x": ' + "[" * 65 + "]" * 65 + "}",
        '{"type": "register", "x": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_message_is_the_peers_error(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        parse_message(text, max_size=1024 * 1024)
    assert caught.value.code is ErrorCode.NOT_ALLOWED


def test_the_size_limit_holds_at_it_and_one_past_it() -> None:
    text = json.dumps(HELLO)
    assert isinstance(parse_message(text, max_size=len(text)), SourceHello)
    for data in (text, text.encode()):
        with pytest.raises(PeerError):
            parse_message(data, max_size=len(text) - 1)


def test_a_size_is_counted_in_bytes() -> None:
    text = '{"type": "register", "note": "世界"}'
    with pytest.raises(PeerError):
        parse_message(text, max_size=len(text))


@clause("WIRE row 9")
def test_unknown_fields_are_signed() -> None:
    extra = {"x": {"y": [1, 1.5, None]}, "signed": "not ours", "kind": "nor this"}
    hello = parse({**HELLO, **extra})
    assert hello.signed == canonical_bytes({**HELLO, **extra})
    assert hello.kind == "sourceHello"


@clause("WIRE row 1")
@pytest.mark.parametrize("text", ["a", "x" * 5000, "世界"])
def test_ids_may_have_any_length(text: str) -> None:
    assert parse({**HELLO, "sessionId": text, "messageId": text}).session_id == text


@clause("WIRE row 1")
def test_an_empty_session_id_is_refused() -> None:
    with pytest.raises(PeerError):
        parse({**HELLO, "sessionId": ""})


@clause("WIRE row 13")
def test_what_the_sdk_never_reads_may_be_missing() -> None:
    missing = {"timestamp", "version", "supportedVersions", "supportedGroups"}
    hello = parse({k: v for k, v in HELLO.items() if k not in {*missing, "messageId"}})
    assert isinstance(hello, SourceHello)


@pytest.mark.parametrize("message", [HELLO, DESTINATION, FINISHED, ENVELOPE])
def test_every_field_that_counts_is_required(message: dict[str, Any]) -> None:
    optional = {
        *("version", "timestamp", "messageId", "supportedVersions"),
        *("supportedGroups", "selectedVersion", "metaProtocol"),
    }
    if message is ENVELOPE:
        optional.remove("messageId")
    for name in set(message) - optional:
        with pytest.raises(PeerError):
            parse({k: v for k, v in message.items() if k != name})


@clause("WIRE row 16")
@pytest.mark.parametrize(
    ("value", "seconds"),
    [(1, 1), (864_000, 864_000), ("864000", 864_000), (1_800_000_000, 1_800_000_000)],
)
def test_expires_is_a_number_of_seconds_or_its_digits(value: Any, seconds: int) -> None:
    path = ("keyShares", 0, "expires")
    assert parse(replaced(HELLO, path, value)).key_shares[0].expires == seconds


@clause("WIRE row 16")
@pytest.mark.parametrize(
    "value", [0, -1, 1.0, True, None, "", "0", "-1", "1.5", "٣", " 1", "9" * 21, [1]]
)
def test_any_other_expires_is_refused(value: Any) -> None:
    with pytest.raises(PeerError):
        parse(replaced(HELLO, ("keyShares", 0, "expires"), value))


@clause("WIRE row 4")
def test_a_list_of_verification_methods_is_refused() -> None:
    with pytest.raises(PeerError):
        parse({**HELLO, "verificationMethod": [HELLO["verificationMethod"]]})


@clause("WIRE row 31")
def test_a_hello_that_is_refused_is_not_written_in_its_canonical_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That takes as long as all else of it."""
    written: list[dict[str, Any]] = []

    def write(hello: dict[str, Any]) -> bytes:
        written.append(hello)
        return canonical_bytes(hello)

    monkeypatch.setattr(messages, "canonical_bytes", write)
    assert refusal_of({**HELLO, "signed": "AA==", "sessionId": 7})
    assert written == []
    read = parse_message(json.dumps({**HELLO, "signed": "x"}), max_size=MAX_SIZE)
    assert isinstance(read, SourceHello)
    assert read.signed == canonical_bytes({**HELLO, "signed": "x"})
    assert len(written) == 1


def test_a_pong_has_the_id_of_its_ping() -> None:
    ping = parse({"type": "heartbeat", "messageId": "m-1", "message": "ping"})
    pong = json.loads(make_pong(ping, timestamp=WALL_NOW))
    assert pong == {
        "version": "1.0",
        "type": "heartbeat",
        "timestamp": "2026-11-21T12:00:00.000Z",
        "messageId": "m-1",
        "message": "pong",
    }


def test_a_heartbeat_of_ours_is_read_again() -> None:
    text = make_heartbeat("ping", message_id="m-1", timestamp=WALL_NOW)
    message = read_message(text)
    assert isinstance(message, Heartbeat)
    assert message.message == "ping"


@clause("WIRE row 32")
def test_register_is_read_whatever_it_registers() -> None:
    assert isinstance(parse({"type": "register", "routers": [{"x": 1}]}), Register)


@clause("WIRE row 25")
def test_a_response_has_the_fields_of_the_spec() -> None:
    text = make_response(
        ErrorCode.DECRYPTION_FAILED,
        "a reason",
        source_did="did:example:a",
        destination_did="did:example:b",
        original_type="message",
        original_message_id="m-1",
        message_id="m-2",
        timestamp=WALL_NOW,
    )
    assert json.loads(text) == {
        "version": "1.0",
        "type": "response",
        "timestamp": "2026-11-21T12:00:00.000Z",
        "messageId": "m-2",
        "sourceDid": "did:example:a",
        "destinationDid": "did:example:b",
        "originalType": "message",
        "originalMessageId": "m-1",
        "code": 4001,
        "detail": "a reason",
    }
    response = read_message(text)
    assert isinstance(response, Response)
    assert response.code is ErrorCode.DECRYPTION_FAILED


@clause("WIRE row 25")
def test_a_response_as_the_sdk_generates_it_is_read() -> None:
    short = {"type": "response", "messageId": "m-1", "code": 404, "detail": "no"}
    response = parse({**short, "originalType": "sourceHello"})
    assert (response.code, response.message_id) == (ErrorCode.DID_NOT_FOUND, "m-1")


@pytest.mark.parametrize("code", [0, 500, -1, 10**30])
def test_an_unknown_code_reads_as_a_refusal(code: int) -> None:
    assert parse({"type": "response", "code": code}).code is ErrorCode.NOT_ALLOWED


@pytest.mark.parametrize("code", [None, "404", 404.0, True])
def test_a_code_that_is_no_integer_is_refused(code: Any) -> None:
    with pytest.raises(PeerError):
        parse({"type": "response", "code": code})


@clause("WIRE row 26")
def test_the_iv_of_an_envelope_has_12_bytes() -> None:
    envelope = parse(ENVELOPE)
    assert isinstance(envelope, Envelope)
    assert len(envelope.iv) == 12


@clause("WIRE row 26")
@pytest.mark.parametrize(
    "text", ["AA=", "AA", "AAAA\n", "A-_A", "AB==", "AA==AA==", "Ä===", "A"]
)
def test_only_canonical_padded_base64_is_read(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        decode_base64(text)
    assert caught.value.code is ErrorCode.DECRYPTION_FAILED


@given(st.binary())
def test_base64_of_any_bytes_is_read_again(data: bytes) -> None:
    assert decode_base64(encode_base64(data)) == data


@given(st.text("AQgw+/=-_ \né", max_size=12))
def test_no_other_text_is_base64_than_what_is_written(text: str) -> None:
    try:
        data = decode_base64(text)
    except PeerError:
        return
    assert encode_base64(data) == text


@clause("WIRE row 13")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render({"type": "register", "x": [{"y": value}]})
    assert json.loads(render({"x": "NaN, -Infinity"})) == {"x": "NaN, -Infinity"}


def test_a_timestamp_has_milliseconds_and_z() -> None:
    assert format_timestamp(WALL_NOW) == "2026-11-21T12:00:00.000Z"


def test_a_moment_without_a_zone_is_our_bug() -> None:
    with pytest.raises(LocalError):
        format_timestamp(WALL_NOW.replace(tzinfo=None))


@given(
    st.datetimes(
        min_value=datetime(1970, 1, 2),
        max_value=datetime(9998, 12, 30),
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]),
    )
)
def test_timestamps_are_those_of_the_standard_library(moment: datetime) -> None:
    in_utc = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    assert format_timestamp(moment) == in_utc.removesuffix("+00:00") + "Z"
    whole = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert format_timestamp(moment, milliseconds=False) == whole
