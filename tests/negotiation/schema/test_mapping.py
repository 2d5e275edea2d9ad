from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from negotiation.schema.mapping import compare
from negotiation.schema.plan import Keep, Mismatch, Plan, PlanError
from negotiation.schema.terms import Drop, MappingProof, normal_name
from tests.negotiation.inprocess import findings
from tests.negotiation.schema.schema_strategies import (
    renamed,
    schemas,
    values_of,
    varied,
)

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
SLOW = settings(
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    deadline=None,
)


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        **more,
    }


FITS: list[tuple[str, Any, Any, Any, Any]] = [
    (
        "the same",
        obj({"a": STRING}, "a"),
        obj({"a": STRING}, "a"),
        {"a": "x"},
        {"a": "x"},
    ),
    ("anything is taken", obj({"a": STRING}), {}, {"a": "x"}, {"a": "x"}),
    (
        "any object is taken",
        obj({"a": STRING}),
        {"type": "object"},
        {"a": ""},
        {"a": ""},
    ),
    (
        "names differ in case and separators",
        obj({"product-ID": STRING}, "product-ID"),
        obj({"productId": STRING}, "productId"),
        {"product-ID": "P1"},
        {"productId": "P1"},
    ),
    (
        "an exact name wins over an alike one",
        obj({"user_id": INTEGER, "userId": STRING}, "userId", "user_id"),
        obj({"userId": STRING}, "userId"),
        {"user_id": 1, "userId": "x"},
        {"userId": "x"},
    ),
    (
        "an optional property may stay away",
        obj({"a": STRING, "b": STRING}, "a"),
        obj({"A": STRING, "B": STRING}, "A"),
        {"a": "x"},
        {"A": "x"},
    ),
    (
        "a required one the source lacks has a default",
        obj({"a": STRING}, "a"),
        obj({"A": STRING, "limit": {**INTEGER, "default": 5}}, "A", "limit"),
        {"a": "x"},
        {"A": "x", "limit": 5},
    ),
    (
        "a required one that may stay away has a default",
        obj({"limit": INTEGER}),
        obj({"Limit": {**INTEGER, "default": 5}}, "Limit"),
        {},
        {"Limit": 5},
    ),
    (
        "the default may be the source's",
        obj({"limit": {**INTEGER, "default": 7}}),
        obj({"Limit": INTEGER}, "Limit"),
        {},
        {"Limit": 7},
    ),
    (
        "a required constant is filled in",
        obj({}),
        obj({"kind": {"const": "product"}, "v": {"enum": [2]}}, "kind", "v"),
        {},
        {"kind": "product", "v": 2},
    ),
    ("an integer is a number", INTEGER, NUMBER, 5, 5),
    ("a bounded integer", {**INTEGER, "minimum": 1}, {**NUMBER, "minimum": 0.5}, 1, 1),
    (
        "an exclusive bound of integers",
        {**INTEGER, "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        {**INTEGER, "minimum": 1, "maximum": 9},
        9,
        9,
    ),
    ("an enum within an enum", {"enum": ["a"]}, {"enum": ["a", "b"]}, "a", "a"),
    ("a const within a type", {"const": "a"}, STRING, "a", "a"),
    (
        "a boolean within its enum",
        {"type": "boolean"},
        {"enum": [True, False]},
        True,
        True,
    ),
    (
        "shorter text",
        {**STRING, "maxLength": 3},
        {**STRING, "maxLength": 4},
        "abc",
        "abc",
    ),
    (
        "the same pattern",
        {**STRING, "pattern": "a", "maxLength": 1},
        {**STRING, "pattern": "a"},
        "a",
        "a",
    ),
    ("a pattern on one side only", {**STRING, "pattern": "a"}, STRING, "a", "a"),
    ("no format to a format", STRING, {**STRING, "format": "date"}, "x", "x"),
    ("null beside a type", STRING, {"anyOf": [STRING, {"type": "null"}]}, "a", "a"),
    ("a list of types", STRING, {"type": ["null", "string"]}, "a", "a"),
    (
        "oneOf with null",
        {"type": ["string", "null"]},
        {"oneOf": [STRING, {"type": "null"}]},
        None,
        None,
    ),
    (
        "an object that may be null",
        {"anyOf": [obj({"a_b": STRING}, "a_b"), {"type": "null"}]},
        {"anyOf": [{"type": "null"}, obj({"aB": STRING}, "aB")]},
        {"a_b": "x"},
        {"aB": "x"},
    ),
    (
        "null stays null",
        {"anyOf": [obj({"a_b": STRING}, "a_b"), {"type": "null"}]},
        {"anyOf": [{"type": "null"}, obj({"aB": STRING}, "aB")]},
        None,
        None,
    ),
    (
        "lists of objects",
        {"type": "array", "items": obj({"a_b": STRING}, "a_b")},
        {"type": "array", "items": obj({"aB": STRING}, "aB")},
        [{"a_b": "x"}],
        [{"aB": "x"}],
    ),
    (
        "objects in objects",
        obj({"the_order": obj({"item_id": INTEGER}, "item_id")}, "the_order"),
        obj({"theOrder": obj({"itemId": NUMBER}, "itemId")}, "theOrder"),
        {"the_order": {"item_id": 1}},
        {"theOrder": {"itemId": 1}},
    ),
    (
        "a map of values",
        {"type": "object", "additionalProperties": INTEGER},
        {"type": "object", "additionalProperties": NUMBER},
        {"a": 1},
        {"a": 1},
    ),
    (
        "what is open takes the rest",
        obj({"a_b": STRING, "c": STRING}, "a_b"),
        obj({"aB": STRING}, "aB", additionalProperties=STRING),
        {"a_b": "x", "c": "y"},
        {"aB": "x", "c": "y"},
    ),
]


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [case[1:] for case in FITS],
    ids=[case[0] for case in FITS],
)
def test_what_fits_is_converted(
    source: Any, target: Any, value: Any, expected: Any
) -> None:
    plan = compare(source, target, drop=Drop.ALL)
    assert isinstance(plan, Plan), plan
    assert plan.apply(value) == expected
    assert findings(target, expected) == []
    assert plan.describe()


