"""A subscription: triggers, conditions and limits, and its form in JSON (GBZ-63)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.triggers.places import Circle, Polygon, Position
from anp.interaction.triggers.schedule import At, Cron, Every

MAX_TRIGGERS: Final = 16
"Triggers of one subscription."

MAX_TEXT: Final = 200
"Characters of a name or of a cron expression."

MAX_CORNERS: Final = 64
"Corners of a polygon."

ANYBODY: Final = "*"
"Sender of a peer's event when any peer may send it."

LEAST_EVERY: Final = 1.0
"Least seconds between two due times."

MAX_SECONDS: Final = 10 * 366 * 86_400.0
"The longest stretch of time that can be given, in seconds."

POSITION: Final = "position"
"Type of the local events that are positions."


class Match(StrEnum):
    """The number of triggers that it takes."""

    ANY = "any"
    "Each one starts the task."

    ALL = "all"
    "The task starts when each one was there within a stretch of time."


class Missed(StrEnum):
    """The due times that passed while nobody watched."""

    SKIP = "skip"
    "None is made up for."

    ONCE = "once"
    "One start makes up for all of a gap."

    ALL = "all"
    "Each is made up for."


class EventSource(StrEnum):
    """The origin of an event."""

    LOCAL = "local"
    "The local agent or its owner told it to the daemon."

    TASK = "task"
    "A task got another state."

    PEER = "peer"
    "A peer sent it as an event of the message envelope."


class Crossing(StrEnum):
    """The side to which a position crosses the edge of a place."""

    ENTER = "enter"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class TimeTrigger:
    """Due at times."""

    schedule: At | Every | Cron


@dataclass(frozen=True, slots=True)
class EventTrigger:
    """Met by events."""

    source: EventSource

    type: str
    "Name of the event, or state of the task."

    schema: Mapping[str, Any] | None = None
    "JSON Schema that the event's data have to fit; None takes all."

    subject: str = ""
    "The only task or sender that counts; empty for any."


@dataclass(frozen=True, slots=True)
class PlaceTrigger:
    """Met when positions cross the edge of a place."""

    place: Circle | Polygon
    crossing: Crossing

    subject: str = ""
    "Whose positions count; empty for everybody's."


Trigger = TimeTrigger | EventTrigger | PlaceTrigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Everything that says when a task starts; the task itself stands elsewhere."""

    triggers: tuple[Trigger, ...]

    match: Match = Match.ANY

    window: float = math.inf
    "With `all`: seconds in which every trigger has to have been there."

    condition: Mapping[str, Any] | None = None
    "JSON Schema that the occasion has to fit; see `Occasion.as_json`."

    missed: Missed = Missed.SKIP

    max_runs: int | None = None
    "Starts after which it ends."

    expires: float | None = None
    "When it ends, in seconds since 1970."

    debounce: float = 0.0
    "Seconds after a start in which nothing else starts it."

    @property
    def schemas(self) -> list[Mapping[str, Any]]:
        """All JSON Schemas in it."""
        given = [getattr(one, "schema", None) for one in self.triggers]
        return [one for one in (*given, self.condition) if one is not None]


