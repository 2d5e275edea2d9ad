"""Needs of callers and capabilities of agents, with the keys they are stored under."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from negotiation.strict_json import Json, canonical_json

Schema = dict[str, Any] | bool
"A JSON Schema 2020-12; `True` allows every value, `False` none."

NAME_ONLY = re.compile(r"[\w./-]{1,64}")
"Matches a requirement that is only the name of a capability."

MAX_INFERRED_DEPTH = 12
"Deepest data whose shape is inferred; a level of data is two levels of schema."

MAX_INFERRED_SIZE = 32 * 1024
"Largest inferred schema in bytes of canonical JSON; half of a peer's limit."

MAX_INFERRED_NODES = 1_000
"Largest number of values in an inferred schema; half of a peer's limit."

MAX_REMEMBERED = 1_000
"Longest requirement whose key is remembered, in characters."

MAX_HASHED = 1_024
"Capabilities whose hashes are remembered: each call of a peer asks for one."


MAX_FLAT: Final = 32
"Most names of an object whose shape is told without a schema."

MAX_FLAT_NAMES: Final = 1_024
"Most characters of those names, for a shape is remembered."

SCALARS: Final = frozenset({str, int, float, bool, type(None)})
"Types of values that hold no others."


class Role(StrEnum):
    """The side of a channel: the sender of `sourceHello` is the requester."""

    REQUESTER = "requester"
    PROVIDER = "provider"

    @property
    def other(self) -> Role:
        """The role of the peer."""
        return Role.PROVIDER if self is Role.REQUESTER else Role.REQUESTER


@dataclass(frozen=True, slots=True)
class Need:
    """A caller's need, without the data of one call."""

    requirement: str
    "The need in words; a capability's name alone is enough."

    input_schema: Schema | None = None
    "Schema of the arguments, or None when the caller gave none."

    output_schema: Schema | None = None
    "Schema of the result, or None when any result is accepted."

    @property
    def is_sentence(self) -> bool:
        """True when words say what is wanted, and neither a schema nor a bare name."""
        text = self.requirement.strip()
        return self.input_schema is None and NAME_ONLY.fullmatch(text) is None


@dataclass(frozen=True, slots=True)
class Capability:
    """Something the local agent can do for others."""

    name: str
    "Full name, `attachment.tool`."

    description: str

    input_schema: Schema
    "Schema of the arguments, an object."

    output_schema: Schema

    read_only: bool = False
    "True when it changes nothing, so that it may be chosen by shape and repeated."

    idempotent: bool = False
    "True when a repeated call has no further effect."

    tags: tuple[str, ...] = ()
    "Words for search, as its agent gives them."

    examples: tuple[str, ...] = ()
    "Requests in words, as its agent gives them."

    input_modes: tuple[str, ...] = ()
    "Media types that it takes, where its agent says so."

    output_modes: tuple[str, ...] = ()
    "Media types that it gives, where its agent says so."

    updates: Schema | None = None
    "Schema of each value that it gives before its answer; None when it gives none."


_HASHED: dict[int, tuple[Capability, str]] = {}


def need_key(need: Need) -> str:
    """Return 64 hex characters over the requirement and the caller's schemas only."""
    plain = need.input_schema is None and need.output_schema is None
    if plain and len(need.requirement) <= MAX_REMEMBERED:
        return _words_key(need.requirement)
    fields: dict[str, Json] = {"requirement": need.requirement}
    if need.input_schema is not None:
        fields["input_schema"] = need.input_schema
    if need.output_schema is not None:
        fields["output_schema"] = need.output_schema
    return hashlib.sha256(canonical_json(fields)).hexdigest()


@lru_cache(maxsize=256)
def _words_key(requirement: str) -> str:
    return hashlib.sha256(canonical_json({"requirement": requirement})).hexdigest()


def schema_hash(capability: Capability) -> str:
    """Return 64 hex characters over its schemas; a half is stale when they change."""
    known = _HASHED.get(id(capability))
    if known is None:
        if len(_HASHED) >= MAX_HASHED:
            _HASHED.clear()
        # Kept with the capability itself, so that no other one comes to its id.
        known = _HASHED[id(capability)] = capability, _schema_hash(capability)
    return known[1]


def _schema_hash(capability: Capability) -> str:
    fields: dict[str, Json] = {
        "input_schema": capability.input_schema,
        "output_schema": capability.output_schema,
    }
    if capability.updates is not None:
        fields["updates"] = capability.updates
    return hashlib.sha256(canonical_json(fields)).hexdigest()


