"""Run the daemon among its peers, and print what they were told and what it held."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.attacks.children import Child, ChildEnded, raise_file_limit
from tests.soak.ledger import Ledger, compare
from tests.soak.provider import CAPABILITIES, COMES_AND_GOES, Provider, read_notes
from tests.soak.samples import RULES, Sample, Trend, rows_of, trend
from tests.soak.trouble import Event, Trouble, plan

PEERS_IN_PROCESS = 10
"A process with more peers would have less than its share of a core for each."

EARLY = 0.45
"""Part of the run in which peers call one capability after the other, to agree on all.

It lasts longer than the kills of the daemon, so that its last life has used each
agreement before the second half begins, whose growth is judged.
"""

REFUSED = 0.06
"""Calls at the beginning whose negotiation fails, as part of the calls that are wanted.

The store keeps the newest 1,000 failed negotiations. In a whole run these fill it
before the second half begins; otherwise that would look like growth without end.
"""

CALM = 2.0
"Quiet after a trouble, as a multiple of its time: a slow machine needs calls as well."

LATE = 5.0
"""Seconds after its time when a trouble is left out: those before it took long. The
daemon's kills never are, or the growth of its last life would not have settled."""

PACE = 1.25
"Calls that are begun, as a multiple of those that are wanted: some time is lost."


class Soak:
    """One run."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self._folder = folder
        self._given = given
        self._runs = folder / "runs.jsonl"
        self._provider = Provider(folder, self._runs)
        self._fleets: dict[int, Child] = {}
        self._names = itertools.count()
        self._began = 0.0
        self._restarting = False
        self._calm_until = 0.0
        self.samples: list[Sample] = []
        self.happened: Counter[Trouble] = Counter()
        self.trouble: list[str] = []
        self.agreements = 0

    async def run(self) -> None:
        """Run all of it."""
        await asyncio.to_thread(self._provider.start, None)
        try:
            count = -(-self._given.peers // PEERS_IN_PROCESS)
            await asyncio.gather(*(self._start(index) for index in range(count)))
            self._began = time.monotonic()
            sampling = asyncio.create_task(self._sample())
            for event in plan(self._given.seconds):
                await asyncio.sleep(max(0.0, self._began + event.at - time.monotonic()))
                if self._may_happen(event):
                    began = time.monotonic()
                    await self._happen(event)
                    ended = time.monotonic()
                    self._calm_until = ended + CALM * (ended - began)
            left = self._began + self._given.seconds - time.monotonic()
            await asyncio.sleep(max(0.0, left))
            sampling.cancel()
            await asyncio.gather(*map(self._end, self._fleets.values()))
            try:
                self.agreements = await asyncio.to_thread(
                    self._provider.count_agreements
                )
            except OSError as exc:
                self.trouble.append(f"the daemon does not answer at the end: {exc}")
        finally:
            for fleet in self._fleets.values():
                fleet.end()
            self._provider.kill()

    def ledger(self) -> Ledger:
        """Compare what was told with what was written."""
        said = (
            note
            for path in sorted(self._folder.glob("told-*.jsonl"))
            for note in read_notes(path)
        )
        return compare(said, read_notes(self._runs))

    async def _start(self, index: int) -> None:
        """Start one process of peers; each has its own file of notes."""
        given = self._given
        first = index * PEERS_IN_PROCESS
        numbers = [*range(first, min(first + PEERS_IN_PROCESS, given.peers))]
        refused = REFUSED * given.calls / given.peers
        name = f"{next(self._names):04}"
        fleet = Child(
            "tests.soak.fleet",
            self._folder,
            self._folder / f"told-{name}.jsonl",
            core=None,
            log=self._folder / "fleets.log",
        )
        self._fleets[index] = fleet
        order = {
            "do": "begin",
            "address": self._provider.address,
            "numbers": numbers,
            "capabilities": CAPABILITIES[:: self._thinned()],
            "rate": given.calls * PACE / (given.peers * given.seconds),
            "early": max(0.0, given.seconds * EARLY - self._elapsed()),
            "life": max(10.0, given.seconds / 5),
            "refused": 0 if self._began else math.ceil(refused),
        }
        await fleet.ask(order, timeout=60)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began if self._began else 0.0

    def _thinned(self) -> int:
        """Return which capabilities are called: every first, every second, or less."""
        each = math.ceil(1.2 * self._given.agreements / self._given.peers)
        return max(1, int(len(CAPABILITIES) / max(1, each)))

    def _may_happen(self, event: Event) -> bool:
        """Say if a trouble may happen now; the daemon's kills always may."""
        if event.trouble is Trouble.KILL_DAEMON:
            return True
        if event.trouble is Trouble.ATTACH:
            return self._provider.is_detached(COMES_AND_GOES)
        is_late = self._elapsed() > event.at + LATE
        return not is_late and time.monotonic() >= self._calm_until

    async def _end(self, fleet: Child) -> None:
        try:
            await fleet.ask({"do": "end"}, timeout=90)
        except ChildEnded as exc:
            self.trouble.append(f"peers: {exc}")

    async def _happen(self, event: Event) -> None:
        provider, number = self._provider, self.happened[event.trouble]
        self.happened[event.trouble] += 1
        try:
            match event.trouble:
                case Trouble.KILL_DAEMON:
                    await self._restart()
                case Trouble.RELOAD:
                    await asyncio.to_thread(provider.reload)
                    await asyncio.to_thread(provider.allow_every_second)
                case Trouble.DETACH:
                    provider.detach(COMES_AND_GOES)
                    await asyncio.to_thread(provider.reload)
                case Trouble.ATTACH:
                    provider.attach(COMES_AND_GOES)
                    await asyncio.to_thread(provider.reload)
                case Trouble.KILL_CHILD:
                    await asyncio.to_thread(provider.kill_child, number)
                case Trouble.KILL_PEERS:
                    index = number % len(self._fleets)
                    self._fleets[index].end()
                    await self._start(index)
        except (OSError, RuntimeError) as exc:
            self.trouble.append(f"{event.trouble} at {event.at:.0f} s: {exc}"[:500])

    async def _restart(self) -> None:
        """Kill the daemon and start it at the same address."""
        self._restarting = True
        self._provider.kill()
        await asyncio.to_thread(self._provider.start, None, self._provider.port)
        self._restarting = False

    async def _sample(self) -> None:
        every = max(1.0, min(3.0, self._given.seconds / 60))
        while True:
            await asyncio.sleep(every)
            if self._restarting or not self._provider.alive:
                continue
            held = await asyncio.to_thread(self._provider.figures)
            store = self._provider.home / "store"
            self.samples.append(
                Sample(
                    at=time.monotonic() - self._began,
                    memory=held.memory / 2**20,
                    memory_below=held.memory_below / 2**20,
                    files=held.files,
                    workers=held.processes,
                    rows=await asyncio.to_thread(rows_of, store),
                    log=held.log / 1024,
                )
            )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--calls", type=int, default=20_000, help="results at least")
    parser.add_argument("--agreements", type=int, default=200, help="at least")
    parser.add_argument("--peers", type=int, default=50)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures")
    return parser.parse_args()


