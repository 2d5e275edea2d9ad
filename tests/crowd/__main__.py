"""`make groups`: eight daemons, one group, 10,000 messages, calm and in trouble.

With `--fleet` three daemons with one identity have the hub (`make groups-fleet`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from bench.groups.homes import start_all
from tests.crowd.crowd import Crowd
from tests.crowd.fleet import fleet_figures


async def run(given: argparse.Namespace) -> bool:
    """Run what the command line says; return whether all was well."""
    well = True
    with tempfile.TemporaryDirectory() as name:
        crowd = Crowd(Path(name), given.messages, given.seed)
        try:
            await start_all(crowd.homes)
            for trouble in [False, True] if given.only is None else [given.only]:
                figures = await crowd.run(trouble=trouble)
                print(json.dumps(figures), flush=True)
                well &= not figures["faults"]
        finally:
            for one in crowd.homes:
                if one.process is not None:
                    one.process.terminate()
            for one in crowd.homes:
                one.end()
    return well


async def run_fleet(given: argparse.Namespace) -> bool:
    """Run a fleet; return whether all was well."""
    with tempfile.TemporaryDirectory() as name:
        figures = await fleet_figures(Path(name), given.messages, given.seed)
        print(json.dumps(figures), flush=True)
        return not figures["faults"]


def main() -> None:
    """Run, and print one line of JSON for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    calm = parser.add_mutually_exclusive_group()
    calm.add_argument("--calm", dest="only", action="store_false", default=None)
    calm.add_argument("--trouble", dest="only", action="store_true", default=None)
    calm.add_argument("--fleet", action="store_true")
    given = parser.parse_args()
    sys.exit(not asyncio.run(run_fleet(given) if given.fleet else run(given)))


main()
