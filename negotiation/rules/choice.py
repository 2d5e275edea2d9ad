"""Chooses the capability, or the chain of several, that a candidate means.

Names are compared without case and separators. By shape only the single read-only one
that fits is chosen; a capability with side effects must be named. A requirement that
names two or three exposed capabilities means all of them, in that order, if each later
one needs an output of an earlier one under the same name and with the same schema. No
capability with side effects is part of a chain: a requirement may also name a
capability to exclude it (DESIGN.md, Negotiation).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from negotiation.document.layout import Layout, find_layout
from negotiation.document.shape import Document
from negotiation.errors import SchemaError
from negotiation.need import Capability, Schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import keywords_of
from negotiation.schema.mapping import normal_name
from negotiation.schema.values import alternatives, same_schema, types_of

__all__ = [
    "Chain",
    "ChainStep",
    "MAX_REQUIREMENT",
    "NoChoice",
    "WORD",
    "choose",
    "choose_for_prose",
    "find_chain",
    "mentioned",
    "name_key",
    "names_in",
    "names_one",
    "near_names",
    "short_name",
]

MAX_REQUIREMENT: Final = 16 * 1024
"Largest part of a requirement that is searched for names, in characters."

CJK: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
WORD: Final = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
"A word; in scripts without blanks between words each character is one."

GAP: Final = re.compile(r"[\s_\-]*|[./]")
"Separator between the parts of one name."


def short_name(name: str) -> str:
    """Return the name of a capability without that of its attachment."""
    return name.rpartition(".")[2] or name


def name_key(name: str) -> str:
    """Return the letters and digits of a name, which are compared."""
    return "".join(word.casefold() for word in WORD.findall(name))


def names_in(text: str, names: Iterable[str]) -> set[str]:
    """Return those of `names` that occur in `text` as words, with any separators.

    Args:
        names: In the form of `name_key`.
    """
    return {name for _, _, name in _found(text, frozenset(names))}


def mentioned(text: str, capabilities: Sequence[Capability]) -> list[Capability]:
    """Return the capabilities that `text` names, in the order of their first mention.

    A name inside a longer one does not count, nor does one that several share.
    """
    names: dict[str, list[Capability]] = {}
    for one in capabilities:
        for name in {name_key(one.name), name_key(short_name(one.name))} - {""}:
            names.setdefault(name, []).append(one)
    places = sorted(
        _found(text[:MAX_REQUIREMENT], frozenset(names)),
        key=lambda place: (place[0], -place[1]),
    )
    ordered: dict[str, Capability] = {}
    end = 0
    for start, stop, name in places:
        if start < end:
            continue
        end = stop
        if len(names[name]) == 1:
            ordered.setdefault(names[name][0].name, names[name][0])
    return list(ordered.values())


def _found(text: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the beginning, the end and the key of each name found."""
    room = max(map(len, wanted), default=0)
    words = list(WORD.finditer(text))
    for number, first in enumerate(words):
        joined = ""
        end = first.start()
        for word in words[number:]:
            if joined and not GAP.fullmatch(text, end, word.start()):
                break
            joined += word[0].casefold()
            end = word.end()
            if len(joined) > room:
                break
            if joined in wanted:
                yield first.start(), end, joined


MAX_STEPS: Final = 3
"Largest number of capabilities in one chain."


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One call of a chain."""

    capability: str

    given: tuple[str, ...]
    "Properties that the request provides."

    linked: tuple[tuple[str, int], ...]
    "Properties from an earlier step, each with the number of that step, from 0."


@dataclass(frozen=True, slots=True)
class Chain:
    """Capabilities that serve a request together."""

    steps: tuple[ChainStep, ...]

    whole: Capability
    "The chain as one capability: the request's input, and the last one's output."

    @property
    def name(self) -> str:
        """The names in order, for people and for the requirement of a document."""
        return self.whole.name

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of the capabilities, each once."""
        return tuple(dict.fromkeys(step.capability for step in self.steps))


