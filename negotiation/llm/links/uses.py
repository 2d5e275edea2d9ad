"""The places that conversions read, and those that they leave out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from negotiation.llm.links.plans import Taken
from negotiation.llm.links.spots import (
    ITEMS,
    Root,
    Spot,
    covers,
    spots_of,
    without_null,
)
from negotiation.llm.links.trees import Each, Leaf, Node, Tree
from negotiation.need import Schema
from negotiation.schema.keywords import keywords_of, pointer
from negotiation.schema.plan import Fields, Items, Plan, Step, words
from negotiation.schema.terms import Drop
from negotiation.schema.values import kinds_of


def used_spots(node: Node) -> list[Spot]:
    """Return the places that are read to make a value."""
    match node:
        case Leaf(conversion):
            return list(conversion.sources)
        case Tree(fields):
            return [spot for one in fields for spot in used_spots(one.node)]
        case Each(items, inner):
            return [items, *used_spots(inner)]


def example_texts(node: Node) -> dict[str, str]:
    """Return examples for the places that are read, by their names."""
    match node:
        case Leaf(conversion):
            return {spot.name: text for spot, text in conversion.texts}
        case Tree(fields):
            found: dict[str, str] = {}
            for one in fields:
                found |= example_texts(one.node)
            return found
        case Each(_, inner):
            return example_texts(inner)


def lost(root: Root, used: Sequence[Spot], drop: Drop) -> list[str]:
    """Return in words the places of `root` that are lost although they may matter.

    Args:
        used: Places that are read.
        drop: `OPTIONAL` allows the loss of optional places, `NONE` allows no loss.
    """
    reasons = []
    for spot in spots_of(root, whole=False):
        if not (spot.sure or (drop is Drop.NONE and len(spot.path) == 1)):
            continue
        if _is_constant(spot.schema):
            continue
        if not any(covers(one, spot) or covers(spot, one) for one in used):
            reasons.append(f"{spot.pointer}: nothing takes this {words(spot.schema)}")
    return reasons


def taken_of(root: Root, nodes: Sequence[Node], whole: Sequence[Spot] = ()) -> Taken:
    """Return what is read of `root`; what else a value has would have no effect.

    Args:
        nodes: The conversions that read it.
        whole: Places that are read with all that is in them.
    """
    uses: dict[tuple[str, ...], Taken] = {one.path: None for one in whole}
    for spot, taken in (use for node in nodes for use in _uses(node)):
        if spot.root == root.name:
            again = spot.path in uses
            uses[spot.path] = None if again else taken
    return _taken(root.schema, (), uses)


def common(one: Taken, other: Taken) -> Taken:
    """Return what both of two plans take."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: common(one[name], other[name]) for name in one if name in other}
    if isinstance(one, list) and isinstance(other, list):
        return [common(one[0], other[0])]
    return other if one is None else one


def _uses(node: Node) -> Iterator[tuple[Spot, Taken]]:
    """Yield each place that is read, with what is read of it."""
    match node:
        case Leaf(conversion):
            for spot in conversion.sources:
                yield spot, _taken_by(conversion.step)
        case Tree(fields):
            for one in fields:
                yield from _uses(one.node)
        case Each(items, inner):
            inside = list(_uses(inner))
            if not any(covers(items, spot) for spot, _ in inside):
                yield items, None
            yield from inside


def _taken_by(step: Step) -> Taken:
    match step:
        case Fields(fields, rest=None):
            return {one.source: _taken_by(one.step) for one in fields}
        case Items(inner):
            return [_taken_by(inner)]
    return None


def _taken(
    schema: Schema, path: tuple[str, ...], uses: Mapping[tuple[str, ...], Taken]
) -> Taken:
    if path in uses:
        return uses[path]
    inner = without_null(schema)
    properties = keywords_of(inner).get("properties")
    if properties:
        return {
            name: _taken(one, (*path, name), uses)
            for name, one in properties.items()
            if _is_constant(one) or _is_used((*path, name), uses)
        }
    items = (*path, ITEMS)
    if isinstance(inner, dict) and "items" in inner and _is_used(items, uses):
        return [_taken(inner["items"], items, uses)]
    return None if path else {}


def _is_used(path: tuple[str, ...], uses: Iterable[tuple[str, ...]]) -> bool:
    return any(one[: len(path)] == path for one in uses)


def empty_places(
    node: Node, target: Schema, sources: Sequence[Root]
) -> tuple[str, ...]:
    """Return the places of `target` that get no value; see `Fields.empty`."""
    used = used_spots(node)
    free = [
        spot
        for root in sources
        for spot in spots_of(root, whole=False)
        if not any(covers(one, spot) or covers(spot, one) for one in used)
    ]
    kinds = frozenset[str]().union(*(kinds_of(spot.schema) for spot in free))
    return tuple(
        place
        for place, schema in _unfilled(node, target, "")
        if kinds & kinds_of(schema)
    )


def _unfilled(node: Node, schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    inner = without_null(schema)
    match node:
        case Leaf(conversion):
            for place in Plan(conversion.step).empty:
                yield path + place, True
        case Each(_, below):
            items = inner.get("items", True) if isinstance(inner, dict) else True
            yield from _unfilled(below, items, f"{path}/*")
        case Tree(fields):
            made = {one.name: one.node for one in fields}
            for name, one in keywords_of(inner).get("properties", {}).items():
                place = f"{path}/{pointer(name)}"
                if name in made:
                    yield from _unfilled(made[name], one, place)
                elif not _is_constant(one):
                    yield place, one


def _is_constant(schema: Schema) -> bool:
    return isinstance(schema, dict) and "const" in schema