MISFITS: list[tuple[str, Any, Any, str]] = [
    (
        "a type",
        obj({"price": STRING}, "price"),
        obj({"Price": NUMBER}, "Price"),
        "/Price: expected number, got string",
    ),
    ("a number is no integer", NUMBER, INTEGER, "/: expected integer, got number"),
    (
        "something missing",
        obj({}),
        obj({"zone": STRING}, "zone"),
        "/zone: expected string, required, got nothing of that name",
    ),
    (
        "optional for required",
        obj({"a": STRING}),
        obj({"a": STRING}, "a"),
        "/a: expected a required property, got an optional one",
    ),
    ("any value", {}, STRING, "/: expected string, got any value"),
    ("a wider enum", {"enum": ["a", "c"]}, {"enum": ["a", "b"]}, "'c' (not one"),
    (
        "text for an enum",
        STRING,
        {"enum": ["a", "b"]},
        "/: expected one of ['a', 'b'], got string",
    ),
    (
        "no lower limit",
        NUMBER,
        {**NUMBER, "minimum": 1},
        "expected at least 1, got no limit",
    ),
    (
        "a limit at, not above",
        {**NUMBER, "minimum": 1},
        {**NUMBER, "exclusiveMinimum": 1},
        "expected more than 1, got at least 1",
    ),
    (
        "a wider upper limit",
        {**NUMBER, "maximum": 9},
        {**NUMBER, "maximum": 8},
        "expected at most 8, got at most 9",
    ),
    (
        "a longer text",
        {**STRING, "maxLength": 5},
        {**STRING, "maxLength": 4},
        "expected at most 4 characters, got up to 5",
    ),
    (
        "a shorter text",
        STRING,
        {**STRING, "minLength": 1},
        "expected at least 1 characters, got 0 or more",
    ),
    (
        "more items",
        {"type": "array"},
        {"type": "array", "maxItems": 1},
        "expected at most 1 items, got no limit",
    ),
    (
        "other items",
        {"type": "array", "items": STRING},
        {"type": "array", "items": INTEGER},
        "/*: expected integer, got string",
    ),
    (
        "a pattern",
        STRING,
        {**STRING, "pattern": "a"},
        "the same pattern on both sides, got no pattern",
    ),
    (
        "another pattern",
        {**STRING, "pattern": "b"},
        {**STRING, "pattern": "a"},
        "got 'b'",
    ),
    (
        "another format",
        {**STRING, "format": "email"},
        {**STRING, "format": "date"},
        "format 'date', got format 'email'",
    ),
    ("not", STRING, {"not": {"type": "null"}}, "the same not on both sides"),
    (
        "if",
        obj({}),
        {"if": {}, "then": obj({"a": STRING})},
        "the same if on both sides",
    ),
    (
        "dependentRequired",
        obj({}),
        obj({"a": STRING}, dependentRequired={"a": ["b"]}),
        "dependentRequired",
    ),
    (
        "oneOf that overlaps",
        STRING,
        {"oneOf": [STRING, {**STRING, "maxLength": 3}]},
        "the same oneOf",
    ),
    ("null", {"type": ["string", "null"]}, STRING, "expected string, got null"),
    (
        "alike names in the source",
        obj({"a_b": STRING, "a-b": STRING}, "a_b", "a-b"),
        obj({"aB": STRING}, "aB"),
        "which are alike",
    ),
    (
        "alike names in the target",
        obj({"ab": STRING}, "ab"),
        obj({"a_b": STRING, "a-b": STRING}, "a_b"),
        "which are alike",
    ),
    ("nothing is taken", STRING, False, "expected no value"),
    (
        "two forms of object",
        {"anyOf": [obj({"a_b": STRING}, "a_b"), obj({"c_d": STRING}, "c_d")]},
        {"anyOf": [obj({"aB": STRING}, "aB"), obj({"cD": STRING}, "cD")]},
        "cannot be told apart",
    ),
]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [case[1:] for case in MISFITS],
    ids=[case[0] for case in MISFITS],
)
def test_what_does_not_fit_is_said_in_words(
    source: Any, target: Any, reason: str
) -> None:
    found = compare(source, target, drop=Drop.ALL)
    assert isinstance(found, Mismatch)
    assert reason in str(found)


