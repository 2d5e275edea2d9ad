"""Prints the table of attacks, or with `--only` of those with a word in their names.

Each attack is made twice: with a model that keeps to the forms of its questions, and
with one that answers whatever it was told.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter

from tests.attacks_model.attack import Attack, Outcome
from tests.attacks_model.kinds import ATTACKS
from tests.attacks_model.run import carried_out

HEAD = (
    f"{'kind':<11} {'attack':<54} {'victim':<9} {'form':<5} {'asked':>5} {'obeyed':>6} "
    f"{'ran':>4} {'sent KiB':>8}  success"
)


def line(outcome: Outcome) -> str:
    """Return the row of one attack."""
    attack = outcome.attack
    form = "free" if outcome.free else "kept"
    said = "; ".join(outcome.broken) or "none"
    return (
        f"{attack.kind:<11} {attack.name:<54} {attack.victim:<9} {form:<5} "
        f"{outcome.asked:>5} {outcome.obeyed:>6} {len(outcome.ran):>4} "
        f"{outcome.bytes / 1024:>8.1f}  {said}"
    )


async def main(attacks: list[Attack], *, verbose: bool) -> int:
    """Print the table and the figures; return how many attacks had success."""
    began, outcomes = time.monotonic(), []
    print(HEAD)
    async for one in carried_out(attacks):
        outcomes.append(one)
        print(line(one), flush=True)
        if verbose:
            print(f"    ended {one.ended}, ran {one.ran}, knew {sorted(one.knew)}")
    kinds = Counter(one.kind for one in attacks)
    broken = sum(bool(one.broken) for one in outcomes)
    print(
        f"\n{len(attacks)} attacks ("
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        + f"), {len(outcomes)} runs, {sum(one.asked for one in outcomes)} questions, "
        f"{sum(one.obeyed for one in outcomes)} obeyed, "
        f"{sum(len(one.ran) for one in outcomes)} calls of capabilities, "
        f"{sum(one.bytes for one in outcomes) / 1024:.0f} KiB sent by the victims: "
        f"{broken} with success, {time.monotonic() - began:.0f} s"
    )
    return broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a word of the kind or the name")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    chosen = [one for one in ATTACKS if given.only in f"{one.kind} {one.name}"]
    sys.exit(1 if asyncio.run(main(chosen, verbose=given.verbose)) else 0)
