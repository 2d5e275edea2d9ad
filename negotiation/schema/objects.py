"""Compares two schemas of objects, property by property."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from negotiation.need import Schema
from negotiation.schema.keywords import cut, pointer
from negotiation.schema.plan import (
    KEEP,
    Field,
    Fields,
    NothingFound,
    PlanError,
    Reason,
    Step,
    apply_step,
    values_of,
    words,
)
from negotiation.schema.terms import Drop, MappingProof, normal_name
from negotiation.schema.values import contradiction, default_of, kinds_of, same_json
from negotiation.strict_json import Json

Found = Step | list[Reason]
"A conversion, or the reasons why there is none."


class ObjectPair:
    """Compares two object schemas, property by property."""

    def __init__(
        self,
        step: Callable[[Schema, Schema, str], Found],
        source: dict[str, Any],
        target: dict[str, Any],
        wanted: dict[str, Schema],
        path: str,
        *,
        drop: Drop,
        proof: MappingProof,
    ) -> None:
        """Prepare the comparison of two object schemas.

        Args:
            step: Compares the schemas of one property; its path comes third.
            source: Schema of the available objects.
            target: Schema of the wanted objects.
            wanted: Each property of the target with its schema.
            path: JSON Pointer of the objects.
            drop: Declared properties that may be lost.
            proof: Conditions that the source schema must guarantee.
        """
        self._step = step
        self._drop = drop
        self._proof = proof
        self._have: dict[str, Schema] = dict(source.get("properties", {}))
        self._sure = frozenset(source.get("required", ()))
        for name in self._sure:
            self._have.setdefault(name, True)
        self._wanted = wanted
        self._needed = frozenset(target.get("required", ()))
        self._extra_in = source.get("additionalProperties")
        if "patternProperties" in source:
            # The names they match are unknown without running the patterns.
            self._extra_in = True
        self._extra_out = target.get("additionalProperties")
        self._path = path
        self._reasons: list[Reason] = []
        self._fields: list[Field] = []
        self._constants: list[tuple[str, Json]] = []
        self._used: set[str] = set()
        self._unmet: list[str] = []
        self._sources = _by_normal_name(
            name for name in self._have if name not in wanted
        )
        self._targets = _by_normal_name(
            name for name in wanted if name not in self._have
        )

    def run(self) -> Found:
        """Return the conversion of the objects, or the reasons against it."""
        for name in sorted(self._wanted):
            self._property(name, self._wanted[name])
        rest = self._extras()
        dropped = tuple(sorted(self._have.keys() - self._used))
        self._check_dropped(dropped, passes=rest is not None)
        if not self._reasons:
            self._check_found()
        if self._reasons:
            return self._reasons
        fields = tuple(sorted(self._fields, key=lambda field: field.target))
        some = self._promises_nothing and not self._needed and bool(fields)
        empty = tuple(name for name in self._unmet if self._may_mean(name, dropped))
        constants = tuple(self._constants)
        step = Fields(fields, constants, dropped, rest, empty, some)
        return KEEP if self._changes_nothing(step) else step

    def _property(self, name: str, schema: Schema) -> None:
        needed = name in self._needed
        origin = self._origin(name)
        if origin is None:
            if self._promises_nothing:
                self._fields.append(Field(name, name, KEEP, required=False))
                return
            if len(values_of(schema)) != 1:
                # A property with one possible value says nothing about the source.
                self._unmet.append(name)
            if needed:
                self._fill(name, schema)
            return
        found = self._step(self._have[origin], schema, self._at(name))
        if isinstance(found, list):
            if not needed and all(isinstance(one, NothingFound) for one in found):
                # The other properties may still be wanted.
                self._unmet.append(name)
                return
            self._used.add(origin)
            self._reasons += found
            return
        self._used.add(origin)
        default: tuple[Json, ...] = ()
        if origin not in self._sure:
            default = self._meant(self._have[origin], schema, found, needed=needed)
            if needed and not default and self._proof is MappingProof.FULL:
                self._reason(name, "a required property", "an optional one")
            if self._proof is MappingProof.OPEN:
                needed = False
        self._fields.append(Field(origin, name, found, needed, default))

    def _meant(
        self, source: Schema, target: Schema, step: Step, *, needed: bool
    ) -> tuple[Json, ...]:
        """Return what an absent property means: a default that a schema gives, or none.

        Its own schema comes first: absent never becomes what only the target means.
        """
        own = default_of(source)
        try:
            made = tuple(apply_step(step, one) for one in own)
        except PlanError:
            made = ()
        made = tuple(one for one in made if not contradiction(target, one))
        if needed:
            return made or default_of(target)
        other = default_of(target)
        same = made and other and same_json(made[0], other[0])
        return () if same or self._drop is Drop.ALL else made

    @property
    def _promises_nothing(self) -> bool:
        """True if the source may have any property, and nothing has to hold of it."""
        return (
            self._proof is MappingProof.OPEN
            and not self._have
            and self._extra_in in (None, True)
        )

    def _origin(self, name: str) -> str | None:
        """Return the source property that `name` means, if there is exactly one."""
        if name in self._have:
            return name
        normal = normal_name(name)
        sources = self._sources.get(normal, []) if normal else []
        if not sources:
            return None
        if len(sources) > 1 or len(self._targets[normal]) > 1:
            names = " and ".join(map(cut, sorted({*sources, *self._targets[normal]})))
            self._reason(name, "one property of that name", f"{names}, which are alike")
        return sources[0]

    def _fill(self, name: str, schema: Schema) -> None:
        """Give a required property that the source lacks its only or default value."""
        values = values_of(schema)
        chosen = tuple(values) if len(values) == 1 else default_of(schema)
        if chosen:
            self._constants.append((name, chosen[0]))
        else:
            needs = f"{words(schema)}, required"
            self._reason(name, needs, "nothing of that name")

    def _extras(self) -> Step | None:
        """Return the step for undeclared properties, or None to drop them."""
        extra = self._extra_out
        if extra is None or extra is False:
            return None
        for name in sorted(self._have.keys() - self._used):
            found = self._step(self._have[name], extra, self._at(name))
            if isinstance(found, list):
                self._reasons += found
                continue
            self._used.add(name)
            self._fields.append(Field(name, name, found, name in self._sure))
        unnamed = True if self._extra_in is None and not self._have else self._extra_in
        if unnamed is None or unnamed is False:
            return None
        if self._wanted.keys() - self._have.keys():
            # An undeclared property of the source could have the name of a target
            # property.
            return None
        found = self._step(unnamed, extra, f"{self._path}/*")
        if isinstance(found, list):
            self._reasons += found
            return None
        return found

    def _check_dropped(self, dropped: tuple[str, ...], *, passes: bool) -> None:
        lost = {
            Drop.NONE: dropped,
            Drop.OPTIONAL: [name for name in dropped if name in self._sure],
            Drop.ALL: (),
        }[self._drop]
        for name in lost:
            self._reason(name, "no property of that name", words(self._have[name]))
        stated = self._extra_in not in (None, False)
        if self._drop is Drop.NONE and stated and not passes:
            at = f"{self._path}/*"
            got = "properties of any name"
            self._reasons.append(Reason(at, "named properties only", got))

    def _check_found(self) -> None:
        """Refuse a conversion that gives none of the wanted values."""
        wanted = {field.target for field in self._fields} & self._wanted.keys()
        if wanted or not self._unmet:
            return
        open_ = self._drop is Drop.ALL and self._extra_in in (None, True)
        if self._have or open_:
            named = " or ".join(map(cut, self._unmet[:5]))
            only = ", ".join(map(cut, sorted(self._have)[:5])) or "no property by name"
            self._reasons.append(
                NothingFound(self._path, f"a property {named}", f"only {only}")
            )

    def _may_mean(self, name: str, unused: Iterable[str]) -> bool:
        """Return whether the type of an unused property allows it to mean `name`."""
        kinds = kinds_of(self._wanted[name])
        return any(kinds & kinds_of(self._have[one]) for one in unused)

    def _changes_nothing(self, step: Fields) -> bool:
        same = all(
            field.source == field.target and field.step == KEEP and not field.default
            for field in step.fields
        )
        closed = self._extra_in is False or step.rest == KEEP
        return same and closed and not step.constants and not step.dropped

    def _at(self, name: str) -> str:
        return f"{self._path}/{pointer(name)}"

    def _reason(self, name: str, expected: str, got: str) -> None:
        self._reasons.append(Reason(self._at(name), expected, got))


def _by_normal_name(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(normal_name(name), []).append(name)
    return found
