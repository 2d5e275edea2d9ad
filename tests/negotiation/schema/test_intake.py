from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from negotiation.errors import SchemaError
from negotiation.schema.intake import SchemaLimits, check_limits, prepared
from negotiation.schema.keywords import normalise
from negotiation.schema.values import contradiction, json_type, same_json, same_schema

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "items",
                    "$ref",
                    "anyOf",
                    "$defs",
                    "x",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def nested(depth: int) -> Any:
    """Return a schema that is `depth` objects deep."""
    schema: Any = {}
    for _ in range(depth - 1):
        schema = {"not": schema}
    return schema


def test_a_schema_at_the_depth_limit_passes_and_one_deeper_does_not() -> None:
    check_limits(nested(32))
    with pytest.raises(SchemaError, match="deeper than 32"):
        check_limits(nested(33))


def test_a_schema_at_the_node_limit_passes_and_one_more_does_not() -> None:
    def of_nodes(count: int) -> Any:
        # The object, the list, and its items.
        return {"enum": list(range(count - 2))}

    check_limits(of_nodes(2_000))
    with pytest.raises(SchemaError, match="more than 2000 values"):
        check_limits(of_nodes(2_001))


def test_a_schema_at_the_size_limit_passes_and_one_byte_more_does_not() -> None:
    frame = len(b'{"title":""}')

    def of_size(size: int) -> Any:
        return {"title": "x" * (size - frame)}

    check_limits(of_size(64 * 1024))
    with pytest.raises(SchemaError, match="65537 bytes"):
        check_limits(of_size(64 * 1024 + 1))


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        ("https://example.com/schema.json", "is not local"),
        ("other.json#/$defs/a", "is not local"),
        ("file:///etc/passwd", "is not local"),
        ("#anchor", "is not local"),
        ("#/$defs/missing", "points to nothing"),
        ("#/$defs/list/7", "points to nothing"),
        ("#/$defs/a/title", "a schema is an object"),
    ],
)
def test_only_local_refs_that_lead_to_a_schema_are_followed(
    ref: str, reason: str
) -> None:
    defs: dict[str, Any] = {"a": {"title": "x"}, "list": {"anyOf": [{}]}}
    schema: Any = {"properties": {"x": {"$ref": ref}}, "$defs": defs}
    with pytest.raises(SchemaError, match=reason):
        check_limits(schema)


def test_a_remote_ref_in_a_definition_that_nobody_uses_is_refused_too() -> None:
    with pytest.raises(SchemaError, match="not local"):
        check_limits({"$defs": {"a": {"$ref": "http://example.com/"}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"child": {"$ref": "#"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {"items": {"$ref": "#/$defs/b"}},
                "b": {"$ref": "#/$defs/a"},
            },
        },
    ],
)
def test_a_recursive_ref_is_refused_with_a_reason_in_words(schema: Any) -> None:
    with pytest.raises(SchemaError, match="leads back to itself"):
        check_limits(schema)


def test_definitions_that_double_each_other_end_at_the_budget() -> None:
    defs: dict[str, Any] = {"a0": {"type": "string"}}
    for level in range(1, 12):
        ref = {"$ref": f"#/$defs/a{level - 1}"}
        defs[f"a{level}"] = {"allOf": [ref, ref]}
    with pytest.raises(SchemaError, match="once its \\$ref are read"):
        check_limits({"$ref": "#/$defs/a11", "$defs": defs})


def test_refs_are_replaced_by_what_they_point_to() -> None:
    schema = prepared(
        {
            "type": "object",
            "properties": {
                "one": {"$ref": "#/$defs/price", "description": "here"},
                "two": {"allOf": [{"$ref": "#/$defs/price"}], "default": 1},
                "three": {"$ref": "#/definitions/a~1b"},
            },
            "$defs": {"price": {"type": "number", "description": "there"}},
            "definitions": {"a/b": {"type": "null"}},
        }
    )
    assert schema == {
        "type": "object",
        "properties": {
            "one": {"type": "number", "description": "here"},
            "two": {"type": "number", "description": "there", "default": 1},
            "three": {"type": "null"},
        },
    }


def test_keywords_beside_a_ref_count_too() -> None:
    schema = prepared(
        {"$ref": "#/$defs/a", "maximum": 5, "$defs": {"a": {"maximum": 9}}}
    )
    assert schema == {"allOf": [{"maximum": 9}, {"maximum": 5}]}


