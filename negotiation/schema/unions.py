"""Splits unions: `anyOf`, `oneOf` and lists of types become separate schemas."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.keywords import ANNOTATIONS
from negotiation.schema.values import types_of

__all__ = ["alternatives", "overlapping"]

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
