"""Words of a requirement that a plan has to keep, as far as code can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from negotiation.llm.links.conversions import Conversion, How
from negotiation.llm.links.trees import Each, Leaf, Node, Tree
from negotiation.schema.units import (
    Unit,
    asked_units,
    same_kind,
    stated_units,
    ways_between,
)

PLAIN: Final = frozenset({How.COPY, How.FIRST, How.LIST, How.CONSTANT})
"Ways that convert nothing."


def unit_missed(requirement: str, node: Node) -> str:
    """Return why a plan loses a unit that the requirement asks for; else empty.

    A number in another unit of that kind has to be scaled by exactly what lies between
    the two.
    """
    found = list(_conversions(node))
    for _, asked in asked_units(requirement):
        faults = [
            _fault(one, unit, asked)
            for one in found
            for unit in _units_of(one)
            if asked is not None and same_kind(asked, unit)
        ]
        if faults and all(faults):
            return faults[0]
    return ""


def _units_of(made: Conversion) -> Iterator[Unit]:
    """Yield the units of the numbers that a conversion takes alone."""
    if len(made.sources) == 1:
        for _, unit in stated_units(made.sources[0].schema, made.sources[0].path):
            yield unit


def _fault(made: Conversion, unit: Unit, asked: Unit) -> str:
    """Return why a conversion does not give the unit that is asked for, or nothing."""
    source = made.sources[0].name
    told = f"{asked.said} is asked for, and {source} is in {unit.said}"
    ways = ways_between(unit, asked)
    if made.how is How.SCALE:
        times, plus, over = (one for one in made.values[:3] if isinstance(one, int))
        for way in ways:
            given = times * way.over, plus * way.over
            if given == (way.times * over, way.plus * over):
                return ""
    elif unit == asked or made.how not in PLAIN:
        # What an expression makes of a number is left to the samples of the trial.
        return ""
    exact = " or ".join(
        f"{way.times}/{way.over} with the offset {way.plus}/{way.over}" for way in ways
    )
    return f"{told}: scale it by {exact}"


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