def meaning_hash(capability: Capability) -> str:
    """Return 64 hex characters over what a capability says of itself beside schemas.

    Words and units of single fields are in the schemas, which have a hash of their own.
    """
    fields: dict[str, Json] = {
        "description": " ".join(capability.description.split()),
        "read_only": capability.read_only,
        "idempotent": capability.idempotent,
    }
    return hashlib.sha256(canonical_json(fields)).hexdigest()


def infer_schema(value: Json) -> Schema:
    """Return a schema of the shape of `value`, simplified where it would be too large.

    All properties of an object are required; items of an array share one schema that
    fits each of them. Simplified parts allow every value.
    """
    return _inferred(value)[0]


def shape_of(value: Json) -> Hashable:
    """Return what two values share only if `infer_schema` gives the same for both."""
    if type(value) is dict and len(value) <= MAX_FLAT:
        names, kinds = tuple(value), tuple(map(type, value.values()))
        # Most data is flat, and its types say as much as a schema made of them.
        if SCALARS.issuperset(kinds) and sum(map(len, names)) <= MAX_FLAT_NAMES:
            return names, kinds
    return _inferred(value)[1]


def _inferred(value: Json) -> tuple[Schema, bytes]:
    for depth in (MAX_INFERRED_DEPTH, MAX_INFERRED_DEPTH // 2, 3, 2, 1):
        schema = _infer(value, depth)
        text = canonical_json(schema)
        # Each node has a byte at least, so that small ones need not be counted.
        if len(text) <= MAX_INFERRED_SIZE and (
            len(text) <= MAX_INFERRED_NODES or _nodes(schema) <= MAX_INFERRED_NODES
        ):
            return schema, text
    schema = _infer(value, 0)
    return schema, canonical_json(schema)


def _infer(value: Json, depth: int) -> dict[str, Any]:
    match value:
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case dict() if depth:
            return {
                "type": "object",
                "properties": {
                    name: _infer(item, depth - 1) for name, item in value.items()
                },
                "required": sorted(value),
            }
        case list() if depth and value:
            items = _infer(value[0], depth - 1)
            for item in value[1:]:
                items = _merge(items, _infer(item, depth - 1))
            return {"type": "array", "items": items}
        case dict():
            return {"type": "object"}
        case _:
            return {"type": "array"}


def _merge(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that allows every value that `one` or `two` allows."""
    if one == two or not two:
        return two
    if not one:
        return one
    kinds = _types(one) | _types(two)
    if kinds == {"object"}:
        return _merge_objects(one, two)
    if kinds == {"array"}:
        # Both have the same depth, so a missing `items` means simplified or empty.
        if "items" not in one or "items" not in two:
            return one if "items" in one else two
        return {"type": "array", "items": _merge(one["items"], two["items"])}
    if "integer" in kinds and "number" in kinds:
        kinds -= {"integer"}
    if kinds & {"object", "array"}:
        return _merge_with_null(one, two, kinds)
    return {"type": min(kinds) if len(kinds) == 1 else sorted(kinds)}


def _merge_objects(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    if "properties" not in one or "properties" not in two:
        return {"type": "object"}
    properties: dict[str, Any] = dict(one["properties"])
    for name, schema in two["properties"].items():
        known = properties.get(name)
        properties[name] = schema if known is None else _merge(known, schema)
    required = sorted(set(one["required"]) & set(two["required"]))
    return {"type": "object", "properties": properties, "required": required}


def _merge_with_null(
    one: dict[str, Any], two: dict[str, Any], kinds: set[str]
) -> dict[str, Any]:
    """Keep a container's shape if the other type is null; otherwise allow all."""
    if len(kinds) != 2 or "null" not in kinds:
        return {}
    shapes = [shape for shape in (_without_null(one), _without_null(two)) if shape]
    shape = shapes[0]
    for other in shapes[1:]:
        shape = _merge(shape, other)
    return {**shape, "type": sorted(kinds)}


def _without_null(schema: dict[str, Any]) -> dict[str, Any] | None:
    rest = _types(schema) - {"null"}
    return {**schema, "type": rest.pop()} if rest else None


def _types(schema: dict[str, Any]) -> set[str]:
    kind = schema["type"]
    return {kind} if isinstance(kind, str) else set(kind)


def _nodes(schema: Json) -> int:
    match schema:
        case dict():
            return 1 + sum(_nodes(item) for item in schema.values())
        case list():
            return 1 + sum(_nodes(item) for item in schema)
        case _:
            return 1
