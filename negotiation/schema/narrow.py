"""Schemas of outputs, completed by what a document needs of them."""

from __future__ import annotations

from typing import Any

from negotiation.need import Schema
from negotiation.schema.keywords import TYPES
from negotiation.schema.terms import normal_name
from negotiation.schema.values import alternatives, types_of


def narrowed(source: Schema, target: Schema) -> Schema:
    """Return `source` with what `target` needs and `source` leaves open.

    Samples of an output whose schema promises nothing would else show nothing: an empty
    object fits it, and no document with a result. Properties are matched by name.

    Args:
        source: Schema of the values there are, with references replaced.
        target: Schema of the values that are wanted, with references replaced.
    """
    if not isinstance(target, dict):
        return source
    if source is True or (isinstance(source, dict) and _says_nothing(source)):
        return target
    if "null" not in types_of(target):
        # Null means absent where the target has no null.
        given = [one for one in alternatives(source) if types_of(one) != {"null"}]
        source = given[0] if len(given) == 1 else source
    if not isinstance(source, dict):
        return source
    kinds = types_of(source)
    if kinds != types_of(target) or len(kinds) != 1:
        return source
    if kinds == {"object"}:
        return _object(source, target)
    if kinds == {"array"} and "items" in target and "prefixItems" not in source:
        return {**source, "items": narrowed(source.get("items", True), target["items"])}
    return source


def _says_nothing(schema: dict[str, Any]) -> bool:
    unions = {"anyOf", "oneOf", "allOf", "not", "if", "$ref"}
    return types_of(schema) == TYPES and not schema.keys() & unions


def _meant(name: str, have: dict[str, Any]) -> str:
    """Return the property that `name` means, as `mapping` finds it; else `name`."""
    alike = [one for one in have if normal_name(one) == normal_name(name)]
    return alike[0] if name not in have and len(alike) == 1 else name


def _object(source: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    have, wanted = source.get("properties", {}), target.get("properties", {})
    required = list(source.get("required", ()))
    properties = dict(have)
    is_open = not have and source.get("additionalProperties", True) is True
    for name, schema in wanted.items():
        ours = _meant(name, have)
        if ours in have or is_open:
            properties[ours] = narrowed(have.get(ours, True), schema)
            if name in target.get("required", ()) and ours not in required:
                required.append(ours)
    if not properties:
        return source
    return {**source, "properties": properties, "required": required}
