"""One attack: quiet time, attack, quiet time, on a daemon that was just started.

The daemon and the good peers are on one core, the attackers on another. The ratio of
one run compares its attack with its own quiet times, so that it says the same on every
machine; a machine that is busy with other work still makes single runs worse.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.attacks.children import Child, ChildEnded
from tests.attacks.kinds.base import Attack
from tests.attacks.victim import (
    Figures,
    Victim,
    allow,
    busy,
    copy_home,
    cpu_of,
    make_home,
)

WARM_CALLS = 60
"Calls of the listed peers before anything is measured."


SETTLE = 1.0
"Seconds after the attack before the quiet time is measured again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The times and rates of one run."""

    seconds: float = 8.0
    "Seconds of the attack in which calls and new peers begin."

    quiet: float = 6.0
    "Seconds of each quiet time, before and after."

    grace: float = 6.0
    "Seconds that the attack goes on for what has not ended then."

    rate: float = 20.0
    "Calls of the listed peers in a second."

    arrivals: float = 1.0
    "Seconds between two new peers."


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of an attack showed."""

    attack: str
    "Name of the attack."

    quiet: dict[str, list[float]]
    "Milliseconds of the listed peers' calls in the quiet time before, by kind."

    calls: dict[str, list[float]]
    "Milliseconds of their calls during the attack."

    again: dict[str, list[float]]
    "The same in the quiet time after it: harm that lasts, or a machine that changed."

    errors: dict[str, int]
    "Errors of those calls, by what they said."

    quiet_errors: dict[str, int]
    "Errors of calls in the quiet times."

    arrivals: list[dict[str, Any]]
    "How new peers came in during the attack."

    quiet_arrivals: list[dict[str, Any]]
    "The same in the quiet times."

    before: Figures
    "What the daemon held before the attack."

    after: Figures
    "The same at the end of the attack."

    done: dict[str, int]
    "Counts of what the attackers did."

    others: float = 0.0
    "Part of the daemon's core that went to other programs, over the whole run."

    trouble: str = ""
    "What kept the run from being one, such as the end of the daemon."

    @property
    def p50(self) -> float:
        """Median during the attack, as a multiple of the quiet one: the worse kind."""
        return max(
            percentile(self.calls[kind], 50) / percentile(self.quiet[kind], 50)
            for kind in self.quiet
        )

    @property
    def p99(self) -> float:
        """99th percentile during the attack, as a multiple of the quiet one."""
        return percentile(all_of(self.calls), 99) / percentile(all_of(self.quiet), 99)

    @property
    def p99_after(self) -> float:
        """99th percentile after the attack, as a multiple of the one before it."""
        return percentile(all_of(self.again), 99) / percentile(all_of(self.quiet), 99)

    @property
    def kept_out(self) -> float:
        """Longest time in seconds until a new peer had its first answer."""
        return max((one["seconds"] for one in self.arrivals), default=0.0)


class Watch:
    """Tells how much of the daemon's core other programs took since it was made."""

    def __init__(self, core: int | None, good: Child | None, victim: Victim) -> None:
        self._core = core
        self._ours = [victim.pid, *([] if good is None else [good.pid])]
        self._began = time.monotonic(), self._busy()

    def others(self) -> float:
        """Return that part, from 0 to 1."""
        since, taken = self._began
        cores = len(os.sched_getaffinity(0)) if self._core is None else 1
        return (self._busy() - taken) / ((time.monotonic() - since) * cores)

    def _busy(self) -> float:
        # Processes that have ended meanwhile count as others; there are few.
        return busy(self._core) - sum(map(cpu_of, self._ours))


