"""Prints the figures of SLIM, one line of JSON for each number of members."""

from __future__ import annotations

import argparse
import json
import sys

from bench.groups.slim.run import MEMBERS, SlimMissing, measure


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[*MEMBERS])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--deliveries", type=int, default=16_000)
    parser.add_argument("--size", type=int, default=256, help="Bytes of a post.")
    parser.add_argument("--to-all", action="store_true", help="Answers go to all.")
    given = parser.parse_args()
    try:
        for members in given.members:
            figures = measure(
                members,
                rounds=given.rounds,
                deliveries=given.deliveries,
                size=given.size,
                to_all=given.to_all,
            )
            print(json.dumps(figures), flush=True)
    except SlimMissing as exc:
        sys.exit(str(exc))


main()
