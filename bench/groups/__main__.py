"""`python -m bench.groups`: a group of ours and one over SLIM, by turns, in one run.

Prints for 2, 8 and 32 members the milliseconds from a post until all have answered, the
deliveries in a second, and the ratios. Only ratios of one run can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from typing import Any

from bench.groups.ours import Ours
from bench.groups.slim.run import MEMBERS, measure


async def _by_turns(members: int, given: argparse.Namespace) -> dict[str, Any]:
    wanted = {"deliveries": given.deliveries, "size": given.size}
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    mixed = given.answers == "mixed"
    async with Ours.running(members, seal=given.seal, mixed=mixed) as group:
        await group.measure(rounds=10, deliveries=members * 20, size=given.size)
        for _ in range(given.turns):
            ours.append(await group.measure(rounds=given.rounds, **wanted))
            if not given.alone:
                theirs.append(
                    await asyncio.to_thread(
                        measure,
                        members,
                        rounds=given.rounds,
                        to_all=given.answers == "all",
                        **wanted,
                    )
                )
    found: dict[str, Any] = {
        "members": members,
        "sealed": given.seal,
        "answers": given.answers,
    }
    for name in ("p50_ms", "deliveries_per_s"):
        found[name] = statistics.median(one[name] for one in ours)
        if theirs:
            found[f"slim_{name}"] = statistics.median(one[name] for one in theirs)
            found[f"ratio_{name}"] = round(found[name] / found[f"slim_{name}"], 2)
    found["lost"] = sum(one["lost"] for one in ours)
    return found


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[*MEMBERS])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--deliveries", type=int, default=4_000)
    parser.add_argument("--size", type=int, default=256, help="Bytes of a post.")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--seal", action="store_true", help="The group is sealed.")
    parser.add_argument(
        "--answers",
        choices=("all", "mixed", "unlike"),
        default="all",
        help="all: they go to the group, on both sides. mixed: to the sender alone, on "
        "both sides. unlike: to the group with us, to the sender alone with SLIM.",
    )
    parser.add_argument("--alone", action="store_true", help="Ours without SLIM.")
    given = parser.parse_args()
    for members in given.members:
        print(json.dumps(asyncio.run(_by_turns(members, given))), flush=True)


main()
