"""Prints how many of 500 faulty halves are found: `make mutants`."""

from __future__ import annotations

import asyncio
import sys

from tests.negotiation.faulty.bench import measure

GOAL = 0.95

if __name__ == "__main__":
    counts = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
    print("\n".join([*counts.lines(), *(f"missed: {one}" for one in counts.missed)]))
    raise SystemExit(0 if counts.rate >= GOAL else 1)
