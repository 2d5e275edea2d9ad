"""Reads the calls and conversions of an answer into the parts of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.shape import Document
from negotiation.llm.links.call_lines import pairs_name
from negotiation.llm.links.claims import unit_missed
from negotiation.llm.links.conversions import How, LinkError, convert
from negotiation.llm.links.frames import FieldUse
from negotiation.llm.links.plans import (
    Meaning,
    Otherwise,
    PlannedCall,
    PlannedJoin,
    ProviderPlan,
    ShownValues,
    Taken,
    find_spot,
    read_links,
    shown_root,
)
from negotiation.llm.links.shapes import Pairing, meant_value, paired, unbounded
from negotiation.llm.links.spots import ITEMS, Root, Spot, bare_kind, spots_of
from negotiation.llm.links.trees import Node, ValueLink, build_tree, is_open
from negotiation.llm.links.uses import common, empty_places, lost, taken_of, used_spots
from negotiation.mind import Offer
from negotiation.need import Schema
from negotiation.schema.keywords import cut, keywords_of
from negotiation.schema.terms import Drop, MappingProof
from negotiation.schema.values import default_of, same_json, types_of
from negotiation.trial.module_shapes import Fallback, PagedCalls

FIRST_PAGES: Final = (0, 1)
"Numbers that the first page or item may have."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanParts:
    """The places that an answer may name."""

    document: Document
    offer: Offer
    frame: FieldUse
    request: ShownValues
    result: ShownValues
    takes: Mapping[str, ShownValues]
    gives: Mapping[str, ShownValues]


def read_plan(
    parts: PlanParts, answer: Mapping[str, Any], reasons: list[str]
) -> ProviderPlan | None:
    """Return the plan of an answer with all that stand in for it, or None.

    Args:
        reasons: Gets what is wrong; with one there is no plan.
    """
    plan: ProviderPlan | None = None
    # Each alternative is a plan of its own, and has to be right alone.
    for fallback, part in reversed(_alternatives(answer, reasons)):
        reader = PlanReader(parts, part)
        planned = [reader.call(one) for one in part["calls"]]
        result = reader.result(part["result"])
        made = tuple(one for one in planned if one is not None)
        otherwise, taken = None, reader.taken
        if fallback is not None and plan is not None:
            otherwise = reader.otherwise(fallback, plan)
            taken = common(taken, plan.taken)
        reasons += reader.reasons
        if reasons or result is None or len(made) != len(planned):
            continue
        plan = ProviderPlan(
            parts.frame,
            made,
            result,
            judged=parts.frame.response_place.schema if is_open(result) else None,
            taken=taken,
            empty=reader.empty,
            joins=tuple(reader.joins),
            otherwise=otherwise,
            aliases=tuple(reader.aliases.items()),
        )
    return None if reasons else plan


def _alternatives(
    answer: Mapping[str, Any], reasons: list[str]
) -> list[tuple[Mapping[str, Any] | None, Mapping[str, Any]]]:
    """Return the parts of an answer that are plans of their own, in order.

    Each comes with the fallback by which the next one stands in for it. Without
    fallbacks there is one part, the answer.

    Args:
        reasons: Gets what is wrong.
    """
    fallbacks = list(answer.get("fallbacks", ()))
    if not fallbacks:
        return [(None, answer)]
    names = [fallbacks[0]["first"]]
    called = {one["capability"] for one in answer["calls"]}
    for one in fallbacks:
        if one["first"] != names[-1] or one["second"] in names:
            reasons.append("fallbacks: they have to follow one after the other")
            return []
        names.append(one["second"])
    reasons += [
        f"fallbacks: {cut(name)} is not in `calls`"
        for name in names
        if name not in called
    ]
    each = {one["call"] for one in answer.get("each", ())}
    reasons += [
        f"fallbacks: {cut(name)} cannot be called for each item too"
        for name in names
        if name in each
    ]
    parts = [_without(answer, set(names) - {name}) for name in names]
    return list(zip([*fallbacks, None], parts, strict=True))


def _without(answer: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Return an answer without the calls of some capabilities and their outputs."""

    def kept(links: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [
            one
            for one in links
            if not any(source.partition(":")[0] in names for source in one["from"])
        ]

    calls = [
        {**one, "arguments": kept(one["arguments"])}
        for one in answer["calls"]
        if one["capability"] not in names
    ]
    return {**answer, "calls": calls, "result": kept(answer["result"])}


class PlanReader:
    """Makes the parts of a plan, and keeps the reasons against it."""

    def __init__(self, parts: PlanParts, answer: Mapping[str, Any]) -> None:
        self._parts = parts
        self._answer = answer
        place = parts.frame.request_place
        self._roots = [Root("request", place.schema)]
        self._shown = [parts.request]
        self._places = {"request": place}
        self._used: list[Spot] = []
        self._used_whole: list[Spot] = []
        self._nodes: list[Node] = []
        self._pairs: list[Pairing] = []
        self._gone: set[str] = set()
        self.reasons: list[str] = []
        self.taken: Taken = None
        self.empty: tuple[str, ...] = ()
        self.joins: list[PlannedJoin] = []
        self.aliases: dict[str, str] = {}

    def call(self, item: Mapping[str, Any]) -> PlannedCall | None:
        """Return one call; later parts can use its output."""
        name = item["capability"]
        before = len(self.reasons)
        takes = self._parts.takes[name].root.schema
        links, problems = read_links(
            item["arguments"],
            self._parts.takes[name],
            self._shown,
            source_places=self._places,
        )
        self._add(name, problems)
        items, pages = self._items(name), self._pages(name, links)
        if items is not None and pages is not None:
            self._add(name, ["it cannot be called for each item and page by page"])
        node = build_tree(
            takes,
            self._known(links, name),
            self._roots,
            drop=Drop.OPTIONAL,
            judged=True,
            inside=items,
        )
        gives = self._parts.gives[name]
        if pages is not None:
            schema = unbounded(gives.root.schema, pages.items)
            gives = shown_root(name, schema, whole=True)
        self._shown = [one for one in self._shown if one.root.name != name]
        self._roots = [one for one in self._roots if one.name != name]
        self._shown.append(gives)
        if items is None:
            self._roots.append(gives.root)
        else:
            whole = Spot(name, (), gives.root.schema, True)
            self._pair(paired(pairs_name(name), items, whole))
            self._gone.add(name)
            self._used.append(items)
            self._used_whole.append(items)
        if isinstance(node, list):
            self._add(name, node)
        if isinstance(node, list) or len(self.reasons) > before:
            return None
        self._used += used_spots(node)
        self._nodes.append(node)
        return PlannedCall(
            name,
            node,
            takes if is_open(node) else None,
            each=items,
            pages=pages,
            again=name in self._answer.get("again", ()),
            fails=tuple(self._fails(name)),
        )

    def result(self, items: Sequence[Mapping[str, Any]]) -> Node | None:
        """Return the conversion to the result, or None."""
        place = self._parts.frame.response_place
        links, problems = read_links(
            items,
            self._parts.result,
            self._shown,
            target_place=place,
            source_places=self._places,
        )
        self.reasons += problems
        for one in self._answer.get("joins", ()):
            self._join(one, links)
        lists = {
            spot.path
            for spot in spots_of(Root("result", place.schema))
            if bare_kind(spot.schema) == "array"
        }
        links = self._known(links, "", lists)
        node = build_tree(place.schema, links, self._roots, drop=Drop.ALL, judged=True)
        if isinstance(node, list):
            self.reasons += node
            return None
        if self.reasons:
            # A refused link leaves its places unused, so that need not be reported.
            return node
        given = Root("request", self._parts.frame.request_place.schema)
        used = [*self._used, *used_spots(node)]
        self.reasons += lost(given, used, Drop.OPTIONAL)
        self.taken = taken_of(given, [*self._nodes, node], self._used_whole)
        gives = [root for root in self._roots if root.name != given.name]
        self.empty = empty_places(node, place.schema, gives)
        if missed := unit_missed(self._parts.document.requirement, node):
            self.reasons.append(missed)
        return node

    def otherwise(
        self, fallback: Mapping[str, Any], plan: ProviderPlan
    ) -> Otherwise | None:
        """Return `plan` as the one that stands in for that of this answer."""
        first, place, value = fallback["first"], None, None
        if fallback["place"]:
            spot = self._parts.gives[first].find(fallback["place"])
            if spot is None or ITEMS in spot.path:
                self._add("fallbacks", [f"{cut(fallback['place'])} does not tell"])
                return None
            try:
                place, value = spot.path, meant_value(spot.schema, fallback["value"])
            except ValueError as exc:
                self._add("fallbacks", [f"{spot.name}: {exc}"])
                return None
        safe = {
            one.name
            for one in self._parts.offer.capabilities
            if one.read_only or one.idempotent
        }
        return Otherwise(
            Fallback(first, fallback["second"], place, value),
            plan,
            all(one["capability"] in safe for one in self._answer["calls"]),
        )

    def _add(self, about: str, reasons: Sequence[str]) -> None:
        self.reasons += [f"{about}: {one}" for one in reasons]

    def _pair(self, pairing: Pairing) -> None:
        self._pairs.append(pairing)
        self._roots.append(pairing.root)
        self.aliases |= pairing.aliases

    def _known(
        self,
        links: Sequence[ValueLink],
        about: str,
        lists: set[tuple[str, ...]] | None = None,
    ) -> list[ValueLink]:
        """Return the links from what is known, with those of pairs moved to pairs.

        Args:
            lists: Lists of the target, whose items may be meant.
        """
        moved = []
        for link in links:
            apart = any(spot.root in self._gone for spot in link.sources)
            if apart and lists and link.target in lists:
                # One answer for each item fills the items of a list.
                link = ValueLink(
                    (*link.target, ITEMS), link.how, link.sources, link.args
                )
            moved.append(link)
        for pairing in self._pairs:
            moved = pairing.moved(moved)
        for link in moved:
            for spot in link.sources:
                if spot.root in self._gone:
                    told = f"{spot.name} is there for each item: link it to an item"
                    self._add(about or "result", [told])
        return [
            link
            for link in moved
            if not any(spot.root in self._gone for spot in link.sources)
        ]

    def _items(self, name: str) -> Spot | None:
        """Return the items for each of which a capability is called, or None."""
        for one in self._answer.get("each", ()):
            if one["call"] != name:
                continue
            spot = find_spot(one["list"], self._shown, self._places)
            if spot is None or spot.root in self._gone | {name}:
                self._add("each", [f"{cut(one['list'])} is not known before the call"])
                return None
            return spot
        return None

    def _pages(self, name: str, links: list[ValueLink]) -> PagedCalls | None:
        """Return how a capability is asked for all pages, or None.

        The first page becomes a link if there is none to that argument.
        """
        told = [one for one in self._answer.get("pages", ()) if one["call"] == name]
        if not told:
            return None
        one = told[0]
        takes, gives = self._parts.takes[name], self._parts.gives[name]
        argument, items = takes.find(one["argument"]), gives.find(one["list"])
        following = gives.find(one["next"]) if one["next"] else None
        if argument is None or items is None or (one["next"] and following is None):
            self._add("pages", [f"all of its places have to be those of {name}"])
            return None
        schema: Schema = argument.schema
        first = one["first"].strip()
        linked = [link for link in links if link.target == argument.path]
        if first and not linked:
            link = ValueLink(argument.path, How.CONSTANT, (), (first,))
            links.append(link)
            linked = [link]
        try:
            if following is not None:
                given = Spot(name, following.path, following.schema, True)
                convert(
                    How.COPY,
                    (given,),
                    (),
                    schema,
                    drop=Drop.NONE,
                    proof=MappingProof.SHAPE,
                )
        except LinkError as exc:
            self._add("pages", [str(exc)])
        if following is None:
            self._count_from(argument, linked)
        path = following.path if following is not None else ()
        return PagedCalls(name, argument.path[0], items.path, path, bool(one["offset"]))

    def _count_from(self, argument: Spot, linked: Sequence[ValueLink]) -> None:
        """Add a reason if counted pages do not begin with the first one."""
        if "integer" not in types_of(argument.schema):
            self._add("pages", [f"{argument.name} counts nothing: name its cursor"])
            return
        told = default_of(argument.schema)
        least = keywords_of(argument.schema).get("minimum")
        allowed = told or tuple(one for one in FIRST_PAGES if one >= (least or 0))
        for link in linked:
            ok = link.how is How.CONSTANT and any(
                same_json(one, _number(link.args[0])) for one in allowed
            )
            if not ok:
                shown = " or ".join(map(str, allowed))
                self._add("pages", [f"`first` has to be {shown}, for all pages"])
        if not linked:
            self._add("pages", ["`first` has to be 0 or 1, the number of page one"])

    def _fails(self, name: str) -> list[Meaning]:
        found = []
        for one in self._answer.get("fails", ()):
            spot = self._parts.gives[name].find(one["place"])
            if spot is None:
                continue
            try:
                value = meant_value(spot.schema, one["value"])
            except ValueError as exc:
                self._add("fails", [f"{spot.name}: {exc}"])
                continue
            if ITEMS in spot.path:
                self._add("fails", [f"{spot.name} is in a list"])
                continue
            found.append(Meaning(spot, value, one["code"]))
        return found

    def _join(self, one: Mapping[str, Any], links: Sequence[ValueLink]) -> None:
        """Add the pairs of two lists, if rows of the result take from both."""
        keys = [
            find_spot(one[side], self._shown, self._places)
            for side in ("left", "right")
        ]
        left, right = keys
        if left is None or right is None or {left.root, right.root} & self._gone:
            self._add("joins", ["its lists have to be those of calls that are made"])
            return
        sides = [self._items_above(left), self._items_above(right)]
        if sides[0] == sides[1] or not types_of(left.schema) & types_of(right.schema):
            self._add("joins", ["its keys have to be of one type, in two lists"])
            return
        pairing = paired("joined", *sides)
        if pairing.moved(links) == list(links):
            return
        self._pair(pairing)
        self._used += [left, right]
        self._used_whole += [left, right]
        self.joins.append(PlannedJoin(pairing.root.name, left, right))

    def _items_above(self, key: Spot) -> Spot:
        path = key.path[: key.path.index(ITEMS) + 1]
        root = next(one for one in self._roots if one.name == key.root)
        return next(one for one in spots_of(root) if one.path == path)


def _number(text: str) -> int | None:
    return int(text) if text.strip().lstrip("-").isdecimal() else None
