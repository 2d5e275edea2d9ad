"""The text of documents whose bytes are not JSON, read and written."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negotiation.document.layout import read_layout
from negotiation.document.reader import read_document
from negotiation.document.renderer import render_encoded_document
from negotiation.document.shape import ExampleKind, WorkedExample, document_hash
from negotiation.errors import DocumentError
from negotiation.mind import Demand, Offer
from negotiation.need import Need
from negotiation.rules.rules import judge_offer, judge_reply
from tests.clauses import clause
from tests.negotiation.formats import BOTH, TEXT, XML, Format

REQUEST = json.dumps({"type": "object", "properties": {"id": TEXT, "a": TEXT}})
RESPONSE = json.dumps(
    {"type": "object", "properties": {"id": TEXT, "code": {"type": "integer"}}}
)
SCHEMAS = f"# Request message\n{REQUEST}\n# Response message\n{RESPONSE}\n"
ENGLISH = """# Worked request
```json
{"id": "1", "a": "x"}
```
```hex
01 ff
```
# Worked response
```json
{"id": "1", "code": 200}
```
```base64
AgA=
```
# Worked error response
```json
{"id": "1", "code": 404}
```
```xml
<e>404</e>
```
"""
EXPECTED = (
    WorkedExample(ExampleKind.REQUEST, {"id": "1", "a": "x"}, b"\x01\xff"),
    WorkedExample(ExampleKind.RESPONSE, {"id": "1", "code": 200}, b"\x02\x00"),
    WorkedExample(ExampleKind.ERROR, {"id": "1", "code": 404}, b"<e>404</e>"),
)
CHINESE = (
    ENGLISH.replace("Worked request", "示例:请求")
    .replace("Worked response", "示例:响应")
    .replace("Worked error response", "示例:错误")
)
BYTES_FIRST = """# Examples
## Request
```hex
0x01  # one
```
```json
{"id": "1", "a": "x"}
```
""".replace("0x01  # one", "01  # one\nff  // two")
TEXTS = {
    "English": "# Encoding\nBinary.\n" + SCHEMAS + ENGLISH,
    "Chinese": "# 编码\n二进制\n" + SCHEMAS + CHINESE,
    "examples before the schemas": "# Encoding\nBinary.\n" + ENGLISH + SCHEMAS,
    "bytes first": (
        "# Encoding\nBinary.\n"
        + SCHEMAS
        + BYTES_FIRST
        + ENGLISH[ENGLISH.index("# Worked response") :]
    ),
    "below the schemas": (
        f"# Encoding\nBinary.\n# Request message\n{REQUEST}\nFor example:\n"
        + ENGLISH.replace("# Worked request\n", "")
        .replace("# Worked response", f"# Response message\n{RESPONSE}\nA good one:")
        .replace("# Worked error response", "When it fails:")
    ),
    "headings for values and bytes": "# Encoding\nBinary.\n"
    + SCHEMAS
    + ENGLISH.replace("```json", "## Values\n```json")
    .replace("```hex", "## Bytes\n```hex")
    .replace("```base64", "## Bytes\n```base64")
    .replace("```xml", "## Bytes\n```xml"),
    "Windows line ends": ("# Encoding\nBinary.\n" + SCHEMAS + ENGLISH).replace(
        "\n", "\r\n"
    ),
    "indented": "# Encoding\nBinary.\n"
    + SCHEMAS
    + "".join(
        line if line.startswith("#") else "  " + line
        for line in ENGLISH.splitlines(keepends=True)
    ),
}


@clause("ANP-70")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_worked_examples_are_read_in_many_forms(text: str) -> None:
    document = read_document(text)
    assert not document.is_json
    assert document.examples == EXPECTED
    assert document.request_schema == read_document(SCHEMAS).request_schema
    assert document.response_schema == read_document(SCHEMAS).response_schema
    assert document.of_values.is_json


def test_values_that_look_like_a_schema_are_not_taken_for_one() -> None:
    text = TEXTS["examples before the schemas"].replace('"a": "x"', '"type": "string"')
    assert read_document(text).request_schema == read_document(SCHEMAS).request_schema


GOOD = TEXTS["English"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "# Encoding\nBinary.\n" + SCHEMAS,
            "not JSON and there is no worked request or response or error response",
        ),
        (GOOD.replace("Worked request", "Foo"), "no worked request;"),
        (GOOD.replace("```hex", "```"), "no worked request;"),
        (GOOD.replace('{"id": "1", "a": "x"}', "x"), "no worked request;"),
        (GOOD.replace("01 ff", "0g"), "bytes of the worked request are not hex"),
        (GOOD.replace("01 ff", "01 f"), "bytes of the worked request are not hex"),
        (GOOD.replace("01 ff", ""), "the worked request has no bytes"),
        (GOOD.replace("AgA=", "Ag"), "worked response are not base64"),
        (GOOD.replace('"a": "x"', '"a": NaN'), "the values .* cannot be read"),
        (GOOD.replace("01 ff", "00" * 65_537), "has 65537 bytes, at most 65536"),
        (GOOD + ENGLISH * 11, "36 worked examples, at most 32"),
    ],
)
def test_a_document_with_missing_or_broken_examples_is_refused_in_words(
    text: str, reason: str
) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_document(text)


@pytest.mark.parametrize(
    ("said", "is_json"),
    [
        ("# Encoding\nJSON in UTF-8.", True),
        ("# Encoding\nUTF-8 everywhere.", True),
        ("# Encoding: JSON, not XML", True),
        ("# Encoding\nJSON; binary fields are base64 texts.", True),
        ("# Encoding of dates\nUTF-8 texts as in ISO 8601.", True),
        ("# Encoding\nJSON\n# Encoding of pictures\nPNG", True),
        ("# Data format\nXML", True),
        ("# Encoding\nXML. The JSON Schemas describe the values.", False),
        ("# Encoding\nXML; the blocks in JSON show values.", False),
        ("# Encoding\nNot JSON: EDIFACT D96A", False),
        ("# Encoding\nas on the phone", False),
        ("# 编码\n紧凑二进制,大端,不是 JSON", False),
        ("# Wire format\nMessagePack", False),
        ("**Bytes on the wire**\nPacked, big-endian.", False),
    ],
)
def test_what_stands_under_the_heading_decides_whether_bytes_are_json(
    said: str, is_json: bool
) -> None:
    document = read_document(f"{said}\n\n{SCHEMAS}{ENGLISH}")
    assert document.is_json is is_json
    assert bool(document.examples) is not is_json
    assert is_json or document.encoding != "json"


def test_rules_counter_such_a_document_with_and_without_examples() -> None:
    for text in (GOOD, "# Encoding\nBinary.\n" + SCHEMAS, XML.file("document.md")):
        text = "# Requirement\nshop.product\n" + text
        assert "not JSON" in getattr(
            judge_offer(text, Offer((XML.capability,)), ()), "summary", ""
        )
        demand = Demand(Need("shop.product"), {"sku": "x"})
        assert "not JSON" in getattr(judge_reply(text, demand, ()), "summary", "")


# Writing them.


@BOTH
def test_a_rendered_document_reads_as_the_one_it_was_made_of(form: Format) -> None:
    known = form.document
    text = render_encoded_document(
        known.requirement,
        known.request_schema,
        known.response_schema,
        encoding=known.encoding,
        examples=known.examples,
    )
    again = read_document(text)
    assert again.examples == known.examples
    assert again.requirement == known.requirement
    assert again.encoding == known.encoding
    assert again.request_schema == known.request_schema
    assert again.response_schema == known.response_schema
    made = render_encoded_document(
        again.requirement,
        again.request_schema,
        again.response_schema,
        encoding=again.encoding,
        examples=again.examples,
    )
    assert document_hash(made) == document_hash(text)


@BOTH
@pytest.mark.parametrize(
    "encoding",
    [
        "Lines of key=value in UTF-8, each with a newline at its end.",
        "每行一个 key=value,使用 UTF-8。",
        "Fields of a fixed width in ASCII, with blanks up to the width.",
    ],
)
def test_a_format_without_a_known_name_is_another_one_than_json(
    form: Format, encoding: str
) -> None:
    known = form.document
    text = render_encoded_document(
        known.requirement,
        known.request_schema,
        known.response_schema,
        encoding=encoding,
        examples=known.examples,
    )
    again = read_document(text)
    assert not again.is_json
    assert again.encoding.startswith(encoding)


@pytest.mark.parametrize(
    "encoding",
    [
        "",
        "JSON",
        "XML\n# Request message\n" + RESPONSE,
        "```\nXML",
        "XML\n\n```json\n{}",
    ],
)
def test_a_document_that_would_read_otherwise_is_not_written(encoding: str) -> None:
    with pytest.raises(DocumentError):
        render_encoded_document(
            "x",
            json.loads(REQUEST),
            json.loads(RESPONSE),
            encoding=encoding,
            examples=EXPECTED,
        )
    with pytest.raises(DocumentError, match="no worked error response"):
        render_encoded_document(
            "x",
            json.loads(REQUEST),
            json.loads(RESPONSE),
            encoding="XML",
            examples=EXPECTED[:2],
        )


VALUES = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.text(st.characters(codec="utf-8"), max_size=8)
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
    | st.sampled_from(["```", "# Response", "object", "{"]),
    max_size=4,
)
DATA = st.binary(min_size=1, max_size=80) | st.sampled_from(
    [b"<a/>", b"<a>\n</a>", b"<\r>", b"<a>```</a>", b"<\n```\n>", b"<\xff>", b"< \n>"]
)


@settings(deadline=None)
@given(st.tuples(VALUES, DATA), st.tuples(VALUES, DATA), st.tuples(VALUES, DATA))
def test_reading_gives_back_any_example_that_was_rendered(
    one: tuple[dict[str, Any], bytes],
    two: tuple[dict[str, Any], bytes],
    three: tuple[dict[str, Any], bytes],
) -> None:
    examples = tuple(
        WorkedExample(kind, values, data)
        for kind, (values, data) in zip(ExampleKind, (one, two, three), strict=True)
    )
    text = render_encoded_document(
        "x",
        json.loads(REQUEST),
        json.loads(RESPONSE),
        encoding="Binary.",
        examples=examples,
    )
    assert read_document(text).examples == examples


# Hostile texts.

HOSTILE = {
    "many examples": "# Encoding\nXML\n" + ENGLISH * 1_000,
    "many fences": "# Encoding\nXML\n# Request\n" + "```hex\n00\n```\n" * 12_000,
    "many values": "# Encoding\nXML\n# Request\n" + '```json\n{"a": 1}\n```\n' * 9_000,
    "one long hex": "# Encoding\nXML\n# Request\n{}\n```hex\n" + "00" * 120_000,
    "comments": "# Encoding\nXML\n# Request\n{}\n```hex\n" + "#/" * 120_000,
    "long lines of blanks": "# Encoding\nXML\n# Request\n{}\n```xml\n" + " " * 250_000,
    "nested values": "# Encoding\nXML\n# Request\n" + '{"a":' * 40_000,
    "encodings": "# Encoding\n" * 20_000,
    "negations": "# Encoding\n" + "not non no " * 20_000,
    "open fence": "# Encoding\nXML\n" + "~~~hex\n" + "`" * 200_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_of_other_formats_are_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        read_document(text)


MARKUP = st.sampled_from(
    [
        "# Encoding\nXML\n",
        "# 编码\n二进制\n",
        *ENGLISH.splitlines(keepends=True),
        REQUEST + "\n",
        RESPONSE + "\n",
        "# Request message\n",
        "# Response message\n",
        "```json\n",
        "  ```hex\n",
        "~~~base64\n",
        "```xml\n",
        "```\n",
    ]
)


@settings(deadline=None)
@given(st.lists(MARKUP | st.text(max_size=5), max_size=40).map("".join))
def test_any_text_of_another_format_is_read_or_refused(text: str) -> None:
    with suppress(DocumentError):
        document = read_document("# Encoding\nXML\n" + text)
        kinds = {one.kind for one in document.examples}
        assert document.is_json or kinds == set(ExampleKind)
        read_layout(document.of_values)
