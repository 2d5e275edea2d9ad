"""OpenAPI documents as capabilities, and arguments as requests; no server."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.attachments import ToolError
from anp.sidecar.attachments.http.openapi import read_openapi
from anp.sidecar.attachments.http.openapi_schema import OpenApiError
from anp.sidecar.attachments.http.operations import HttpOperation, build_request
from negotiation.strict_json import parse_json

OK = {"200": {"description": "fine"}}


def document(
    operation: dict[str, Any],
    *,
    path: str = "/x",
    method: str = "get",
    version: str = "3.1.0",
    **components: Any,
) -> dict[str, Any]:
    """Return a document with one operation."""
    return {
        "openapi": version,
        "paths": {path: {method: {"responses": OK, **operation}}},
        "components": components,
    }


def only(found: dict[str, Any]) -> HttpOperation:
    """Return the only operation of a document."""
    read = read_openapi(found)
    assert read.skipped == ()
    return read.operations[0]


def query(parameter: dict[str, Any], value: Any) -> str:
    """Return the query that one parameter's value makes."""
    made = only(document({"parameters": [{"in": "query", "name": "p", **parameter}]}))
    return build_request(made, {"p": value}).query


@pytest.mark.parametrize(
    ("parameter", "value", "wanted"),
    [
        ({}, "a b&c=d", "p=a%20b%26c%3Dd"),
        ({}, True, "p=true"),
        ({}, 1.5, "p=1.5"),
        ({}, [1, "b,c"], "p=1&p=b%2Cc"),
        ({}, [], ""),
        ({"explode": False}, [1, "b,c"], "p=1,b%2Cc"),
        ({"explode": False}, {"a": 1, "b": "2,"}, "p=a,1,b,2%2C"),
        ({}, {"a": 1, "b": "x y"}, "a=1&b=x%20y"),
        ({"style": "spaceDelimited", "explode": False}, [1, 2], "p=1%202"),
        ({"style": "pipeDelimited", "explode": False}, [1, 2], "p=1%7C2"),
        ({"style": "deepObject"}, {"a": 1, "b c": "&"}, "p%5Ba%5D=1&p%5Bb%20c%5D=%26"),
        (
            {"content": {"application/json": {}}},
            {"a": [1]},
            "p=%7B%22a%22%3A%20%5B1%5D%7D",
        ),
    ],
)
def test_values_are_written_in_the_style_of_their_parameter(
    parameter: dict[str, Any], value: Any, wanted: str
) -> None:
    assert query(parameter, value) == wanted


def test_no_value_adds_another_parameter() -> None:
    parameters = [
        {"in": "query", "name": "filter"},
        {"in": "query", "name": "admin", "schema": {"type": "boolean"}},
    ]
    made = only(document({"parameters": parameters}))
    with pytest.raises(ToolError, match="another parameter"):
        build_request(made, {"filter": {"admin": "true"}})


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_stays_in_its_own_parameter(path: str, value: str) -> None:
    parameters = [
        {"in": "path", "name": "id"},
        {"in": "query", "name": "q"},
    ]
    made = only(document({"parameters": parameters}, path="/a/{id}/b"))
    try:
        request = build_request(made, {"id": path, "q": value})
    except ToolError:
        return
    assert request.path.count("/") == 3
    assert not set(request.path) & set("?#\\ ")
    assert request.path.isascii()
    found = parse_qsl(request.query, keep_blank_values=True, errors="strict")
    assert found == [("q", value)]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "ä", "\x00"])
def test_a_header_takes_no_other_line(value: str) -> None:
    parameters = [{"in": "header", "name": "X-Note"}]
    made = only(document({"parameters": parameters}))
    assert build_request(made, {"X-Note": "ok"}).headers["X-Note"] == "ok"
    with pytest.raises(ToolError):
        build_request(made, {"X-Note": value})


