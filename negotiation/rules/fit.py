"""Decides if a document serves a need or a capability, and plans the conversions.

A fit contains everything that a half needs; `halves` only writes it as source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from negotiation.document.fields import Place
from negotiation.document.layout import Layout, read_layout
from negotiation.document.shape import Document
from negotiation.errors import DocumentError, SchemaError
from negotiation.mind import Demand
from negotiation.need import Capability, Schema, infer_schema
from negotiation.rules.choice import Chain
from negotiation.rules.names import short_name
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut, keywords_of
from negotiation.schema.mapping import compare
from negotiation.schema.plan import KEEP, Mismatch, Plan, PlanError, Reason, values_of
from negotiation.schema.terms import Drop, MappingProof, normal_name
from negotiation.schema.values import contradiction
from negotiation.strict_json import canonical_json

MAX_JUDGED: Final = 16 * 1024
"Longest schema that a half carries to judge its results, in bytes of JSON."

ACTION_NAME: Final = re.compile(r"[\w./-]{1,64}")


@dataclass(frozen=True, slots=True)
class Crossing:
    """The conversion of one message's values between the document and our side."""

    place: Place
    "The place of the values in the document's message."

    plan: Plan

    judged: Schema | None = None
    "Schema by which each result is judged, where its source promises too little."


@dataclass(frozen=True, slots=True)
class Fit:
    """A document serves one side, with these conversions."""

    layout: Layout
    request: Crossing
    response: Crossing
    action: str | None = None

    capability: Capability | None = None
    "The capability that is called; None on the requester's side."

    chain: Chain | None = None
    "The calls behind `capability`, when it stands for a chain."

    update: Crossing | None = None
    "The conversion of what comes before the answer; None when nothing does."

    notes: tuple[str, ...] = ()
    "Doubts that the caller is told with each call, one sentence each."

    @property
    def empty(self) -> tuple[str, ...]:
        """The places of the result that get no value, as JSON pointers.

        Their source has other values that are not used and may mean the same.
        """
        return self.response.plan.empty

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The units that only our side of the provider states, one sentence each."""
        return tuple(
            f"{one.place} is in {one.unit} here, and your document does not say so"
            for crossing, is_result in ((self.request, False), (self.response, True))
            for one in crossing.plan.one_sided
            if one.by_source is is_result
        )


def fit_requester(document: Document, demand: Demand) -> Fit | Mismatch:
    """Return how `document` serves the caller's need, or the reasons why it cannot.

    A need without an input schema is served when the data at hand fits the document's
    request format (DESIGN.md, Needs and schemas).
    """
    need = demand.need
    try:
        layout = read_layout(document)
        inferred = need.input_schema is None
        source = prepared(given_schema(demand))
        wanted = prepared(True if need.output_schema is None else need.output_schema)
    except (DocumentError, SchemaError) as exc:
        return _mismatch("", "a document that the rules cover", str(exc))
    proof = MappingProof.SHAPE if inferred else MappingProof.FULL
    request = _first(
        layout,
        [
            (place, _sending(document, source, place, demand, proof))
            for place in layout.request.places
        ],
        source,
    )
    if isinstance(request, Mismatch):
        return request
    response = _result(
        layout,
        [(place, place.schema, wanted) for place in layout.response.places],
        wanted,
    )
    if isinstance(response, Mismatch):
        return response
    action = _action(layout.request.action_schema, action_names(need.requirement))
    if isinstance(action, Mismatch):
        return action
    update = (
        None if layout.update is None else Crossing(layout.update.place, Plan(KEEP))
    )
    notes = (*_unit_notes(request, "sent"), *_unit_notes(response, "given"))
    return Fit(layout, request, response, action, update=update, notes=notes)


def _unit_notes(crossing: Crossing, what: str) -> Iterator[str]:
    """Yield a sentence for each number whose unit only one side states."""
    for one in crossing.plan.one_sided:
        ours = one.by_source is (what == "sent")
        whose = ("need", "peer") if ours else ("peer", "need")
        yield (
            f"{one.place} is {what} as it is: it is in {one.unit} by the word of the "
            f"{whose[0]}, and the {whose[1]} states no unit"
        )


def fit_provider(document: Document, chosen: Capability | Chain) -> Fit | Mismatch:
    """Return how the chosen capability serves `document`, or the reasons against it."""
    chain = chosen if isinstance(chosen, Chain) else None
    capability = chosen.whole if isinstance(chosen, Chain) else chosen
    try:
        layout = read_layout(document)
        takes = prepared(capability.input_schema)
        gives = prepared(capability.output_schema)
    except (DocumentError, SchemaError) as exc:
        return _mismatch("", "a document that the rules cover", str(exc))
    request = _first(
        layout,
        [
            (place, compare(place.schema, takes, drop=Drop.OPTIONAL))
            for place in layout.request.places
        ],
        takes,
    )
    if isinstance(request, Mismatch):
        return request
    response = _result(
        layout,
        [(place, gives, place.schema) for place in layout.response.places],
        gives,
    )
    if isinstance(response, Mismatch):
        return response
    last = chain.steps[-1].capability if chain is not None else capability.name
    names = [short_name(last), last]
    action = _action(layout.response.action_schema, names)
    if isinstance(action, Mismatch):
        return action
    update = None if chain is not None else _updates(layout, capability)
    return Fit(layout, request, response, action, capability, chain, update)


def _updates(layout: Layout, capability: Capability) -> Crossing | None:
    """Return how a capability's updates cross; None when it gives none that fit."""
    if layout.update is None or capability.updates is None:
        return None
    place = layout.update.place
    try:
        plan = compare(prepared(capability.updates), place.schema, drop=Drop.ALL)
    except SchemaError:
        return None
    return None if isinstance(plan, Mismatch) else Crossing(place, plan)


