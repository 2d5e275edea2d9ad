"""The function of a half that judges a result for which the capability promises little.

It names the place of the first thing that is wrong. It knows the keywords that people
use for results; the peer's daemon checks the rest.
"""

from __future__ import annotations

from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.keywords import SCHEMA_LISTS, SCHEMA_MAPS, SCHEMA_VALUES

__all__ = ["PROBLEM", "judged_schema"]

KNOWN: Final = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "required", "properties", "items"}
    | {"additionalProperties", "minimum", "maximum", "minLength", "maxLength"}
    | {"minItems", "maxItems"}
)
"Keywords that the function below looks at."

PROBLEM: Final = """\
def kind_of(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if value == int(value) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def problem_of(value, schema, path):
    if not isinstance(schema, dict):
        return "" if schema else path + " is not allowed"
    kind = kind_of(value)
    kinds = schema.get("type", kind)
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kind not in kinds and not (kind == "integer" and "number" in kinds):
        return path + " is of type " + kind + ", not " + " or ".join(kinds)
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if listed is not None:
        if not [one for one in listed if one == value and kind_of(one) == kind]:
            return path + " is none of the allowed values"
    for name in ("anyOf", "oneOf"):
        if name in schema:
            if not [one for one in schema[name] if not problem_of(value, one, path)]:
                return path + " has none of the allowed forms"
    if kind in ("integer", "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            return path + " is out of its range"
    if kind in ("string", "array"):
        names = ("minLength", "maxLength")
        if kind == "array":
            names = ("minItems", "maxItems")
        size = len(value)
        if size < schema.get(names[0], size) or size > schema.get(names[1], size):
            return path + " is too short or too long"
    if kind == "object":
        fields = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                return path + "/" + name + " is missing"
        for name in value:
            inner = fields.get(name, schema.get("additionalProperties", True))
            problem = problem_of(value[name], inner, path + "/" + name)
            if problem:
                return problem
    if kind == "array":
        for number, item in enumerate(value):
            inner = schema.get("items", True)
            problem = problem_of(item, inner, path + "/" + str(number))
            if problem:
                return problem
    return ""
"""


def judged_schema(schema: Schema) -> Any:
    """Return what `problem_of` looks at in a schema whose references are replaced."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name not in KNOWN:
            continue
        if name in SCHEMA_MAPS:
            kept[name] = {key: judged_schema(one) for key, one in value.items()}
        elif name in SCHEMA_LISTS:
            kept[name] = [judged_schema(one) for one in value]
        elif name in SCHEMA_VALUES:
            kept[name] = judged_schema(value)
        else:
            kept[name] = value
    return kept
