"""The machine of one subscription: what comes in, and the firings that follow.

    for occasion in watch.handle_timer(now=now):
        firing = watch.fire(occasion, now=now)

Between the two stands whoever judges the condition. Nothing here reads a clock, so a
test runs years in a second. Every firing has a key, the due time or the id of the
event; whoever stores the firings takes each key once, and a firing starts once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from anp.interaction.triggers.places import Position
from anp.interaction.triggers.schedule import dues, last_due
from anp.interaction.triggers.subscription import (
    POSITION,
    Crossing,
    EventSource,
    EventTrigger,
    Match,
    Missed,
    PlaceTrigger,
    Subscription,
    TimeTrigger,
    Trigger,
)

ON_TIME: Final = 10.0
"Seconds by which a start may be late before its due time counts as missed."

BATCH: Final = 100
"Due times that are handled in one step; the others follow in the next ones."

MAX_SUBJECTS: Final = 100
"Subjects whose last side of an edge is remembered."

MAX_SUBJECT: Final = 200
"Characters by which subjects are told apart."

SEEN: Final = 256
"Keys of events that are remembered, so that a repeat is no second one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event of any source."""

    id: str
    "Unique among those of its source; a repeat has the same."

    source: EventSource
    type: str
    at: float
    "Seconds since 1970."

    data: Mapping[str, Any] = field(default_factory=dict)

    subject: str = ""
    "The task, the sender, or whose position it is."

    peer: str = ""
    "DID of the peer that sent it, if any."

    derived: bool = False
    """It follows from a subscription, so that it counts only where its subject is
    named: else two subscriptions would start each other for ever."""

    def key(self) -> str:
        """Return the key of what it starts."""
        return f"{self.source}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """An occasion on which the task may start, if the condition holds."""

    key: str
    "The due time or the event, as a key of the firing."

    at: float
    "The due time, or when the event happened, in seconds since 1970."

    signals: Mapping[str, Any]
    "Facts that each trigger which was there brought, by the trigger's number from 0."

    is_joined: bool = False
    "True when every trigger had to be there."

    def as_json(self) -> dict[str, Any]:
        """Return the object that a condition is about, and that a task can be given."""
        brought: dict[str, Any] = {"at": time_text(self.at)}
        if self.is_joined:
            return brought | {"events": dict(self.signals)}
        return brought | {"event": next(iter(self.signals.values()), None)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One start of the task."""

    key: str
    number: int
    "Counted from 1."

    occasion: Occasion


class Ended:
    """The reasons for which a subscription has ended."""

    EXPIRED: Final = "expired"
    RUNS: Final = "max_runs"
    DONE: Final = "done"
    "Nothing will ever be due again."

    CANCELED: Final = "canceled"
    REFUSED: Final = "refused"
    "The peer that was to watch did not take it."


