"""Takes in foreign schemas: they are measured and cleaned, never executed.

A JSON Schema of a peer, a model or a tool server is hostile data (DESIGN.md, Trust). In
the daemon it is only measured and copied: nothing is fetched, and no `pattern` runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from negotiation.errors import JsonError, SchemaError
from negotiation.need import Schema
from negotiation.schema.inline import inlined
from negotiation.schema.keywords import DIALECT, normalise
from negotiation.strict_json import Json, canonical_json

__all__ = ["DIALECT", "Schema", "SchemaLimits", "check_limits", "normalise", "prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLimits:
    """Limits for the size of foreign schemas."""

    max_size: int = 64 * 1024
    "Largest schema, in bytes of its canonical JSON."

    max_depth: int = 32
    "Deepest nesting of JSON objects and arrays; the schema itself counts as 1."

    max_nodes: int = 2_000
    "Largest number of JSON values (objects, arrays and scalars) in it."

    max_inlined_nodes: int = 8_000
    "Largest number of JSON values after every `$ref` is replaced by its target."


DEFAULT_LIMITS: Final = SchemaLimits()


def check_limits(schema: Schema, limits: SchemaLimits = DEFAULT_LIMITS) -> Schema:
    """Return `schema` if it is a schema within the limits, with local `$ref` only.

    Raises:
        SchemaError: The text names the limit, or the place and the kind of the `$ref`.
    """
    prepared(schema, limits)
    return schema


def prepared(schema: object, limits: SchemaLimits = DEFAULT_LIMITS) -> Schema:
    """Return `schema` after checking, cleaning and replacing every `$ref`.

    Raises:
        SchemaError: See `check_limits`.
    """
    if not isinstance(schema, dict | bool):
        kind = type(schema).__name__
        raise SchemaError(f"a schema is an object or a boolean, not {kind}")
    _count(schema, limits)
    try:
        size = len(canonical_json(schema))
    except JsonError as exc:
        raise SchemaError(str(exc)) from None
    if size > limits.max_size:
        raise SchemaError(f"the schema has {size} bytes, at most {limits.max_size}")
    return inlined(normalise(schema), max_nodes=limits.max_inlined_nodes)


def _count(schema: Json, limits: SchemaLimits) -> None:
    """Raise if `schema` is too deep or too large, without recursion."""
    nodes = 0
    level: list[Json] = [schema]
    depth = 0
    while level:
        nodes += len(level)
        if nodes > limits.max_nodes:
            raise SchemaError(
                f"the schema has more than {limits.max_nodes} values; "
                "split it or leave out descriptions"
            )
        containers = [value for value in level if isinstance(value, dict | list)]
        depth += bool(containers)
        if containers and depth > limits.max_depth:
            raise SchemaError(f"the schema is nested deeper than {limits.max_depth}")
        level = [child for value in containers for child in _children(value)]


def _children(value: Mapping[str, Json] | list[Json]) -> Iterable[Json]:
    return value.values() if isinstance(value, Mapping) else value
