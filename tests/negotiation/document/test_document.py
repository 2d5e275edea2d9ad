from __future__ import annotations

import hashlib
import json
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negotiation.document.fields import Slot
from negotiation.document.layout import error_response_schema, read_layout
from negotiation.document.markdown import MAX_CANDIDATES, MAX_SCANNED, read_outline
from negotiation.document.reader import KEPT, read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import (
    MAX_DOCUMENT_SIZE,
    DocumentErrorCode,
    document_hash,
)
from negotiation.errors import DocumentError
from negotiation.need import Capability
from negotiation.schema.intake import prepared
from tests.clauses import clause
from tests.negotiation.formats import strict
from tests.negotiation.inprocess import findings
from tests.negotiation.schema.schema_strategies import HOSTILE_NAMES, NAMES, schemas

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED = (VECTORS / "seed_product_full.md").read_text(encoding="utf-8")
SEED_ON_URI = (VECTORS / "seed_product_uri.md").read_text(encoding="utf-8")
INPUT: Any = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
}
OUTPUT: Any = {"type": "object", "properties": {"price": {"type": "number"}}}
REQUEST = '{"type": "object", "properties": {"a": {"type": "string"}}}'
RESPONSE = '{"type": "object", "properties": {"b": {"type": "string"}}}'


@clause("ANP-24", "ANP-35")
def test_the_seeds_example_is_read_although_it_has_no_fences() -> None:
    document = read_document(SEED)
    assert document.requirement == "获取商品信息"
    assert isinstance(document.request_schema, dict)
    assert isinstance(document.response_schema, dict)
    assert document.request_schema["title"] == "ProductInfoRequest"
    assert document.response_schema["title"] == "ProductInfoResponse"
    assert document.request_schema["required"] == [
        "messageId",
        "type",
        "action",
        "productId",
    ]
    assert document.is_json
    assert document.base_uri is None
    assert document.text == SEED


@clause("ANP-35")
def test_the_fields_of_the_seeds_example_are_understood() -> None:
    layout = read_layout(read_document(SEED))
    assert layout.message_id == "messageId"
    assert dict(layout.request.fields)[("action",)] is Slot.ACTION
    assert layout.response.marks[0].path == ("status", "code")
    assert layout.response.texts == (("status", "message"),)
    assert layout.response.places[0].path == ("productInfo",)
    assert layout.request.places[0].path == ()


@clause("ANP-35")
def test_the_seeds_error_answer_with_null_for_the_product_is_an_error_response() -> (
    None
):
    schema = error_response_schema(read_document(SEED))
    answer = {
        "messageId": "msg002",
        "type": "RESPONSE",
        "status": {"code": 404, "message": "产品未找到"},
        "productInfo": None,
    }
    assert findings(schema, answer) == []
    assert findings(schema, {**answer, "status": {"message": "x"}}) != []


@clause("ANP-26", "ANP-36")
def test_a_candidate_on_a_protocol_we_do_not_hold_is_refused_naming_it() -> None:
    with pytest.raises(DocumentError, match="is not held here") as caught:
        read_document(SEED_ON_URI)
    assert "https://agent-network-protocol.com/protocols/" in str(caught.value)
    assert "send the whole protocol" in str(caught.value)


@clause("ANP-26")
def test_a_candidate_with_a_base_uri_and_all_schemas_stands_alone() -> None:
    document = read_document("基于已有协议(URI: https://a.example/p)\n\n" + SEED)
    assert document.base_uri == "https://a.example/p"


@clause("ANP-24", "ANP-25", "ANP-4")
def test_our_document_states_need_means_flow_format_and_errors() -> None:
    text = render_document("price of a product", INPUT, OUTPUT)
    for heading in (
        "# Requirement\n\n> price of a product\n",
        "# What the requester can use\n",
        "# Flow\n",
        "# Data format\n",
        "## Request message\n",
        "## Response message\n",
        "# Errors\n",
        "# Time-out\n",
    ):
        assert heading in text
    assert "`sku` (string)" in text
    assert "`count` (integer, optional)" in text
    assert "https://json-schema.org/draft/2020-12/schema" in text


