"""The common part of both sides' trials of a half."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jsonic.exact_numbers import write_json
from negotiation.document.fields import Place, Slot, build_message
from negotiation.document.message_judge import MessageJudge, find, says_good
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError
from negotiation.mind import Demand, HalfRunner, HalfSource, Side, Validator
from negotiation.need import Schema
from negotiation.schema.keywords import cut
from negotiation.schema.samples import make_samples
from negotiation.schema.units import Unit, asked_units, stated_units
from negotiation.schema.values import json_type, same_json, types_of
from negotiation.schema.variants import Path, leaves, variants, with_leaf
from negotiation.strict_json import Json, canonical_json
from negotiation.trial.module_examples import examples_in, with_examples
from negotiation.trial.variation import Seen, VariedConversion

MESSAGE_ID: Final = "sample0000000001"
"The message id of all samples; a half must copy it without interpreting it."

MAX_MESSAGE: Final = 1024 * 1024
"Largest message that a half may make from a sample, in bytes."

MAX_PROBLEMS: Final = 20
"Largest number of findings; a mind cannot use more at once."

HOSTILE: Final[tuple[tuple[str, bytes], ...]] = (
    ("no bytes", b""),
    ("bytes that are not UTF-8", b"\xff\xfe\x00{}"),
    ("an empty object", b"{}"),
    ("an empty list", b"[]"),
    ("null", b"null"),
    ("a number", b"200"),
    ("a text", b'"ok"'),
    ("a cut message", b"{"),
    ("deep nesting", b"[" * 50_000),
    ("deep nesting inside an object", b'{"a":' * 20_000 + b"1" + b"}" * 20_000),
)
"Bytes that no half may accept as a good message, with their names."


WRONG: Final[tuple[Json, ...]] = ([], 5, "x")
"Values of which at least one has a wrong type for any field with a type."


class SamplesMade:
    """The degrees to which samples could be made; agreements store them."""

    FULL: Final = "full"
    PARTIAL: Final = "partial"
    NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Findings:
    """The outcome of a check."""

    problems: tuple[str, ...]
    "Faults in words; empty when the half may be used."

    samples: str
    "`full`, `partial` or `none`: the share of the schemas that have samples."

    checks: int
    "Number of messages tried, hostile ones included."

    @property
    def passed(self) -> bool:
        """True when the half may be used."""
        return not self.problems


class Trial(ABC):
    """Tries one half and collects findings."""

    def __init__(
        self,
        half: HalfSource,
        document: Document,
        side: Side,
        *,
        runner: HalfRunner,
        validator: Validator,
    ) -> None:
        self._half = half
        self._document = document
        self._side = side
        self._runner = runner
        self._validator = validator
        self._judge = MessageJudge(document, runner, validator)
        self._examples = examples_in(half.text)
        self.problems: list[str] = []
        self._checks = 0
        self._tried = 0
        # A model may write a half for a document that the rules do not cover; its
        # messages are then checked by their schemas alone.
        self._layout = self._judge.layout
        self._partial = self._layout is None

    def problem(self, text: str) -> None:
        """Record a finding, once."""
        if text not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)

    @abstractmethod
    async def run(self) -> None:
        """Run all checks; the findings are in `problems` afterwards."""

    def findings(self) -> Findings:
        """Return the outcome of the checks."""
        made = SamplesMade.PARTIAL if self._partial else SamplesMade.FULL
        samples = made if self._tried else SamplesMade.NONE
        return Findings(tuple(self.problems), samples, self._checks)

    async def _valid(
        self, schema: Schema, given: Sequence[Json], root: str
    ) -> list[Json]:
        """Return the samples of `schema` that the validator accepts.

        Args:
            given: Data at hand, which comes first and stays unchanged.
            root: The half's name of the value, for the half's own examples.
        """
        made = make_samples(schema, given)
        self._partial = self._partial or made.partial
        examples = self._examples.get(root, {})
        at_hand = {canonical_json(one) for one in given}
        kept: dict[bytes, Json] = {}
        for sample in made.values:
            value = sample.value
            if canonical_json(value) not in at_hand:
                value = with_examples(value, examples)
            if (key := canonical_json(value)) in kept:
                continue
            if await self._validator.validate(schema, value):
                self._partial = True
            else:
                kept[key] = value
        return list(kept.values())

    async def _fits(
        self, kind: MessageKind, schema: Schema, data: object, what: str
    ) -> bool:
        if not isinstance(data, bytes):
            self.problem(f"{what} gives {type(data).__name__}, not bytes")
            return False
        if len(data) > MAX_MESSAGE:
            self.problem(f"{what} gives {len(data)} bytes, at most {MAX_MESSAGE}")
            return False
        try:
            findings = await self._judge.findings(kind, schema, data)
        except HalfError as exc:
            findings = [f"read_message fails: {exc}"]
        for finding in findings:
            self.problem(f"{what} gives a message that does not fit: {finding}")
        return not findings

    async def _values(self, kind: MessageKind, data: object) -> dict[str, Any]:
        """Return the values of a message; an empty object if they cannot be read."""
        if not isinstance(data, bytes) or len(data) > MAX_MESSAGE:
            return {}
        return await self._judge.fields(kind, data)

    def _carries_id(
        self, values: dict[str, Any], what: str, message_id: Json = MESSAGE_ID
    ) -> None:
        name = self._layout.message_id if self._layout is not None else None
        if name is not None and values.get(name) != message_id:
            self.problem(f"{what} does not carry the message id in {name!r}")

    def _says_good(self, values: dict[str, Any]) -> bool | None:
        """Return whether a response reports success; None if that is unknown."""
        if self._layout is None:
            return None
        return says_good(self._layout.response, values)

    def _result_missing(self, values: dict[str, Any]) -> bool:
        if self._layout is None:
            return False
        place = self._layout.response.places[0]
        return bool(place.path) and place.path[0] not in values

    def _constant(
        self,
        sources: Sequence[Json],
        results: Sequence[bytes | None],
        *,
        target: Schema,
        what: str,
    ) -> None:
        """Report a half that gives the same result for different values.

        A place that had the same value in all of them may be the one that counts, and
        is not held against the half.
        """
        if len(make_samples(target).values) < 2 or not _all_vary(sources):
            return
        pairs = {
            canonical_json(source): result
            for source, result in zip(sources, results, strict=True)
            if result is not None
        }
        if len(pairs) > 1 and len(set(pairs.values())) == 1:
            self.problem(f"{what} gives the same for {len(pairs)} different values")

    def _inside(
        self, values: dict[str, Json], place: Place, taken: frozenset[str]
    ) -> Json:
        """Return the values at `place` of a message, without the protocol's fields."""
        if place.path:
            return find(values, place.path)
        return {name: one for name, one in values.items() if name not in taken}

    async def _cross(
        self,
        what: str,
        source: tuple[Schema, Json],
        target: Schema,
        run: Callable[[Json], Awaitable[Json]],
        *,
        head: int = 0,
        every: bool = False,
    ) -> None:
        """Vary a value one place at a time, and record the faults that show.

        Args:
            what: The function of the half, for the findings.
            source: Schema and base of the value.
            run: Makes the target of a value; None if the half refuses it.
            head: Number of steps of the target's paths that are not names.
            every: True if every field of the source has to have an effect.
        """
        schema, base = source
        made = await run(base)
        if made is None:
            return
        seen = [
            Seen(one, await run(one.value))
            for one in variants(schema, base)
            if not await self._validator.validate(schema, one.value)
        ]
        asked = () if head or every else self._asked(schema)
        varied = VariedConversion(what, schema, target, base, made, seen, head, asked)
        doubts = {**varied.constant(), **(varied.ignored() if every else {})}
        for path, fault in doubts.items():
            if not await _has_effect_in_pairs(path, seen, run):
                self.problem(fault)
        for fault in varied.misplaced():
            self.problem(fault)

    def _asked(self, source: Schema) -> tuple[Unit, ...]:
        """Return the units that the words ask for and no number of a source states."""
        demand = self._side if isinstance(self._side, Demand) else None
        words = demand.need.requirement if demand else self._document.requirement
        stated = {unit for _, unit in stated_units(source)}
        units = [unit for _, unit in asked_units(words) if unit is not None]
        return tuple(unit for unit in units if unit not in stated)

    def _wrong_types(self, schema: Schema) -> list[tuple[str, bytes]]:
        """Return messages that are right except for the type of one important field."""
        # Messages in another format can only come from its worked examples.
        if self._layout is None or not self._document.is_json:
            return []
        if not isinstance(schema, dict):
            return []
        request = schema is self._document.request_schema
        part = self._layout.request if request else self._layout.response
        made = make_samples(part.places[0].schema)
        if not made.values:
            return []
        fields = self._layout.request.fields if request else self._layout.response.good
        value = made.values[0].value
        message = build_message(fields, slots(), place=part.places[0], value=value)
        found = []
        # The validator checks fields that a half may ignore anyway, such as `type`.
        counts = {self._layout.message_id, *part.places[0].path[:1]}
        if not request:
            counts |= {mark.path[0] for mark in self._layout.response.marks}
        for name in [one for one in schema.get("required", ()) if one in counts]:
            types = types_of(schema.get("properties", {}).get(name, True))
            wrong = next((one for one in WRONG if json_type(one) not in types), None)
            if wrong is not None and not (wrong == 5 and "number" in types):
                data = dumped({**message, name: wrong})
                found.append((f"a wrong type in {cut(name)}", data))
        return found

    async def _unfit(self, kind: MessageKind, data: bytes) -> bool:
        """Return whether `data` is not a good message of the document after all."""
        request = kind is MessageKind.REQUEST
        document = self._document
        schema = document.request_schema if request else document.response_schema
        try:
            return bool(await self._judge.findings(kind, schema, data))
        except HalfError:
            return True


