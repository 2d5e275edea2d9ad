"""The places that conversions read, and those that they leave out."""

from __future__ import annotations

from collections.abc import Sequence

from negotiation.llm.links.spots import Root, Spot, covers, spots_of
from negotiation.llm.links.trees import Each, Leaf, Node, Tree
from negotiation.need import Schema
from negotiation.schema.plan import words
from negotiation.schema.terms import Drop


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
        if len(spot.path) != 1 or not (spot.sure or drop is Drop.NONE):
            continue
        if _is_constant(spot.schema):
            continue
        if not any(covers(one, spot) or covers(spot, one) for one in used):
            reasons.append(f"{spot.pointer}: nothing takes this {words(spot.schema)}")
    return reasons


def unread(root: Root, used: Sequence[Spot]) -> tuple[str, ...]:
    """Return the names of the optional properties of `root` that nothing reads.

    Args:
        used: Places that are read.
    """
    return tuple(
        spot.path[0]
        for spot in spots_of(root, whole=False)
        if len(spot.path) == 1
        and not spot.sure
        and not _is_constant(spot.schema)
        and not any(covers(one, spot) or covers(spot, one) for one in used)
    )


def _is_constant(schema: Schema) -> bool:
    return isinstance(schema, dict) and "const" in schema
