"""Checks of JSON values by schemas, as far as counting and comparing suffice.

Real validation is done by the validator in a worker, under a deadline. These checks are
for samples, defaults and mappings, whose values we make or move ourselves; they never
run a `pattern`.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.keywords import (
    ANNOTATIONS,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMA_VALUES,
    TYPES,
)
from negotiation.strict_json import Json, canonical_json


def types_of(schema: Schema) -> frozenset[str]:
    """Return the JSON types a value of `schema` may have; all of them if none is named.

    A schema with `properties` but without `type` means an object, as its author surely
    does, although 2020-12 would also allow a string.
    """
    if isinstance(schema, bool):
        return TYPES if schema else frozenset()
    if "const" in schema:
        return frozenset({json_type(schema["const"])})
    if "enum" in schema:
        return frozenset(json_type(value) for value in schema["enum"])
    stated = schema.get("type")
    if isinstance(stated, str):
        return frozenset({stated})
    if isinstance(stated, list):
        return frozenset(stated)
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        return frozenset({"object"})
    if schema.keys() & {"items", "prefixItems"}:
        return frozenset({"array"})
    return TYPES


def kinds_of(schema: Schema) -> frozenset[str]:
    """Return the JSON types of values other than null; a number may be an integer."""
    kinds = frozenset[str]().union(*map(types_of, alternatives(schema))) - {"null"}
    return kinds | {"integer"} if "number" in kinds else kinds


def json_type(value: Json) -> str:
    """Return the JSON Schema type of `value`; 1.0 counts as an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def same_json(left: Json, right: Json) -> bool:
    """Return whether two values are equal as JSON: 1 is 1.0, but 1 is not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same_json(left[key], right[key]) for key in left
        )
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and left == right


def same_schema(left: Schema, right: Schema) -> bool:
    """Return whether two schemas are equal as canonical JSON, annotations left out."""
    return canonical_json(bare(left)) == canonical_json(bare(right))


def contradiction(schema: Schema, value: Json) -> str | None:
    """Return in words why `value` cannot fit the inlined `schema`, or None.

    Only keywords that can be counted or compared are checked, not `pattern`, `format`,
    `not`, `if` and the like, so None does not mean that the value is valid.
    """
    if isinstance(schema, bool):
        return None if schema else "nothing is allowed here"
    kind = json_type(value)
    types = types_of(schema)
    if kind not in types and not (kind == "integer" and "number" in types):
        return f"expected {' or '.join(sorted(types)) or 'nothing'}, got {kind}"
    if "const" in schema and not same_json(schema["const"], value):
        return "not the constant"
    if "enum" in schema and not any(same_json(one, value) for one in schema["enum"]):
        return "not one of the listed values"
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if branches and all(contradiction(one, value) for one in branches):
            return f"fits no branch of {keyword}"
    for branch in schema.get("allOf", ()):
        if reason := contradiction(branch, value):
            return reason
    return _contradiction_by_kind(schema, value)


def default_of(schema: Schema) -> tuple[Json, ...]:
    """Return the default of `schema`, one value; none if it has none that fits."""
    if not isinstance(schema, dict) or "default" not in schema:
        return ()
    value = schema["default"]
    return () if contradiction(schema, value) else (value,)


def defaults_of(schema: Schema) -> dict[str, Json]:
    """Return the defaults of the properties of an object, those inside included."""
    found: dict[str, Json] = {}
    if isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            for value in default_of(inner):
                found[name] = value
            found |= {
                f"{name}/{below}": one for below, one in defaults_of(inner).items()
            }
    return found


def _contradiction_by_kind(schema: dict[str, Any], value: Json) -> str | None:
    match value:
        case bool() | None:
            return None
        case int() | float():
            return _out_of_bounds(schema, value)
        case str():
            return _out_of_count(schema, len(value), "Length")
        case list():
            if reason := _out_of_count(schema, len(value), "Items"):
                return reason
            first = schema.get("prefixItems", [])
            rest = schema.get("items", True)
            for index, item in enumerate(value):
                inner = first[index] if index < len(first) else rest
                if reason := contradiction(inner, item):
                    return f"item {index}: {reason}"
            return None
    return _object_contradiction(schema, value)


def _object_contradiction(schema: dict[str, Any], value: dict[str, Any]) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{name!r} is missing"
    if reason := _out_of_count(schema, len(value), "Properties"):
        return reason
    known = schema.get("properties", {})
    # The names that `patternProperties` match are unknown without running patterns.
    unclear = "patternProperties" in schema
    rest = True if unclear else schema.get("additionalProperties", True)
    for name, item in value.items():
        if reason := contradiction(known.get(name, rest), item):
            return f"{name!r}: {reason}"
    return None


def _out_of_bounds(schema: dict[str, Any], value: float) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"less than {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"more than {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"not more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return f"not less than {schema['exclusiveMaximum']}"
    step = schema.get("multipleOf")
    if isinstance(step, int) and isinstance(value, int) and value % step:
        return f"no multiple of {step}"
    return None


def _out_of_count(schema: dict[str, Any], count: int, what: str) -> str | None:
    if count < schema.get("min" + what, 0):
        return f"fewer than {schema['min' + what]} {_UNITS[what]}"
    if count > schema.get("max" + what, math.inf):
        return f"more than {schema['max' + what]} {_UNITS[what]}"
    return None


_UNITS: Final = {"Length": "characters", "Items": "items", "Properties": "properties"}


def bare(schema: Any) -> Any:
    """Return `schema` without annotations."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ANNOTATIONS:
            continue
        if keyword in SCHEMA_MAPS:
            kept[keyword] = {name: bare(one) for name, one in value.items()}
        elif keyword in SCHEMA_LISTS:
            kept[keyword] = [bare(one) for one in value]
        elif keyword in SCHEMA_VALUES:
            kept[keyword] = bare(value)
        elif keyword == "required":
            kept[keyword] = sorted(value)
        else:
            kept[keyword] = value
    return kept