def _print(soak: Soak, ledger: Ledger, trends: list[Trend]) -> None:
    print("what happened:")
    for trouble, count in soak.happened.items():
        print(f"  {count:6}  {trouble}")
    print("calls:")
    for name in ("asked", "told", "failed", "open", "runs", "repeated"):
        print(f"  {getattr(ledger, name):6}  {name}")
    print(f"  {ledger.may_have_run:6}  errors said that it may have run")
    print(f"  {ledger.did_run:6}  of those had run")
    print(f"  {soak.agreements:6}  agreements at the end")
    for kind, count in Counter(ledger.kinds).most_common(12):
        print(f"          {count:6}  {kind}")
    print("faults:")
    for name in ("lost", "doubled", "invented", "denied"):
        print(f"  {getattr(ledger, name):6}  {name}")
    for example in ledger.examples:
        print(f"          {example}")
    print("figure            1st half   2nd half    allowed       mean       peak")
    for one in trends:
        print(
            f"{one.figure:<14}{one.first:+12.1f}{one.second:+11.1f}{one.allowed:11.1f}"
            f"{one.mean:11.1f}{one.peak:11.1f}{'' if one.flat else '  NOT FLAT'}"
        )
    for text in soak.trouble:
        print(f"trouble: {text}")


def _broken(
    given: argparse.Namespace, soak: Soak, ledger: Ledger, trends: list[Trend]
) -> list[str]:
    """Return what was promised and is not so."""
    found = [f"{one.figure} is not flat" for one in trends if not one.flat]
    if ledger.faults:
        found.append(f"{ledger.faults} calls were told what is not so")
    if ledger.told < given.calls:
        found.append(f"only {ledger.told} of {given.calls} calls were answered")
    if soak.agreements < given.agreements:
        found.append(f"only {soak.agreements} of {given.agreements} agreements")
    return [*found, *soak.trouble]


def _main(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        soak = Soak(Path(name), given)
        asyncio.run(soak.run())
        ledger = soak.ledger()
    trends = [trend(rule, soak.samples, given.seconds) for rule in RULES]
    _print(soak, ledger, trends)
    if given.json:
        given.json.write_text(
            json.dumps(
                {
                    "ledger": asdict(ledger),
                    "trends": [asdict(one) for one in trends],
                    "samples": [asdict(one) for one in soak.samples],
                    "happened": soak.happened,
                    "agreements": soak.agreements,
                }
            )
        )
    broken = _broken(given, soak, ledger, trends)
    for text in broken:
        print(f"broken: {text}")
    return 1 if broken else 0


if __name__ == "__main__":
    wanted = _arguments()
    raise_file_limit()
    sys.exit(_main(wanted))