def test_equal_keywords_that_are_not_handled_pass() -> None:
    schema = {"type": "string", "not": {"const": "x"}, "description": "one"}
    found = compare(schema, {**schema, "description": "two"})
    assert found == Plan(Keep())


@pytest.mark.parametrize(
    ("drop", "required", "optional"),
    [(Drop.NONE, False, False), (Drop.OPTIONAL, False, True), (Drop.ALL, True, True)],
)
def test_what_may_be_dropped_depends_on_the_direction(
    drop: Drop, required: bool, optional: bool
) -> None:
    target = obj({"a": STRING}, "a")
    sure = obj({"a": STRING, "dry_run": STRING}, "a", "dry_run")
    perhaps = obj({"a": STRING, "dry_run": STRING}, "a")
    assert isinstance(compare(sure, target, drop=drop), Plan) == required
    assert isinstance(compare(perhaps, target, drop=drop), Plan) == optional


def test_what_is_left_out_is_shown() -> None:
    plan = compare(obj({"a_b": STRING, "c": STRING}, "a_b"), obj({"aB": STRING}))
    assert isinstance(plan, Plan)
    assert plan.describe() == ("/aB comes from 'a_b'", "/c is left out")


def test_shape_is_enough_for_data_that_is_checked_on_every_call() -> None:
    source = obj(
        {"zone": STRING, "n": INTEGER}, "zone", "n", additionalProperties=False
    )
    target = obj({"Zone": {**STRING, "pattern": "a"}, "n": {**NUMBER, "minimum": 1}})
    assert isinstance(compare(source, target), Mismatch)
    assert isinstance(compare(source, target, proof=MappingProof.SHAPE), Plan)
    other = obj({"Zone": INTEGER})
    assert isinstance(compare(source, other, proof=MappingProof.SHAPE), Mismatch)


@pytest.mark.parametrize(
    ("left", "right"),
    [("productId", "product_id"), ("Product ID", "product-id"), ("A.B", "ab")],
)
def test_names_meet_without_case_and_separators(left: str, right: str) -> None:
    assert normal_name(left) == normal_name(right)


def test_names_made_of_separators_only_mean_nothing() -> None:
    found = compare(obj({"_": STRING}, "_"), obj({"-": STRING}, "-"), drop=Drop.ALL)
    assert isinstance(found, Mismatch)


def test_a_value_of_another_shape_is_refused_by_a_plan() -> None:
    plan = compare(obj({"a_b": STRING}, "a_b"), obj({"aB": STRING}, "aB"))
    assert isinstance(plan, Plan)
    wrong: list[Any] = [[], None, "x", {}]
    for value in wrong:
        with pytest.raises(PlanError):
            plan.apply(value)


def test_unions_of_many_branches_end_at_the_budget() -> None:
    def union(prefix: str) -> Any:
        inner = [obj({f"{prefix}{n}": STRING}, f"{prefix}{n}") for n in range(60)]
        return {
            "anyOf": [
                obj({"x": {"anyOf": inner}, f"k{n}": STRING}, "x") for n in range(60)
            ]
        }

    found = compare(union("a"), union("b"))
    assert isinstance(found, Mismatch)
    assert "too many unions" in str(found)


@SLOW
@given(st.data())
def test_a_renamed_twin_takes_every_value(data: st.DataObject) -> None:
    source = data.draw(schemas())
    target = renamed(source)
    plan = compare(source, target, drop=Drop.ALL)
    assert isinstance(plan, Plan), plan
    value: Any = data.draw(values_of(source))
    assert findings(source, value) == []
    assert findings(target, plan.apply(value)) == []


@pytest.mark.slow
@settings(parent=SLOW, max_examples=200)
@given(st.data(), st.sampled_from(Drop))
def test_whatever_has_a_plan_converts_to_what_fits(
    data: st.DataObject, drop: Drop
) -> None:
    source = data.draw(schemas())
    target = data.draw(varied(source))
    plan = compare(source, target, drop=drop)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    value: Any = data.draw(values_of(source))
    assert findings(target, plan.apply(value)) == []
