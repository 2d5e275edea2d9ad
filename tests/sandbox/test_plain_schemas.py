"""Values that surely fit, told without a worker: never one that the library refuses."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jsonic.exact_numbers import ExactFloat
from sandbox.plain_schemas import (
    MAX_SCHEMA_DEPTH,
    MAX_STEPS,
    PlainSchemas,
    _has_few_nodes,
    surely_schema,
)
from sandbox.worker.schema_worker import _answer

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -2.5, 1e300])
    | st.sampled_from(["", "a", "ä", "longer"])
    | st.just(ExactFloat("12345678901234567.89"))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner),
    max_leaves=8,
)
TYPES = st.sampled_from(
    ["object", "array", "string", "number", "integer", "boolean", "null"]
)


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    counts, limits = st.integers(0, 3), st.integers(-2, 2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(SCALARS, max_size=3),
            "const": SCALARS,
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "$ref": st.just("#/$defs/one"),
            "minimum": limits,
            "exclusiveMaximum": limits,
            "maximum": limits | st.just(1.5),
            "exclusiveMinimum": limits,
            "minLength": counts,
            "maxLength": counts,
            "minItems": counts,
            "maxItems": counts,
            "minProperties": counts,
            "maxProperties": counts,
            "title": st.just("any"),
        },
    )


SCHEMAS = st.recursive(st.booleans() | _keywords(st.booleans()), _keywords)


@given(SCHEMAS, SCHEMAS, VALUES)
def test_it_says_what_the_library_says(schema: Any, one: Any, value: Any) -> None:
    if isinstance(schema, dict):
        # What is referred to refers to nothing itself.
        text = json.dumps(one, default=str).replace("$ref", "title")
        schema = {**schema, "$defs": {"one": json.loads(text)}}
    checks = PlainSchemas()
    valid = not list(Draft202012Validator(schema).iter_errors(value))
    fits = checks.fits(schema, value)
    assert fits is valid or (valid and not is_small(schema))
    assert checks.fits(schema, value) is fits, "the check that was kept"


def is_small(schema: Any) -> bool:
    """Return whether a schema is surely within the limits; a worker has the others."""
    # `{"items":` is the shortest text of one more level.
    return len(json.dumps(schema, default=str)) < len('{"items":') * MAX_SCHEMA_DEPTH


BENT = st.recursive(
    st.booleans() | SCALARS | _keywords(SCALARS),
    lambda inner: (
        _keywords(inner)
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                (
                    *("type", "required", "properties", "anyOf", "minLength"),
                    *("maxItems", "minimum", "title", "deprecated", "$defs"),
                    *("$ref", "items", "default", "enum", "format", "not"),
                    *("additionalProperties", "pattern"),
                ),
                inner | VALUES,
            ),
        )
    ),
    max_leaves=6,
)
"Schemas, of which many are none."


@given(BENT)
def test_what_surely_is_a_schema_is_one_for_the_worker(schema: Any) -> None:
    request = {"op": "check_schema", "schema": schema, "id": 1}
    assert not surely_schema(schema) or _answer(request)["value"] == []


@given(SCHEMAS)
def test_usual_schemas_are_surely_schemas(schema: Any) -> None:
    assert surely_schema(schema) or not is_small(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"properties": {"a": {"patternProperties": {"x": True}}}},
        {"uniqueItems": True},
        {"$ref": "#"},
        {"$ref": "https://elsewhere.example/schema"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"$id": "https://elsewhere.example/"},
        {"not": {}},
        {"type": "strnig"},
        {"type": []},
        {"properties": []},
        {"anyOf": []},
        {"minimum": "1"},
        {"enum": [{"a": 1}]},
        {"items": [True]},
        5,
        None,
    ],
)
def test_unusual_schemas_are_left_to_a_worker(schema: Any) -> None:
    assert not PlainSchemas().fits(schema, "aaaa")
    assert not PlainSchemas().fits_json(schema, b'"aaaa"')


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "("},
        {"default": {"pattern": "("}},
        {"not": {}},
        {"minLength": -1},
        {"minLength": True},
        {"required": ["a", "a"]},
        {"type": ["string", "string"]},
        {"properties": {"a": {"type": "strnig"}}},
        {"title": 5},
        {"unknown": 1},
        {"title": "\ud800"},
    ],
)
def test_what_may_be_no_schema_is_left_to_a_worker(schema: Any) -> None:
    assert not surely_schema(schema)


def test_a_schema_that_doubles_with_each_reference_is_left_to_a_worker() -> None:
    defs: dict[str, Any] = {"a0": {}}
    for number in range(1, 30):
        both = [{"$ref": f"#/$defs/a{number - 1}"}] * 2
        defs[f"a{number}"] = {"allOf": both}
    began = time.process_time()
    assert not PlainSchemas().fits({"$ref": "#/$defs/a29", "$defs": defs}, 1)
    assert time.process_time() - began < 1


def test_values_with_too_many_steps_are_left_to_a_worker() -> None:
    checks = PlainSchemas()
    many: dict[str, Any] = {"items": {"anyOf": [{"type": "string"}] * 9 + [{}]}}
    assert checks.fits(many, [1] * (MAX_STEPS // 12 - 1))
    assert not checks.fits(many, [1] * (MAX_STEPS // 10))
    assert checks.fits_json(many, b"[1, 2]")
    assert not checks.fits_json(many, b"[" + b"1," * MAX_STEPS + b"1]")
    # A long text counts as one value.
    assert checks.fits_json(True, b'["' + b"x" * (2 * MAX_STEPS) + b'"]')
    for most in (1, 2, 3):
        data = b'["' + b"x" * MAX_STEPS + b'",1]'
        assert _has_few_nodes(data, most) is (most == 3)


@pytest.mark.parametrize(
    "value", ["\ud800", {"\ud800": 1}, float("nan"), 1 << 2_049, (1,), b"x", {1: 1}]
)
def test_what_no_frame_may_hold_is_left_to_a_worker(value: Any) -> None:
    assert not PlainSchemas().fits(True, value)


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbf1", b"\xff", b'{"a": 1, "a": 1}', b"NaN", b"[" * 9_000, b""]
)
def test_what_is_no_strict_json_is_left_to_a_worker(data: bytes) -> None:
    assert not PlainSchemas().fits_json(True, data)
