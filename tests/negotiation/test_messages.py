"""The meta messages, from bytes and to bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation import messages
from negotiation.errors import MessageError, MessageFault, MisuseError
from negotiation.messages import (
    MAX_CANDIDATE_SIZE,
    MAX_MESSAGE_SIZE,
    MAX_TEXT_SIZE,
    CallSignal,
    ChannelClose,
    CodeGeneration,
    CodeStatus,
    FixErrorNegotiation,
    MetaMessage,
    NaturalLanguageNegotiation,
    NaturalLanguageType,
    ProtocolNegotiation,
    SignalKind,
    Status,
    candidate_problem,
    cut_text,
    parse_meta,
    render_meta,
)
from tests.clauses import clause
from tests.negotiation.test_strict_json import TEXTS, VALUES

NEGOTIATION: dict[str, Any] = {
    "action": "protocolNegotiation",
    "sequenceId": 3,
    "candidateProtocols": "# 需求\n获取商品信息\n",
    "modificationSummary": "- 响应超时: 15秒",
    "status": "negotiating",
}
TEST_CASES: dict[str, Any] = {
    "action": "testCasesNegotiation",
    "testCases": "# 测试用例1",
    "modificationSummary": "one more",
    "status": "accepted",
}
FIX_ERROR: dict[str, Any] = {
    "action": "fixErrorNegotiation",
    "errorDescription": "# 错误描述\n- status字段缺少code字段",
    "status": "rejected",
}
NATURAL: dict[str, Any] = {
    "action": "naturalLanguageNegotiation",
    "type": "REQUEST",
    "messageId": "abcdefgh12345678",
    "message": "please speak slowly",
}
SIGNAL: dict[str, Any] = {
    "action": "callSignal",
    "messageId": "7f",
    "kind": "deadline",
    "data": {"milliseconds": 90_000},
}
CLOSE: dict[str, Any] = {"action": "channelClose", "code": 4004, "reason": "expired"}


def encode(content: Any) -> bytes:
    return json.dumps(content).encode()


def fault(data: bytes) -> MessageFault:
    with pytest.raises(MessageError) as caught:
        parse_meta(data)
    return caught.value.kind


@clause("ANP-16", "ANP-17", "ANP-19", "ANP-20", "ANP-40", "ANP-49", "ANP-57", "ANP-66")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            NEGOTIATION,
            ProtocolNegotiation(
                sequence_id=3,
                candidate_protocols="# 需求\n获取商品信息\n",
                modification_summary="- 响应超时: 15秒",
                status=Status.NEGOTIATING,
            ),
        ),
        (
            {"action": "codeGeneration", "status": "generated"},
            CodeGeneration(status=CodeStatus.GENERATED),
        ),
        (
            {"action": "codeGeneration", "status": "error"},
            CodeGeneration(status=CodeStatus.ERROR),
        ),
        (
            TEST_CASES,
            messages.TestCasesNegotiation(
                test_cases="# 测试用例1",
                modification_summary="one more",
                status=Status.ACCEPTED,
            ),
        ),
        (
            FIX_ERROR,
            FixErrorNegotiation(
                error_description="# 错误描述\n- status字段缺少code字段",
                status=Status.REJECTED,
            ),
        ),
        (
            NATURAL,
            NaturalLanguageNegotiation(
                type=NaturalLanguageType.REQUEST,
                message_id="abcdefgh12345678",
                message="please speak slowly",
            ),
        ),
        (CLOSE, ChannelClose(code=4004, reason="expired")),
        (
            SIGNAL,
            CallSignal(
                message_id="7f",
                kind=SignalKind.DEADLINE,
                data={"milliseconds": 90_000},
            ),
        ),
        (
            {"action": "callSignal", "messageId": "7f", "kind": "cancel"},
            CallSignal(message_id="7f", kind=SignalKind.CANCEL),
        ),
    ],
)
def test_each_action_has_the_fields_of_the_seed(
    content: dict[str, Any], message: MetaMessage
) -> None:
    assert parse_meta(encode(content)) == message
    assert json.loads(render_meta(message)) == content


@clause("ANP-Q16")
def test_unknown_fields_are_ignored() -> None:
    extra = {**NEGOTIATION, "round": 7, "x": {"y": []}, "sequence_id": 9}
    assert parse_meta(encode(extra)) == parse_meta(encode(NEGOTIATION))


@clause("WIRE row 41", "WIRE row 43")
@pytest.mark.parametrize("name", ["candidateProtocols", "modificationSummary"])
@pytest.mark.parametrize("how", ["missing", "null", "empty"])
def test_missing_texts_read_as_empty(name: str, how: str) -> None:
    content = {**NEGOTIATION, name: None if how == "null" else ""}
    if how == "missing":
        del content[name]
    message = parse_meta(encode(content))
    assert isinstance(message, ProtocolNegotiation)
    field = {"candidateProtocols": message.candidate_protocols}
    assert field.get(name, message.modification_summary) == ""


@clause("WIRE row 43")
def test_an_empty_summary_is_left_out_when_sent() -> None:
    message = ProtocolNegotiation(sequence_id=0, status=Status.REJECTED)
    assert json.loads(render_meta(message)) == {
        "action": "protocolNegotiation",
        "sequenceId": 0,
        "candidateProtocols": "",
        "status": "rejected",
    }


@clause("ANP-21", "ANP-Q4")
@pytest.mark.parametrize(
    "number", [b"true", b"false", b"1.0", b"1e0", b'"1"', b"null", b"[1]", b"{}"]
)
def test_only_a_json_integer_is_a_sequence_number(number: bytes) -> None:
    data = b'{"action":"protocolNegotiation","sequenceId":%s,"status":"rejected"}'
    assert fault(data % number) is MessageFault.BAD_FIELD
    assert parse_meta(data % b"-7") == ProtocolNegotiation(
        sequence_id=-7, status=Status.REJECTED
    )


@clause("ANP-32", "WIRE row 44")
@pytest.mark.parametrize(
    "status",
    ["timeout", "ACCEPTED", "Accepted", "", " accepted", None, 1, ["accepted"]],
)
def test_a_status_outside_the_list_is_refused(status: object) -> None:
    for content in (NEGOTIATION, TEST_CASES, FIX_ERROR):
        assert fault(encode({**content, "status": status})) is MessageFault.BAD_FIELD
    code = {"action": "codeGeneration", "status": status}
    assert fault(encode(code)) is MessageFault.BAD_FIELD


@clause("ANP-20")
@pytest.mark.parametrize("name", ["sequenceId", "status"])
def test_a_negotiation_without_number_or_status_is_refused(name: str) -> None:
    content = {key: value for key, value in NEGOTIATION.items() if key != name}
    assert fault(encode(content)) is MessageFault.BAD_FIELD


@clause("ANP-24", "ANP-30")
@pytest.mark.parametrize("value", [1, True, ["x"], {"x": "y"}])
def test_texts_are_strings(value: object) -> None:
    for content, names in (
        (NEGOTIATION, ["candidateProtocols", "modificationSummary"]),
        (TEST_CASES, ["testCases"]),
        (FIX_ERROR, ["errorDescription"]),
        (NATURAL, ["message", "messageId", "type"]),
        (CLOSE, ["reason"]),
    ):
        for name in names:
            assert fault(encode({**content, name: value})) is MessageFault.BAD_FIELD


@clause("ANP-68", "ANP-Q13")
def test_a_natural_language_id_has_16_characters() -> None:
    for size in (0, 15, 17):
        content = {**NATURAL, "messageId": "x" * size}
        assert fault(encode(content)) is MessageFault.BAD_FIELD
    parse_meta(encode({**NATURAL, "messageId": "é" * 16}))


@clause("ANP-19", "ANP-Q11", "ANP-Q16", "WIRE row 50")
@pytest.mark.parametrize(
    "action",
    ["verificationProtocol", "ProtocolNegotiation", "", None, 7, ["codeGeneration"]],
)
def test_an_unknown_action_is_told_apart(action: object) -> None:
    content = {**NEGOTIATION, "action": action}
    assert fault(encode(content)) is MessageFault.UNKNOWN_ACTION


@clause("ANP-18", "WIRE row 50", "ANP-Q27")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'"protocolNegotiation"',
        b'{"action": "codeGeneration", "status": "generated",}',
        b'{"action": "codeGeneration", // ready\n "status": "generated"}',
        b'{"action": "codeGeneration", "status": "generated", "x": NaN}',
        b'{"action": "codeGeneration", "action": "channelClose"}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_json_object_is_told_apart(data: bytes) -> None:
    assert fault(data) is MessageFault.NOT_JSON


@clause("ANP-Q30")
def test_a_candidate_has_at_most_256_kib_of_utf_8() -> None:
    fitting = "é" * (MAX_CANDIDATE_SIZE // 2)
    content = {**NEGOTIATION, "candidateProtocols": fitting}
    data = json.dumps(content, ensure_ascii=False).encode()
    assert isinstance(parse_meta(data), ProtocolNegotiation)
    content["candidateProtocols"] += "x"
    data = json.dumps(content, ensure_ascii=False).encode()
    assert fault(data) is MessageFault.TOO_LARGE


@clause("ANP-Q30")
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (NEGOTIATION, "modificationSummary"),
        (TEST_CASES, "testCases"),
        (TEST_CASES, "modificationSummary"),
        (FIX_ERROR, "errorDescription"),
        (NATURAL, "message"),
        (CLOSE, "reason"),
    ],
)
def test_other_texts_have_at_most_64_kib(content: dict[str, Any], name: str) -> None:
    parse_meta(encode({**content, name: "x" * MAX_TEXT_SIZE}))
    longer = {**content, name: "x" * (MAX_TEXT_SIZE + 1)}
    assert fault(encode(longer)) is MessageFault.TOO_LARGE


@clause("ANP-Q30")
def test_a_message_has_at_most_1_mib() -> None:
    data = encode(NEGOTIATION)
    parse_meta(data + b" " * (MAX_MESSAGE_SIZE - len(data)))
    longer = data + b" " * (MAX_MESSAGE_SIZE + 1 - len(data))
    assert fault(longer) is MessageFault.TOO_LARGE
    assert fault(b"x" * 10_000_000) is MessageFault.TOO_LARGE


def test_a_fault_quotes_nothing_of_the_message() -> None:
    with pytest.raises(MessageError) as caught:
        parse_meta(encode({**NEGOTIATION, "status": "secret"}))
    assert "secret" not in str(caught.value)


@clause("WIRE row 27")
def test_what_we_send_is_utf_8_and_lone_surrogates_are_a_bug() -> None:
    message = ProtocolNegotiation(
        sequence_id=0, candidate_protocols="需求", status=Status.NEGOTIATING
    )
    assert "需求" in render_meta(message).decode("utf-8")
    broken = ProtocolNegotiation(
        sequence_id=0, candidate_protocols="\ud800", status=Status.NEGOTIATING
    )
    with pytest.raises(MisuseError):
        render_meta(broken)


@clause("ANP-Q7", "ANP-Q30")
def test_a_candidate_of_ours_is_checked_before_it_is_sent() -> None:
    assert candidate_problem("x" * MAX_CANDIDATE_SIZE) is None
    assert candidate_problem("\n" * MAX_CANDIDATE_SIZE) == "the document is empty"
    for text, problem in (
        ("", "empty"),
        (" \n\t", "empty"),
        ("a\udc00", "surrogates"),
        ("x" * (MAX_CANDIDATE_SIZE + 1), "at most"),
        ("x" + "\x01" * (MAX_CANDIDATE_SIZE - 1), "as JSON"),
    ):
        assert problem in (candidate_problem(text) or "")


def test_words_are_cut_and_made_fit_for_utf_8() -> None:
    assert cut_text("abcd", 4) == "abcd"
    assert cut_text("abcde", 4) == "abc…"
    assert cut_text("a\ud800", 4) == "a?"


MESSAGES = st.builds(
    ProtocolNegotiation,
    sequence_id=st.integers(-5, 100),
    candidate_protocols=TEXTS,
    modification_summary=TEXTS,
    status=st.sampled_from(Status),
) | st.builds(
    NaturalLanguageNegotiation,
    type=st.sampled_from(NaturalLanguageType),
    message_id=st.text(
        st.characters(exclude_categories=["Cs"]), min_size=16, max_size=16
    ),
    message=TEXTS,
)


@given(MESSAGES)
def test_what_is_rendered_is_parsed_back(message: MetaMessage) -> None:
    assert parse_meta(render_meta(message)) == message


@given(
    st.binary()
    | st.fixed_dictionaries(
        {"action": st.sampled_from([*messages.Action]) | VALUES},
        optional={
            name: VALUES | st.sampled_from(["accepted", "generated", "REQUEST"])
            for name in {**NEGOTIATION, **TEST_CASES, **FIX_ERROR, **NATURAL, **CLOSE}
            if name != "action"
        },
    ).map(encode)
)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        message = parse_meta(data)
    except MessageError:
        return
    assert parse_meta(render_meta(message)) == message
