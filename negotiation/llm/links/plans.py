"""Links in the form that a model writes, and the plans of halves made of them.

Places and ways are enums, so an answer can only name things that were shown. Conditions
that enums cannot express (a target of one capability in a call of another) are checked
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from negotiation.document.fields import Place
from negotiation.llm.asking.questions import TEXT, choice, many, record
from negotiation.llm.links.conversions import How
from negotiation.llm.links.frames import FieldUse
from negotiation.llm.links.spots import Root, Spot, spots_of, without_null
from negotiation.llm.links.trees import Node, ValueLink
from negotiation.need import Schema
from negotiation.schema.keywords import cut
from negotiation.schema.values import types_of
from negotiation.strict_json import Json
from negotiation.trial.module_shapes import Fallback, PagedCalls

MAX_LINKS: Final = 80
"Largest number of links in one list."

MAX_SOURCES: Final = 8
"Largest number of sources of one link."

MAX_ARGS: Final = 129
"Largest number of parameters of one link."


class ShownValues:
    """The places of one value, as a prompt shows them."""

    def __init__(self, root: Root, spots: Iterable[Spot], place: Place | None) -> None:
        self.root = root
        self.spots = tuple(spots)
        self._by_name = {spot.name: spot for spot in self.spots}
        # True when the paths of the spots already begin at the place of the values.
        self._settled = place is not None

    @property
    def names(self) -> list[str]:
        """The names of the places, for an enum."""
        return [spot.name for spot in self.spots]

    def shows(self, name: str) -> bool:
        """Return whether a prompt shows this place."""
        return name in self._by_name

    def find(self, name: str, place: Place | None = None) -> Spot | None:
        """Return the place that an answer names, or None if it was not shown.

        Args:
            place: The place of the values, if it is known by now. The result then
                begins there, and is None for a place that is not among the values. The
                values as a whole can always be named.
        """
        if name == f"{self.root.name}:" and name not in self._by_name:
            schema = self.root.schema if place is None else place.schema
            return Spot(self.root.name, (), schema, True)
        spot = self._by_name.get(name)
        if spot is None or place is None or self._settled:
            return spot
        depth = len(place.path)
        if spot.path[:depth] != place.path:
            return None
        inside = spots_of(Root(self.root.name, place.schema))
        return next((one for one in inside if one.path == spot.path[depth:]), None)


def shown_values(
    name: str, schema: Schema, place: Place | None, *, whole: bool = False
) -> ShownValues:
    """Return the places of a message that a prompt shows.

    Args:
        schema: Schema of the whole message.
        place: The place of its values, if it is known.
        whole: True if the value as a whole is a place too.
    """
    root = Root(name, schema if place is None else place.schema)
    return ShownValues(root, spots_of(root, whole=whole), place)


def shown_root(name: str, schema: Schema, *, whole: bool = False) -> ShownValues:
    """Return the places of a value that is not a message: an output, or arguments."""
    root = Root(name, schema)
    return ShownValues(root, spots_of(root, whole=whole), None)


def takes_objects(targets: Iterable[ShownValues]) -> bool:
    """Return whether a place inside of a target may take an object.

    Then all that a message gives, as one object, is a source too.
    """
    return any(
        spot.path and "object" in types_of(without_null(spot.schema))
        for one in targets
        for spot in one.spots
    )


def link_schema(targets: Sequence[str], sources: Sequence[str]) -> dict[str, Any]:
    """Return the schema of a list of links."""
    if not targets:
        return many(TEXT, most=0)
    one = record(
        **{
            "to": choice(targets),
            "from": many(choice(sources) if sources else TEXT, most=MAX_SOURCES),
            "how": choice(How),
            "args": many(TEXT, most=MAX_ARGS),
        }
    )
    return many(one, most=MAX_LINKS)


def read_links(
    items: Sequence[Mapping[str, Any]],
    targets: ShownValues,
    sources: Sequence[ShownValues],
    *,
    target_place: Place | None = None,
    source_places: Mapping[str, Place] | None = None,
) -> tuple[list[ValueLink], list[str]]:
    """Return the links of an answer, and the faults of the others.

    Args:
        target_place: The place of the target's values, if it is known by now.
        source_places: The same for sources, by the name of their root.
    """
    links: list[ValueLink] = []
    problems: list[str] = []
    places = source_places or {}
    for item in map(partial(_tidied, sources), items[:MAX_LINKS]):
        target = targets.find(item["to"], target_place)
        if target is None and targets.shows(item["to"]):
            # A field that the frame fills in, such as the message id.
            continue
        if target is None:
            problems.append(f"{cut(item['to'])} is no place to be filled here")
            continue
        found: list[Spot] = []
        for name in item["from"]:
            spot = find_spot(name, sources, places)
            if spot is None:
                problems.append(
                    f"{target.pointer}: {cut(name)} is not there to be used"
                )
            else:
                found.append(spot)
        if len(found) == len(item["from"]):
            links.append(
                ValueLink(
                    target.path, How(item["how"]), tuple(found), tuple(item["args"])
                )
            )
    return links, problems


def _tidied(
    sources: Sequence[ShownValues], item: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a link with what small models write in another way put right.

    A constant that is the name of a place is a copy of that place, and a source that is
    named twice for a copy counts once.
    """
    if item["how"] == How.CONSTANT and len(item["args"]) == 1:
        name = item["args"][0].strip().strip('"')
        if any(one.shows(name) for one in sources):
            return {**item, "how": How.COPY, "from": [name], "args": []}
    if item["how"] not in {How.JOIN, How.PYTHON}:
        return {**item, "from": list(dict.fromkeys(item["from"]))}
    return item