MAX_ALTERNATIVES: Final = 64
"Largest number of branches into which a union is split."


def alternatives(schema: Schema) -> list[Schema]:
    """Return the branches of a union, or the schema alone if it cannot be split."""
    if isinstance(schema, bool):
        return [schema]
    unions = schema.keys() & {"anyOf", "oneOf"}
    if len(unions) == 1:
        keyword = min(unions)
        beside = {
            name: value
            for name, value in schema.items()
            if name != keyword and name not in ANNOTATIONS
        }
        branches: list[Schema] = []
        for branch in schema[keyword]:
            merged = _merged(beside, branch)
            if merged is None:
                return [schema]
            branches += alternatives(merged)
        return branches if len(branches) <= MAX_ALTERNATIVES else [schema]
    kinds = schema.get("type")
    if isinstance(kinds, list) and not unions and not schema.keys() & {"const", "enum"}:
        return [{**schema, "type": kind} for kind in kinds]
    return [schema]


def _merged(beside: dict[str, Any], branch: Schema) -> Schema | None:
    """Return a branch merged with the keywords beside the union, or None."""
    if not beside or branch is False:
        return branch
    if branch is True:
        return beside
    assert isinstance(branch, dict)
    if beside.keys() & branch.keys() - ANNOTATIONS:
        return None
    named = {"properties", "additionalProperties", "patternProperties"}
    if beside.keys() & named and branch.keys() & named:
        return None
    return {**branch, **beside}


def overlapping(schema: Schema, branches: list[Schema]) -> bool:
    """Return whether `schema` is a oneOf where a value might fit two branches."""
    if not isinstance(schema, dict) or "oneOf" not in schema:
        return False
    for left, right in combinations(branches, 2):
        kinds, others = types_of(left), types_of(right)
        if kinds & others or {"integer", "number"} <= kinds | others:
            return True
    return False
