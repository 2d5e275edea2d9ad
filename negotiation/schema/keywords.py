"""The supported keywords of JSON Schema 2020-12, and checks of their values.

Schemas that this module returns need no further checks: every keyword has a value of
the right kind. Foreign schemas are copied, never executed (DESIGN.md, Trust).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from negotiation.errors import SchemaError
from negotiation.need import Schema

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"The `$schema` of documents that we write, and the dialect in which we read others."

TYPES: Final = frozenset(
    {"null", "boolean", "object", "array", "number", "integer", "string"}
)
ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly"}
    | {"writeOnly"}
)
"Keywords that have no effect on the allowed values."

SCHEMA_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_VALUES: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains"}
    | {"propertyNames", "unevaluatedItems", "unevaluatedProperties"}
)
SCHEMA_PLACES: Final = SCHEMA_MAPS | SCHEMA_LISTS | SCHEMA_VALUES
"Keywords whose values have schemas in them."

COUNTS: Final = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties"}
    | {"maxProperties", "minContains", "maxContains"}
)
NUMBERS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)
TEXTS: Final = frozenset(
    {"title", "description", "pattern", "format", "$ref", "contentEncoding"}
    | {"contentMediaType"}
)
FLAGS: Final = frozenset({"uniqueItems", "deprecated", "readOnly", "writeOnly"})
REFUSED: Final = frozenset({"$dynamicRef", "$recursiveRef"})
DEFINITIONS: Final = ("$defs", "definitions")


def normalise(schema: object, *, at: str = "") -> Schema:
    """Return a copy with the supported keywords of 2020-12 only, all in valid form.

    Unknown keywords are dropped (DESIGN.md, Trust), `required: true` inside a property
    moves to the object that contains it, and a list in `items` becomes `prefixItems`.

    Args:
        schema: A JSON value of limited depth.
        at: Its place as a JSON pointer, for error messages.

    Raises:
        SchemaError: A known keyword has a value of the wrong kind.
    """
    return _clean(schema, at)


_Place = tuple[Any, str | int] | str
"A JSON pointer, or one that goes on by a token; only an error message has it whole."


def _text_of(at: _Place) -> str:
    tokens = []
    while not isinstance(at, str):
        at, token = at
        tokens.append(f"/{pointer(str(token))}")
    return at + "".join(reversed(tokens))


def _clean(schema: object, at: _Place) -> Schema:
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise SchemaError(
            f"{_text_of(at) or '/'}: a schema is an object, not {type(schema).__name__}"
        )
    if refused := REFUSED & schema.keys():
        raise SchemaError(f"{_text_of(at) or '/'}: {min(refused)} is not supported")
    if "$id" in schema and at and isinstance(schema["$id"], str):
        raise SchemaError(f"{_text_of(at)}: an inner $id is not supported, use $defs")
    clean: dict[str, Any] = {}
    for keyword, value in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            _clean_inner(clean, keyword, value, (at, keyword))
        elif check(value):
            clean[keyword] = value
        elif keyword != "required" or not isinstance(value, bool):
            where = _text_of((at, keyword))
            raise SchemaError(f"{where}: {cut(value)} is not a usable value")
    if promoted := _promoted_required(schema, clean.get("required", [])):
        clean["required"] = [*clean.get("required", []), *promoted]
    if isinstance(schema.get("items"), list):
        rest = schema.get("additionalItems", True)
        clean["items"] = _clean(rest, (at, "additionalItems"))
    return clean


def _clean_inner(clean: dict[str, Any], keyword: str, value: Any, at: _Place) -> None:
    """Enter a keyword into those of a cleaned schema if it has schemas in it."""
    if keyword not in SCHEMA_PLACES:
        return
    if keyword in SCHEMA_MAPS:
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise SchemaError(f"{_text_of(at)}: expected an object, got {kind}")
        clean[keyword] = {name: _clean(one, (at, name)) for name, one in value.items()}
    elif keyword == "items" and isinstance(value, list):
        # An empty one says nothing, and is none in the newer spelling.
        if value:
            clean["prefixItems"] = _schema_list(value, at)
    elif keyword in SCHEMA_VALUES:
        clean[keyword] = _clean(value, at)
    elif isinstance(value, list) and value:
        clean[keyword] = _schema_list(value, at)
    else:
        raise SchemaError(f"{_text_of(at)}: expected a list of schemas")


def _schema_list(values: list[Any], at: _Place) -> list[Schema]:
    return [_clean(one, (at, index)) for index, one in enumerate(values)]


def _promoted_required(schema: dict[str, Any], stated: list[str]) -> list[str]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [
        name
        for name, one in properties.items()
        if isinstance(one, dict) and one.get("required") is True and name not in stated
    ]


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    if isinstance(value, float):
        return value >= 0 and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_type(value: object) -> bool:
    if _is_type_name(value):
        return True
    return isinstance(value, list) and bool(value) and all(map(_is_type_name, value))


def _is_type_name(value: object) -> bool:
    return isinstance(value, str) and value in TYPES


def _is_dependent(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(COUNTS, _is_count),
    **dict.fromkeys(NUMBERS, _is_number),
    **dict.fromkeys(TEXTS, lambda value: isinstance(value, str)),
    **dict.fromkeys(FLAGS, lambda value: isinstance(value, bool)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "type": _is_type,
    "required": _is_names,
    "dependentRequired": _is_dependent,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "examples": lambda value: isinstance(value, list),
    "const": lambda value: True,
    "default": lambda value: True,
}


def keywords_of(schema: Schema) -> dict[str, Any]:
    """Return the keywords of `schema`; a boolean schema has none."""
    return schema if isinstance(schema, dict) else {}


def cut(value: object) -> str:
    """Return `value` as one short line for a reason; it may come from a peer."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def pointer(name: str) -> str:
    """Return `name` as one token of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
