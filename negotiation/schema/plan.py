"""Plans: conversions of values between two schemas, as plain data.

`mapping` makes a plan, and `halves` writes it as source text. It is applied here when
the daemon only needs the result for the data at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from negotiation.schema.keywords import pointer
from negotiation.strict_json import Json

__all__ = [
    "ByKind",
    "Field",
    "Fields",
    "Items",
    "Keep",
    "Plan",
    "PlanError",
    "Step",
    "apply_step",
]


class PlanError(ValueError):
    """A value does not have the shape that the plan was made for."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The value is kept unchanged."""


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


@dataclass(frozen=True, slots=True)
class ByKind:
    """Converts objects and lists, and keeps all other values unchanged."""

    of_object: Step
    of_array: Step


Step = Keep | Items | Fields | ByKind
KEEP: Final = Keep()


@dataclass(frozen=True, slots=True)
class Plan:
    """A conversion of all values of one schema to values of another."""

    step: Step

    def describe(self) -> tuple[str, ...]:
        """Return the changes that the plan makes, one line each, for people."""
        return tuple(_lines(self.step, "")) or ("values pass unchanged",)

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
    return result


def _lines(step: Step, path: str) -> Iterator[str]:
    match step:
        case Keep():
            return
        case Items(inner):
            yield from _lines(inner, f"{path}/*")
        case ByKind(of_object, of_array):
            yield from _lines(of_object, path)
            yield from _lines(of_array, path)
        case Fields(fields, constants, dropped, rest):
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
            if rest is not None:
                yield from _lines(rest, f"{path}/*")
