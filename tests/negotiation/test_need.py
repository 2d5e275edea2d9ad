"""Tasks, capabilities, their keys, and the shape of data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from negotiation.need import (
    MAX_INFERRED_NODES,
    MAX_INFERRED_SIZE,
    Capability,
    Need,
    Role,
    Schema,
    infer_schema,
    need_key,
    schema_hash,
)
from negotiation.strict_json import Json, canonical_json
from tests.negotiation.test_strict_json import VALUES

OBJECT: Schema = {"type": "object"}


def test_the_task_key_covers_requirement_and_given_schemas_only() -> None:
    keys = {
        need_key(Need("add")),
        need_key(Need("add ")),
        need_key(Need("add", OBJECT)),
        need_key(Need("add", None, OBJECT)),
        need_key(Need("add", True)),
        need_key(Need("add", OBJECT, OBJECT)),
    }
    assert len(keys) == 6
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys)


def test_the_order_of_keys_in_a_schema_does_not_change_the_task_key() -> None:
    one: Schema = {"type": "object", "title": "x"}
    two: Schema = {"title": "x", "type": "object"}
    assert need_key(Need("add", one)) == need_key(Need("add", two))


def test_the_schema_hash_covers_both_schemas_and_nothing_else() -> None:
    add = Capability("math.add", "Adds.", OBJECT, {"type": "integer"})
    same = Capability("calc.plus", "", OBJECT, {"type": "integer"}, read_only=True)
    other = Capability("math.add", "Adds.", OBJECT, {"type": "number"})
    swapped = Capability("math.add", "Adds.", {"type": "integer"}, OBJECT)
    assert schema_hash(add) == schema_hash(same)
    assert len({schema_hash(add), schema_hash(other), schema_hash(swapped)}) == 3


def test_roles_are_each_others_other() -> None:
    assert Role.REQUESTER.other is Role.PROVIDER
    assert Role.PROVIDER.other is Role.REQUESTER
    assert Role("requester") is Role.REQUESTER


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {"type": "null"}),
        (True, {"type": "boolean"}),
        (1, {"type": "integer"}),
        (1.5, {"type": "number"}),
        ("x", {"type": "string"}),
        ([], {"type": "array"}),
        ([1, 2], {"type": "array", "items": {"type": "integer"}}),
        ([1, 2.5], {"type": "array", "items": {"type": "number"}}),
        ([1, "x"], {"type": "array", "items": {"type": ["integer", "string"]}}),
        ([None, "x"], {"type": "array", "items": {"type": ["null", "string"]}}),
        ([1, {}], {"type": "array", "items": {}}),
        ([[1, {}], [2]], {"type": "array", "items": {"type": "array", "items": {}}}),
        (
            [[], [1]],
            {
                "type": "array",
                "items": {"type": "array", "items": {"type": "integer"}},
            },
        ),
        (
            {"b": 1, "a": "x"},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        ),
        (
            [{"a": 1, "b": 2}, {"b": 2.5, "c": None}],
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "integer"},
                        "b": {"type": "number"},
                        "c": {"type": "null"},
                    },
                    "required": ["b"],
                },
            },
        ),
        (
            [None, {"a": 1}],
            {
                "type": "array",
                "items": {
                    "type": ["null", "object"],
                    "properties": {"a": {"type": "integer"}},
                    "required": ["a"],
                },
            },
        ),
    ],
)
def test_the_shape_of_data_is_inferred(value: Json, schema: Schema) -> None:
    assert infer_schema(value) == schema


@given(VALUES)
def test_data_fits_the_schema_inferred_from_it(value: Json) -> None:
    schema = infer_schema(value)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(value)


def nodes(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value
    inner = sum(map(nodes, children)) if isinstance(value, dict | list) else 0
    return 1 + inner


@pytest.mark.parametrize(
    "value",
    [
        {f"p{n}": {f"q{m}": m for m in range(60)} for n in range(60)},
        {f"p{n}": 1 for n in range(5_000)},
        {"p" * 40_000: 1},
        {"a": {"p" * 40_000: 1}},
    ],
)
def test_the_schema_of_large_data_is_cut_and_still_fits(value: Json) -> None:
    schema = infer_schema(value)
    assert nodes(schema) <= MAX_INFERRED_NODES
    assert len(canonical_json(schema)) <= MAX_INFERRED_SIZE
    Draft202012Validator(schema).validate(value)


def test_the_schema_of_deep_data_is_cut() -> None:
    value: Json = 1
    for _ in range(60):
        value = {"a": [value]}
    schema = infer_schema(value)
    depth = 0
    while isinstance(schema, dict) and schema.keys() & {"properties", "items"}:
        depth += 1
        schema = schema["items"] if "items" in schema else schema["properties"]["a"]
    assert depth == 12
    assert schema == {"type": "object"}
