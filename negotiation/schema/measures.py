"""Adds to a plan the conversions of units that both of its sides state."""

from __future__ import annotations

from dataclasses import replace
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
    pass_ = _Pass()
    step = pass_.step(plan.step, source, target, (), ())
    if pass_.reasons:
        return Mismatch(tuple(pass_.reasons))
    return Plan(step, tuple(pass_.one_sided))


class _Pass:
    """Walks over both schemas along a plan."""

    def __init__(self) -> None:
        self.reasons: list[Reason] = []
        self.one_sided: list[OneSided] = []

    def step(
        self, step: Step, source: Schema, target: Schema, origin: Path, path: Path
    ) -> Step:
        """Return a step with the conversions of units inside its values."""
        match step:
            case Fields():
                have, want = _properties(source), _properties(target)
                fields = tuple(
                    self._field(one, have, want, origin, path) for one in step.fields
                )
                return replace(step, fields=fields)
            case Items(inner):
                return Items(self._item(inner, source, target, origin, path))
            case ByKind(of_object, of_array):
                return ByKind(
                    self.step(of_object, source, target, origin, path),
                    self.step(of_array, source, target, origin, path),
                )
            case Keep():
                return self._kept(source, target, origin, path)
        return step

    def _kept(self, source: Schema, target: Schema, origin: Path, path: Path) -> Step:
        """Return the step for values that only units may change."""
        have, want = _properties(source), _properties(target)
        kept = [Field(one, one, KEEP, required=False) for one in have if one in want]
        fields = [self._field(one, have, want, origin, path) for one in kept]
        changed = tuple(one for one in fields if one.step != KEEP)
        of_object: Step = Fields(changed, rest=KEEP) if changed else KEEP
        item = self._item(KEEP, source, target, origin, path)
        of_array: Step = KEEP if item == KEEP else Items(item)
        if of_object != KEEP or of_array != KEEP:
            return ByKind(of_object, of_array)
        return self._number(source, target, origin, path)

    def _field(
        self,
        field: Field,
        have: dict[str, Schema],
        want: dict[str, Schema],
        origin: Path,
        path: Path,
    ) -> Field:
        if field.source not in have or field.target not in want:
            return field
        inner = self.step(
            field.step,
            have[field.source],
            want[field.target],
            (*origin, field.source),
            (*path, field.target),
        )
        return replace(field, step=inner)

    def _item(
        self, step: Step, source: Schema, target: Schema, origin: Path, path: Path
    ) -> Step:
        lists = _only(source, "array"), _only(target, "array")
        if not all("items" in one for one in lists):
            return step
        items = lists[0]["items"], lists[1]["items"]
        return self.step(step, items[0], items[1], origin, path)

    def _number(self, source: Schema, target: Schema, origin: Path, path: Path) -> Step:
        """Return the conversion of a number, or `KEEP`."""
        given, wanted = _numeric(source), _numeric(target)
        if given is None or wanted is None:
            return KEEP
        units = unit_of(origin, given), unit_of(path, wanted)
        place = "".join(f"/{pointer(one)}" for one in path)
        if units[0] is None or units[1] is None:
            stated = units[0] or units[1]
            if stated is not None and path:
                by_source = units[0] is not None
                self.one_sided.append(OneSided(place, stated.said, by_source))
            return KEEP
        scale = scale_between(units[0], units[1])
        if scale == SAME_SIZE:
            return KEEP
        expected, got = (f"a number in {one.said}" for one in (units[1], units[0]))
        if isinstance(scale, str):
            self.reasons.append(Reason(place, expected, f"{got}: {scale}"))
            return KEEP
        whole = types_of(wanted) == {"integer"}
        only_numbers = all(
            types_of(one) <= NUMBERS | {"null"}
            for side in (source, target)
            for one in alternatives(side)
        )
        if (
            not only_numbers
            or values_of(wanted)
            or (whole and (scale.over != 1 or types_of(given) != {"integer"}))
        ):
            got = f"{got}, which this schema leaves no room to convert"
            self.reasons.append(Reason(place, expected, got))
            return KEEP
        return scale


def _properties(schema: Schema) -> dict[str, Schema]:
    found: dict[str, Schema] = _only(schema, "object").get("properties", {})
    return found


def _only(schema: Schema, kind: str) -> dict[str, Any]:
    """Return the only alternative of a kind; empty if there is none, or several."""
    found = [
        one
        for one in alternatives(schema)
        if isinstance(one, dict) and kind in types_of(one)
    ]
    return found[0] if len(found) == 1 else {}


def _numeric(schema: Schema) -> dict[str, Any] | None:
    """Return the alternatives that are numbers as one schema, or None."""
    found = [
        one
        for one in alternatives(schema)
        if isinstance(one, dict) and types_of(one) & NUMBERS
    ]
    if not found or any("properties" in one for one in found):
        return None
    return {**words_about(schema), **found[0]}
