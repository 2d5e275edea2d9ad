"""`python -m bench.face`: both agents in turns, in one run, in both versions.

A caller calls a function that runs in a child process: through the A2A face of a
daemon, and through an agent made with the A2A library that stores its tasks in SQLite.
Measured are the time of a call at one caller, and the calls a second at 16 callers;
only ratios of one run can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.face.caller import Caller
from bench.updates.__main__ import AGENT_PYTHON, ROOT, START_TIMEOUT, anpd, process

HERE = Path(__file__).parent
VERSIONS = ("1.0", "0.3")
CALLERS = 16

MOST_TIME = 1.5
"Goal: at most so many times the time of a call."

LEAST_RATE = 0.7
"Goal: at least so many times the calls a second."


FACE, PLAIN, WAL = "the face", "a2a-sdk", "a2a-sdk, write-ahead"
"""The face, the agent as the library's documents show it, and the same with a store
that writes as ours does, which is the harder of the two to match."""

Found = tuple[float, float]
"Milliseconds of a call at one caller, and calls a second at 16."


def face(folder: Path, stack: ExitStack) -> tuple[str, str]:
    """Run a daemon with the face; return its URL and a token."""
    anpd(folder, "home", "attach", "python", "--expose", "*", "source")
    made = subprocess.run(
        [
            *(sys.executable, "-m", "anp", "--home", str(folder / "home")),
            *("a2a", "tokens", "add", "bench", "--json"),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    running = stack.enter_context(
        process(
            *(sys.executable, "-m", "bench.face.stations", "stations"),
            *("--home", str(folder / "home"), "up", "--port", "0", "--a2a", "0"),
            "--json",
            cwd=folder,
            PYTHONPATH=str(ROOT),
        )
    )
    limit = time.monotonic() + START_TIMEOUT
    while time.monotonic() < limit and running.poll() is None:
        line = running.stdout.readline()
        if line.startswith("{"):
            return json.loads(line)["a2a"], json.loads(made.stdout)["token"]
    raise RuntimeError((folder / "errors.log").read_text())


async def many(caller: Caller, number: int) -> float:
    """Return the calls a second of 16 callers; refused ones do not count."""
    each = -(-number // CALLERS)
    callers = [Caller(caller.url, caller.version, caller.token) for _ in range(CALLERS)]
    began = time.monotonic()
    await asyncio.gather(*(one.run(each) for one in callers))
    took = time.monotonic() - began
    caller.refused += sum(one.refused for one in callers)
    return sum(len(one.times) for one in callers) / took


def layers(folder: Path, caller: Caller) -> list[str]:
    """Return a line for each layer, with its time and its part of the whole."""
    found: dict[int, dict[str, int]] = {}
    for line in (folder / "stations").read_text().splitlines():
        station, call, at = line.split()
        # The first time counts, but for the answer.
        found.setdefault(int(call), {}).setdefault(station, int(at))
    spans = [span for span in caller.spans if span[0] in found]
    whole = statistics.mean(ended - began for _, began, ended in spans)
    lines, names = [], [*LAYERS]
    for index, (name, station) in enumerate(names):
        took = []
        for number, began, ended in spans:
            passed = {**found[number], "begin": began, "end": ended}
            earlier = names[index - 1][1] if index else "begin"
            if station in passed and earlier in passed:
                took.append(passed[station] - passed[earlier])
        lines.append(
            f"  {name:<45}{statistics.median(took) / 1e6:7.2f} ms median"
            f"{statistics.mean(took) / whole:7.0%}"
        )
    return lines


LAYERS = (
    ("HTTP and JSON in", "parsed"),
    ("session and task stored", "created"),
    ("accepted", "accepted"),
    ("at work", "working"),
    ("the function in its process", "called"),
    ("result and end stored", "completed"),
    ("the answer made and sent", "end"),
)
"The layers in order, and the station that ends each."


def agent(folder: Path, stack: ExitStack, *mode: str) -> str:
    """Run an agent made with the library; return its URL."""
    words = (str(AGENT_PYTHON), str(HERE / "a2a_agent.py"), str(folder), *mode)
    running = stack.enter_context(process(*words, cwd=folder))
    url: str = running.stdout.readline().strip()
    return url


def measure(ends: dict[str, Caller], *, calls: int, rounds: int) -> dict[str, Found]:
    """Measure all in turns."""
    rates: dict[str, list[float]] = {title: [] for title in ends}
    for end in ends.values():
        # The first calls import what they need, and start the child.
        asyncio.run(Caller(end.url, end.version, end.token).run(10))
    for _ in range(rounds):
        for title, end in ends.items():
            asyncio.run(end.run(calls))
            rates[title].append(asyncio.run(many(end, calls * 2)))
    return {
        title: (statistics.median(end.times) * 1e3, statistics.median(rates[title]))
        for title, end in ends.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50, help="in each round")
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    if not AGENT_PYTHON.exists():
        sys.exit("bench.face: the A2A agent has no environment: make a2a-env")
    is_missed = False
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "source.py").write_text((HERE / "source.py").read_text())
        urls = {PLAIN: agent(folder, stack), WAL: agent(folder, stack, "wal")}
        ours, token = face(folder, stack)
        for version in VERSIONS:
            ends = {FACE: Caller(ours, version, token)}
            ends |= {title: Caller(url, version) for title, url in urls.items()}
            found = measure(ends, calls=given.calls, rounds=given.rounds)
            print(f"A2A {version}: {given.rounds} rounds of each in turns")
            for title, (took, rate) in found.items():
                print(
                    f"  {title:<24}{took:7.2f} ms a call at one caller"
                    f"{rate:9.1f} calls/s at {CALLERS}"
                    f"{ends[title].refused:5} refused"
                )
            if ends[FACE].refused:
                sys.exit("bench.face: the face refused a call")
            took, rate = found[FACE]
            for title in urls:
                slower, faster = took / found[title][0], rate / found[title][1]
                is_missed |= slower > MOST_TIME or faster < LEAST_RATE
                print(
                    f"  against {title}: ratio of the times {slower:.2f} (goal: at "
                    f"most {MOST_TIME:g}), of the rates {faster:.2f} (goal: at least "
                    f"{LEAST_RATE:g})"
                )
            print("  shares of the layers, at one caller:")
            print("\n".join(layers(folder, ends[FACE])))
    sys.exit(is_missed)


if __name__ == "__main__":
    main()
