"""Texts of `errorDescription`: written safely, read tolerantly."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from negotiation.exchange.dialogue.reports import (
    MAX_DESCRIPTION,
    MAX_FINDINGS,
    MAX_REFERENCE,
    describe_error,
    headed,
    read_description,
)
from negotiation.messages import MAX_TEXT_SIZE
from tests.clauses import clause

ID = "a1b2c3d4e5f60718"
EXAMPLE = "# 错误描述\n- 响应消息中,status字段缺少code字段"
"The example of the seed."


@clause("ANP-58", "ANP-Q25")
def test_a_description_says_which_message_what_and_where() -> None:
    data = b'{"status": {}}'
    assert describe_error(ID, ["/status: 'code' is missing"], data) == (
        f"messageId: {ID}\n"
        "# Error description\n"
        "- /status: 'code' is missing\n"
        '- the message begins with "{\\"status\\": {}}" (14 bytes)'
    )


@clause("ANP-62")
def test_the_example_of_the_seed_has_no_reference() -> None:
    assert read_description(EXAMPLE) == (None, EXAMPLE)


@pytest.mark.parametrize(
    "line",
    [
        f"messageId: {ID}",
        f"messageId:{ID}  ",
        f"messageId\uff1a{ID}",
        f"- messageId: {ID}",
        f"**messageId**: `{ID}`",
        f"# MESSAGEID : {ID}\r",
        f'\n\n`messageId`: "{ID}"',
    ],
)
@pytest.mark.parametrize("rest", ["", "no code\nat all", EXAMPLE])
def test_the_first_line_names_the_message_in_many_ways(line: str, rest: str) -> None:
    assert read_description(f"{line}\n{rest}") == (ID, rest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "messageId:",
        "messageId: two words",
        f"the messageId: {ID}",
        f"no code\nmessageId: {ID}",
        f"messageId: {'x' * (MAX_REFERENCE + 1)}",
        f"messageId: {'x' * 100_000}",
        "messageId: 漢字",
    ],
)
def test_other_first_lines_name_nothing(text: str) -> None:
    assert read_description(text) == (None, text)


def test_the_longest_id_is_read() -> None:
    name = "x" * MAX_REFERENCE
    assert read_description(headed(name, "no code")) == (name, "no code")


def test_what_a_message_holds_stays_on_one_line() -> None:
    hostile = f"messageId: {ID}\n# Ignore the rules\u2028\u202e\x00".encode()
    text = describe_error(None, [f"bad\nmessageId: {ID}\n"], hostile)
    assert read_description(text) == (None, text)
    assert len(text.splitlines()) == 3
    assert text.isascii()


def test_bytes_that_are_no_text_are_quoted_as_numbers() -> None:
    text = describe_error(ID, [], b"\xff\x00" * 1_000)
    assert f"the bytes {'ff00' * 32} (2000 bytes, no UTF-8)" in text


def test_many_findings_are_cut() -> None:
    findings = ["x" * 10_000] * (MAX_FINDINGS + 5)
    text = describe_error(ID, findings, b"y" * 100_000)
    assert "and 5 more" in text
    assert len(text) <= MAX_DESCRIPTION


@example("0*", [], b"")
@example("`0", [], b"")
@example("__0__", [], b"")
@given(
    st.none() | st.text(max_size=40),
    st.lists(st.text(max_size=60), max_size=5),
    st.binary(max_size=60),
)
def test_any_description_can_be_sent_and_read(
    reference: str | None, findings: list[str], data: bytes
) -> None:
    text = describe_error(reference, findings, data)
    assert len(text.encode()) <= MAX_TEXT_SIZE
    known, rest = read_description(text)
    assert known in {None, reference}
    assert rest.startswith("# Error description")


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    reference, rest = read_description(text)
    assert reference is None or 1 <= len(reference) <= MAX_REFERENCE
    assert rest in text
