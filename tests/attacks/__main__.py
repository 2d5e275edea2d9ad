"""Measure attacks and print a table; the exit code is 1 if one breaks the rule."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.attacks.children import ChildEnded, raise_file_limit
from tests.attacks.kinds.base import Attack
from tests.attacks.kinds.catalogue import ATTACKS
from tests.attacks.measure import Measured, Run, Stage
from tests.attacks.table import LEGEND, MOST_P99, MOST_SECONDS, findings, header, line
from tests.attacks.table import remarks as remarks_of

RETRIES = 2
"How often an attack that breaks the rule is measured again; a busy machine errs."


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks", description=__doc__
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(ATTACKS))
    parser.add_argument("--seconds", type=float, default=Stage().seconds)
    parser.add_argument("--quiet", type=float, default=Stage().quiet)
    parser.add_argument("--rate", type=float, default=Stage().rate)
    parser.add_argument("--retries", type=int, default=RETRIES)
    parser.add_argument("--policy", choices=("any", "listed"), default="any")
    parser.add_argument("--list", action="store_true", help="print the attacks only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures")
    return parser.parse_args()


async def _measure(
    measured: Measured, attack: type[Attack], retries: int
) -> tuple[list[Run], list[str]]:
    """Measure one attack, again if it breaks the rule; print each run.

    Returns:
        All runs, and what the best of them broke.
    """
    runs: list[Run] = []
    wrong: list[str] = []
    for _ in range(retries + 1):
        try:
            run = await measured.run(attack)
        except (ChildEnded, RuntimeError, OSError) as exc:
            wrong = [f"not measured: {exc}"]
            print(f"{attack.name:<24}  {wrong[0]}", flush=True)
            continue
        runs.append(run)
        wrong = findings(run)
        print(line(run), flush=True)
        for text in [*wrong, *remarks_of(run)]:
            print(f"    {'BROKEN: ' if text in wrong else ''}{text}", flush=True)
        if not wrong:
            break
    return runs, wrong


async def _main(given: argparse.Namespace) -> int:
    began = time.monotonic()
    stage = Stage(seconds=given.seconds, quiet=given.quiet, rate=given.rate)
    chosen = [ATTACKS[name] for name in given.only or ATTACKS]
    broken: dict[str, list[str]] = {}
    kept: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="attacks-") as name:
        measured = Measured(Path(name), stage, given.policy)
        if measured.cores[0] is None:
            print("one core only: attackers take time from the daemon by themselves")
        print(LEGEND)
        print(header(), flush=True)
        await measured.start()
        try:
            for attack in chosen:
                runs, wrong = await _measure(measured, attack, given.retries)
                kept += [{**asdict(run), "broken": findings(run)} for run in runs]
                if wrong:
                    broken[attack.name] = wrong
        finally:
            measured.end()
    if given.json:
        given.json.write_text(json.dumps(kept))
    print(
        f"\n{len(chosen)} attacks in {time.monotonic() - began:.0f} s; rule: p99 of "
        f"the listed peers at most {MOST_P99:g} times the quiet one, none of their "
        f"calls fails, a new peer waits at most {MOST_SECONDS:g} s"
    )
    for one, wrong in broken.items():
        print(f"broken: {one}: {'; '.join(wrong)}")
    return 1 if broken else 0


def _list() -> int:
    for name, attack in ATTACKS.items():
        print(f"{name:<25}{attack.__doc__}")
    return 0


if __name__ == "__main__":
    wanted = _arguments()
    raise_file_limit()
    sys.exit(_list() if wanted.list else asyncio.run(_main(wanted)))