@dataclass(slots=True)
class Measured:
    """Carries out runs: the good peers live on, each run has its own daemon."""

    folder: Path
    "Where homes and logs are."

    stage: Stage
    "Times and rates."

    policy: str = "any"
    "`policy.peers` of the daemon under attack."

    cores: tuple[int | None, int | None] = field(
        default_factory=lambda: _cores(sorted(os.sched_getaffinity(0)))
    )
    "The core of the daemon and the good peers, and that of the attackers."

    _good: Child | None = None
    _home: Path | None = None
    _listed: Sequence[str] = ()
    _number: itertools.count[int] = field(default_factory=itertools.count)

    async def start(self) -> None:
        """Start the good peers, have the owner list them, and make the home."""
        folder = self.folder / f"start{next(self._number):03}"
        folder.mkdir()
        self._good = Child(
            "tests.attacks.good",
            folder / "good",
            core=self.cores[0],
            log=folder / "good.log",
        )
        names = await self._good.ask({"do": "name"}, timeout=60)
        self._listed = names["new"] if self.policy == "listed" else []
        self._home = make_home(folder)
        victim = Victim(folder, self._home, {})
        victim.start(self.cores[0])
        try:
            await self._meet(victim, 8)
            for did in names["dids"]:
                await asyncio.to_thread(allow, self._home, did)
            await self._meet(victim, 8)
            await asyncio.to_thread(victim.stop)
        finally:
            victim.kill()

    def end(self) -> None:
        """End the good peers."""
        if self._good is not None:
            self._good.end()

    async def run(self, attack: type[Attack]) -> Run:
        """Measure one attack once.

        Raises:
            ChildEnded: The good peers or the attackers ended.
            RuntimeError: The daemon did not start.
        """
        if self._good is None or not self._good.alive:
            await self.start()
        assert self._home is not None
        folder = self.folder / f"run{next(self._number):03}"
        folder.mkdir()
        home = copy_home(self._home, folder / "home")
        settings = {"policy.peers": self.policy, **attack.settings}
        victim = Victim(folder, home, settings, listed=self._listed)
        attackers = Child(
            "tests.attacks.attacker",
            core=self.cores[1],
            log=folder / "attackers.log",
        )
        try:
            victim.start(self.cores[0])
            await self._meet(victim, WARM_CALLS)
            return await self._run(attack, victim, attackers)
        finally:
            attackers.end()
            victim.kill()

    async def _run(self, attack: type[Attack], victim: Victim, attackers: Child) -> Run:
        stage, trouble = self.stage, ""
        watch = Watch(self.cores[0], self._good, victim)
        await attackers.ask(
            {"do": "prepare", "attack": attack.name, "target": asdict(victim.target)},
            timeout=60,
        )
        quiet = await self._measure(stage.quiet, arrivals=stage.arrivals)
        before = victim.figures()
        await attackers.ask({"do": "begin"}, timeout=30)
        during = await self._measure(stage.seconds, arrivals=stage.arrivals)
        after = victim.figures() if victim.alive else before
        ended: dict[str, Any] = {"done": {}, "ended": ""}
        try:
            ended = await attackers.ask({"do": "end"}, timeout=30)
        except ChildEnded as exc:
            trouble = f"the attackers: {exc}"
        attackers.end()
        if not victim.alive:
            trouble = f"the daemon ended; see {victim.log}"
        await asyncio.sleep(SETTLE)
        again = await self._measure(stage.quiet, arrivals=stage.arrivals)
        return Run(
            attack.name,
            quiet=quiet["times"],
            again=again["times"],
            calls=during["times"],
            errors=during["errors"],
            quiet_errors={**quiet["errors"], **again["errors"]},
            arrivals=during["arrivals"],
            quiet_arrivals=quiet["arrivals"] + again["arrivals"],
            before=before,
            after=after,
            done=ended["done"],
            others=watch.others(),
            trouble=trouble or ended["ended"],
        )

    async def _meet(self, victim: Victim, calls: int) -> None:
        assert self._good is not None
        order = {"do": "meet", "address": victim.address, "calls": calls}
        await self._good.ask(order, timeout=120)

    async def _measure(self, seconds: float, *, arrivals: float) -> Any:
        assert self._good is not None
        order = {
            "do": "measure",
            "seconds": seconds,
            "rate": self.stage.rate,
            "grace": self.stage.grace,
            "arrivals": arrivals,
        }
        return await self._good.ask(order, timeout=seconds + self.stage.grace + 60)


def all_of(times: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the times of all kinds of calls."""
    return [one for those in times.values() for one in those]


def _cores(usable: Sequence[int]) -> tuple[int | None, int | None]:
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` percent of all are; 0 of none."""
    if not values:
        return 0.0
    return sorted(values)[min(len(values), math.ceil(len(values) * share / 100)) - 1]
