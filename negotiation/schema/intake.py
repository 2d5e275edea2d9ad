"""Takes in foreign schemas: they are measured and cleaned, never executed.

A JSON Schema of a peer, a model or a tool server is hostile data (DESIGN.md, Trust). In
the daemon it is only measured and copied: nothing is fetched, and no `pattern` runs.
Each `$ref` is replaced by its target, within a budget, so that no reader of the schema
needs protection against loops or against definitions that double each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from negotiation.errors import JsonError, SchemaError
from negotiation.need import Schema
from negotiation.schema.keywords import (
    ANNOTATIONS,
    DEFINITIONS,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMA_PLACES,
    cut,
    normalise,
)
from negotiation.strict_json import Json, canonical_json


def inlined(schema: Schema, *, max_nodes: int = 8_000, max_depth: int = 64) -> Schema:
    """Return the normalised `schema` with every `$ref` replaced by its target.

    Args:
        max_nodes: Largest number of JSON values in the result.
        max_depth: Deepest nesting of schemas in the result.

    Raises:
        SchemaError: A `$ref` points outside the schema, to nothing or to itself, or the
            result would be too large.
    """
    return _Inliner(schema, max_nodes, max_depth).run()


_LOCAL_REF: Final = re.compile(r"#(/.*)?", re.DOTALL)


class _Inliner:
    """Replaces each `$ref` of a schema by its target, with a budget for the result."""

    def __init__(self, schema: Schema, max_nodes: int, max_depth: int) -> None:
        self._root = schema
        self._max_nodes = max_nodes
        self._max_depth = max_depth
        self._left = max_nodes
        self._targets: dict[str, Schema] = {}

    def run(self) -> Schema:
        self._check_refs(self._root)
        return self._copy(self._root, (), 0)

    def _copy(self, schema: Schema, open_refs: tuple[str, ...], depth: int) -> Schema:
        self._spend(1)
        # Targets may add levels to a schema that was within the depth before.
        if depth > self._max_depth:
            raise SchemaError("the schema is nested too deeply once its $ref are read")
        if isinstance(schema, bool):
            return schema
        copy: dict[str, Any] = {}
        for keyword, value in schema.items():
            if keyword in DEFINITIONS or keyword == "$ref":
                continue
            if keyword in SCHEMA_PLACES:
                copy[keyword] = self._copies(keyword, value, open_refs, depth + 1)
            else:
                self._spend(1 if isinstance(value, str) else _nodes(value))
                copy[keyword] = value
        if len(copy.get("allOf", ())) == 1:
            # The old form of a keyword beside a `$ref`.
            copy = _as_object(_joined(copy.pop("allOf")[0], copy))
        if "$ref" not in schema:
            return copy
        ref = schema["$ref"]
        if ref in open_refs:
            raise SchemaError(
                f"the $ref {cut(ref)} leads back to itself; "
                "recursive schemas are not supported, give a fixed depth"
            )
        target = self._copy(self._target(ref), (*open_refs, ref), depth + 1)
        return _joined(target, copy)

    def _copies(
        self, keyword: str, value: Any, open_refs: tuple[str, ...], depth: int
    ) -> Any:
        if keyword in SCHEMA_MAPS:
            return {
                name: self._copy(one, open_refs, depth) for name, one in value.items()
            }
        if keyword in SCHEMA_LISTS:
            return [self._copy(one, open_refs, depth) for one in value]
        return self._copy(value, open_refs, depth)

    def _check_refs(self, schema: Schema) -> None:
        """Raise for a `$ref` that is not local, even in an unused definition."""
        if isinstance(schema, bool):
            return
        if "$ref" in schema:
            self._target(schema["$ref"])
        for keyword, value in schema.items():
            if keyword not in SCHEMA_PLACES:
                continue
            if keyword in SCHEMA_MAPS:
                for one in value.values():
                    self._check_refs(one)
            elif keyword in SCHEMA_LISTS:
                for one in value:
                    self._check_refs(one)
            else:
                self._check_refs(value)

    def _target(self, ref: str) -> Schema:
        if ref not in self._targets:
            # The target of a `$ref` may be outside the known places of schemas, and
            # then was not cleaned with the rest.
            self._targets[ref] = normalise(self._found(ref), at=ref)
        return self._targets[ref]

    def _found(self, ref: str) -> object:
        if not _LOCAL_REF.fullmatch(ref):
            raise SchemaError(
                f"the $ref {cut(ref)} is not local; only '#/...' is followed"
            )
        found: object = self._root
        for token in ref.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise SchemaError(f"the $ref {cut(ref)} points to nothing")
        return found

    def _spend(self, nodes: int) -> None:
        self._left -= nodes
        if self._left < 0:
            raise SchemaError(
                f"the schema has more than {self._max_nodes} values "
                "once its $ref are read"
            )


def _nodes(value: Json) -> int:
    """Return the number of JSON values in `value`, whose depth must be limited."""
    if isinstance(value, dict):
        return 1 + sum(map(_nodes, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_nodes, value))
    return 1


def _joined(target: Schema, beside: dict[str, Any]) -> Schema:
    """Return the combined meaning of a `$ref` target and the keywords beside it."""
    if not beside:
        return target
    if isinstance(target, bool):
        return beside if target else False
    if beside.keys() <= ANNOTATIONS:
        return {**target, **beside}
    if not (target.keys() & beside.keys() - ANNOTATIONS) and _apart(target, beside):
        return {**target, **beside}
    return {"allOf": [target, beside]}


def _apart(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Return whether no keyword of either schema affects one of the other."""
    related = (
        {"properties", "patternProperties", "additionalProperties"}
        | {"unevaluatedProperties", "items", "prefixItems", "unevaluatedItems"}
        | {"contains", "minContains", "maxContains", "if", "then", "else"}
    )
    return not (related & left.keys() and related & right.keys())


def _as_object(schema: Schema) -> dict[str, Any]:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


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


def _children(value: dict[str, Json] | list[Json]) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value
