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

__all__ = [
    "ANNOTATIONS",
    "DEFINITIONS",
    "DIALECT",
    "SCHEMA_LISTS",
    "SCHEMA_MAPS",
    "SCHEMA_VALUES",
    "TYPES",
    "cut",
    "keywords_of",
    "normalise",
    "pointer",
]

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
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise SchemaError(
            f"{at or '/'}: a schema is an object, not {type(schema).__name__}"
        )
    if refused := REFUSED & schema.keys():
        raise SchemaError(f"{at or '/'}: {min(refused)} is not supported")
    if "$id" in schema and at and isinstance(schema["$id"], str):
        raise SchemaError(f"{at}: an inner $id is not supported, use $defs")
    clean: dict[str, Any] = {}
    for keyword, value in schema.items():
        kept = _keyword(keyword, value, f"{at}/{pointer(keyword)}")
        if kept is not None:
            clean.update(kept)
    promoted = _promoted_required(schema)
    if promoted:
        stated = clean.get("required", [])
        clean["required"] = [*stated, *(one for one in promoted if one not in stated)]
    if isinstance(schema.get("items"), list):
        rest = schema.get("additionalItems", True)
        clean["items"] = normalise(rest, at=f"{at}/additionalItems")
    return clean


def _keyword(keyword: str, value: Any, path: str) -> dict[str, Any] | None:
    """Return one keyword in its cleaned form, or None to drop it."""
    if keyword in SCHEMA_MAPS:
        if not isinstance(value, dict):
            raise SchemaError(f"{path}: expected an object, got {type(value).__name__}")
        inner = {
            name: normalise(one, at=f"{path}/{pointer(name)}")
            for name, one in value.items()
        }
        return {keyword: inner}
    if keyword == "items" and isinstance(value, list):
        # An empty one says nothing, and is none in the newer spelling.
        return {"prefixItems": _schema_list(value, path)} if value else None
    if keyword in SCHEMA_LISTS:
        if not isinstance(value, list) or not value:
            raise SchemaError(f"{path}: expected a list of schemas")
        return {keyword: _schema_list(value, path)}
    if keyword in SCHEMA_VALUES:
        return {keyword: normalise(value, at=path)}
    if keyword in _CHECKS:
        if keyword == "required" and isinstance(value, bool):
            return None
        if not _CHECKS[keyword](value):
            raise SchemaError(f"{path}: {cut(value)} is not a usable value")
        return {keyword: value}
    return None


def _schema_list(values: list[Any], path: str) -> list[Schema]:
    return [normalise(one, at=f"{path}/{index}") for index, one in enumerate(values)]


def _promoted_required(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [
        name
        for name, one in properties.items()
        if isinstance(one, dict) and one.get("required") is True
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
