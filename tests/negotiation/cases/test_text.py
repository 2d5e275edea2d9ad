"""Test cases as text: written, and read from what people and models write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.cases.case import MAX_CASES, MAX_DATA, TestCase
from negotiation.cases.text import fitting, read_cases, render_cases
from negotiation.document.reader import read_document
from negotiation.errors import CasesError
from negotiation.messages import MAX_TEXT_SIZE
from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import propose
from negotiation.strict_json import canonical_json
from tests.clauses import clause
from tests.negotiation.formats import BINARY, XML

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = (VECTORS / "seed_test_cases.md").read_text(encoding="utf-8")
DOCUMENT = read_document(propose(Demand(Need("twice"), {"number": 1})))
PACKED = BINARY.document
HEAD = "# Test case 1\n- Test request data:"


@clause("ANP-50", "ANP-54")
def test_the_seeds_example_is_read_as_it_stands() -> None:
    first, second = read_cases(SEED, DOCUMENT)
    assert json.loads(first.request) == {
        "messageId": "msg001",
        "type": "REQUEST",
        "action": "getProductInfo",
        "productId": "P12345",
    }
    assert first.response is not None
    assert json.loads(first.response) == {
        "messageId": "msg001",
        "type": "RESPONSE",
        "status": {"code": 200, "message": "成功"},
        "productInfo": {
            "productId": "P12345",
            "productName": "高性能笔记本电脑",
            "productDescription": "配备最新处理器和大容量内存的高性能笔记本电脑。",
            "price": 1299.99,
            "currency": "USD",
        },
    }
    assert first.expected == "成功获取产品信息,状态码为200。"
    assert first.good is True
    assert json.loads(second.request)["productId"] == "P99999"
    assert second.response is not None
    assert json.loads(second.response)["productInfo"] is None
    assert second.expected == "请求的产品不存在,返回状态码404,产品信息为空。"
    assert second.good is False


@clause("ANP-54")
def test_the_seeds_example_is_the_same_when_it_was_written_by_us() -> None:
    cases = read_cases(SEED, DOCUMENT)
    assert read_cases(render_cases(cases, DOCUMENT), DOCUMENT) == cases


@pytest.mark.parametrize(
    "text",
    [
        "# Test case 1: plain\n- Test request data: {}\n- Expected result: good\n",
        "## Test Case 1\n* **Request data**:\n```json\n{}\n```\n* **Expected**: ok",
        "# 测试用例1\n1. 请求数据\uff1a{}\n2. 预期结果\uff1a成功\n",
        "# 测试用例一\n\n**测试请求数据\uff1a**\n\n```\n{}\n```\n",
        "**Test case 1**\n\n### Test request data:\n\n~~~\n{}\n~~~\n",
        "**Test Case 1: a title**\n- __Request__: `{}`\n",
        "Test case 1:\nRequest: {}\nResponse: (to be filled in)\n",
        "Case 1\n\n## Request\n\n{}\n\n## Expected result\n\nsuccess\n",
        "# Test cases\n\nWords before.\n\n## test case 7\nwords\n- Request: a\n {} b",
        "# Test case 1\n- **Test request data (JSON)**:\n\n  ```json\n  {}\n  ```\n",
        "# Test case 1\r\n- Test request data:\r\n```json\r\n{}\r\n```\r\n",
        '# Test case 1\n- Request: {}\n- Request: {"another": 1}\n',
        "> # Test case 1\n> - Request: {}\n",
        "# Test case 1\n- Test request data:\n````json\n{}\n````\n",
        "# Test case 1\n- Request:\n```hex\n7b 7d\n```",
        "# Test case 1\n- Request:\n```base64\ne30=\n```",
    ],
)
def test_looser_forms_are_read(text: str) -> None:
    [case] = read_cases(text, DOCUMENT)
    assert case.request == b"{}"
    assert case.response is None
    assert case.good in {True, None}


def test_what_looks_like_a_heading_inside_of_data_is_data() -> None:
    text = (
        f'{HEAD}\n```json\n{{"a": 1,\n"# Test case 2": "- Response: x"}}\n```\n'
        "- Response:\n```json\n[\n# Test case 3\n]\n```\n"
    )
    with pytest.raises(CasesError, match="response of test case 1"):
        read_cases(text, DOCUMENT)
    [case] = read_cases(text.partition("- Response:\n")[0], DOCUMENT)
    assert b"# Test case 2" in case.request


def test_prose_is_no_heading_and_no_label() -> None:
    text = (
        "# Test case 1\nTest case 1 shows the request data of a request.\n"
        "- Request: {}\n- Expected result: success\n"
        "Test cases like this one, and requests: they help.\n"
    )
    [case] = read_cases(text, DOCUMENT)
    assert case.expected.startswith("success")


@pytest.mark.parametrize(
    ("words", "good"),
    [
        ("A good result.", True),
        ("An error, as the capability fails with 404 (not found).", False),
        ("Returns 200 OK", True),
        ("Status 404", False),
        ("succeeds without an error", None),
        ("", None),
        ("产品不存在", False),
        ("成功", True),
    ],
)
def test_the_kind_of_result_is_read_from_the_words(
    words: str, good: bool | None
) -> None:
    [case] = read_cases(f"{HEAD} {{}}\n- Expected result: {words}\n", DOCUMENT)
    assert case.good is good


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no test case"),
        ("nothing here", "no test case"),
        ("# Test case 1\n", "no test case"),
        ("# Test case 1\n- Expected result: good", "no request"),
        (f"{HEAD} no json", "holds no data"),
        (f"{HEAD}\n", "holds no data"),
        (f"{HEAD}\n```json\n```", "holds no data"),
        (f"{HEAD}\n```hex\n```", "holds no data"),
        (f"{HEAD} {{'a': 1}}", "cannot be read"),
        (f"{HEAD}\n```json\n{{}} and more\n```", "cannot be read"),
        (f"{HEAD}\n```hex\nzz\n```", "cannot be read"),
        (f"{HEAD}\n```base64\n*\n```", "cannot be read"),
        (f"{HEAD}{'[' * 50_000}", "cannot be read"),
        (f"{HEAD} {{}}\n" * (MAX_CASES + 1), "at most"),
        ("x" * (MAX_TEXT_SIZE + 1), "more than"),
        ("测" * (MAX_TEXT_SIZE // 3 + 1), "more than"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(CasesError, match=reason):
        read_cases(text, DOCUMENT)


def test_the_limits_are_taken_exactly() -> None:
    case = TestCase("", b"{}", None, "A good result.", True)
    assert len(read_cases(render_cases([case] * MAX_CASES, DOCUMENT), DOCUMENT)) == 16
    with pytest.raises(CasesError, match="at most 16"):
        render_cases([case] * (MAX_CASES + 1), DOCUMENT)
    filled = f"{HEAD} {{}}\n- Expected result: "
    words = filled + "x" * (MAX_TEXT_SIZE - len(filled))
    assert len(read_cases(words, DOCUMENT)) == 1
    large = TestCase("", json.dumps("x" * MAX_TEXT_SIZE).encode(), None, "", None)
    with pytest.raises(CasesError, match="more than 65536 bytes"):
        render_cases([large], DOCUMENT)


def test_a_set_is_cut_to_what_a_text_has_room_for() -> None:
    large = TestCase("", json.dumps("x" * (MAX_DATA - 2)).encode(), None, "", None)
    small = TestCase("", b"{}", None, "", None)
    kept, others = fitting([*[large] * 6, small], DOCUMENT)
    assert (len(kept), others) == (6, [large])
    assert kept[-1] == small
    assert len(render_cases(kept, DOCUMENT).encode()) <= MAX_TEXT_SIZE
    over = TestCase("", json.dumps("x" * (MAX_DATA - 1)).encode(), None, "", None)
    assert fitting([over], DOCUMENT) == ([], [over])


JSON_BYTES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner)
    ),
    max_leaves=8,
)
FORMS = st.sampled_from(
    [
        canonical_json,
        lambda value: json.dumps(value, indent=2, ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        ),
        lambda value: b" \t" + json.dumps(value).encode() + b"\n \n",
        lambda value: json.dumps(value, indent="\t").replace("\n", "\r\n").encode(),
    ]
)
MESSAGES = st.builds(lambda form, value: form(value), FORMS, JSON_BYTES)


@clause("ANP-50")
@given(
    st.lists(
        st.tuples(MESSAGES, st.none() | MESSAGES, st.sampled_from([True, False, None])),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_is_read_byte_for_byte(
    rows: list[tuple[bytes, bytes | None, bool | None]],
) -> None:
    words = {True: "A good result.", False: "An error.", None: "Something."}
    cases = tuple(
        TestCase(f"number {n}", request, response, words[good], good)
        for n, (request, response, good) in enumerate(rows)
    )
    assert read_cases(render_cases(cases, DOCUMENT), DOCUMENT) == cases


@given(st.binary(min_size=1, max_size=200))
def test_bytes_that_are_not_json_travel_as_hex(data: bytes) -> None:
    case = TestCase("packed", data, data[::-1], "An error.", False)
    for document in (PACKED, XML.document):
        text = render_cases([case], document)
        assert "```hex" in text
        assert read_cases(text, document) == (case,)
    # Bytes that break a document of JSON can be spoken of as well.
    assert read_cases(render_cases([case], DOCUMENT), DOCUMENT) == (case,)


def test_a_text_format_may_stand_in_a_fence_as_it_is() -> None:
    text = f'{HEAD}\n```xml\n<productRequest id="1"/>\n```\n'
    [case] = read_cases(text, XML.document)
    assert case.request == b'<productRequest id="1"/>'
    for bare in ("0102ff", "01 02 ff", "AQL/"):
        [case] = read_cases(f"{HEAD} {bare}\n", PACKED)
        assert case.request == b"\x01\x02\xff"


@given(
    st.text(max_size=200),
    st.text(max_size=200),
    st.sampled_from([True, False, None]),
)
def test_no_title_or_words_break_the_text(
    title: str, words: str, good: bool | None
) -> None:
    case = TestCase(title, b"{}", b"[]", words, good)
    try:
        text = render_cases([case, case], DOCUMENT)
    except CasesError:
        return
    one, other = read_cases(text, DOCUMENT)
    assert one == other
    assert (one.request, one.response) == (b"{}", b"[]")
    if good is not None:
        assert one.good is good
    # What was read once is in its final form.
    assert read_cases(render_cases([one, other], DOCUMENT), DOCUMENT) == (one, other)


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "# Test case 1",
                "测试用例2",
                "\n",
                "- ",
                "**",
                ":",
                "\uff1a",
                "```",
                "~~~",
            ),
            *(
                "json",
                "hex",
                "Request",
                "请求",
                "响应",
                "Response",
                "Expected",
                "{",
                "}",
            ),
            *("[", "]", '"', "\\", "a", "7b7d", " ", "\t", "\r", "1", "\ud800", "\0"),
        ]
    ),
    max_size=60,
).map("".join)


@given(PIECES | st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for document in (DOCUMENT, PACKED):
        for whole in (text, f"{HEAD}{text}"):
            try:
                cases = read_cases(whole, document)
            except CasesError:
                continue
            assert all(case.request for case in cases)
            try:
                written = render_cases(cases, document)
            except CasesError:
                continue
            assert read_cases(written, document) == cases


SLOW = [
    *("*", " ", "\t", "- **", "`", "#", "{", '{"a":', "[", "测试用例", "Test case 1\n"),
    *(
        "- Request:\n",
        "```\n",
        "> ",
        "1. ",
        "Test request ",
        "\n",
        "(",
        "1",
        "- Request: {\n",
    ),
]


@pytest.mark.parametrize("piece", SLOW)
def test_a_text_made_to_be_slow_is_read_in_one_pass(piece: str) -> None:
    """With a pattern that goes back over a line this would not end."""
    for head in (f"{HEAD} {{}}\n", HEAD, ""):
        text = head + piece * ((MAX_TEXT_SIZE - 100) // len(piece.encode()))
        for whole in (text, text + "x"):
            try:
                cases = read_cases(whole, DOCUMENT)
            except CasesError:
                continue
            assert len(cases) == 1
