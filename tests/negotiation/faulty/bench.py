"""Counts how many faulty halves the trial and the test cases with the peer find."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from negotiation.errors import HalfError
from negotiation.mind import HalfSource, Side
from negotiation.trial.acceptance import check_half
from tests.negotiation.cases.table import VALIDATOR, Pair, agree
from tests.negotiation.faulty.corpus import CORPUS
from tests.negotiation.faulty.faults import Faulty, faulty
from tests.negotiation.inprocess import InProcessHalf

SEED = 15


@dataclass
class Counts:
    """The outcome for a number of faulty halves."""

    tried: Counter[str] = field(default_factory=Counter)
    trial: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """The part that was found, between 0 and 1."""
        found = self.trial.total() + self.cases.total()
        return found / max(1, self.tried.total())

    def lines(self) -> list[str]:
        """Return the figures, one line for each kind of fault."""
        rows = [
            f"{kind:18} {self.tried[kind]:4} tried, {self.trial[kind]:4} by the trial, "
            f"{self.cases[kind]:3} by the cases"
            for kind in sorted(self.tried)
        ]
        return [
            *rows,
            f"{'all':18} {self.tried.total():4} tried, {self.rate:.1%} found",
        ]


def chosen(count: int) -> list[tuple[str, Pair, Faulty]]:
    """Return `count` faulty halves of the corpus, always the same."""
    every = [(name, pair, one) for name, pair in CORPUS.items() for one in faulty(pair)]
    order = random.Random(SEED)
    return every if len(every) <= count else order.sample(every, count)


async def found_by(pair: Pair, one: Faulty) -> str:
    """Return `trial` or `cases`, which found the fault; empty if neither did."""
    if await problems_of(pair, one.role, one.source):
        return "trial"
    provides = one.role == "provider"
    changed = replace(
        pair,
        provider=one.source if provides else pair.provider,
        requester=pair.requester if provides else one.source,
    )
    try:
        await agree(changed)
    except (AssertionError, HalfError):
        return "cases"
    return ""


async def problems_of(pair: Pair, role: str, source: str) -> tuple[str, ...]:
    """Return the findings of the trial against one half of a pair."""
    provides = role == "provider"
    side: Side = pair.offer if provides else pair.demand
    names = (pair.capability.name,) if provides else ()
    found = await check_half(
        HalfSource(source, "model", names),
        pair.document,
        side,
        runner=InProcessHalf(source),
        validator=VALIDATOR,
    )
    return found.problems


async def measure(count: int) -> Counts:
    """Try `count` faulty halves."""
    counts = Counts()
    for name, pair, one in chosen(count):
        counts.tried[one.kind] += 1
        by = await found_by(pair, one)
        if by == "trial":
            counts.trial[one.kind] += 1
        elif by == "cases":
            counts.cases[one.kind] += 1
        else:
            counts.missed.append(f"{name}, {one.role}: {one.kind}, {one.about}")
    return counts