def find_chain(requirement: str, capabilities: Sequence[Capability]) -> Chain | None:
    """Return the chain that `requirement` names, or None."""
    named = mentioned(requirement, capabilities)
    if not 1 < len(named) <= MAX_STEPS or not all(one.read_only for one in named):
        return None
    steps: list[ChainStep] = []
    takes: dict[str, Schema] = {}
    needed: list[str] = []
    gains: list[dict[str, Schema]] = []
    for one in named:
        try:
            given, gained = prepared(one.input_schema), prepared(one.output_schema)
        except SchemaError:
            return None
        links: list[tuple[str, int]] = []
        own: list[str] = []
        required = keywords_of(given).get("required", ())
        for name, schema in keywords_of(given).get("properties", {}).items():
            number = _giver(name, schema, gains)
            if number is not None:
                links.append((name, number))
                continue
            if name in takes and not same_schema(takes[name], schema):
                return None
            takes[name] = schema
            own.append(name)
            if name in required and name not in needed:
                needed.append(name)
        if steps and not any(name in required for name, _ in links):
            return None
        steps.append(ChainStep(one.name, tuple(own), tuple(links)))
        always = keywords_of(gained).get("required", ())
        gains.append(
            {
                name: one
                for name, one in keywords_of(gained).get("properties", {}).items()
                if name in always
            }
        )
    last = named[-1]
    names = [one.name for one in named]
    whole = Capability(
        ", then ".join(names),
        f"Calls {', then '.join(names)}.",
        {
            "type": "object",
            "properties": takes,
            "required": needed,
            "additionalProperties": False,
        },
        last.output_schema,
        read_only=True,
        idempotent=True,
    )
    return Chain(tuple(steps), whole)


def _giver(name: str, schema: Schema, gains: Sequence[dict[str, Schema]]) -> int | None:
    """Return the latest step that provides a property of this name and schema."""
    for number in reversed(range(len(gains))):
        found = gains[number].get(name)
        if found is not None and same_schema(_bare(found), _bare(schema)):
            return number
    return None


def _bare(schema: Schema) -> Schema:
    if not isinstance(schema, dict):
        return schema
    notes = ("title", "description")
    return {key: value for key, value in schema.items() if key not in notes}


MAX_NEAR: Final = 5
"Largest number of capabilities named in a refusal."


@dataclass(frozen=True, slots=True)
class NoChoice:
    """No capability is meant, or it is unclear which one."""

    reason: str
    "Reason, naming similar exposed capabilities; the peer may see it."


def choose(
    document: Document, capabilities: Sequence[Capability], hints: Sequence[str] = ()
) -> Capability | Chain | NoChoice:
    """Return the capability that `document` asks for, or a chain of several.

    Args:
        hints: The owner's hints, newest last; a capability that one names is chosen.
    """
    chain = find_chain(document.requirement, capabilities)
    hinted = _hinted(hints, capabilities)
    if chain is not None and (hinted is None or hinted.name in chain.names):
        return chain
    if hinted is not None:
        return hinted
    layout = find_layout(document)
    if layout is not None and layout.request.action_value is not None:
        named = _named(layout.request.action_value, capabilities)
        if len(named) == 1:
            return named[0]
    named = _named(document.requirement, capabilities)
    if named:
        return _one_of(named)
    if layout is not None:
        fitting = [one for one in capabilities if _has_shape(layout, one)]
        if len(fitting) == 1 and fitting[0].read_only:
            return fitting[0]
        if fitting:
            return NoChoice(_ask_for_name(fitting))
    return NoChoice(_nothing(document.requirement, capabilities))


def choose_for_prose(
    requirement: str, capabilities: Sequence[Capability], hints: Sequence[str] = ()
) -> Capability | NoChoice:
    """Return the capability that a text without schemas asks for; see `choose`."""
    if (hinted := _hinted(hints, capabilities)) is not None:
        return hinted
    named = _named(requirement, capabilities)
    if named:
        return _one_of(named)
    harmless = [one for one in capabilities if one.read_only]
    if len(harmless) == 1:
        return harmless[0]
    return NoChoice(_nothing(requirement, capabilities))


