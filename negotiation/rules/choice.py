"""Chooses the capability that a candidate means, by name or by shape.

Names are compared without case and separators. By shape only the single read-only one
that fits is chosen; a capability with side effects must be named (DESIGN.md,
Negotiation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from negotiation.document.layout import Layout, read_layout
from negotiation.document.shape import Document
from negotiation.errors import DocumentError, SchemaError
from negotiation.need import Capability, Schema
from negotiation.rules.chains import Chain, find_chain
from negotiation.rules.names import (
    MAX_REQUIREMENT,
    WORD,
    name_key,
    names_in,
    short_name,
)
from negotiation.schema.intake import prepared
from negotiation.schema.mapping import normal_name
from negotiation.schema.unions import alternatives
from negotiation.schema.values import types_of

__all__ = ["NoChoice", "choose", "choose_for_prose", "names_one", "near_names"]

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
    try:
        layout: Layout | None = read_layout(document)
    except DocumentError:
        layout = None
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
    given = _properties(request)
    wanted = _properties(takes)
    required = takes.get("required", []) if isinstance(takes, dict) else []
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


def _properties(schema: Schema) -> dict[str, Any]:
    return dict(schema.get("properties", {})) if isinstance(schema, dict) else {}


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