def _result(
    layout: Layout, tried: list[tuple[Place, Schema, Schema]], ours: Schema
) -> Crossing | Mismatch:
    """Return how a result crosses; each is judged if its source promises too little.

    Args:
        tried: Possible places, each with the schema of the source and of the target.
    """
    sure = [
        (place, compare(gives, wanted, drop=Drop.ALL)) for place, gives, wanted in tried
    ]
    found = _first(layout, sure, ours)
    if isinstance(found, Crossing):
        return found
    open_ = [(place, _opened(gives, wanted)) for place, gives, wanted in tried]
    opened = _first(layout, open_, ours)
    if isinstance(opened, Mismatch):
        return found
    judged = next(wanted for place, _, wanted in tried if place is opened.place)
    return replace(opened, judged=judged)


def _opened(gives: Schema, wanted: Schema) -> Plan | Mismatch:
    """Return the conversion of an output of which its source promises too little.

    What is absent or of another kind at run time becomes the document's error.
    """
    if len(canonical_json(wanted)) > MAX_JUDGED:
        return _mismatch("", "a result that can be judged", "a schema that is too long")
    return compare(gives, wanted, drop=Drop.ALL, proof=MappingProof.OPEN)


def given_schema(demand: Demand) -> Schema:
    """Return the schema of the caller's data; without one, that of the data at hand."""
    given = demand.need.input_schema
    return closed(infer_schema(demand.arguments)) if given is None else given


def closed(schema: Schema) -> Schema:
    """Return an inferred schema closed against further properties.

    Otherwise a later call with more arguments would lose them without an error.
    """
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = dict(schema)
    if "properties" in copy:
        copy["properties"] = {
            name: closed(one) for name, one in copy["properties"].items()
        }
        copy["additionalProperties"] = False
    if "items" in copy:
        copy["items"] = closed(copy["items"])
    return copy


def _sending(
    document: Document,
    source: Schema,
    place: Place,
    demand: Demand,
    proof: MappingProof,
) -> Plan | Mismatch:
    plan = compare(source, place.schema, drop=Drop.NONE, proof=proof)
    if demand.need.input_schema is not None:
        return plan
    if isinstance(plan, Mismatch):
        # A provider that writes a document by rules takes what its capability takes,
        # also arguments that the schema allows without naming them. Another document
        # promises no more than the names it has.
        by_rules = document.input_schema is not None
        if by_rules and not contradiction(place.schema, demand.arguments):
            return Plan(KEEP)
        return plan
    try:
        reason = contradiction(place.schema, plan.apply(demand.arguments))
    except PlanError as exc:
        reason = str(exc)
    if reason:
        return _mismatch("", "data that fits the request format", reason)
    return plan


def _first(
    layout: Layout, tried: list[tuple[Place, Plan | Mismatch]], ours: Schema
) -> Crossing | Mismatch:
    """Return the first crossing that works; else the reasons of the most likely."""
    failed: Mismatch | None = None
    for place, plan in tried:
        if isinstance(plan, Plan):
            if place.path or not (clash := _clash(layout, ours)):
                return Crossing(place, plan)
            plan = clash
        failed = failed or plan
    return failed or _mismatch("", "values", "none")


def _clash(layout: Layout, ours: Schema) -> Mismatch | None:
    """Refuse a value of ours that has the name of a protocol field next to it."""
    properties = keywords_of(ours).get("properties", {})
    reserved = {normal_name(name) for name in layout.guessed}
    for name in sorted(properties):
        if normal_name(name) in reserved:
            got = "a field of that name that belongs to the protocol"
            return _mismatch(f"/{name}", "a value", got)
    return None


def action_for(schema: Schema | None, names: Sequence[str]) -> str | None:
    """Return the text for a free `action`: one of `names` in the schema's spelling.

    Raises:
        ValueError: None of them fits the schema.
    """
    if schema is None:
        return None
    listed = values_of(schema)
    for name in names:
        for word in listed:
            if isinstance(word, str) and normal_name(word) == normal_name(name):
                return word
        if not listed and not contradiction(schema, name):
            return name
    raise ValueError("/action: no name of ours is one of its values")


def action_names(requirement: str) -> list[str]:
    """Return the actions that a requester may ask for."""
    name = requirement.strip()
    return [name] if ACTION_NAME.fullmatch(name) else ["call"]


def _action(schema: Schema | None, names: list[str]) -> str | Mismatch | None:
    try:
        return action_for(schema, names)
    except ValueError:
        listed = values_of(True if schema is None else schema)
        offered = f"one of {cut(listed)}" if listed else "another text"
        return _mismatch("/action", offered, cut(names[0]))


def _mismatch(path: str, expected: str, got: str) -> Mismatch:
    return Mismatch((Reason(path, expected, got),))