def test_cookies_are_encoded() -> None:
    made = only(document({"parameters": [{"in": "cookie", "name": "c"}]}))
    assert build_request(made, {"c": "a; b=c"}).headers["Cookie"] == "c=a%3B%20b%3Dc"


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"parameters": [{"in": "query", "name": "p", "style": "odd"}]}, "style"),
        (
            {"parameters": [{"in": "query", "name": "p", "allowReserved": True}]},
            "reser",
        ),
        ({"parameters": [{"in": "header", "name": "Host"}]}, "cannot be an argument"),
        ({"parameters": [{"in": "header", "name": "Anpd-Caller"}]}, "cannot be an arg"),
        ({"parameters": [{"in": "header", "name": "a\r\nb"}]}, "cannot be an argument"),
        ({"parameters": [{"in": "path", "name": "p"}]}, "path parameters differ"),
        ({"parameters": [{"in": "nowhere", "name": "p"}]}, "no place"),
        ({"parameters": 5}, "no list"),
        ({"parameters": [{"$ref": "https://evil.example/"}]}, "leaves the document"),
        ({"parameters": [{"$ref": "#/components/nothing"}]}, "points nowhere"),
        ({"parameters": [{"$ref": "#/components/circle"}]}, "circle"),
        ({"servers": [{"url": "https://evil.example"}]}, "servers of its own"),
        (
            {"parameters": [{"in": "query", "name": "p", "content": {"text/x": {}}}]},
            "written as",
        ),
        (
            {
                "parameters": [
                    {"in": "cookie", "name": "c", "schema": {"type": "array"}}
                ]
            },
            "no plain value",
        ),
    ],
)
def test_what_is_not_built_is_left_out_with_the_reason(
    operation: dict[str, Any], reason: str
) -> None:
    made = document(operation, circle={"$ref": "#/components/circle"})
    read = read_openapi(made)
    assert read.operations == ()
    assert reason in read.skipped[0]


@pytest.mark.parametrize(
    "path", ["/a/../b", "/a/{", "/a?b=1", "/a#b", "/{a}/{a}", "/a\\b", "/ü", "/a b"]
)
def test_a_path_that_is_none_is_left_out(path: str) -> None:
    assert read_openapi(document({}, path=path)).operations == ()


def body(schema: Any, media: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {media: {"schema": schema}}, **more}}


PAIR = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a"],
}


def test_the_fields_of_a_body_lie_beside_the_parameters() -> None:
    operation = {
        "parameters": [{"in": "query", "name": "dry", "required": True}],
        **body(PAIR, required=True),
    }
    made = only(document(operation, method="post"))
    assert list(made.input_schema["properties"]) == ["dry", "a", "b"]
    assert made.input_schema["required"] == ["dry", "a"]
    assert made.input_schema["additionalProperties"] is False
    request = build_request(made, {"dry": True, "a": 1})
    assert request.query == "dry=true"
    assert request.content == b'{"a": 1}'
    assert request.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "operation",
    [
        body(PAIR),
        body({**PAIR, "additionalProperties": True}, required=True),
        body({"allOf": [PAIR]}, required=True),
        body({"type": "array"}, required=True),
        {"parameters": [{"in": "query", "name": "a"}], **body(PAIR, required=True)},
    ],
)
def test_any_other_body_is_one_argument(operation: dict[str, Any]) -> None:
    made = only(document(operation, method="post"))
    assert "body" in made.input_schema["properties"]
    assert build_request(made, {"body": {"a": 1}}).content == b'{"a": 1}'
    if made.body is not None and not made.body.required:
        assert build_request(made, {}).content is None


def test_forms_and_texts_can_be_sent() -> None:
    form = body(PAIR, "application/x-www-form-urlencoded", required=True)
    made = only(document(form, method="post"))
    request = build_request(made, {"a": 1, "b": "x&y=z"})
    assert request.content == b"a=1&b=x%26y%3Dz"
    made = only(document(body({}, "text/plain", required=True), method="post"))
    assert build_request(made, {"body": "ä"}).content == "ä".encode()


