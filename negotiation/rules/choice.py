"""Chooses the capability, or the chain of several, that a candidate means.

What was not named is not run: a capability with side effects that is chosen by a
sentence or by its shape is one about which its owner is asked before anything runs (see
`names.is_named`), and so is no part of a chain. By shape only a single one is chosen
that fits and that the words are about. A requirement that names two or three exposed
capabilities means all of them, in that order, if each later one needs an output of an
earlier one under the same name and with the same schema (DESIGN.md, Negotiation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from negotiation.document.layout import Layout, find_layout
from negotiation.document.shape import Document
from negotiation.errors import SchemaError
from negotiation.need import Capability, Schema
from negotiation.rules.names import (
    AGAINST,
    CHANGES,
    CJK_TEXT,
    MAX_REQUIREMENT,
    NAME_LIKE,
    OTHER_NAME,
    content,
    is_against,
    mentioned,
    near_names,
    of_name,
    shared,
    short_name,
)
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import keywords_of
from negotiation.schema.terms import normal_name
from negotiation.schema.values import alternatives, same_schema, types_of

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

    A capability may be chosen by its shape if it is the only one that fits and the
    requirement shares a word with it. One with side effects that `is_named` does not
    find named is only to be asked about.

    Args:
        hints: The owner's hints, newest last; a capability that one names is chosen.
    """
    requirement = document.requirement
    chain = None
    if not is_against(requirement, capabilities):
        chain = find_chain(requirement, capabilities)
    hinted = _hinted(hints, capabilities)
    if chain is not None and (hinted is None or hinted.name in chain.names):
        return chain
    if hinted is not None:
        return hinted
    layout = find_layout(document)
    if layout is not None and layout.request.action_value is not None:
        named = of_name(layout.request.action_value, capabilities)
        if len(named) == 1:
            return named[0]
    chosen = choose_by_name(requirement, capabilities)
    if chosen is not None:
        return chosen
    fitting: list[Capability] = []
    if layout is not None:
        fitting = [one for one in capabilities if _has_shape(layout, one)]
        if len(fitting) == 1 and _is_meant(requirement, fitting[0], _titles(document)):
            return fitting[0]
    return NoChoice(_nothing(requirement, capabilities, fitting))


def choose_for_prose(
    requirement: str, capabilities: Sequence[Capability], hints: Sequence[str] = ()
) -> Capability | NoChoice:
    """Return the capability that a text without schemas asks for; see `choose`."""
    if (hinted := _hinted(hints, capabilities)) is not None:
        return hinted
    chosen = choose_by_name(requirement, capabilities)
    if chosen is not None:
        return chosen
    # Beside one that only reads, no other is meant by words alone.
    likely = [one for one in capabilities if one.read_only] or capabilities
    if len(likely) == 1 and _is_meant(requirement, likely[0]):
        return likely[0]
    return NoChoice(_nothing(requirement, capabilities))


def choose_by_name(
    requirement: str, capabilities: Sequence[Capability]
) -> Capability | NoChoice | None:
    """Return the capability that a requirement names; None if it names none in words.

    A requirement that is a name, in any spelling, means the capability of that name and
    no other. A sentence has to contain the name of exactly one capability, and no word
    that may mean the opposite.
    """
    text = requirement.strip()
    named = of_name(text, capabilities)
    if len(named) > 1:
        return NoChoice(_several(named))
    if named:
        return named[0]
    if NAME_LIKE.fullmatch(text) and not CJK_TEXT.search(text):
        return NoChoice(_nothing(text, capabilities))
    named = mentioned(text, capabilities)
    if not named:
        return None
    if len(named) > 1:
        return NoChoice(_several(named))
    if is_against(text, capabilities):
        return NoChoice(
            "the requirement may mean the opposite, and rules do not understand "
            f"sentences; if `{named[0].name}` is meant, ask for that name alone"
        )
    return named[0]


def _is_meant(requirement: str, capability: Capability, titles: str = "") -> bool:
    """Return whether words alone may choose a capability that fits by its shape.

    Half of the words at least, or of the titles, have to be about the capability. Words
    that want something changed do not mean one that only reads.

    Args:
        titles: The titles of the document's schemas.
    """
    text = requirement[:MAX_REQUIREMENT]
    takes = keywords_of(capability.input_schema)
    unclear = (AGAINST, OTHER_NAME, *([CHANGES] if capability.read_only else []))
    if any(found.search(text) for found in unclear):
        return False
    if not takes.get("required"):
        # Data that would fit anything says nothing.
        return False
    about = content(f"{short_name(capability.name)} {capability.description}")
    known = about | content(" ".join(takes.get("properties", ())))
    return any(
        bool(shared(words, about)) and 2 * shared(words, known) >= len(words)
        for words in (content(text), content(titles[:MAX_REQUIREMENT]))
    )


def _titles(document: Document) -> str:
    found = (document.request_schema, document.response_schema)
    return " ".join(str(keywords_of(one).get("title", "")) for one in found)


def _hinted(
    hints: Sequence[str], capabilities: Sequence[Capability]
) -> Capability | None:
    """Return the one capability that the newest relevant hint names, or None."""
    for hint in reversed(hints):
        named = mentioned(hint, capabilities)
        if len(named) == 1:
            return named[0]
    return None


def _several(named: Sequence[Capability]) -> str:
    names = ", ".join(sorted(one.name for one in named)[:MAX_NEAR])
    return f"the requirement names several capabilities: {names}; name one"


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


def _nothing(
    requirement: str,
    capabilities: Sequence[Capability],
    fitting: Sequence[Capability] = (),
) -> str:
    if not capabilities:
        return "nothing is offered to you"
    near = near_names(requirement, capabilities, fitting)
    listed = near or sorted({one.name for one in capabilities})
    more = " and others" if len(listed) > MAX_NEAR else ""
    what = "near to it" if near else "offered"
    return (
        "no capability offered here is named in the requirement; "
        f"{what}: {', '.join(listed[:MAX_NEAR])}{more}"
    )