@clause("ANP-5")
def test_a_providers_document_states_what_it_offers() -> None:
    capability = Capability(
        "shop.price", "Price of a\n# product", INPUT, OUTPUT, read_only=True
    )
    text = render_document("shop.price", INPUT, OUTPUT, offered=[capability])
    assert "- `shop.price` (changes nothing): Price of a # product\n" in text
    assert read_document(text).requirement == "shop.price"


def test_rendering_twice_gives_the_same_bytes_whatever_the_order_of_keys() -> None:
    turned = {key: INPUT[key] for key in reversed(INPUT)}
    turned["properties"] = dict(reversed(INPUT["properties"].items()))
    assert render_document("x", INPUT, OUTPUT) == render_document("x", turned, OUTPUT)


@clause("ANP-88", "ANP-84")
def test_the_hash_is_sha256_of_the_exact_utf8_bytes() -> None:
    for text in (SEED, SEED + "\n", "\r\n", "é", "e\u0301"):
        assert document_hash(text) == hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(DocumentError, match="surrogate"):
        document_hash("\ud800")


REQUIREMENTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    [
        "",
        "# Response message\n```json\n{}\n```",
        SEED,
        "> quoted\n>not\n",
        "a\r\nb\rc\u2028d",
        '{"type": "object", "properties": {}}',
        "URI: https://example.com/",
        "# Encoding\nXML",
    ]
)


@settings(deadline=None)
@given(REQUIREMENTS, schemas([*NAMES, *HOSTILE_NAMES]), schemas(HOSTILE_NAMES))
def test_reading_gives_back_what_was_rendered(
    requirement: str, given_schema: Any, wanted: Any
) -> None:
    text = render_document(requirement, given_schema, wanted)
    document = read_document(text)
    assert document.requirement == requirement
    assert document.input_schema == prepared(given_schema)
    assert document.output_schema == prepared(wanted)
    assert document.is_json
    again = document.input_schema, document.output_schema
    assert again[0] is not None
    assert again[1] is not None
    assert render_document(requirement, again[0], again[1]) == text


