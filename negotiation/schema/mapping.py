"""Decides if every value of one schema can be converted to another, and plans how.

The result is a `Plan`, or the reasons in words. It is proved for all values, so a half
made from a plan never produces a message that the other schema refuses. Names may
differ only in case and separators; meaning is never guessed. Keywords that only the
source has are ignored, as each of them only restricts the source. Keywords of the
target that are not handled here are accepted only when both sides have the same value
(DESIGN.md, Negotiation).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.keywords import ANNOTATIONS, TYPES, cut, pointer
from negotiation.schema.plan import (
    KEEP,
    ByKind,
    Field,
    Fields,
    Items,
    Mismatch,
    Plan,
    PlanError,
    Reason,
    Step,
    apply_step,
    limit_reasons,
    values_of,
    words,
)
from negotiation.schema.values import (
    alternatives,
    bare,
    contradiction,
    default_of,
    defaults_of,
    overlapping,
    same_json,
    types_of,
)
from negotiation.strict_json import Json, canonical_json

__all__ = ["Drop", "Mismatch", "MappingProof", "compare", "normal_name"]

MAX_STEPS: Final = 20_000
"Largest number of pairs of subschemas that are compared; above it they are refused."

MAX_REASONS: Final = 20
"Largest number of reasons that are kept; the peer gets them in a summary."

HANDLED: Final = (
    ANNOTATIONS
    | {"type", "properties", "required", "additionalProperties", "items", "enum"}
    | {"const", "format", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"}
    | {"contentEncoding", "contentMediaType"}
)
SAME_ON_BOTH: Final = frozenset({"pattern", "multipleOf", "uniqueItems"})
"Keywords about a whole value, which must be the same on both sides."


class Drop(Enum):
    """The declared properties of the source that may have no place in the target."""

    NONE = auto()
    "None: a caller's own data, of which nothing declared may be lost."

    OPTIONAL = auto()
    "Optional ones: a request to a capability that does not take every option."

    ALL = auto()
    "All: a result, of which the caller takes the part it asked for."


class MappingProof(Enum):
    """The conditions that the source schema must guarantee."""

    FULL = auto()
    "All conditions: types, limits, enums and formats."

    SHAPE = auto()
    "Names and types; the source was inferred from data that is checked on every call."

    OPEN = auto()
    """Never invented: no condition on what the source leaves open or may leave out.

    Such a value is copied, and judged at run time: one that is absent or unfit becomes
    the document's error, which names its place.
    """


def compare(
    source: Schema,
    target: Schema,
    *,
    drop: Drop = Drop.OPTIONAL,
    proof: MappingProof = MappingProof.FULL,
) -> Plan | Mismatch:
    """Return the conversion of all values of `source` to `target`, or the reasons.

    Args:
        source: Schema of the available values, with references replaced.
        target: Schema of the wanted values, with references replaced.
        drop: Declared properties that may be lost.
        proof: Conditions that the source schema must guarantee.
    """
    mapper = _Mapper(drop, proof)
    try:
        found = mapper.step(source, target, "")
    except _TooLargeError:
        return Mismatch(
            (Reason("", "schemas that can be compared", "too many unions"),)
        )
    if isinstance(found, list):
        return Mismatch(tuple(dict.fromkeys(found))[:MAX_REASONS])
    return Plan(found)


def normal_name(name: str) -> str:
    """Return `name` without case and separators, for comparisons."""
    return "".join(
        ch for ch in name.casefold() if ch not in "_-. " and not ch.isspace()
    )


class _TooLargeError(Exception):
    """There are more pairs to compare than the budget allows."""


_Found = Step | list[Reason]


class _Mapper:
    """One comparison with its budget."""

    def __init__(self, drop: Drop, proof: MappingProof) -> None:
        self._drop = drop
        self._proof = proof
        self._left = MAX_STEPS
        # Stored with the schema itself, so that its id cannot be reused while it is
        # here.
        self._forms: dict[int, tuple[Schema, bytes]] = {}
        self._splits: dict[int, tuple[Schema, list[Schema]]] = {}

    def step(self, source: Schema, target: Schema, path: str) -> _Found:
        """Return the conversion of `source` to `target`, or the reasons against it."""
        self._spend()
        if self._equal(source, target):
            found = self._different(source, target, path)
            # Only what an absent property means differs; all values fit as they are.
            return KEEP if isinstance(found, list) else found
        if self._form(target) in (b"{}", b"true"):
            return KEEP
        return self._different(source, target, path)

    def _different(self, source: Schema, target: Schema, path: str) -> _Found:
        if self._equal(source, target) and not self._means_other(source, target):
            return KEEP
        sources = self._split(source)
        targets = self._split(target)
        if len(sources) == 1 and len(targets) == 1:
            return self._single(sources[0], targets[0], path)
        if overlapping(target, targets):
            return [Reason(path, "the same oneOf on both sides", words(source))]
        return self._cover(sources, targets, path)

    def _cover(self, sources: list[Schema], targets: list[Schema], path: str) -> _Found:
        """Find a target alternative for every source alternative."""
        of_object: list[Step] = []
        of_array: list[Step] = []
        reasons: list[Reason] = []
        for source in sources:
            if self._may_be_null(source, sources):
                continue
            found = self._best(source, targets, path)
            if isinstance(found, list):
                reasons += found
                continue
            types = types_of(source)
            if "object" in types and found not in of_object:
                of_object.append(found)
            if "array" in types and found not in of_array:
                of_array.append(found)
        if len(of_object) > 1 or len(of_array) > 1:
            reasons.append(Reason(path, "one form", "forms that cannot be told apart"))
        if reasons:
            return reasons
        step = ByKind(*of_object or [KEEP], *of_array or [KEEP])
        return KEEP if step == ByKind(KEEP, KEEP) else step

    def _may_be_null(self, source: Schema, sources: list[Schema]) -> bool:
        """Return whether `source` is null beside values: absent in other words."""
        null = types_of(source) == {"null"}
        return null and len(sources) > 1 and self._proof is MappingProof.OPEN

    def _best(self, source: Schema, targets: list[Schema], path: str) -> _Found:
        near: list[list[Reason]] = []
        steps: list[Step] = []
        for target in targets:
            self._spend()
            found = self._single(source, target, path)
            if not isinstance(found, list):
                if found == KEEP:
                    return KEEP
                steps.append(found)
            elif types_of(source) & types_of(target):
                near.append(found)
        if steps:
            return steps[0]
        if near:
            return min(near, key=len)
        need = " or ".join(dict.fromkeys(map(words, targets))) or "no value"
        return [Reason(path, need, words(source))]

    def _single(self, source: Schema, target: Schema, path: str) -> _Found:
        same = self._equal(source, target) and not self._means_other(source, target)
        if source is False or same:
            return KEEP
        if target is True or not self._asserts(target):
            return KEEP
        if target is False:
            return [Reason(path, "no value", words(source))]
        assert isinstance(target, dict)
        origin: dict[str, Any] = {} if source is True else dict(source)
        if self._proof is MappingProof.OPEN and not self._asserts(origin):
            return KEEP
        if reasons := self._other_keywords(origin, target, path):
            return reasons
        if values := values_of(origin):
            return self._listed(values, target, path)
        if wanted := values_of(target):
            return self._must_list(origin, wanted, path)
        have, need = types_of(origin), types_of(target)
        if have == TYPES and need != TYPES:
            if self._proof is MappingProof.SHAPE:
                return KEEP
            return [Reason(path, words(target), "any value")]
        if not have - ({"integer"} if "number" in need else set()) <= need:
            return [Reason(path, words(target), words(origin))]
        if self._proof is MappingProof.FULL and (
            reasons := limit_reasons(origin, target, path)
        ):
            return reasons
        if "object" in have and len(have) == 1:
            return self._objects(origin, target, path)
        if "array" in have and len(have) == 1:
            return self._arrays(origin, target, path)
        return KEEP

    def _other_keywords(
        self, source: dict[str, Any], target: dict[str, Any], path: str
    ) -> list[Reason]:
        if self._proof is MappingProof.SHAPE:
            return []
        reasons = []
        for keyword in sorted(target.keys() - HANDLED):
            value = target[keyword]
            if keyword == "uniqueItems" and value is False:
                continue
            both = keyword in SAME_ON_BOTH and keyword in source
            if not (both and same_json(source[keyword], value)):
                need = f"the same {keyword} on both sides"
                got = cut(source[keyword]) if keyword in source else f"no {keyword}"
                reasons.append(Reason(path, need, got))
        return reasons

    def _listed(self, values: list[Json], target: Schema, path: str) -> _Found:
        """Check that each of the source's few values fits."""
        for value in values:
            if isinstance(value, dict | list) and value:
                # The target may contain keywords for the value's parts, which are not
                # checked.
                return [Reason(path, words(target), f"{cut(value)}, not a plain value")]
            if reason := contradiction(target, value):
                return [Reason(path, words(target), f"{cut(value)} ({reason})")]
        return KEEP

    def _must_list(
        self, source: dict[str, Any], wanted: list[Json], path: str
    ) -> _Found:
        """Check a target with few values against a source that lists none."""
        types = types_of(source)
        possible: list[Json] = []
        if types <= {"boolean", "null"}:
            possible = [None] if "null" in types else []
            possible += [True, False] if "boolean" in types else []
        if possible and all(any(same_json(a, b) for b in wanted) for a in possible):
            return KEEP
        offered = {kind for one in wanted for kind in types_of({"const": one})}
        if self._proof is MappingProof.SHAPE and types & offered:
            return KEEP
        return [Reason(path, words({"enum": wanted}), words(source))]

    def _arrays(
        self, source: dict[str, Any], target: dict[str, Any], path: str
    ) -> _Found:
        items = source.get("items", True)
        if "prefixItems" in source:
            items = {"anyOf": [*source["prefixItems"], items]}
        found = self.step(items, target.get("items", True), f"{path}/*")
        if isinstance(found, list):
            return found
        if found == KEEP:
            return KEEP
        if target.get("uniqueItems"):
            return [Reason(path, "unique items", "items that change on the way")]
        return Items(found)

    def _objects(
        self, source: dict[str, Any], target: dict[str, Any], path: str
    ) -> _Found:
        wanted: dict[str, Schema] = dict(target.get("properties", {}))
        extra = target.get("additionalProperties")
        for name in target.get("required", ()):
            wanted.setdefault(name, True if extra is None else extra)
        if not wanted and extra in (None, True):
            return KEEP
        return _ObjectPair(self, source, target, wanted, path).run(self._drop)

    @property
    def proof(self) -> MappingProof:
        """The conditions that the source schema must guarantee."""
        return self._proof

    @property
    def drop(self) -> Drop:
        """The declared properties that may be lost."""
        return self._drop

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooLargeError

    def _form(self, schema: Schema) -> bytes:
        known = self._forms.get(id(schema))
        if known is None:
            known = self._forms[id(schema)] = (schema, canonical_json(bare(schema)))
        return known[1]

    def _equal(self, source: Schema, target: Schema) -> bool:
        return self._form(source) == self._form(target)

    def _means_other(self, source: Schema, target: Schema) -> bool:
        """Return whether an absent property may mean another value at the target."""
        if self._drop is Drop.ALL:
            return False
        return defaults_of(source) != defaults_of(target) and bool(defaults_of(source))

    def _asserts(self, schema: Schema) -> bool:
        return self._form(schema) != b"{}"

    def _split(self, schema: Schema) -> list[Schema]:
        known = self._splits.get(id(schema))
        if known is None:
            known = self._splits[id(schema)] = (schema, alternatives(schema))
        return known[1]


