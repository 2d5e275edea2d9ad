"""How a value of one schema becomes a value of another: plain data that can be shown.

A plan is made by `mapping`, written out as source text by `halves`, and applied here
directly when the daemon only wants to know what the data at hand would turn into.
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
    """The value fits as it is."""


@dataclass(frozen=True, slots=True)
class Items:
    """Each item of a list becomes another."""

    step: Step
    "What happens to each item."


@dataclass(frozen=True, slots=True)
class Field:
    """One property that crosses, perhaps under another name."""

    source: str
    "Name in the value that comes in."

    target: str
    "Name in the value that goes out."

    step: Step
    "What happens to the value of the property."

    required: bool
    "True when the target cannot do without it."

    default: tuple[Json, ...] = ()
    "What a required property gets when the source leaves it out: one value, or none."


@dataclass(frozen=True, slots=True)
class Fields:
    """An object becomes an object, property by property."""

    fields: tuple[Field, ...]
    "The properties that cross, in the order of their target names."

    constants: tuple[tuple[str, Json], ...] = ()
    "Target properties that nothing in the source decides, with their value."

    dropped: tuple[str, ...] = ()
    "Declared source properties that the target has no place for."

    rest: Step | None = None
    "What happens to properties that the source does not declare; None drops them."


@dataclass(frozen=True, slots=True)
class ByKind:
    """The value has several kinds; objects and lists change, all else is kept."""

    of_object: Step
    "What happens when it is an object."

    of_array: Step
    "What happens when it is a list."


Step = Keep | Items | Fields | ByKind
KEEP: Final = Keep()


@dataclass(frozen=True, slots=True)
class Plan:
    """Every value of one schema can be turned into one of another, in this way."""

    step: Step
    "What happens to the whole value."

    def describe(self) -> tuple[str, ...]:
        """Return what the plan does beyond copying, one line each, for people."""
        return tuple(_lines(self.step, "")) or ("values pass unchanged",)

    def apply(self, value: Json) -> Json:
        """Return what `value` turns into.

        Raises:
            PlanError: `value` is not of the schema the plan was made for.
        """
        return apply_step(self.step, value)


def apply_step(step: Step, value: Json) -> Json:
    """Return what `value` turns into by `step`.

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
