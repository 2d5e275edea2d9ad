"""A warm call by anpd, and by other means, in turns in one run.

    python -m bench.peers [--rounds N]

The call doubles a number. *anpd* is two daemons, from a kept connection to the local
API: signed, encrypted, checked by both sides, over an agreement or the envelope. The
`mcp` SDK is called over stdio and over streamable HTTP, a web server over plain HTTP,
an agent of `a2a-sdk` as its documents show one, the official SDK over one encrypted
channel, and a member of a SLIM group with MLS over its broker, with TCP_NODELAY forced
on. What is not `anpd`, `mcp` or HTTP runs in an environment of its own. Printed are the
p50 of one caller and the calls a second of 32, each with the median of the rounds'
ratios to `mcp` over stdio and the least and most of them; only ratios of one run mean
anything.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from contextlib import AsyncExitStack

from bench.groups.slim.run import SlimMissing
from bench.peers.ways import Missing, Way, ways

ROUNDS = 5
CALLS = 64
"Calls of one caller in each round; 32 callers make four times as many in all."

BASE = "mcp over stdio"


class Figures:
    """The figures of one way, round by round."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.p50: list[float] = []
        self.rates: list[float] = []

    async def round(self) -> None:
        """Measure once."""
        found = await self.way.call(1, CALLS)
        self.p50.append(statistics.median(found.times))
        if (callers := self.way.most_callers) > 1:
            found = await self.way.call(callers, 4 * CALLS // callers)
            self.rates.append(len(found.times) / found.took)


async def measure(rounds: int) -> list[Figures]:
    """Measure every way, by turns."""
    async with AsyncExitStack() as stack:
        found = [Figures(way) for way in await ways(stack)]
        for figures in found:
            # The first calls import what they need.
            await figures.way.call(figures.way.most_callers, 4)
        for _ in range(rounds):
            for figures in random.sample(found, len(found)):
                await figures.round()
        return found


def _ratio(these: list[float], base: list[float]) -> str:
    each = [a / b for a, b in zip(these, base, strict=True)]
    return f"{statistics.median(each):5.2f} ({min(each):.2f} to {max(each):.2f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    try:
        found = asyncio.run(measure(parser.parse_args().rounds))
    except (Missing, SlimMissing) as exc:
        sys.exit(f"bench.peers: {exc}")
    base = next(one for one in found if one.way.name == BASE)
    print(f"{'':30}{'p50 of one caller':>36}{'calls a second of 32':>40}")
    for one in found:
        p50 = f"{statistics.median(one.p50) * 1e3:7.2f} ms  "
        line = f"{one.way.name:30}{p50}{_ratio(one.p50, base.p50):26}"
        if one.rates:
            rate = f"{statistics.median(one.rates):9.1f} /s  "
            line += f"{rate}{_ratio(one.rates, base.rates)}"
        print(line.rstrip())


if __name__ == "__main__":
    main()
