"""Reasons why one schema does not fit another: place, expectation and finding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from negotiation.need import Schema
from negotiation.schema.keywords import TYPES, cut
from negotiation.schema.values import types_of
from negotiation.strict_json import Json

__all__ = ["Mismatch", "Reason", "limit_reasons", "values_of", "words"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason against a conversion."""

    path: str
    "JSON pointer of the property in the target; empty for the whole value."

    expected: str
    "The target's condition, in words."

    got: str
    "The source's values, in words."

    def __str__(self) -> str:
        return f"{self.path or '/'}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Not every value of the source can be converted to one of the target."""

    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.reasons))


def limit_reasons(
    source: dict[str, Any], target: dict[str, Any], path: str
) -> list[Reason]:
    """Return the violations of limits and format of `target` by `source`."""
    types = types_of(source)
    reasons = []
    if types & {"integer", "number"}:
        whole = types == {"integer"}
        for sign, word in ((1, "at least"), (-1, "at most")):
            need, have = _bound(target, sign, whole), _bound(source, sign, whole)
            if need is not None and (have is None or have < need):
                limit = _bound_words(need, sign, word)
                got = "no limit" if have is None else _bound_words(have, sign, word)
                reasons.append(Reason(path, limit, got))
    for kind, what in (("string", "Length"), ("array", "Items")):
        if kind in types:
            reasons += _count_reasons(source, target, what, path)
    # In 2020-12 `format` only describes, so a source without one is accepted; two
    # different formats do not fit.
    formats = source.get("format"), target.get("format")
    if "string" in types and None not in formats and formats[0] != formats[1]:
        reasons.append(
            Reason(path, f"format {cut(formats[1])}", f"format {cut(formats[0])}")
        )
    return reasons


def values_of(schema: Schema) -> list[Json]:
    """Return the values that `const` or `enum` allow, or nothing without them."""
    if isinstance(schema, bool):
        return []
    if "const" in schema:
        return [schema["const"]]
    return list(schema.get("enum", ()))


def _bound(schema: dict[str, Any], sign: int, whole: bool) -> tuple[float, bool] | None:
    """Return the tighter bound as (limit, strict), mirrored for the upper side."""
    names = {1: ("minimum", "exclusiveMinimum"), -1: ("maximum", "exclusiveMaximum")}
    found: list[tuple[float, bool]] = []
    for strict, name in enumerate(names[sign]):
        if name in schema:
            limit = sign * schema[name]
            if whole:
                limit = math.floor(limit) + 1 if strict else math.ceil(limit)
            found.append((limit, bool(strict) and not whole))
    return max(found, default=None)


def _bound_words(bound: tuple[float, bool], sign: int, word: str) -> str:
    limit, strict = bound
    more = {1: "more than", -1: "less than"}[sign]
    return f"{more if strict else word} {cut(sign * limit)}"


def _count_reasons(
    source: dict[str, Any], target: dict[str, Any], what: str, path: str
) -> list[Reason]:
    reasons = []
    unit = {"Length": "characters", "Items": "items"}[what]
    least, have_least = target.get("min" + what, 0), source.get("min" + what, 0)
    most, have_most = target.get("max" + what), source.get("max" + what)
    if have_least < least:
        reasons.append(
            Reason(path, f"at least {least} {unit}", f"{have_least} or more")
        )
    if most is not None and (have_most is None or have_most > most):
        got = "no limit" if have_most is None else f"up to {have_most}"
        reasons.append(Reason(path, f"at most {most} {unit}", got))
    return reasons


def words(schema: Schema) -> str:
    """Return a short description of the values of `schema`."""
    if isinstance(schema, bool):
        return "any value" if schema else "no value"
    values = values_of(schema)
    if len(values) == 1:
        return f"the value {cut(values[0])}"
    if values:
        return f"one of {cut(values)}"
    types = types_of(schema)
    unions = schema.keys() & {"anyOf", "oneOf"}
    if types == TYPES and unions:
        branches = schema[min(unions)]
        return " or ".join(dict.fromkeys(map(words, branches[:5])))
    if types == TYPES:
        return "any value"
    return " or ".join(sorted(types))
