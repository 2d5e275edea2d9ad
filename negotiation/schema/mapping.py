"""Decides if every value of one schema can be converted to another, and plans how.

The result is a `Plan`, or the reasons in words. It is proved for all values, so a half
made from a plan never produces a message that the other schema refuses. Names may
differ only in case and separators; meaning is never guessed. A number is converted
where both sides state its unit. Keywords that only the
source has are ignored, as each of them only restricts the source. Keywords of the
target that are not handled here are accepted only when both sides have the same value
(DESIGN.md, Negotiation).
"""

from __future__ import annotations

from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.keywords import ANNOTATIONS, TYPES, cut
from negotiation.schema.measures import measured
from negotiation.schema.objects import Found, ObjectPair
from negotiation.schema.plan import (
    KEEP,
    ByKind,
    Items,
    Mismatch,
    Plan,
    Reason,
    Step,
    limit_reasons,
    values_of,
    words,
)
from negotiation.schema.terms import Drop, MappingProof
from negotiation.schema.values import (
    alternatives,
    bare,
    contradiction,
    defaults_of,
    overlapping,
    same_json,
    types_of,
)
from negotiation.strict_json import Json, canonical_json

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
    return measured(Plan(found), source, target)


class _TooLargeError(Exception):
    """There are more pairs to compare than the budget allows."""


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

    def step(self, source: Schema, target: Schema, path: str) -> Found:
        """Return the conversion of `source` to `target`, or the reasons against it."""
        self._spend()
        if self._equal(source, target):
            found = self._different(source, target, path)
            # Only what an absent property means differs; all values fit as they are.
            return KEEP if isinstance(found, list) else found
        if self._form(target) in (b"{}", b"true"):
            return KEEP
        return self._different(source, target, path)

    def _different(self, source: Schema, target: Schema, path: str) -> Found:
        if self._equal(source, target) and not self._means_other(source, target):
            return KEEP
        sources = self._split(source)
        targets = self._split(target)
        if len(sources) == 1 and len(targets) == 1:
            return self._single(sources[0], targets[0], path)
        if overlapping(target, targets):
            return [Reason(path, "the same oneOf on both sides", words(source))]
        return self._cover(sources, targets, path)

    def _cover(self, sources: list[Schema], targets: list[Schema], path: str) -> Found:
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

    def _best(self, source: Schema, targets: list[Schema], path: str) -> Found:
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

    def _single(self, source: Schema, target: Schema, path: str) -> Found:
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

    def _listed(self, values: list[Json], target: Schema, path: str) -> Found:
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
    ) -> Found:
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
    ) -> Found:
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
    ) -> Found:
        wanted: dict[str, Schema] = dict(target.get("properties", {}))
        extra = target.get("additionalProperties")
        for name in target.get("required", ()):
            wanted.setdefault(name, True if extra is None else extra)
        if not wanted and extra in (None, True):
            return KEEP
        return ObjectPair(
            self.step, source, target, wanted, path, drop=self._drop, proof=self._proof
        ).run()

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
