"""Says in plain words where a value does not fit its schema.

The library's own messages quote values as Python writes them, which nobody outside
has to know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from jsonschema import _utils

MAX_VALUE: Final = 80
"Longest quoted value, in characters."

Fault = Any
"An error of the library, which has no types: of a value, or of a schema."

_TYPES: Final = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def words_of(error: Fault) -> str:
    """Return a finding as a sentence that begins with its place."""
    keyword, place = str(error.validator), _place(error)
    if keyword == "required":
        names = _lacks(error)
        return "; ".join(f"{_inside(error, name)} is required" for name in names)
    if keyword in {"additionalProperties", "unevaluatedProperties"}:
        names = _extras(error)
        if names:
            return "; ".join(f"{_inside(error, name)} is not known" for name in names)
    said = _SAYINGS.get(keyword)
    if said is None:
        return f"{place} does not fit the schema's {keyword}"
    return f"{place} {said(error)}"


def _place(error: Fault) -> str:
    return "/".join(map(str, error.absolute_path)) or "the value"


def _inside(error: Fault, name: str) -> str:
    return "/".join(map(str, [*error.absolute_path, name]))


def _lacks(error: Fault) -> list[str]:
    """Return the one property of which the library's message tells."""
    value = error.instance if isinstance(error.instance, dict) else {}
    lacking = [name for name in error.validator_value if name not in value]
    told = [name for name in lacking if error.message.startswith(f"{name!r} is")]
    return told[:1] or lacking


def _extras(error: Fault) -> list[str]:
    if error.validator == "additionalProperties" and isinstance(error.schema, dict):
        found: list[str] = list(
            _utils.find_additional_properties(error.instance, error.schema)
        )
        return sorted(found)[:10]
    return []


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _type(error: Fault) -> str:
    kinds = error.validator_value
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    wanted = " or ".join(_TYPES.get(str(name), str(name)) for name in names)
    return f"has to be {wanted}, not {_quoted(error.instance)}"


def _limit(words: str) -> Callable[[Fault], str]:
    def said(error: Fault) -> str:
        limit = _quoted(error.validator_value)
        return f"{words.format(limit)}, and is {_quoted(error.instance)}"

    return said


def _value(words: str) -> Callable[[Fault], str]:
    return lambda error: f"{words}: {_quoted(error.instance)}"


def _plain(words: str) -> Callable[[Fault], str]:
    return lambda error: words


_SAYINGS: Final[Mapping[str, Callable[[Fault], str]]] = {
    "type": _type,
    "enum": _limit("has to be one of {}"),
    "const": _limit("has to be {}"),
    "minimum": _limit("has to be at least {}"),
    "maximum": _limit("has to be at most {}"),
    "exclusiveMinimum": _limit("has to be more than {}"),
    "exclusiveMaximum": _limit("has to be less than {}"),
    "multipleOf": _limit("has to be a multiple of {}"),
    "minLength": _limit("has to have at least {} characters"),
    "maxLength": _limit("may have at most {} characters"),
    "pattern": _limit("has to match the pattern {}"),
    "format": _limit("has to have the format {}"),
    "minItems": _limit("has to have at least {} items"),
    "maxItems": _limit("may have at most {} items"),
    "uniqueItems": _plain("has equal items, which it may not"),
    "minProperties": _limit("has to have at least {} properties"),
    "maxProperties": _limit("may have at most {} properties"),
    "anyOf": _value("fits none of the forms that the schema allows"),
    "oneOf": _value("does not fit exactly one of the forms that the schema allows"),
    "not": _plain("has a form that the schema rules out"),
    "contains": _plain("lacks an item that it has to contain"),
    "dependentRequired": _plain("lacks a property that goes with another of its own"),
    "None": _plain("is not allowed here"),
    "unevaluatedProperties": _plain("has properties that are not known"),
    "additionalProperties": _plain("has properties that are not known"),
    "unevaluatedItems": _plain("has items that are not known"),
}