def test_unknown_keywords_go_and_names_of_properties_stay() -> None:
    clean = normalise(
        {
            "$schema": "x",
            "$id": "y",
            "x-secret": 1,
            "properties": {"x-secret": {"nullable": True, "type": "string"}},
        }
    )
    assert clean == {"properties": {"x-secret": {"type": "string"}}}


def test_required_inside_a_property_moves_to_the_object() -> None:
    clean = normalise(
        {
            "properties": {
                "a": {"type": "string", "required": True},
                "b": {"type": "string", "required": False},
            }
        }
    )
    assert clean == {
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"],
    }


def test_the_old_form_of_tuples_is_read() -> None:
    assert normalise({"items": [{"type": "string"}], "additionalItems": False}) == {
        "prefixItems": [{"type": "string"}],
        "items": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"type": []},
        {"type": ["string", 5]},
        {"properties": []},
        {"properties": {"a": 5}},
        {"required": "a"},
        {"required": [1]},
        {"enum": []},
        {"enum": {}},
        {"minimum": "1"},
        {"exclusiveMinimum": True},
        {"multipleOf": 0},
        {"minLength": -1},
        {"maxItems": 1.5},
        {"anyOf": []},
        {"anyOf": {}},
        {"items": 5},
        {"pattern": 5},
        {"$ref": 5},
        {"$dynamicRef": "#a"},
        {"properties": {"a": {"$id": "http://example.com/"}}},
    ],
)
def test_a_known_keyword_of_the_wrong_kind_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        check_limits(schema)


def test_a_catastrophic_pattern_is_only_carried() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    assert check_limits(schema) == schema
    assert contradiction(schema, "a" * 40 + "!") is None


@pytest.mark.parametrize("schema", [None, 5, "x", [], [{}]])
def test_what_is_no_schema_at_all_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError, match="an object or a boolean"):
        check_limits(schema)


@given(JSON_VALUES)
@example({"items": []})
def test_no_json_value_raises_anything_but_a_schema_error(value: Any) -> None:
    try:
        first = prepared(value)
    except SchemaError:
        return
    limits = SchemaLimits(max_nodes=20_000, max_depth=100)
    assert same_schema(prepared(first, limits), first)


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (False, 1, "nothing is allowed"),
        ({"type": "string"}, 1, "expected string, got integer"),
        ({"type": "number"}, 1, None),
        ({"type": "integer"}, 1.0, None),
        ({"type": "integer"}, True, "got boolean"),
        ({"const": 1}, True, "expected integer, got boolean"),
        ({"const": 1}, 1.0, None),
        ({"enum": ["a"]}, "b", "not one of"),
        ({"minimum": 3}, 2, "less than 3"),
        ({"minimum": 3}, 3, None),
        ({"exclusiveMaximum": 3}, 3, "not less than 3"),
        ({"multipleOf": 2}, 3, "no multiple"),
        ({"minLength": 2}, "a", "fewer than 2 characters"),
        ({"maxLength": 2}, "ab", None),
        ({"maxItems": 1}, [1, 2], "more than 1 items"),
        ({"items": {"type": "string"}}, ["a", 1], "item 1"),
        ({"prefixItems": [{"type": "null"}]}, [1], "item 0"),
        ({"required": ["a"]}, {}, "'a' is missing"),
        ({"properties": {"a": {"type": "null"}}}, {"a": 1}, "'a'"),
        ({"properties": {}, "additionalProperties": False}, {"a": 1}, "nothing"),
        (
            {"patternProperties": {"a": {}}, "additionalProperties": False},
            {"a": 1},
            None,
        ),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, 1, "no branch of anyOf"),
        ({"allOf": [{"type": "string"}]}, 1, "expected string"),
    ],
)
def test_contradictions_are_found_by_counting(
    schema: Any, value: Any, reason: str | None
) -> None:
    found = contradiction(schema, value)
    assert (reason is None) == (found is None)
    assert reason is None or reason in str(found)


@given(JSON_VALUES)
def test_every_value_is_the_same_as_itself_and_has_one_type(value: Any) -> None:
    assert same_json(value, value)
    assert contradiction({"type": json_type(value)}, value) is None
