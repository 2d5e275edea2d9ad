"""The first call of a capability between two daemons, and where its time goes.

    python -m bench.first_call [--against DIR] [--rounds N]

Rules alone agree: the functions of the provider have types. In each round a caller with
a new home calls them one after the other, so that the first call also connects and all
others find the link. *Negotiated*: the caller takes nothing that the peer publishes.
*Published*: it does, as by default, so that nothing is negotiated. The steps are those
that the caller's daemon notes; the rest is the local API. CPU is that of both daemons
and all their children. `--against` measures another checkout by turns; only ratios of
one run mean anything.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.call import ARGUMENTS, Anpd, LocalApi
from bench.ready import cpu_of

ROUNDS = 6
"Callers of each kind; the first one is not counted."

FUNCTIONS = 9
"First calls of each caller; before the second one there is a link."

FUNCTION = """
def double{number}(number: int, text: str) -> dict[str, str]:
    return {{"text": text, "number": str(number * 2)}}
"""

STEPS: Final[Mapping[str, str]] = {
    "channel open, peer verified": "channel",
    "code for the published protocol checked": "code",
    "protocol agreed, code checked": "agreeing and code",
    "tested with the peer": "tests",
    "result": "call",
}
"The steps of a call as the daemon names them, and as this table does."


@dataclass
class Calls:
    """First calls of one kind by one checkout."""

    name: str
    times: list[float] = field(default_factory=list)

    cpu: list[float] = field(default_factory=list)
    "Seconds of processors per call, of each round."

    sources: set[str] = field(default_factory=set)
    steps: defaultdict[str, list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def clear(self) -> None:
        """Forget what was measured."""
        for one in (self.times, self.cpu, self.steps):
            one.clear()

    def take(self, answer: Mapping[str, Any], took: float) -> None:
        """Keep one call, with the seconds that its caller waited."""
        self.times.append(took)
        self.sources.add(answer["source"])
        before = 0.0
        for step in answer["timeline"]:
            name = STEPS.get(step["what"], step["what"])
            self.steps[name].append((step["ms"] - before) / 1000)
            before = step["ms"]
        self.steps["local API"].append(took - before / 1000)

    def row(self) -> str:
        """Return its medians as a row of the table."""
        steps = (
            f"{name} {1000 * statistics.median(values):.1f}"
            for name, values in self.steps.items()
        )
        return " | ".join(
            (
                f"| {self.name}",
                "/".join(sorted(self.sources)),
                f"{1000 * statistics.median(self.times):.1f}",
                f"{', '.join(steps)}",
                f"{1000 * statistics.median(self.cpu):.1f} |",
            )
        )


class Checkout:
    """A provider of one checkout, and its callers."""

    def __init__(self, tree: Path, folder: Path, stack: ExitStack) -> None:
        folder.mkdir()
        self._tree, self._folder = tree, folder
        functions = (FUNCTION.format(number=one) for one in range(FUNCTIONS))
        (folder / "made.py").write_text("\n".join(functions))
        provider = Anpd(tree, folder / "provider")
        provider.run("attach", "python", "made", "--expose", "*", "--name", "b")
        self._address, _ = stack.enter_context(provider.up())
        self.linked = {
            consensus: Calls("published" if consensus else "negotiated")
            for consensus in (False, True)
        }
        self.cold = {
            consensus: Calls(f"{calls.name}, no link yet")
            for consensus, calls in self.linked.items()
        }
        self._made = 0

    @property
    def kinds(self) -> list[Calls]:
        """Everything that is measured."""
        return [*self.linked.values(), *self.cold.values()]

    def round(self, *, consensus: bool) -> None:
        """Let a new caller call every function for the first time."""
        home = self._folder / f"caller{self._made}"
        self._made += 1
        with Anpd(self._tree, home, consensus=consensus).up() as (_, api):
            for number in range(FUNCTIONS):
                calls = self.linked[consensus] if number else self.cold[consensus]
                if number < 2:
                    used = self._cpu(home)
                self._call(api, number, calls)
                if number == 0:
                    calls.cpu.append(self._cpu(home) - used)
            linked = self._cpu(home) - used
            self.linked[consensus].cpu.append(linked / (FUNCTIONS - 1))

    def _cpu(self, home: Path) -> float:
        homes = (self._folder / "provider", home)
        return sum(
            cpu_of(json.loads((one / "api.json").read_text())["pid"]) for one in homes
        )

    def _call(self, api: LocalApi, number: int, calls: Calls) -> None:
        body = json.dumps(
            {"peer": self._address, api.need: f"double{number}", "input": ARGUMENTS}
        )
        began = time.perf_counter()
        api.request("POST", "/v1/calls", body, {"content-type": "application/json"})
        answer = api.getresponse()
        data = answer.read()
        took = time.perf_counter() - began
        found = json.loads(data)
        if answer.status != 200 or found["output"].get("number") != "42":
            raise RuntimeError(f"the call failed: {answer.status} {found}")
        calls.take(found, took)


def main() -> None:
    """Measure and print a table in Markdown: milliseconds, medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    wanted = parser.parse_args()
    trees = {"now": Path(__file__).resolve().parents[1]}
    if wanted.against is not None:
        trees = {"before": wanted.against.resolve(), **trees}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        checkouts = {
            name: Checkout(tree, Path(folder, name), stack)
            for name, tree in trees.items()
        }
        for number in range(wanted.rounds):
            for one in checkouts.values():
                for consensus in (False, True):
                    one.round(consensus=consensus)
                if number == 0:
                    for calls in one.kinds:
                        calls.clear()
        print("| first call | way | ms | steps | CPU, ms |\n|---|---|---|---|---|")
        for name, one in checkouts.items():
            for calls in one.kinds:
                calls.name = f"{name}: {calls.name}"
                print(calls.row())


if __name__ == "__main__":
    main()