class Watch:
    """One subscription at work."""

    def __init__(
        self,
        subscription: Subscription,
        *,
        created: float,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin, or go on.

        Args:
            created: Due times after it count, in seconds since 1970.
            state: What `state` returned before; None for a new one.
        """
        self._what = subscription
        known = state or {}
        self._cursor: float = known.get("cursor", created)
        self._last: float = known.get("last", -math.inf)
        self.runs: int = known.get("runs", 0)
        "Starts so far."

        self.ended: str = known.get("ended", "")
        "One of `Ended`, or empty."

        self._inside: dict[str, bool] = dict(known.get("inside", {}))
        self._signals: dict[str, Any] = dict(known.get("signals", {}))
        self._seen: deque[str] = deque(known.get("seen", ()), SEEN)

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """The triggers of the subscription."""
        return self._what.triggers

    @property
    def state(self) -> dict[str, Any]:
        """Everything but the subscription itself, as JSON."""
        found: dict[str, Any] = {
            "cursor": self._cursor,
            "runs": self.runs,
            "ended": self.ended,
            "inside": dict(self._inside),
            "signals": dict(self._signals),
            "seen": list(self._seen),
        }
        if self._last != -math.inf:
            found["last"] = self._last
        return found

    # Time

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, in seconds since 1970, or None."""
        if self.ended:
            return None
        times = [one.next_due(self._cursor) for _, one in self._schedules()]
        found = [one for one in (*times, self._what.expires) if one is not None]
        return min(found, default=None)

    def handle_timer(self, *, now: float) -> list[Occasion]:
        """Take the due times until now; there may be more at once, see `get_timer`.

        A clock that is set back makes nothing due a second time, since only times
        after the last one count.
        """
        if self._is_over(now):
            return []
        due, cursor = self._due(now)
        found = []
        for at, names in due:
            key = f"time/{time_text(at)}"
            for name in names:
                found += self._signal(name, key=key, at=at, data=None)
        if cursor is not None:
            self._cursor = cursor
        # Several triggers may be due at the same moment.
        return list({one.key: one for one in found}.values())

    def _due(self, now: float) -> tuple[list[tuple[float, list[str]]], float | None]:
        """Return the due times that count, in order, and the new cursor."""
        by_time: dict[float, list[str]] = {}
        cursors: list[float] = []
        cut = math.inf
        firsts = [one.next_due(self._cursor) for _, one in self._schedules()]
        first = min((one for one in firsts if one is not None), default=None)
        for name, schedule in self._schedules():
            if self._what.missed is Missed.ALL:
                times = []
                for at in dues(schedule, after=self._cursor, until=now):
                    times.append(at)
                    if len(times) == BATCH:
                        cut = min(cut, at)
                        break
            else:
                last = last_due(schedule, after=self._cursor, until=now)
                times = [] if last is None else [last]
            for at in times:
                by_time.setdefault(at, []).append(name)
            cursors += times
        due = sorted((at, names) for at, names in by_time.items() if at <= cut)
        cursor = max((at for at in cursors if at <= cut), default=None)
        if self._what.missed is Missed.SKIP:
            due = [one for one in due if now - one[0] <= ON_TIME]
        elif (
            self._what.missed is Missed.ONCE
            and self._what.match is Match.ANY
            and first is not None
            and now - first > ON_TIME
        ):
            # One for the whole gap, whichever triggers were due in it.
            due = due[-1:]
        return due, cursor

    def _schedules(self) -> Iterable[tuple[str, Any]]:
        for number, trigger in enumerate(self._what.triggers):
            if isinstance(trigger, TimeTrigger):
                yield str(number), trigger.schedule

    # Events

    def interested(self, happening: Happening) -> dict[str, Mapping[str, Any] | None]:
        """Return the triggers that an event may meet, each with the schema to fit."""
        if self.ended or happening.key() in self._seen:
            return {}
        return {
            str(number): one.schema if isinstance(one, EventTrigger) else None
            for number, one in enumerate(self._what.triggers)
            if _is_for(one, happening)
        }

    def observe(
        self, happening: Happening, *, fits: Iterable[str], now: float
    ) -> list[Occasion]:
        """Take an event.

        Args:
            fits: Those of `interested` whose schema it fits.
        """
        if self._is_over(now) or happening.key() in self._seen:
            return []
        found: dict[str, Occasion] = {}
        self._seen.append(happening.key())
        for name in fits:
            trigger = self._what.triggers[int(name)]
            if isinstance(trigger, PlaceTrigger) and not self._crosses(
                name, trigger, happening.data
            ):
                continue
            for one in self._signal(
                name, key=happening.key(), at=happening.at, data=dict(happening.data)
            ):
                found[one.key] = one
        return list(found.values())

    def _crosses(
        self, name: str, trigger: PlaceTrigger, data: Mapping[str, Any]
    ) -> bool:
        position = _position(data)
        if position is None:
            return False
        inside = trigger.place.contains(position)
        whose = f"{name}/{data.get('subject', '')}"[:MAX_SUBJECT]
        before = self._inside.pop(whose, None)
        self._inside[whose] = inside
        while len(self._inside) > MAX_SUBJECTS:
            del self._inside[next(iter(self._inside))]
        # The first position says where it is, and crosses nothing.
        if before is None or before is inside:
            return False
        return inside is (trigger.crossing is Crossing.ENTER)

    # Both

    def _signal(self, name: str, *, key: str, at: float, data: Any) -> list[Occasion]:
        if self._what.match is Match.ANY:
            return [Occasion(key=key, at=at, signals={name: data})]
        self._signals[name] = [at, data]
        oldest = at - self._what.window
        self._signals = {
            other: one for other, one in self._signals.items() if one[0] >= oldest
        }
        if len(self._signals) < len(self._what.triggers):
            return []
        brought = {other: one[1] for other, one in self._signals.items()}
        self._signals = {}
        return [Occasion(key=key, at=at, signals=brought, is_joined=True)]

    def fire(self, occasion: Occasion, *, now: float) -> Firing | None:
        """Start the task, unless a limit forbids it; the condition held."""
        if self._is_over(now) or 0 <= now - self._last < self._what.debounce:
            return None
        self.runs += 1
        self._last = now
        firing = Firing(key=occasion.key, number=self.runs, occasion=occasion)
        if self._what.max_runs is not None and self.runs >= self._what.max_runs:
            self.ended = Ended.RUNS
        return firing

    def end(self, reason: str) -> None:
        """End it; what ended first counts."""
        self.ended = self.ended or reason

    def _is_over(self, now: float) -> bool:
        expires = self._what.expires
        if not self.ended and expires is not None and now >= expires:
            self.ended = Ended.EXPIRED
        return bool(self.ended)

    def settle(self) -> None:
        """End it after its last due time; call it when the occasions were judged."""
        triggers = self._what.triggers
        if all(isinstance(one, TimeTrigger) for one in triggers) and not any(
            schedule.next_due(self._cursor) is not None
            for _, schedule in self._schedules()
        ):
            self.end(Ended.DONE)


def time_text(at: float) -> str:
    """Return a moment in UTC with milliseconds, as `2026-01-31T12:00:00.000Z`."""
    utc = datetime.fromtimestamp(at, UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def _is_for(trigger: Trigger, happening: Happening) -> bool:
    match trigger:
        case EventTrigger(source=source, type=name):
            meant = source, name
        case PlaceTrigger():
            meant = EventSource.LOCAL, POSITION
        case _:
            return False
    if meant != (happening.source, happening.type):
        return False
    if trigger.subject:
        return trigger.subject == happening.subject
    return not happening.derived


def _position(data: Mapping[str, Any]) -> Position | None:
    found = []
    for name, most in (("lat", 90), ("lon", 180)):
        value = data.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if abs(value) > most:
            return None
        found.append(float(value))
    return Position(*found)