FORMS = {
    "fences and English headings": (
        f"# Request\n```json\n{REQUEST}\n```\n# Response\n~~~~\n{RESPONSE}\n~~~~\n"
    ),
    "response first": f"# 响应\n{RESPONSE}\n\n# 请求\n{REQUEST}\n",
    "bold headings": f"**Request**\n{REQUEST}\n**Reply:**\n{RESPONSE}\n",
    "no headings": f"{REQUEST}\n\n{RESPONSE}\n",
    "unclear headings": f"# One\n{REQUEST}\n# Two\n{RESPONSE}\n",
    "words before the schema": (
        f"The request looks like this:\n{REQUEST}\nand the answer:\n{RESPONSE}"
    ),
    "titles inside": (
        '{"title": "FooResponse", ' + RESPONSE[1:] + "\n"
        '{"title": "FooRequest", ' + REQUEST[1:]
    ),
    "an error schema beside": (
        f"# Request\n{REQUEST}\n# Error response\n"
        f'{{"type": "object"}}\n# Response\n{RESPONSE}\n'
    ),
    "examples beside": (
        '# Example\n```json\n{"type": "REQUEST", "a": "x"}\n```\n'
        f"# Request\nsuch as {{a}}\n{{a}}\n{REQUEST}\n# 返回\n{RESPONSE} done\n"
    ),
    "an open fence at the end": f"# Request\n{REQUEST}\n# Response\n```\n{RESPONSE}\n",
    "parent headings": (
        f"# Request\n## Schema\n{REQUEST}\n# 返回结果\n## Schema\n{RESPONSE}"
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_the_two_schemas_are_found_in_many_forms(text: str) -> None:
    document = read_document(text)
    assert isinstance(document.request_schema, dict)
    assert isinstance(document.response_schema, dict)
    assert list(document.request_schema["properties"]) == ["a"]
    assert list(document.response_schema["properties"]) == ["b"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("get me a product", "no JSON Schema of the request and response"),
        (f"# Request\n{REQUEST}", "no JSON Schema of the response"),
        (f"# Response\n{RESPONSE}", "no JSON Schema of the request"),
        ("# Request\n```\n{'a': 1}\n```", "a JSON text cannot be read"),
        (
            f'# Request\n{{"$ref": "http://a.example/"}}\n# Response\n{RESPONSE}',
            "the request schema cannot be used: the \\$ref .* is not local",
        ),
        (
            f'# Request\n{REQUEST}\n# Response\n{{"$ref": "#"}}',
            "the response schema cannot be used: .*leads back to itself",
        ),
        ("\ud800", "surrogate"),
    ],
)
def test_what_is_missing_is_said_in_words(text: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_document(text)


def test_a_candidate_at_the_size_limit_is_read_and_one_byte_more_is_not() -> None:
    base = FORMS["no headings"]
    full = base + "x" * (MAX_DOCUMENT_SIZE - len(base))
    read_document(full)
    with pytest.raises(DocumentError, match="more than 262144 bytes"):
        read_document(full + "x")
    with pytest.raises(DocumentError, match="more than 262144 bytes"):
        read_document(base + "é" * (MAX_DOCUMENT_SIZE // 2))
    with pytest.raises(DocumentError, match="more than 262144 bytes"):
        read_document("x" * 10_000_000)


def test_a_document_that_would_be_too_large_is_not_rendered() -> None:
    with pytest.raises(DocumentError, match="at most 262144"):
        render_document("x" * MAX_DOCUMENT_SIZE, {}, {})
    with pytest.raises(DocumentError, match="cannot write a document"):
        render_document("x", {"enum": list(range(1_999))}, {})


def test_bytes_that_are_not_json_are_known_by_a_heading_of_their_own() -> None:
    with pytest.raises(DocumentError, match="not JSON and there is no worked request"):
        read_document("# Encoding\nXML 1.0\n" + FORMS["no headings"])
    assert read_document("# 编码\nJSON, UTF-8\n" + FORMS["no headings"]).is_json


HOSTILE_TEXTS = {
    "open braces": "{\n" * 100_000,
    "open objects": '{"a":\n' * 40_000,
    "open strings": '{"\n' * 80_000,
    "one open string": '{"' + "\\" * 250_000,
    "quotes": '{"a' + '"' * 250_000,
    "pairs": "{}\n" * 80_000,
    "nested": "{" * 250_000,
    "brackets": ("{" + "[]" * 60_000 + "\n") * 2,
    "fences": "```\n" * 60_000,
    "long heading": "#" * 250_000,
    "headings": "# request\n" * 25_000,
    "stars": "**" * 120_000,
    "uri": "URI" + " " * 250_000,
    "backticks": "`" * 250_000,
}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_hostile_texts_are_read_with_bounded_work(text: str) -> None:
    with pytest.raises(DocumentError):
        read_document(text)
    assert len(read_outline(text).jsons) <= MAX_CANDIDATES


def test_the_number_of_json_texts_that_are_tried_is_limited() -> None:
    tried = read_outline("{}\n" * MAX_CANDIDATES)
    assert tried.complete
    assert len(tried.jsons) == MAX_CANDIDATES
    assert not read_outline("{}\n" * (MAX_CANDIDATES + 1)).complete


def test_the_characters_that_are_followed_are_limited() -> None:
    line = '{"a": 1,\n'
    outline = read_outline(line * (MAX_SCANNED // len(line)))
    assert not outline.complete


MARKUP = st.sampled_from(
    [
        "# Request\n",
        "# Response\n",
        "```json\n",
        "```\n",
        "> ",
        "{",
        "}",
        '"',
        "\n",
        "URI: a:b",
        REQUEST,
        '{"type": "object", "$ref": "#"}',
        "# Encoding\n",
    ]
)


@settings(deadline=None)
@given(st.lists(MARKUP | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_is_read_or_refused_with_a_document_error(text: str) -> None:
    with suppress(DocumentError):
        document = read_document(text)
        assert document.text == text
        read_layout(document)


ID = {"type": "string"}
OK = {"messageId": ID, "code": {"type": "integer"}, "data": {"type": "object"}}


def foreign(request: dict[str, Any], response: dict[str, Any]) -> str:
    parts = [
        json.dumps({"type": "object", "properties": one, "required": list(one)})
        for one in (request, response)
    ]
    return f"# Request\n{parts[0]}\n# Response\n{parts[1]}\n"


@pytest.mark.parametrize(
    ("request_fields", "response_fields", "message_id"),
    [
        ({"messageId": ID, "id": ID}, OK, "messageId"),
        ({"request_id": ID}, {**OK, "request_id": ID}, "request_id"),
        ({"id": ID}, {**OK, "id": ID}, "id"),
        ({"id": {"type": "integer"}}, {**OK, "id": {"type": "integer"}}, None),
        ({"messageId": ID}, {"code": {"type": "integer"}}, None),
        ({"messageId": {**ID, "maxLength": 35}}, OK, None),
        ({"messageId": {**ID, "maxLength": 36}}, OK, "messageId"),
        ({"messageId": {**ID, "pattern": "a"}}, OK, None),
        ({"token": ID}, {**OK, "token": ID}, None),
    ],
)
def test_the_message_id_is_what_both_messages_have(
    request_fields: Any, response_fields: Any, message_id: str | None
) -> None:
    layout = read_layout(read_document(foreign(request_fields, response_fields)))
    assert layout.message_id == message_id


@pytest.mark.parametrize(
    "status",
    [
        {"status": {"type": "string"}},
        {"status": {"enum": ["success", "error"]}},
        {"status": {"type": "integer"}},
        {"status": {"type": "boolean"}},
        {"success": {"type": "boolean"}},
        {"code": {"type": "integer", "enum": [0, 1, 2]}},
        {"code": {"type": "string"}},
        {"error": {"type": ["string", "null"]}},
        {"error": {"anyOf": [{"type": "null"}, {"type": "object"}]}},
    ],
)
def test_many_ways_to_tell_good_from_bad_are_understood(status: Any) -> None:
    layout = read_layout(read_document(foreign({}, {**status, "data": {}})))
    assert layout.response.marks or layout.response.error
    assert layout.response.places[0].schema["properties"] == {"data": {}}  # type: ignore[index] # a flat place is an object schema


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"data": {}}, "no status, code or error"),
        ({"status": {"enum": ["open", "shut"]}}, "no status, code or error"),
        ({"code": {"const": 200}}, "no status, code or error"),
        (
            {
                "status": {
                    "type": "object",
                    "properties": {"code": {"type": "integer"}, "at": ID},
                    "required": ["code", "at"],
                }
            },
            "'status/at', whose value is unclear",
        ),
    ],
)
def test_a_response_that_cannot_say_error_is_not_covered(
    response: Any, reason: str
) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_layout(read_document(foreign({}, response)))


@pytest.mark.parametrize("codes", [("4404", "4410"), ("UNKNOWN", "4410")])
def test_a_document_with_codes_of_its_own_still_has_our_shape(
    codes: tuple[str, ...],
) -> None:
    wanted = strict(euros={"type": "number"})
    text = render_document(
        "Balance", {}, wanted, errors=[DocumentErrorCode(one, "why") for one in codes]
    )
    document = read_document(text)
    assert document.output_schema == wanted
    layout = read_layout(document)
    assert [place.path for place in layout.response.places] == [("output",)]
    assert all(len(mark.good) == 1 for mark in layout.response.marks)


def test_equal_texts_are_one_document_for_as_long_as_somebody_has_it() -> None:
    text = render_document("share me", INPUT, OUTPUT)
    document = read_document(text)
    for number in range(2 * KEPT):
        read_document(render_document(f"another one, {number}", INPUT, OUTPUT))
    # As two agreements with two peers have it, each with a text of its own.
    assert read_document(text.encode().decode()) is document
    gone = weakref.ref(document)
    del document
    for number in range(2 * KEPT):
        read_document(render_document(f"and another, {number}", INPUT, OUTPUT))
    assert gone() is None
