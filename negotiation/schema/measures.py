"""Adds to a plan the conversions of units that both of its sides state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from negotiation.need import Schema
from negotiation.schema.keywords import pointer
from negotiation.schema.plan import (
    KEEP,
    SAME_SIZE,
    ByKind,
    Field,
    Fields,
    Items,
    Keep,
    Mismatch,
    OneSided,
    Plan,
    Reason,
    Step,
    values_of,
)
from negotiation.schema.units import NUMBERS, scale_between, unit_of, words_about
from negotiation.schema.values import alternatives, types_of
from negotiation.schema.variants import Path


def measured(plan: Plan, source: Schema, target: Schema) -> Plan | Mismatch:
    """Return a plan that converts each number whose units differ, or the reasons.

    Args:
        plan: The conversion of `source` to `target`, as `compare` found it.
        source: Schema of the available values, with references replaced.
        target: Schema of the wanted values, with references replaced.
    """
    walk = _Walk()
    step = walk.step(plan.step, (source, target), ((), ()))
    if walk.reasons:
        return Mismatch(tuple(walk.reasons))
    return Plan(step, tuple(walk.one_sided))


@dataclass
class _Walk:
    """Goes along a plan, with the schemas and the paths of both of its sides."""

    reasons: list[Reason] = field(default_factory=list)
    one_sided: list[OneSided] = field(default_factory=list)

    def step(
        self, step: Step, sides: tuple[Schema, Schema], at: tuple[Path, Path]
    ) -> Step:
        """Return a step with the conversions of units inside its values."""
        match step:
            case Fields(fields):
                return replace(step, fields=self._fields(fields, sides, at))
            case Items(inner):
                return Items(self._item(inner, sides, at))
            case ByKind(of_object, of_array):
                both = (self.step(one, sides, at) for one in (of_object, of_array))
                return ByKind(*both)
            case Keep():
                have, want = (
                    _only(one, "object").get("properties", {}) for one in sides
                )
                kept = [Field(one, one, KEEP, False) for one in have if one in want]
                fields = self._fields(kept, sides, at)
                changed = tuple(one for one in fields if one.step != KEEP)
                of_object = Fields(changed, rest=KEEP) if changed else KEEP
                item = self._item(KEEP, sides, at)
                if changed or item != KEEP:
                    return ByKind(of_object, KEEP if item == KEEP else Items(item))
                return self._number(sides, at)
        return step

    def _fields(
        self,
        fields: tuple[Field, ...] | list[Field],
        sides: tuple[Schema, Schema],
        at: tuple[Path, Path],
    ) -> tuple[Field, ...]:
        have, want = (_only(one, "object").get("properties", {}) for one in sides)
        return tuple(
            replace(
                one,
                step=self.step(
                    one.step,
                    (have[one.source], want[one.target]),
                    ((*at[0], one.source), (*at[1], one.target)),
                ),
            )
            if one.source in have and one.target in want
            else one
            for one in fields
        )

    def _item(
        self, step: Step, sides: tuple[Schema, Schema], at: tuple[Path, Path]
    ) -> Step:
        given, wanted = (_only(one, "array").get("items") for one in sides)
        if given is None or wanted is None:
            return step
        return self.step(step, (given, wanted), at)

    def _number(self, sides: tuple[Schema, Schema], at: tuple[Path, Path]) -> Step:
        """Return the conversion of a number, or `KEEP`."""
        given, wanted = map(_numeric, sides)
        if not given or not wanted:
            return KEEP
        source, target = unit_of(at[0], given), unit_of(at[1], wanted)
        place = "".join(f"/{pointer(one)}" for one in at[1])
        if source is None or target is None:
            if place and (unit := source or target) is not None:
                self.one_sided.append(OneSided(place, unit.said, source is not None))
            return KEEP
        scale = scale_between(source, target)
        if scale == SAME_SIZE:
            return KEEP
        got = f"a number in {source.said}"
        if isinstance(scale, str):
            self.reasons.append(
                Reason(place, f"a number in {target.said}", f"{got}: {scale}")
            )
            return KEEP
        whole = types_of(wanted) == {"integer"}
        numbers = {
            kind
            for side in sides
            for one in alternatives(side)
            for kind in types_of(one)
        }
        if (
            numbers - NUMBERS - {"null"}
            or values_of(wanted)
            or (whole and (scale.over != 1 or types_of(given) != {"integer"}))
        ):
            got = f"{got}, which this schema leaves no room to convert"
            self.reasons.append(Reason(place, f"a number in {target.said}", got))
            return KEEP
        return scale


def _only(schema: Schema, kind: str) -> dict[str, Any]:
    """Return the only alternative of a kind; empty if there is none, or several."""
    found = [one for one in alternatives(schema) if kind in types_of(one)]
    return found[0] if len(found) == 1 and isinstance(found[0], dict) else {}


def _numeric(schema: Schema) -> dict[str, Any]:
    """Return the first alternative that is a number, with the words beside it."""
    for one in alternatives(schema):
        if (
            isinstance(one, dict)
            and types_of(one) & NUMBERS
            and "properties" not in one
        ):
            return {**words_about(schema), **one}
    return {}
