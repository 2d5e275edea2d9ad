"""Measures the time of `anpd --help` against `python -c pass`, in one run.

    python -m bench.startup

Goal: at most 15 times (issue 7). They start by turns, so that both meet the same
machine; the medians are compared.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

__all__ = ["main", "measure"]

ROUNDS = 15
"Starts of each."

GOAL = 15.0
"Times `python -c pass` that help may take."

HELP = (sys.executable, "-m", "anp", "--help")
NOTHING = (sys.executable, "-c", "pass")


def measure(command: tuple[str, ...]) -> float:
    """Return the seconds that one run of a command takes."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Measure, print the ratio, and return 1 if it is over the goal."""
    for command in (HELP, NOTHING):
        measure(command)
    pairs = [(measure(HELP), measure(NOTHING)) for _ in range(ROUNDS)]
    helps, nothings = zip(*pairs, strict=True)
    ours, base = statistics.median(helps), statistics.median(nothings)
    ratio = ours / base
    print(f"anpd --help     {ours * 1000:7.1f} ms")
    print(f"python -c pass  {base * 1000:7.1f} ms")
    print(f"ratio           {ratio:7.1f}    (goal: at most {GOAL:g})")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