def test_schemas_of_30_are_read_as_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            "m": {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
            "s": {"type": "string", "nullable": True, "enum": ["a"], "example": "a"},
            "r": {"nullable": True, "allOf": [{"$ref": "#/components/schemas/R"}]},
            "made": {"type": "string", "readOnly": True},
            "pass": {"type": "string", "writeOnly": True},
        },
        "required": ["n", "made", "pass"],
    }
    operation = {
        **body(schema, required=True),
        "responses": {"200": {"content": {"application/json": {"schema": schema}}}},
    }
    components: dict[str, Any] = {
        "schemas": {"R": {"type": "string", "x-odd": 1, "xml": {}}}
    }
    made = only(document(operation, method="post", version="3.0.3", **components))
    properties = made.input_schema["properties"]
    assert properties["n"] == {"type": "integer", "exclusiveMinimum": 0}
    assert properties["m"] == {"type": "integer", "maximum": 9}
    assert properties["s"]["type"] == ["string", "null"]
    assert properties["s"]["enum"] == ["a", None]
    assert properties["s"]["examples"] == ["a"]
    assert properties["r"] == {
        "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]
    }
    assert "made" not in properties
    assert made.input_schema["required"] == ["n", "pass"]
    assert "pass" not in made.output_schema["properties"]
    assert made.output_schema["required"] == ["n", "made"]


def test_a_schema_that_contains_itself_allows_anything_there() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/N"}},
    }
    made = only(
        document(
            body({"$ref": "#/components/schemas/N"}, required=True),
            method="post",
            schemas={"N": node},
        )
    )
    assert made.input_schema["properties"]["next"] == {}


def test_definitions_that_double_each_other_end_at_the_limit() -> None:
    schemas: dict[str, Any] = {"S0": {"type": "string"}}
    for number in range(1, 40):
        ref = {"$ref": f"#/components/schemas/S{number - 1}"}
        schemas[f"S{number}"] = {"type": "array", "prefixItems": [ref, ref]}
    operation = body({"$ref": "#/components/schemas/S15"}, required=True)
    read = read_openapi(document(operation, method="post", schemas=schemas))
    assert "values" in read.skipped[0] or "nested" in read.skipped[0]


def answers(**responses: Any) -> HttpOperation:
    found = {
        status.removeprefix("_"): (
            {}
            if schema is None
            else {"content": {"application/json": {"schema": schema}}}
        )
        for status, schema in responses.items()
    }
    return only(document({"responses": found}))


def test_the_answer_is_the_output_or_is_wrapped() -> None:
    assert answers(_200=PAIR).output_schema == PAIR
    made = answers(_200={"type": "array"}, _404=PAIR)
    assert made.wrapped is True
    assert made.output_schema["properties"] == {"result": {"type": "array"}}
    for loose in (
        answers(_200=PAIR, _201={"type": "string"}),
        answers(_200=PAIR, _204=None),
        answers(_204=None),
        answers(_200={}),
        answers(default=PAIR),
    ):
        assert (loose.output_schema, loose.wrapped) == ({"type": "object"}, None)
    assert answers(_2XX=PAIR).output_schema == PAIR


def test_an_operation_without_id_is_named_by_what_it_does() -> None:
    assert only(document({}, path="/a/b-c", method="put")).name == "put__a_b-c"
    assert only(document({"operationId": "x:y z"})).name == "x_y_z"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("$ref", "paths", "/x", "get", "post", "parameters", "name", "in"),
                    *("schema", "content", "application/json", "responses", "200"),
                    *("requestBody", "type", "properties", "required", "servers"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_no_document_raises_anything_else(found: Any) -> None:
    whole = found if isinstance(found, dict) else {}
    paths = {"/x": {"get": found, "post": found}, "/y": found}
    for content in (found, {"paths": paths, **whole, "openapi": "3.1.0"}):
        # As it comes: through our own reader.
        parsed = parse_json(json.dumps(content), max_size=10**6)
        try:
            read_openapi(parsed)
        except OpenApiError:
            continue