def names_one(text: str, capability: Capability) -> bool:
    """Return whether `text` has the full or short name of a capability as a word."""
    return bool(_named(text, [capability]))


def near_names(text: str, capabilities: Sequence[Capability]) -> list[str]:
    """Return the names of capabilities similar to `text`, the most similar first."""
    names = {one.name for one in capabilities}
    words = {word.casefold() for word in WORD.findall(text[:MAX_REQUIREMENT])}
    related = {
        name: len(words & {word.casefold() for word in WORD.findall(name)})
        for name in names
    }
    near = sorted(
        (name for name in names if related[name]), key=lambda n: (-related[n], n)
    )
    if not near:
        short = text[:200].casefold()
        near = get_close_matches(short, sorted(names), n=MAX_NEAR, cutoff=0.4)
    return near


def _hinted(
    hints: Sequence[str], capabilities: Sequence[Capability]
) -> Capability | None:
    """Return the one capability that the newest relevant hint names, or None."""
    for hint in reversed(hints):
        named = _named(hint, capabilities)
        if len(named) == 1:
            return named[0]
    return None


def _named(text: str, capabilities: Sequence[Capability]) -> list[Capability]:
    """Return the capabilities whose name is in `text`, those with the longest name."""
    exact = [one for one in capabilities if one.name == text.strip()]
    if exact:
        return exact[:1]
    names: dict[str, list[Capability]] = {}
    for one in capabilities:
        for name in {name_key(one.name), name_key(short_name(one.name))} - {""}:
            names.setdefault(name, []).append(one)
    found = names_in(text[:MAX_REQUIREMENT], names)
    longest = max(map(len, found), default=0)
    meant = [names[name] for name in sorted(found) if len(name) == longest]
    return list({one.name: one for group in meant for one in group}.values())


def _one_of(named: list[Capability]) -> Capability | NoChoice:
    if len(named) == 1:
        return named[0]
    names = ", ".join(sorted(one.name for one in named)[:MAX_NEAR])
    return NoChoice(f"the requirement names several capabilities: {names}; name one")


def _has_shape(layout: Layout, capability: Capability) -> bool:
    """Return whether the request has everything that the capability requires."""
    try:
        takes = prepared(capability.input_schema)
    except SchemaError:
        return False
    return any(_covers(place.schema, takes) for place in layout.request.places)


def _covers(request: Schema, takes: Schema) -> bool:
    given = keywords_of(request).get("properties", {})
    wanted = keywords_of(takes).get("properties", {})
    required = keywords_of(takes).get("required", [])
    if not required:
        # Any request fits if nothing is required; only an empty request chooses so.
        return not given
    by_name = {normal_name(name): schema for name, schema in given.items()}
    for name in required:
        schema = given.get(name, by_name.get(normal_name(name)))
        if schema is None or not _kinds(schema) <= _kinds(wanted.get(name, True)):
            return False
    return True


def _kinds(schema: Schema) -> frozenset[str]:
    """Return the JSON types of `schema`; a number may be an integer."""
    kinds = frozenset[str]().union(*map(types_of, alternatives(schema)))
    return kinds | {"integer"} if "number" in kinds else kinds


def _ask_for_name(fitting: list[Capability]) -> str:
    names = ", ".join(sorted(one.name for one in fitting)[:MAX_NEAR])
    return (
        "no capability is named in the requirement; the request would fit "
        f"{names}, so put that name into it"
    )


def _nothing(requirement: str, capabilities: Sequence[Capability]) -> str:
    if not capabilities:
        return "nothing is offered to you"
    near = near_names(requirement, capabilities)
    listed = near or sorted({one.name for one in capabilities})
    more = " and others" if len(listed) > MAX_NEAR else ""
    what = "near to it" if near else "offered"
    return (
        "no capability offered here is named in the requirement; "
        f"{what}: {', '.join(listed[:MAX_NEAR])}{more}"
    )
