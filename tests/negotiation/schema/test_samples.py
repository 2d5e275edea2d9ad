from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negotiation.errors import SchemaError
from negotiation.schema.intake import prepared
from negotiation.schema.samples import FORMATS, SampleKind, make_samples
from tests.negotiation.inprocess import findings
from tests.negotiation.schema.schema_strategies import schemas, values_of


def values(schema: Any, *given_data: Any) -> list[Any]:
    return [sample.value for sample in make_samples(schema, given_data).values]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 5}, [5]),
        ({"enum": ["a", "b", "c"]}, ["a", "c"]),
        ({"type": "null"}, [None]),
        ({"type": "boolean"}, [False, True]),
        ({"type": "integer", "minimum": 3, "maximum": 9}, [3, 7, 9]),
        ({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}, [4]),
        ({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 4}, [4, 8]),
        ({"type": "number", "minimum": 0.5, "maximum": 1}, [0.5, 1]),
        ({"type": "string", "maxLength": 1}, ["s", ""]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["sa", "sam"]),
        ({"type": "string", "default": "x"}, ["x", "", "sample text sample text "]),
        ({"type": "string", "pattern": "^a$", "examples": ["a"]}, ["a"]),
        ({"type": "array", "items": {"const": 1}, "maxItems": 1}, [[], [1]]),
        ({"anyOf": [{"const": "a"}, {"type": "null"}]}, [None, "a"]),
        ({"allOf": [{"type": "integer", "minimum": 4}, {"maximum": 4}]}, [4]),
    ],
)
def test_samples_are_minimal_full_and_at_the_limits(schema: Any, expected: Any) -> None:
    assert values(schema) == expected
    assert not make_samples(schema).partial


def test_an_object_has_only_what_is_required_and_then_everything() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}},
        "required": ["a"],
    }
    assert values(schema) == [{"a": 1}, {"a": 1, "b": 2}]


def test_the_data_of_the_call_comes_first_and_is_used_inside() -> None:
    schema = {
        "type": "object",
        "properties": {
            "sku": {"type": "string", "pattern": "^P[0-9]+$"},
            "count": {"type": "integer"},
        },
        "required": ["sku", "count"],
    }
    made = make_samples(schema, [{"sku": "P1", "count": 5}])
    assert made.values[0].kind is SampleKind.GIVEN
    assert made.values[0].value == {"sku": "P1", "count": 5}
    assert all(isinstance(one.value, dict) for one in made.values)
    assert all(one["sku"] == "P1" for one in values(schema, {"sku": "P1", "count": 5}))
    assert len(made.values) > 1


def test_data_that_does_not_fit_is_not_used() -> None:
    assert values({"type": "string", "enum": ["a"]}, 5, "b") == ["a"]


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string", "pattern": "(a|b)+"},
        {"type": "string", "format": "something-of-their-own"},
        {"type": "string", "minLength": 10**9},
        {"type": "array", "minItems": 10**9},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
    ],
)
def test_what_cannot_be_made_gives_no_sample_and_says_partial(schema: Any) -> None:
    made = make_samples(schema)
    assert made.values == ()
    assert made.partial


def test_an_optional_property_that_cannot_be_made_is_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(a|b)"}, "b": {"const": 1}},
    }
    assert values(schema) == [{}, {"b": 1}]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 4096},
        {"type": "array", "items": {"type": "null"}, "minItems": 50},
    ],
)
def test_the_largest_texts_and_lists_that_are_made(schema: Any) -> None:
    assert values(schema)
    larger = {
        key: value + 1 if isinstance(value, int) else value
        for key, value in schema.items()
    }
    assert values(larger) == []


def test_a_catastrophic_pattern_is_never_run() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$", "default": "a" * 60 + "!"}
    assert values(schema) == ["a" * 60 + "!"]


def test_unique_items_differ() -> None:
    schema = {
        "type": "array",
        "items": {"type": "integer", "minimum": 3},
        "minItems": 4,
        "uniqueItems": True,
    }
    assert [3, 4, 5, 6] in values(schema)


@pytest.mark.parametrize("name", FORMATS)
def test_known_formats_have_two_values_of_that_format(name: str) -> None:
    made = values({"type": "string", "format": name})
    assert set(made) == set(FORMATS[name])


def test_a_schema_that_would_explode_ends_at_the_budget() -> None:
    schema: Any = {"type": "string"}
    for _ in range(6):
        schema = {"type": "array", "items": schema, "minItems": 10, "maxItems": 10}
    assert make_samples(schema).partial


@settings(deadline=None)
@given(schemas())
def test_samples_are_the_same_every_time_and_fit(schema: Any) -> None:
    made = make_samples(schema)
    assert made == make_samples(schema)
    for sample in made.values:
        assert findings(schema, sample.value) == []


@settings(deadline=None)
@given(st.data())
def test_data_at_hand_that_fits_is_a_sample(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    value: Any = data.draw(values_of(schema))
    assert make_samples(schema, [value]).values[0].value == value


KEYWORDS = st.dictionaries(
    st.sampled_from(
        [
            "type",
            "minimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxItems",
            "minItems",
            "uniqueItems",
            "required",
            "minProperties",
            "items",
            "enum",
            "default",
            "examples",
            "format",
        ]
    ),
    st.sampled_from(
        [
            "integer",
            "string",
            ["object", "null"],
            10**399,
            -(10**399),
            1e308,
            0.1,
            2,
            True,
            ["a"],
            [],
            {},
            {"type": "number"},
            "date",
        ]
    ),
    max_size=6,
)


@settings(deadline=None)
@given(KEYWORDS)
def test_no_schema_makes_the_maker_raise(schema: dict[str, Any]) -> None:
    try:
        clean = prepared(schema)
    except SchemaError:
        return
    make_samples(clean)
