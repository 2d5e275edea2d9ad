"""Every field of every message: what is valid, and what is not."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.protocols.envelope.messages import (
    EnvelopeMessage,
    ErrorPayload,
    EventPayload,
    OtherPayload,
    RequestPayload,
    ResponsePayload,
    TooLarge,
    build_message,
)
from anp.protocols.envelope.reader import MAX_ID, MAX_NAME, EnvelopeError, read_message
from anp.protocols.timestamps import write_timestamp
from negotiation.errors import JsonError
from negotiation.need import Role
from tests.anp.protocols.envelope.talk import ALICE, BOB, NOW, Agent, message, without
from tests.clauses import clause

SIZE = 64 * 1024
TYPES = ["request", "response", "event", "error"]
FIELDS = [
    "protocol_version",
    "message_id",
    "timestamp",
    "sender_id",
    "receiver_id",
    "message_type",
    "payload",
]
NO_TEXT: list[Any] = [None, 1, 1.5, True, [], {}, ""]
NO_OBJECT: list[Any] = [1, True, "x", [], [["a", 1]]]


def read(value: Any) -> EnvelopeMessage:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_message(data, max_size=SIZE, wall_now=NOW)


def refused(value: Any) -> EnvelopeError:
    with pytest.raises(EnvelopeError) as caught:
        read(value)
    return caught.value


# The common fields.


@clause("ENV-2", "ENV-6", "ENV-Q1", "ENV-Q16")
@pytest.mark.parametrize("kind", TYPES)
def test_each_type_is_one_object_with_all_common_fields(kind: str) -> None:
    envelope = read(message(kind))
    assert envelope.message_type == kind
    assert (envelope.sender_id, envelope.receiver_id) == (ALICE, BOB)
    assert (envelope.version, envelope.message_id) == ("1.0", "m-1")
    assert envelope.sent_at == NOW
    for name in FIELDS:
        assert refused(without(message(kind), name)).fault


@clause("ENV-2", "ENV-6")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff",
        b'{"payload": 1, "payload": 2}',
        b"[" * 100_000,
        b'{"a": NaN}',
        json.dumps(message(message_id="\ud800")).encode(),
        json.dumps(message(more="x" * SIZE)).encode(),
        # The union and the comments of the seed's example are documentation only.
        b'{"receiver_id": "agent-id-string" | "broadcast"}',
        b"{} // x",
    ],
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    assert refused(data).head.message_id is None


@clause("ENV-7", "ENV-8", "ENV-10", "ENV-11", "ENV-12", "ENV-13")
@pytest.mark.parametrize("name", FIELDS[:-1])
@pytest.mark.parametrize("value", NO_TEXT)
def test_common_fields_are_text(name: str, value: Any) -> None:
    assert name in refused({**message(), name: value}).reason


@clause("ENV-8", "ENV-Q11")
def test_any_text_up_to_the_limit_is_an_id() -> None:
    assert read(message(message_id="号" * MAX_ID)).message_id == "号" * MAX_ID
    refused(message(message_id="x" * (MAX_ID + 1)))


@clause("ENV-9", "ENV-Q11")
def test_ids_of_ours_are_uuids_of_version_four() -> None:
    alice = Agent(Role.REQUESTER)
    for number in range(3):
        alice.ask(str(number))
    ids = [uuid.UUID(one["message_id"]) for one in alice.said()]
    assert len(set(ids)) == 3
    assert {one.version for one in ids} == {4}


@clause("ENV-7", "ENV-Q8")
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.999"])
def test_every_version_of_the_same_major_number_is_read(version: str) -> None:
    later = message(protocol_version=version, priority=3)
    later["payload"]["hint"] = {"x": 1}
    assert read(later).version == version


@clause("ENV-7", "ENV-Q8")
@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0"])
def test_another_major_number_is_refused_by_name(version: str) -> None:
    problem = refused({"protocol_version": version, "message_id": "m", "new": True})
    assert problem.code == "unsupported_version"
    assert problem.details == {"supported": ["1.0"]}
    assert problem.head.message_id == "m"
    assert not problem.fault


@clause("ENV-7", "ENV-Q8")
@pytest.mark.parametrize(
    "version",
    ["1", "1.", ".1", "v1.0", "1.0.0", "01.0", "1.00", "１.0", "1.0\n", " 1.0"],
)
def test_a_version_that_is_not_major_minor_is_invalid(version: str) -> None:
    assert refused(message(protocol_version=version)).code == "invalid_payload"


@clause("ENV-10", "ENV-Q10")
@pytest.mark.parametrize(
    "stamp", ["2026-11-21", 1795262400, "yesterday", "2026-02-30T0"]
)
def test_what_is_no_date_time_is_invalid(stamp: Any) -> None:
    assert "timestamp" in refused(message(timestamp=stamp)).reason


@clause("ENV-10", "ENV-Q10")
@pytest.mark.parametrize(
    ("stamp", "flag"),
    [
        ("2026-11-21T12:00:00Z", ""),
        ("2026-11-21T13:00:00+01:00", ""),
        ("2026-11-21T12:05:00Z", ""),
        ("2026-11-21T12:00:00", "no zone"),
        ("2026-11-21T12:05:01Z", "301 s ahead"),
        ("2026-11-21T11:54:59Z", "301 s behind"),
        ("1970-01-01T00:00:00Z", "behind"),
    ],
)
def test_odd_times_are_flagged_and_taken(stamp: str, flag: str) -> None:
    flags = read(message(timestamp=stamp)).flags
    assert len(flags) == bool(flag)
    assert flag in "".join(flags)


@clause("ENV-12", "ENV-Q14")
def test_broadcast_is_a_receiver_and_never_a_sender() -> None:
    assert read(message(receiver_id="broadcast")).receiver_id == "broadcast"
    refused(message(sender_id="broadcast"))


@clause("ENV-4", "ENV-13", "ENV-Q9")
def test_a_type_that_nobody_knows_is_a_valid_message() -> None:
    envelope = read(message("心跳", payload={"beat": 1}))
    assert envelope.payload == OtherPayload({"beat": 1})


@clause("ENV-14")
@pytest.mark.parametrize("kind", [*TYPES, "other"])
@pytest.mark.parametrize("value", [None, *NO_OBJECT])
def test_a_payload_is_an_object(kind: str, value: Any) -> None:
    assert "payload" in refused({**message(kind), "payload": value}).reason


@clause("ENV-15")
def test_metadata_is_an_object_that_may_be_left_out() -> None:
    assert read(message()).metadata == {}
    assert read(message(metadata=None)).metadata == {}
    assert read(message(metadata={"trace": [1]})).metadata == {"trace": [1]}
    for value in NO_OBJECT:
        refused(message(metadata=value))


# Payloads.


@clause("ENV-16")
def test_a_request_names_an_action_and_gives_parameters() -> None:
    payload = {"action": "处理数据", "parameters": {"a": [1]}}
    assert read(message(payload=payload)).payload == RequestPayload(
        "处理数据", {"a": [1]}
    )
    for value in [*NO_TEXT, "x" * (MAX_NAME + 1)]:
        refused(message(payload={**payload, "action": value}))
    for value in [None, *NO_OBJECT]:
        refused(message(payload={**payload, "parameters": value}))
    refused(message(payload={"action": "x"}))


@clause("ENV-17", "ENV-Q2")
@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("成功", "success"),
        ("success", "success"),
        ("进行中", "in_progress"),
        ("in_progress", "in_progress"),
        ("half done", "half done"),
    ],
)
def test_statuses_are_read_in_both_languages(word: str, meaning: str) -> None:
    payload = {"status": word, "result": {"n": 1}, "error": {}}
    assert read(message("response", payload)).payload == ResponsePayload(
        meaning, {"n": 1}, {}
    )


@clause("ENV-17", "ENV-Q2", "ENV-Q4")
@pytest.mark.parametrize("word", ["失败", "failure"])
def test_a_failure_needs_an_error_and_no_result(word: str) -> None:
    error = {"code": "x"}
    for payload in (
        {"status": word, "error": error},
        {"status": word, "error": error, "result": {}},
        {"status": word, "error": error, "result": None},
    ):
        read_payload = read(message("response", payload)).payload
        assert read_payload == ResponsePayload("failure", {}, error)
    for broken in ({}, None, *NO_OBJECT):
        refused(message("response", {"status": word, "result": {}, "error": broken}))
    refused(message("response", {"status": word, "result": {}}))


@clause("ENV-17", "ENV-Q4")
@pytest.mark.parametrize("word", ["success", "成功", "in_progress", "进行中"])
def test_what_went_well_has_no_error(word: str) -> None:
    refused(message("response", {"status": word, "result": {}, "error": {"a": 1}}))
    for value in NO_OBJECT:
        refused(message("response", {"status": word, "result": value}))


@clause("ENV-17")
def test_success_needs_a_result() -> None:
    refused(message("response", {"status": "success"}))
    refused(message("response", {"status": "success", "result": None}))
    assert read(message("response", {"status": "in_progress"}))
    for value in NO_TEXT:
        refused(message("response", {"status": value, "result": {}}))


@clause("ENV-18")
@pytest.mark.parametrize(
    "metadata", [None, {}, {"correlation_id": None}, {"correlation_id": 7}, {"id": "q"}]
)
def test_a_response_says_what_it_answers(metadata: Any) -> None:
    assert read(message("response")).correlation_id == "q-1"
    assert "correlation" in refused(message("response", metadata=metadata)).reason


@clause("ENV-19")
def test_an_event_has_a_name_and_data() -> None:
    payload = {"event_name": "任务完成", "event_data": {"n": 1}}
    assert read(message("event", payload)).payload == EventPayload("任务完成", {"n": 1})
    for value in NO_TEXT:
        refused(message("event", {**payload, "event_name": value}))
    for value in [None, *NO_OBJECT]:
        refused(message("event", {**payload, "event_data": value}))


@clause("ENV-Q2", "ENV-Q15")
def test_the_event_of_an_agent_that_is_there_is_read_in_both_languages() -> None:
    payload = {"event_name": "智能体在线", "event_data": {}}
    assert read(message("event", payload)).payload == EventPayload("agent_online", {})


@clause("ENV-21", "ENV-22", "ENV-Q2")
@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("无效负载", "invalid_payload"),
        ("智能体不可用", "agent_unavailable"),
        ("处理失败", "processing_failed"),
        ("timeout", "timeout"),
        ("E42", "E42"),
    ],
)
def test_codes_are_read_in_both_languages(word: str, meaning: str) -> None:
    payload: dict[str, Any] = {"code": word, "message": "没有"}
    assert read(message("error", payload)).payload == ErrorPayload(meaning, "没有", {})
    payload["details"] = {"n": 1}
    assert read(message("error", payload)).payload == ErrorPayload(
        meaning, "没有", {"n": 1}
    )


@clause("ENV-21", "ENV-22")
def test_an_error_has_code_message_and_maybe_details() -> None:
    payload = {"code": "x", "message": "y"}
    for value in NO_TEXT:
        refused(message("error", {**payload, "code": value}))
    for value in [None, 1, [], {}, "x" * 10_000]:
        refused(message("error", {**payload, "message": value}))
    for value in NO_OBJECT:
        refused(message("error", {**payload, "details": value}))


@clause("ENV-23", "ENV-Q7")
def test_an_error_names_a_request_or_none() -> None:
    assert read(message("error")).correlation_id is None
    assert read(message("error", receiver_id="broadcast")).correlation_id is None
    about = {"correlation_id": "q-1"}
    assert read(message("error", metadata=about)).correlation_id == "q-1"
    refused(message("error", metadata=about, receiver_id="broadcast"))
    refused(message("error", metadata={"correlation_id": 1}))


@clause("ENV-Q7")
def test_a_response_is_never_broadcast() -> None:
    refused(message("response", receiver_id="broadcast"))


# Our own messages.


PAYLOADS = [
    RequestPayload("a", {"x": 1}),
    ResponsePayload("success", {"x": [1, None, "é"]}, {}),
    ResponsePayload("failure", {}, {"code": "1"}),
    EventPayload("e", {"x": {}}),
    ErrorPayload("c", "m", {}),
    ErrorPayload("c", "m", {"d": 1}),
    OtherPayload({"y": 2}),
]
KINDS = ["request", "response", "response", "event", "error", "error", "beat"]


@clause("ENV-6", "ENV-10", "ENV-14", "ENV-15")
@pytest.mark.parametrize(("payload", "kind"), [*zip(PAYLOADS, KINDS, strict=True)])
def test_what_we_write_is_read_as_it_was_meant(payload: Any, kind: str) -> None:
    envelope = EnvelopeMessage(
        message_id="m",
        sender_id=ALICE,
        receiver_id=BOB,
        message_type=kind,
        payload=payload,
        sent_at=NOW,
        metadata={"trace": "t"},
        correlation_id="q" if kind in ("response", "error") else None,
    )
    assert read(build_message(envelope, max_size=SIZE)) == envelope


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "data",
    [
        {"x": float("nan")},
        {"x": "\ud800"},
        {"x": object()},
        {"x": 10**500},
        {1: "a", "1": "b"},
        deep(100),
        deep(100_000),
    ],
)
def test_what_no_strict_reader_takes_is_never_sent(data: Any) -> None:
    envelope = EnvelopeMessage(
        message_id="m",
        sender_id=ALICE,
        receiver_id=BOB,
        message_type="event",
        payload=EventPayload("e", data),
        sent_at=NOW,
    )
    with pytest.raises(JsonError):
        build_message(envelope, max_size=SIZE)


def test_a_message_is_built_up_to_its_limit_and_no_further() -> None:
    envelope = EnvelopeMessage(
        message_id="m",
        sender_id=ALICE,
        receiver_id=BOB,
        message_type="event",
        payload=EventPayload("e", {"x": "é"}),
        sent_at=NOW,
    )
    size = len(build_message(envelope, max_size=SIZE))
    assert build_message(envelope, max_size=size)
    with pytest.raises(TooLarge):
        build_message(envelope, max_size=size - 1)


@clause("ENV-10")
@given(st.datetimes(timezones=st.just(UTC)))
def test_every_time_of_ours_is_read_back(at: datetime) -> None:
    again = read(message(timestamp=write_timestamp(at))).sent_at
    assert abs((again - at).total_seconds()) < 0.001


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_reason(data: bytes) -> None:
    with suppress(EnvelopeError):
        read(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(TYPES),
    st.sampled_from([*FIELDS, "metadata"]),
    JSON,
)
def test_any_value_in_any_field_is_a_message_or_a_reason(
    kind: str, name: str, value: Any
) -> None:
    with suppress(EnvelopeError):
        read({**message(kind), name: value})
