"""Plans: conversions of values between two schemas, as plain data; or reasons for none.

`mapping` makes a plan, and `halves` writes it as source text. It is applied here when
the daemon only needs the result for the data at hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.keywords import TYPES, cut, pointer
from negotiation.schema.values import types_of
from negotiation.strict_json import Json


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
class NothingFound(Reason):
    """The reason that none of the properties of an object has a source."""


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


class PlanError(ValueError):
    """A value does not have the shape that the plan was made for."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The value is kept unchanged."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts a number to another unit: (value * `times` + `plus`) / `over`, exactly.

    Null stays null.
    """

    times: int
    plus: int
    over: int

    def of(self, value: Json) -> Json:
        """Return a number in the other unit, rounded once, where a float has to be."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PlanError(f"expected a number, got {type(value).__name__}")
        made = (Fraction(str(value)) * self.times + self.plus) / self.over
        return int(made) if made.denominator == 1 else float(made)


@dataclass(frozen=True, slots=True)
class Items:
    """Converts each item of a list."""

    step: Step


@dataclass(frozen=True, slots=True)
class Field:
    """Copies one property, perhaps under another name."""

    source: str
    "Name in the source value."

    target: str
    "Name in the target value."

    step: Step
    "Conversion of the property's value."

    required: bool
    "True when the target requires it."

    default: tuple[Json, ...] = ()
    "Value of a required property that the source leaves out: one value, or none."


@dataclass(frozen=True, slots=True)
class Fields:
    """Converts an object to an object, property by property."""

    fields: tuple[Field, ...]
    "The copied properties, in the order of their target names."

    constants: tuple[tuple[str, Json], ...] = ()
    "Target properties that do not depend on the source, with their values."

    dropped: tuple[str, ...] = ()
    "Declared source properties that the target has no place for."

    rest: Step | None = None
    "Conversion of properties that the source does not declare; None drops them."

    empty: tuple[str, ...] = ()
    """Target properties without a source, although the source has others, unused and
    of a fitting type, that may mean the same."""

    gives_some: bool = False
    """True if the source declares nothing, so that its values show only at run time
    whether any is wanted; an object without a wanted one is an error then."""


@dataclass(frozen=True, slots=True)
class ByKind:
    """Converts objects and lists, and keeps all other values unchanged."""

    of_object: Step
    of_array: Step


Step = Keep | Scale | Items | Fields | ByKind
KEEP: Final = Keep()
SAME_SIZE: Final = Scale(1, 0, 1)


@dataclass(frozen=True, slots=True)
class OneSided:
    """A number that crosses unchanged although only one side states its unit."""

    place: str
    "JSON pointer of the number in the target."

    unit: str
    "The unit, in the words that state it."

    by_source: bool
    "True if the source's schema states it."


@dataclass(frozen=True, slots=True)
class Plan:
    """A conversion of all values of one schema to values of another."""

    step: Step

    one_sided: tuple[OneSided, ...] = ()
    "The numbers whose unit only one side states."

    def describe(self) -> tuple[str, ...]:
        """Return the changes that the plan makes, one line each, for people."""
        return tuple(_lines(self.step, "")) or ("values pass unchanged",)

    @property
    def empty(self) -> tuple[str, ...]:
        """JSON pointers of the places that get no value; see `Fields.empty`."""
        return tuple(dict.fromkeys(_empty(self.step, "")))

    def apply(self, value: Json) -> Json:
        """Return `value` after the conversion.

        Raises:
            PlanError: `value` does not fit the schema that the plan was made for.
        """
        return apply_step(self.step, value)


def apply_step(step: Step, value: Json) -> Json:
    """Return `value` after the conversion `step`.

    Raises:
        PlanError: `value` does not have the shape that `step` was made for.
    """
    match step:
        case Keep():
            return value
        case Scale():
            return step.of(value)
        case Items(inner):
            if not isinstance(value, list):
                raise PlanError(f"expected a list, got {type(value).__name__}")
            return [apply_step(inner, item) for item in value]
        case ByKind(of_object, of_array):
            if isinstance(value, dict):
                return apply_step(of_object, value)
            return apply_step(of_array, value) if isinstance(value, list) else value
        case Fields():
            return _apply_fields(step, value)


def _apply_fields(step: Fields, value: Json) -> Json:
    if not isinstance(value, dict):
        raise PlanError(f"expected an object, got {type(value).__name__}")
    result: dict[str, Json] = dict(step.constants)
    for field in step.fields:
        if field.source in value:
            result[field.target] = apply_step(field.step, value[field.source])
        elif field.default:
            result[field.target] = field.default[0]
        elif field.required:
            raise PlanError(f"{field.source!r} is missing")
    if step.rest is not None:
        known = {field.source for field in step.fields}
        for name, item in value.items():
            if name not in known:
                result[name] = apply_step(step.rest, item)
    if step.gives_some and value and not result:
        raise PlanError("it has none of the wanted properties")
    return result


def _empty(step: Step, path: str) -> Iterator[str]:
    match step:
        case Items(inner):
            yield from _empty(inner, f"{path}/*")
        case ByKind(of_object, of_array):
            yield from _empty(of_object, path)
            yield from _empty(of_array, path)
        case Fields(fields, empty=empty):
            yield from (f"{path}/{pointer(name)}" for name in empty)
            for field in fields:
                yield from _empty(field.step, f"{path}/{pointer(field.target)}")


def _lines(step: Step, path: str) -> Iterator[str]:
    match step:
        case Keep():
            return
        case Scale(times, plus, over):
            sum_ = f"value * {times}" + (f" + {plus}" if plus else "")
            yield f"{path or '/'} is ({sum_}) / {over}"
        case Items(inner):
            yield from _lines(inner, f"{path}/*")
        case ByKind(of_object, of_array):
            yield from _lines(of_object, path)
            yield from _lines(of_array, path)
        case Fields(fields, constants, dropped, rest, empty):
            for field in fields:
                here = f"{path}/{pointer(field.target)}"
                if field.source != field.target:
                    yield f"{here} comes from {field.source!r}"
                if field.default:
                    yield f"{here} is {field.default[0]!r} when left out"
                yield from _lines(field.step, here)
            for name, value in constants:
                yield f"{path}/{pointer(name)} is always {value!r}"
            for name in dropped:
                yield f"{path}/{pointer(name)} is left out"
            for name in empty:
                yield f"{path}/{pointer(name)} gets no value"
            if rest is not None:
                yield from _lines(rest, f"{path}/*")