async def _has_effect_in_pairs(
    path: Path, seen: Sequence[Seen], run: Callable[[Json], Awaitable[Json]]
) -> bool:
    """Return whether a place has an effect when another one varies with it."""
    leaf = next(one.variant.leaf for one in seen if one.variant.path == path)
    for other in seen:
        if other.variant.path != path and other.target is not None:
            made = await run(with_leaf(other.variant.value, path, leaf))
            if made is None or not same_json(made, other.target):
                return True
    return False


def fullest(values: Sequence[Json]) -> Json:
    """Return the value with the most places; None if there is none.

    Of several it is the last, whose content is the least usual.
    """
    return max(reversed(values), key=lambda one: len(leaves(one)), default=None)


def lacks(value: Json, values: Sequence[Json]) -> bool:
    """Return whether `value` has no value in a place where another of `values` has."""

    def given(one: Json) -> set[Path]:
        return {
            tuple("0" if step.isdecimal() else step for step in path)
            for path, leaf in leaves(one).items()
            if leaf is not None
        }

    return bool(given(fullest(values)) - given(value))


def _all_vary(sources: Sequence[Json]) -> bool:
    """Return whether every text in the values differs in at least two of them."""
    seen: dict[Path, set[bytes]] = {}
    for source in sources:
        for path, leaf in leaves(source).items():
            if isinstance(leaf, str):
                seen.setdefault(path, set()).add(canonical_json(leaf))
    return all(len(values) > 1 for values in seen.values())


def slots() -> dict[Slot, Json]:
    """Return the samples' values for the fields that a half fills in."""
    return {
        Slot.MESSAGE_ID: MESSAGE_ID,
        Slot.ACTION: "call",
        Slot.CODE: 500,
        Slot.CODE_TEXT: "500",
        Slot.TEXT: "it broke",
    }


def dumped(value: Json) -> bytes:
    """Return `value` as the bytes of a message."""
    return write_json(value, ensure_ascii=False).encode("utf-8")
