"""Words of a requirement that a plan has to keep, as far as code can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from negotiation.llm.links.conversions import Conversion, How
from negotiation.llm.links.trees import Each, Leaf, Node, Tree
from negotiation.schema.units import missed_unit

PLAIN: Final = frozenset({How.COPY, How.FIRST, How.LIST, How.CONSTANT})
"Ways that convert nothing."


def unit_missed(requirement: str, node: Node) -> str:
    """Return why a plan loses a unit that the requirement asks for; else empty.

    A plan that converts something is left to the samples of its trial.
    """
    found = list(_conversions(node))
    if any(one.how not in PLAIN for one in found):
        return ""
    spots = {spot.name: spot.schema for one in found for spot in one.sources}
    return missed_unit(requirement, {"properties": spots})


def has_conversion(node: Node) -> bool:
    """Return whether a plan puts anything into a value."""
    return next(_conversions(node), None) is not None


def _conversions(node: Node) -> Iterator[Conversion]:
    match node:
        case Leaf(conversion):
            yield conversion
        case Tree(fields):
            for one in fields:
                yield from _conversions(one.node)
        case Each(_, inner):
            yield from _conversions(inner)
