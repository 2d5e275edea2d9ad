"""The function of a half that judges a value of which its source promises too little.

A value that is optional at its source and required where it goes is copied; when it is
absent, the function names its place, and nothing is invented in its stead. It knows the
keywords that people use for results; the peer's daemon checks the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from negotiation.need import Schema
from negotiation.rules.literals import literal, names_literal
from negotiation.schema.keywords import SCHEMA_LISTS, SCHEMA_MAPS, SCHEMA_VALUES

NONE_WANTED: Final = "none of the values that were given is one of those wanted"

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


def problem_of(value, schema, path, giver):
    if not isinstance(schema, dict):
        return "" if schema else path + " is not allowed"
    kind = kind_of(value)
    kinds = schema.get("type", kind)
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kind == "null" and kind not in kinds:
        return path + ": " + giver + " gave no value"
    if kind not in kinds and not (kind == "integer" and "number" in kinds):
        return path + " is of type " + kind + ", not " + " or ".join(kinds)
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if listed is not None:
        if not [one for one in listed if one == value and kind_of(one) == kind]:
            return path + " is none of the allowed values"
    for name in ("anyOf", "oneOf"):
        if name in schema:
            if not [
                one for one in schema[name] if not problem_of(value, one, path, giver)
            ]:
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
                return path + "." + name + ": " + giver + " gave no value"
        for name in value:
            inner = fields.get(name, schema.get("additionalProperties", True))
            problem = problem_of(value[name], inner, path + "." + name, giver)
            if problem:
                return problem
    if kind == "array":
        for number, item in enumerate(value):
            inner = schema.get("items", True)
            problem = problem_of(item, inner, path + "." + str(number), giver)
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


def unpromised(judged: Schema | None, where: str) -> list[str]:
    """Return the lines that raise `ValueAbsent` for a `result` that is not as agreed.

    Args:
        judged: Schema of the result; None if its source promises as much.
        where: The place of the result.
    """
    if judged is None:
        return []
    shown = literal(judged_schema(judged))
    return [
        f'problem = problem_of(result, {shown}, {where!r}, "the capability")',
        "if problem:",
        "    raise ValueAbsent(problem)",
    ]


def lacking_lines(schema: Schema, name: str, *, is_first: bool) -> list[str]:
    """Return the lines that raise for arguments, `given`, that lack a value.

    Args:
        is_first: True for the first call, whose arguments come from the request.
    """
    giver = "the request" if is_first else "the request, or an earlier answer,"
    code = "400" if is_first else "502"
    shown = literal(judged_schema(schema))
    return [
        f"problem = problem_of(given, {shown}, {name!r}, {giver!r})",
        "if problem:",
        f'    raise CapabilityError("{code}", problem)',
    ]


def read_result(value: str, judged: Schema | None) -> list[str]:
    """Return the lines that set `result` in `decode_response`.

    Args:
        value: The expression for it, which may find that nothing wanted was given.
        judged: See `unpromised`.
    """
    if judged is None:
        return [f"result = {value}"]
    return [
        "try:",
        f"    result = {value}",
        "except ValueAbsent as absent:",
        '    return {"message_id": message_id, "error": '
        '{"code": 502, "message": absent.message}}',
    ]


def unpromised_result(judged: Schema | None) -> list[str]:
    """Return the lines that report a `result` that is not what the task wants."""
    if judged is None:
        return []
    shown = literal(judged_schema(judged))
    return [
        f'problem = problem_of(result, {shown}, "result", "the answer")',
        "if problem:",
        '    return {"message_id": message_id, "error": '
        '{"code": 502, "message": problem}}',
    ]


def refused_lines(known: Sequence[str], value: str) -> list[str]:
    """Return the lines that refuse values which would else be ignored.

    Args:
        known: The names that have a place.
    """
    told = 'name + ": the capability takes no such value"'
    return [
        f"for name in {value}:",
        f"    if name not in {names_literal(known)}:",
        f'        raise CapabilityError("400", {told})',
    ]


def some_lines() -> list[str]:
    """Return the lines that refuse a `value` of which nothing is in the `result`."""
    return ["if value and not result:", f"    raise ValueAbsent({NONE_WANTED!r})"]
