"""The faults of a conversion that show when its values are varied one at a time.

A half that ignores a field, swaps two, loses a unit or counts pages from elsewhere
gives good messages with wrong data, which no schema tells. What cannot be varied is not
held against a half, nor is what a name or a unit does not say plainly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from negotiation.need import Schema
from negotiation.schema.keywords import pointer
from negotiation.schema.terms import normal_name
from negotiation.schema.units import Unit, is_near, same_kind, unit_of, ways_between
from negotiation.schema.values import json_type, same_json, types_of
from negotiation.schema.variants import Path, Variant, leaves, schema_at
from negotiation.strict_json import Json

COUNTED: Final = ("page", "offset", "index", "skip", "start", "limit", "count", "size")
"Parts of names of whole numbers that count, which nobody shifts without saying so."


@dataclass(frozen=True, slots=True)
class Seen:
    """One variant of a source, and what became of it."""

    variant: Variant

    target: Json
    "The target value; None if the half refused the variant, which is an effect too."


@dataclass(slots=True)
class VariedConversion:
    """The results of one conversion for one value and for its variants."""

    what: str
    "The function of the half, for the findings."

    source_schema: Schema
    target_schema: Schema
    source: Json
    target: Json
    seen: Sequence[Seen]

    head: int = 0
    "Number of steps at the beginning of the target's paths that are not names."

    asked: tuple[Unit, ...] = ()
    "Units of the target's numbers by the words of the need."

    _before: dict[Path, Json] = field(init=False)
    _moved: dict[Path, set[Path]] = field(init=False)

    def __post_init__(self) -> None:
        self._before = leaves(self.target)
        self._moved = {}
        for one in self.seen:
            moved = self._moved.setdefault(one.variant.path, set())
            if one.target is None:
                moved.add(("",))
                continue
            after = leaves(one.target)
            for path in self._before.keys() | after.keys():
                there = path in self._before and path in after
                if not there or not same_json(self._before[path], after[path]):
                    moved.add(path)

    def ignored(self) -> dict[Path, str]:
        """Return the faults of fields that have no effect alone, by their places."""
        return {
            path: f"{self.what} ignores {_shown(path)}: other values of it change "
            "nothing"
            for path, moved in self._moved.items()
            if not moved and not self._is_fixed(path)
        }

    def constant(self) -> dict[Path, str]:
        """Return the faults of places that never change, by the sources they name."""
        moved = {path for paths in self._moved.values() for path in paths}
        return {
            path: f"{self.what} gives the same {_shown(target[self.head :])} whatever "
            f"{_shown(path)} is"
            for path, target in {**self._same_dimension(), **self._same_named()}.items()
            if self._moved.get(path) is not None
            and target not in moved
            and ("",) not in self._moved[path]
            and not self._is_single(target)
        }

    def misplaced(self) -> list[str]:
        """Return the faults of swapped fields, lost units and shifts."""
        same = self._same_named()
        return [*self._swapped(same), *self._numbers(same)]

    def _is_fixed(self, path: Path) -> bool:
        schema = schema_at(self.source_schema, self.source, path)
        return isinstance(schema, dict) and bool(schema.get("deprecated"))

    def _same_named(self) -> dict[Path, Path]:
        """Return the places of both sides that have one name and one type.

        The whole path is the name; where that has no counterpart, its last step is, if
        it is unique on both sides.
        """
        found: dict[Path, Path] = {}
        sources = leaves(self.source)
        for name_of in (_normal, _last):
            mine = _by_name(
                name_of, [one for one in sources if one not in found and _is_first(one)]
            )
            theirs = _by_name(
                name_of,
                [
                    one
                    for one in self._before
                    if one not in found.values() and _is_first(one[self.head :])
                ],
                self.head,
            )
            for name, paths in mine.items():
                alike = theirs.get(name, [])
                if len(paths) != 1 or len(alike) != 1:
                    continue
                if _kind(sources[paths[0]]) == _kind(self._before[alike[0]]):
                    found[paths[0]] = alike[0]
        return found

    def _same_dimension(self) -> dict[Path, Path]:
        """Return the only places of both sides that have a unit of one dimension."""
        found: list[list[tuple[Path, Unit]]] = []
        for whole, schema, head in (
            (self.source, self.source_schema, 0),
            (self.target, self.target_schema, self.head),
        ):
            places = [
                (path, unit_of(path[head:], schema_at(schema, whole, path)))
                for path, leaf in leaves(whole).items()
                if _kind(leaf) == "number" and _is_first(path[head:])
            ]
            found.append([(path, unit) for path, unit in places if unit is not None])
        same: dict[Path, Path] = {}
        for path, unit in found[0]:
            mine = [one for one, other in found[0] if same_kind(unit, other)]
            theirs = [one for one, other in found[1] if same_kind(unit, other)]
            if len(mine) == len(theirs) == 1:
                same[path] = theirs[0]
        return same

    def _swapped(self, same: dict[Path, Path]) -> list[str]:
        faults = []
        for one, other in combinations(sorted(same), 2):
            moved = self._moved.get(one, set()), self._moved.get(other, set())
            if (
                same[other] in moved[0]
                and same[one] in moved[1]
                and same[one] not in moved[0]
                and same[other] not in moved[1]
            ):
                faults.append(f"{self.what} swaps {_shown(one)} and {_shown(other)}")
        return faults

    def _is_single(self, path: Path) -> bool:
        schema = schema_at(self.target_schema, self.target, path)
        return isinstance(schema, dict) and "const" in schema

    def _numbers(self, same: dict[Path, Path]) -> list[str]:
        faults = []
        for path, moved in self._moved.items():
            numbers = [one for one in moved if _kind(self._before.get(one)) == "number"]
            if len(moved) != 1 or len(numbers) != 1:
                continue
            [target] = numbers
            pairs = [(leaves(self.source)[path], self._before[target])]
            for one in self.seen:
                after = leaves(one.target) if one.target is not None else {}
                if one.variant.path == path and target in after:
                    pairs.append((one.variant.leaf, after[target]))
            known = [
                (float(a), b)
                for a, b in pairs
                if isinstance(a, int | float) and isinstance(b, int | float)
            ]
            is_named = same.get(path) == target
            if fault := self._number_fault(path, target, known, is_named=is_named):
                faults.append(f"{self.what} {fault}")
        return faults

    def _number_fault(
        self,
        path: Path,
        target: Path,
        pairs: Sequence[tuple[float, float]],
        *,
        is_named: bool,
    ) -> str:
        given = schema_at(self.source_schema, self.source, path)
        wanted = schema_at(self.target_schema, self.target, target)
        units = unit_of(path, given), unit_of(target[self.head :], wanted)
        if (source := units[0]) is not None and (to := units[1] or self._meant(source)):
            ways = ways_between(source, to)
            for value, made in pairs:
                rights = [(value * one.times + one.plus) / one.over for one in ways]
                if rights and not any(is_near(made, one) for one in rights):
                    return (
                        f"makes {made} of {value:g} in {_shown(path)}; by the units "
                        f"that are told it is {rights[0]:g}"
                    )
            return ""
        shifts = {round(made - value, 9) for value, made in pairs}
        if len(pairs) < 2 or len(shifts) != 1 or not _counts(path, given):
            return ""
        [shift] = shifts
        if not is_named and not _counts(target, wanted):
            return ""
        expected = _offset(given, wanted)
        ordinal = any(one in normal_name(path[-1]) for one in ("page", "index"))
        if shift == expected or (shift == 0 and not ordinal):
            return ""
        return f"shifts the number {_shown(path)} by {shift:g}"

    def _meant(self, source: Unit) -> Unit | None:
        """Return the unit that the words ask for in place of that of a source."""
        return next((one for one in self.asked if same_kind(one, source)), None)


def _offset(source: Schema, target: Schema) -> float:
    """Return the distance of the first numbers, if both sides tell theirs."""
    firsts = [
        one["minimum"]
        for one in (source, target)
        if isinstance(one, dict) and one.get("minimum") in (0, 1)
    ]
    return firsts[1] - firsts[0] if len(firsts) == 2 else 0


def _counts(path: Path, schema: Schema) -> bool:
    name = normal_name(path[-1]) if path else ""
    return types_of(schema) == {"integer"} and any(one in name for one in COUNTED)


def _kind(leaf: Json) -> str:
    kind = json_type(leaf)
    return "number" if kind == "integer" else kind


def _normal(path: Path) -> Path:
    return tuple(one if one.isdecimal() else normal_name(one) for one in path)


def _is_first(path: Path) -> bool:
    """Return whether a place is in the first item of each list above it."""
    return all(one == "0" for one in path if one.isdecimal())


def _last(path: Path) -> Path:
    """Return the last name of a path, with the number of lists above it."""
    numbers = [one for one in path if one.isdecimal()]
    return (*("*" for _ in numbers), normal_name(path[-1]) if path else "")


def _by_name(
    name_of: Callable[[Path], Path], paths: Sequence[Path], head: int = 0
) -> dict[Path, list[Path]]:
    found: dict[Path, list[Path]] = {}
    for path in paths:
        found.setdefault(name_of(path[head:]), []).append(path)
    return found


def _shown(path: Path) -> str:
    return "".join(f"/{pointer(step)}" for step in path) or "the value"