class _ObjectPair:
    """Compares two object schemas, property by property."""

    def __init__(
        self,
        mapper: _Mapper,
        source: dict[str, Any],
        target: dict[str, Any],
        wanted: dict[str, Schema],
        path: str,
    ) -> None:
        self._mapper = mapper
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
        self._sources = _by_normal_name(
            name for name in self._have if name not in wanted
        )
        self._targets = _by_normal_name(
            name for name in wanted if name not in self._have
        )

    def run(self, drop: Drop) -> _Found:
        for name in sorted(self._wanted):
            self._property(name, self._wanted[name])
        rest = self._extras()
        dropped = tuple(sorted(self._have.keys() - self._used))
        self._check_dropped(dropped, drop, passes=rest is not None)
        if self._reasons:
            return self._reasons
        fields = tuple(sorted(self._fields, key=lambda field: field.target))
        step = Fields(fields, tuple(self._constants), dropped, rest)
        return KEEP if self._changes_nothing(step) else step

    def _property(self, name: str, schema: Schema) -> None:
        needed = name in self._needed
        origin = self._origin(name)
        if origin is None:
            if self._promises_nothing:
                self._fields.append(Field(name, name, KEEP, required=False))
            elif needed:
                self._fill(name, schema)
            return
        self._used.add(origin)
        found = self._mapper.step(self._have[origin], schema, self._at(name))
        if isinstance(found, list):
            self._reasons += found
            return
        default: tuple[Json, ...] = ()
        if origin not in self._sure:
            default = self._meant(self._have[origin], schema, found, needed=needed)
            if needed and not default and self._mapper.proof is MappingProof.FULL:
                self._reason(name, "a required property", "an optional one")
            if self._mapper.proof is MappingProof.OPEN:
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
        return () if same or self._mapper.drop is Drop.ALL else made

    @property
    def _promises_nothing(self) -> bool:
        """True if the source may have any property, and nothing has to hold of it."""
        return (
            self._mapper.proof is MappingProof.OPEN
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
            found = self._mapper.step(self._have[name], extra, self._at(name))
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
        found = self._mapper.step(unnamed, extra, f"{self._path}/*")
        if isinstance(found, list):
            self._reasons += found
            return None
        return found

    def _check_dropped(
        self, dropped: tuple[str, ...], drop: Drop, *, passes: bool
    ) -> None:
        lost = {
            Drop.NONE: dropped,
            Drop.OPTIONAL: [name for name in dropped if name in self._sure],
            Drop.ALL: (),
        }[drop]
        for name in lost:
            self._reason(name, "no property of that name", words(self._have[name]))
        stated = self._extra_in not in (None, False)
        if drop is Drop.NONE and stated and not passes:
            at = f"{self._path}/*"
            got = "properties of any name"
            self._reasons.append(Reason(at, "named properties only", got))

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
