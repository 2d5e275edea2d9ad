"""Measures the time of commands, in one run: help, and a warm call.

    python -m bench.startup [--against DIR]

`anpd --help` and `anpd call` are compared with `python -c pass`, and the call with a
program that makes the same request with the standard library alone. All take turns, so
that they meet the same machine; lower deciles are compared, since on a busy machine a
median measures other processes. `--against` measures another checkout in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.call import FUNCTION, Anpd

ROUNDS = 25
"Starts of each."

GOALS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "anpd --help": (("python -c pass", 8.0),),
    "anpd call": (("python -c pass", 12.0), ("standard library", 2.5)),
}
"Times that a command may take, as a multiple of another's."

CLIENT = """
import http.client, json, socket, sys
class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
api = Api("anpd")
given = json.loads(sys.argv[3])
body = json.dumps({"peer": sys.argv[2], sys.argv[4]: "double", "input": given})
api.request("POST", "/v1/calls", body, {"content-type": "application/json"})
print(json.dumps(json.loads(api.getresponse().read())["output"]))
"""
"The same call by a program of the standard library."

INPUT = '{"number": 21, "text": "same bytes both ways"}'


@dataclass
class Command:
    """A command line, and the seconds that each of its runs took."""

    words: tuple[str, ...]
    environment: Mapping[str, str] | None = None
    times: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run it to its end and keep the time."""
        began = time.perf_counter()
        subprocess.run(
            self.words,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment,
            cwd="/",
        )
        self.times.append(time.perf_counter() - began)

    @property
    def p10(self) -> float:
        """The lower decile, in seconds."""
        return statistics.quantiles(self.times, n=10)[0]


def commands_of(stack: ExitStack, tree: Path, folder: Path) -> dict[str, Command]:
    """Start two daemons of a checkout and return what is measured of it."""
    folder.mkdir()
    (folder / "made.py").write_text(FUNCTION)
    provider, caller = (Anpd(tree, folder / name) for name in ("provider", "caller"))
    provider.run("attach", "python", "made:double", "--expose", "*", "--name", "b")
    address, _ = stack.enter_context(provider.up())
    _, api = stack.enter_context(caller.up())
    anpd = (caller.executable, "-m", "anp")
    call = ("--home", str(folder / "caller"), "call", address, "double", "-d", INPUT)
    environment = caller.environment
    python = caller.executable
    return {
        "anpd --help": Command((*anpd, "--help"), environment),
        "anpd call": Command((*anpd, *call), environment),
        "standard library": Command(
            (python, "-c", CLIENT, api.path, address, INPUT, api.need)
        ),
        "python -c pass": Command((python, "-c", "pass")),
    }


def show(commands: Mapping[str, Command]) -> bool:
    """Print times and ratios; return whether every goal is met."""
    is_met = True
    for name, command in commands.items():
        ratios = []
        for other, goal in GOALS.get(name, ()):
            ratio = command.p10 / commands[other].p10
            is_met &= ratio <= goal
            ratios.append(f"{ratio:5.1f} times {other} (goal {goal:g})")
        took = f"{name:18}{command.p10 * 1000:8.1f} ms"
        print("  ".join((took, *ratios)))
    return is_met


def main() -> int:
    """Measure, print, and return 1 if a goal is missed by this checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--against", type=Path, help="another checkout")
    other = parser.parse_args().against
    trees = {"this checkout": Path(__file__).parents[1]}
    if other is not None:
        trees["the other one"] = other.resolve()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        measured = {
            name: commands_of(stack, tree, Path(folder, str(number)))
            for number, (name, tree) in enumerate(trees.items())
        }
        every = [one for found in measured.values() for one in found.values()]
        for command in every:
            command.run()
            command.times.clear()
        for _ in range(ROUNDS):
            for command in every:
                command.run()
        results = []
        for name, found in measured.items():
            print(name)
            results.append(show(found))
    return 0 if results[0] else 1


if __name__ == "__main__":
    sys.exit(main())
