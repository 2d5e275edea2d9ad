"""Two years of cron in the zones that change their clocks, with gaps and kills.

`make cron-years` runs all of them. The clock is a number; a kill drops the machine and
brings it back from the JSON that was stored last. The expected times come from a walk
over all minutes, which knows neither the library nor our schedule.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from anp.interaction.triggers.subscription import read_subscription
from anp.interaction.triggers.watch import Watch, time_text

BEGIN: Final = datetime(2025, 1, 1, tzinfo=UTC)
END: Final = datetime(2027, 1, 1, tzinfo=UTC)

EXPRESSIONS: Final = (
    ("30 2 * * *", {30}, {2}),
    ("15 1,3 * * 0", {15}, {1, 3}),
    ("*/30 2 * * *", {0, 30}, {2}),
    ("0 */11 * * *", {0}, {0, 11, 22}),
)
"Expressions with their minutes and hours; the second one is for Sundays only."

AWAY: Final = 0.02
"Part of the looks at the clock before which the daemon was away."

KILLED: Final = 0.1
"Part of the looks at which it is killed."


def changing_zones() -> list[str]:
    """Return all zones of the database whose clocks change in the two years."""
    found = []
    for name in sorted(available_timezones()):
        zone, seen, at = ZoneInfo(name), set(), BEGIN
        while at < END:
            seen.add(at.astimezone(zone).utcoffset())
            at += timedelta(days=1)
        if len(seen) > 1:
            found.append(name)
    return found


def expected(expression: str, zone: ZoneInfo) -> list[float]:
    """Return when an expression is due, by a walk over all minutes."""
    minutes, hours = next(one[1:] for one in EXPRESSIONS if one[0] == expression)
    sundays = expression.endswith("0") and expression.split()[4] == "0"
    if expression.startswith("*") or expression.split()[1].startswith("*"):
        shown = {60 * hour + minute for hour in hours for minute in minutes}
        return [at for at, wall in _minutes(zone) if wall in shown]
    # A fixed time: on each day of the calendar once, where the wall shows it first, or
    # where the clocks jump over it.
    found: list[float] = []
    day = BEGIN.date()
    while day < END.date() + timedelta(days=1):
        if not sundays or day.isoweekday() == 7:
            found += [_fixed(day, hour, *minutes, zone=zone) for hour in sorted(hours)]
        day += timedelta(days=1)
    kept = {at for at in found if BEGIN.timestamp() < at <= END.timestamp()}
    return sorted(kept)


_expected = lru_cache(2)(lambda name, zone: expected(name, ZoneInfo(zone)))
"Both ways to make up for missed times expect the same ones."


def _fixed(day: date, hour: int, minute: int, *, zone: ZoneInfo) -> float:
    wanted = datetime(day.year, day.month, day.day, hour, minute)
    # Half a day before, no zone shows this time yet; then the first minute that shows
    # it or a later one is the moment.
    at = wanted.replace(tzinfo=zone).astimezone(UTC) - timedelta(hours=3)
    while at.astimezone(zone).replace(tzinfo=None) < wanted:
        at += timedelta(minutes=1)
    return at.timestamp()


def _minutes(zone: ZoneInfo) -> Iterator[tuple[float, int]]:
    """Yield every minute of the two years with the minute of the day on the wall."""
    at = BEGIN
    while at < END:
        following, stamp = at + timedelta(days=1), at.timestamp()
        first, last = at.astimezone(zone), following.astimezone(zone)
        is_plain = first.utcoffset() == last.utcoffset()
        wall = 60 * first.hour + first.minute
        for number in range(1, 1441):
            if not is_plain:
                moment = (at + timedelta(minutes=number)).astimezone(zone)
                wall = 60 * moment.hour + moment.minute - number
            yield stamp + 60 * number, (wall + number) % 1440
        at = following


@dataclass
class Walk:
    """The figures of one walk through the two years."""

    due: int = 0
    stored: Counter[str] = field(default_factory=Counter)
    "How often each firing was stored."

    started: set[str] = field(default_factory=set)
    "The firings whose task was made, each under the name of its firing."

    kills: int = 0
    gaps: int = 0
    lost: int = 0
    "Due times that should have started something and did not."

    wrong: int = 0
    "Starts that should not have been."


@dataclass
class _Daemon:
    """A daemon that may die at any moment: what is stored, and what is in memory."""

    given: dict[str, Any]
    began: float
    stored: str = "{}"
    stored_keys: Counter[str] = field(default_factory=Counter)
    waiting: list[str] = field(default_factory=list)
    "Keys that are stored and whose task is not known to be made."

    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.watch = Watch(
            read_subscription(self.given, created=self.began),
            created=self.began,
            state=json.loads(self.stored),
        )


def walk(expression: str, zone: str, missed: str, *, seed: int) -> Walk:
    """Walk through the two years and compare with what was expected."""
    chance = random.Random(f"{expression} {zone} {missed} {seed}")
    times = _expected(expression, zone)
    trigger = {"type": "time", "cron": expression, "zone": zone}
    daemon = _Daemon({"triggers": [trigger], "missed": missed}, began=BEGIN.timestamp())
    found, place = Walk(due=len(times)), 0
    wanted: set[str] = set()
    now = BEGIN.timestamp()
    while now < END.timestamp():
        if chance.random() < 0.05:
            # The clock is wrong for a moment, and behind.
            found.kills += _look(daemon, now - 7_200, found.started, chance)
        due = daemon.watch.get_timer()
        now = max(now, min(due or END.timestamp(), END.timestamp()))
        if chance.random() < AWAY:
            found.gaps += 1
            now = min(now + chance.expovariate(1 / 86_400), END.timestamp())
        passed = place
        while passed < len(times) and times[passed] <= now:
            passed += 1
        gap = times[place:passed]
        wanted |= {
            f"time/{time_text(at)}" for at in (gap if missed == "all" else gap[-1:])
        }
        place = passed
        found.kills += _look(daemon, now, found.started, chance)
    found.stored = daemon.stored_keys
    found.lost = len(wanted - found.started)
    found.wrong = len(found.started - wanted)
    return found


def _look(daemon: _Daemon, now: float, made: set[str], chance: random.Random) -> int:
    """Look at the clock until nothing is due, dying now and then; return the kills."""
    kills = 0
    while True:
        die = (
            chance.choice(("", "before", "stored", "made"))
            if (chance.random() < KILLED)
            else ""
        )
        _start(daemon, made, die)
        firings = [
            daemon.watch.fire(one, now=now)
            for one in daemon.watch.handle_timer(now=now)
        ]
        if die != "before":
            # One transaction.
            daemon.stored = json.dumps(daemon.watch.state)
            keys = [one.key for one in firings if one is not None]
            daemon.waiting += keys
            daemon.stored_keys.update(keys)
        if die:
            kills += 1
            daemon.restart()
        if not die:
            _start(daemon, made, "")
            due = daemon.watch.get_timer()
            if due is None or due > now:
                return kills


def _start(daemon: _Daemon, made: set[str], die: str) -> None:
    """Make the tasks of stored firings; each is named after its firing."""
    for key in list(daemon.waiting):
        if die == "stored":
            return
        # A second start finds the task of the first by its name.
        made.add(key)
        if die == "made":
            return
        daemon.waiting.remove(key)


def main() -> None:
    """Walk through all zones and expressions, and print figures."""
    zones, total = changing_zones(), Counter[str]()
    began = time.monotonic()
    for number, zone in enumerate(zones, start=1):
        for expression, _, _ in EXPRESSIONS:
            for missed in ("all", "once"):
                one = walk(expression, zone, missed, seed=1)
                total["due"] += one.due
                total["started"] += len(one.started)
                total["twice"] += sum(count > 1 for count in one.stored.values())
                total["kills"] += one.kills
                total["gaps"] += one.gaps
                total["lost"] += one.lost
                total["wrong"] += one.wrong
                if one.lost or one.wrong:
                    print("FAILED", zone, expression, missed, one.lost, one.wrong)
        if number % 20 == 0 or number == len(zones):
            print(f"{number} of {len(zones)} zones", dict(total), flush=True)
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(1 if total["lost"] or total["wrong"] or total["twice"] else 0)


if __name__ == "__main__":
    main()