def moment(text: str) -> float:
    """Read a date-time of ISO 8601 as seconds since 1970; without zone it is UTC.

    Raises:
        InteractionError: It is none.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as exc:
        raise _invalid(f"{text[:64]!r} is no date-time") from exc
    if len(text) <= len("2026-01-31"):
        raise _invalid(f"{text[:64]!r} has no time of day")
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def read_subscription(value: object, *, created: float) -> Subscription:
    """Read the object that `subscribe.create` and the local API carry.

    Args:
        created: From when `every` counts, in seconds since 1970.

    Raises:
        InteractionError: A field is absent or wrong.
    """
    fields = _Fields(value, "subscription")
    triggers = fields.take("triggers")
    if not isinstance(triggers, Sequence) or isinstance(triggers, str):
        raise _invalid("triggers: has to be an array")
    if not 1 <= len(triggers) <= MAX_TRIGGERS:
        raise _invalid(f"triggers: has 1 to {MAX_TRIGGERS} of them")
    expires = fields.text("expires")
    runs = fields.number("maxRuns", least=1, most=1e9)
    found = Subscription(
        triggers=tuple(_trigger(one, created) for one in triggers),
        match=fields.word("match", Match, Match.ANY),
        window=fields.number("window", least=0.001, most=MAX_SECONDS) or math.inf,
        condition=fields.schema("condition"),
        missed=fields.word("missed", Missed, Missed.SKIP),
        max_runs=None if runs is None else int(runs),
        expires=None if expires is None else moment(expires),
        debounce=fields.number("debounce", least=0, most=MAX_SECONDS) or 0.0,
    )
    fields.end()
    if found.match is Match.ANY and found.window != math.inf:
        raise _invalid("window: belongs to match all")
    return found


def _trigger(value: object, created: float) -> Trigger:
    fields = _Fields(value, "trigger")
    trigger: Trigger
    match fields.text("type"):
        case "time":
            trigger = TimeTrigger(_schedule(fields, created))
        case "event":
            trigger = _event(fields)
        case "place":
            trigger = PlaceTrigger(
                place=_place(fields),
                crossing=fields.word("when", Crossing, Crossing.ENTER),
                subject=fields.text("subject") or "",
            )
        case _:
            raise _invalid("trigger: type has to be time, event or place")
    fields.end()
    return trigger


def _schedule(fields: _Fields, created: float) -> At | Every | Cron:
    kinds = [kind for kind in ("at", "every", "cron") if fields.has(kind)]
    if len(kinds) != 1:
        raise _invalid("trigger: a time has one of at, every and cron")
    if kinds == ["at"]:
        return At(moment(fields.text("at") or ""))
    if kinds == ["every"]:
        seconds = fields.number("every", least=LEAST_EVERY, most=MAX_SECONDS)
        return Every(seconds or LEAST_EVERY, created)
    cron = Cron(fields.text("cron") or "", fields.text("zone") or "UTC")
    cron.check()
    return cron


def _event(fields: _Fields) -> EventTrigger:
    name, state = fields.text("event"), fields.text("state")
    task, sender = fields.text("taskId"), fields.text("sender")
    if (name is None) is (state is None) or (task is not None and state is None):
        raise _invalid("trigger: an event has a name, or a state and perhaps a taskId")
    if state is not None and sender is not None:
        raise _invalid("trigger: the state of a task has no sender")
    source = EventSource.TASK if state is not None else EventSource.LOCAL
    source = source if sender is None else EventSource.PEER
    subject = task or (sender or "").removeprefix(ANYBODY)
    return EventTrigger(source, name or state or "", fields.schema("schema"), subject)


def _place(fields: _Fields) -> Circle | Polygon:
    if fields.has("polygon") is fields.has("circle"):
        raise _invalid("trigger: a place has a circle or a polygon")
    corners, value = fields.take("polygon"), fields.take("circle")
    if corners is not None:
        if not isinstance(corners, Sequence) or not 3 <= len(corners) <= MAX_CORNERS:
            raise _invalid(f"polygon: has 3 to {MAX_CORNERS} corners")
        return Polygon(tuple(_position(one) for one in corners))
    circle = _Fields(value, "circle")
    radius = circle.number("radius", least=0.001, most=2e7)
    if radius is None:
        raise _invalid("circle: has a radius in metres")
    centre = _position([circle.take("lat"), circle.take("lon")])
    circle.end()
    return Circle(centre, radius)


def _position(value: object) -> Position:
    pair = value if isinstance(value, Sequence) and len(value) == 2 else (None, None)
    latitude: Any
    longitude: Any
    latitude, longitude = pair
    if not (_is_number(latitude, 90) and _is_number(longitude, 180)):
        raise _invalid("a position is latitude and longitude, in degrees")
    return Position(float(latitude), float(longitude))


def _is_number(value: object, most: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= most  # type: ignore[arg-type]  # told above


def _invalid(text: str) -> InteractionError:
    return InteractionError(InteractionFault.INVALID, text)


class _Fields:
    """The fields of one JSON object, each taken once."""

    def __init__(self, value: object, name: str) -> None:
        if not isinstance(value, Mapping):
            raise _invalid(f"{name}: has to be an object")
        self._fields = {key: one for key, one in value.items() if one is not None}
        self._name = name

    def has(self, name: str) -> bool:
        return name in self._fields

    def take(self, name: str) -> object:
        return self._fields.pop(name, None)

    def text(self, name: str) -> str | None:
        found = self.take(name)
        if found is None:
            return None
        if not isinstance(found, str) or not 1 <= len(found) <= MAX_TEXT:
            raise _invalid(f"{name}: has to be a text of 1 to {MAX_TEXT} characters")
        return found

    def number(self, name: str, *, least: float, most: float) -> float | None:
        found = self.take(name)
        if found is None:
            return None
        if not _is_number(found, most) or found < least:  # type: ignore[operator]  # so
            raise _invalid(f"{name}: has to be a number from {least:g} to {most:g}")
        return float(found)  # type: ignore[arg-type]  # a number, as told above

    def word(self, name: str, kind: Any, default: Any) -> Any:
        found = self.take(name)
        try:
            return default if found is None else kind(found)
        except ValueError:
            words = ", ".join(kind)
            raise _invalid(f"{name}: has to be one of {words}") from None

    def schema(self, name: str) -> Mapping[str, Any] | None:
        found = self.take(name)
        if found is not None and not isinstance(found, Mapping):
            raise _invalid(f"{name}: has to be a JSON Schema, as an object")
        return found

    def end(self) -> None:
        if self._fields:
            unknown = sorted(self._fields)[0]
            raise _invalid(f"{self._name}: unknown field {unknown[:64]!r}")