def find_spot(
    name: str, sources: Sequence[ShownValues], places: Mapping[str, Place]
) -> Spot | None:
    """Return the place that an answer names, or None; see `read_links`."""
    for shown in sources:
        spot = shown.find(name, places.get(shown.root.name))
        if spot is not None:
            return spot
    return None


Taken = dict[str, Any] | list[Any] | None
"""The names that are read of a value, each with what is read inside of it; a list has
one element for each of its items, and None is any value."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A value in an output that means one of the document's error codes."""

    spot: Spot

    value: Json
    "The value; None for one that is absent or empty."

    code: str


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One capability call of a provider half."""

    capability: str
    "Full name of an exposed capability."

    arguments: Node
    "Conversion from the request and earlier calls to its arguments."

    judged: Schema | None = None
    "Schema of the arguments, where their sources may lack what it requires."

    each: Spot | None = None
    "Items of a list; it is then called once for each of them."

    pages: PagedCalls | None = None
    "Its calls page after page; None if it is called once."

    again: bool = False
    "True to call it once more after a passing failure."

    fails: tuple[Meaning, ...] = ()
    "Values of its output that mean error codes."


@dataclass(frozen=True, slots=True)
class PlannedJoin:
    """Two lists that are joined by a key after all calls."""

    name: str
    "Name of the root of the pairs."

    left: Spot
    "The key in each item of the list that is kept whole."

    right: Spot
    "The key in each item of the other list."


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """The plan of a provider half."""

    frame: FieldUse

    calls: tuple[PlannedCall, ...]
    "The calls in order; at least one."

    result: Node
    "Conversion from the request and all calls to the result."

    action: str | None = None
    "Text for a free `action` of the response."

    codec: str = ""
    "`read_message` and `write_message` when the bytes are not JSON; else empty."

    judged: Schema | None = None
    "Schema of the result, where the capabilities promise too little."

    taken: Taken = None
    "The values of a request that the calls take; a request with others is refused."

    empty: tuple[str, ...] = ()
    "Places of the result that get no value; see `HalfSource.empty`."

    joins: tuple[PlannedJoin, ...] = ()

    otherwise: Otherwise | None = None
    "The plan that stands in for this one where a capability has none."

    aliases: tuple[tuple[str, str], ...] = ()
    "Beginnings of the names of places in pairs, each with the name that was shown."

    @property
    def every_call(self) -> tuple[PlannedCall, ...]:
        """The calls of this plan and of all that stand in for it."""
        others = () if self.otherwise is None else self.otherwise.plan.every_call
        return (*self.calls, *others)


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A plan that stands in for another one."""

    fallback: Fallback
    "The capability of the first plan that may have none, and how it tells so."

    plan: ProviderPlan

    harmless: bool
    "True if no call of the first plan changes anything, so that a result that lacks "
    "a value may count as none."


@dataclass(frozen=True, slots=True)
class RequesterPlan:
    """The plan of a requester half."""

    frame: FieldUse

    request: Node
    "Conversion from the arguments to the request's values."

    result: Node
    "Conversion from the response's values to the caller's result."

    taken: Taken
    "Arguments that the protocol has a place for; others are refused."

    action: str | None = None
    "Text for a free `action` of the request."

    codec: str = ""
    "See `ProviderPlan.codec`."

    judged: Schema | None = None
    "Schema of the result, where the response promises too little."

    empty: tuple[str, ...] = ()
    "See `ProviderPlan.empty`."
