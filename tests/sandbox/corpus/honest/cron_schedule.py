# kind: cron expressions and next run times
"""Cron expressions: minute hour day month weekday."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

_NAMES = {name: i for i, name in enumerate("sun mon tue wed thu fri sat".split())} | {
    name: i for i, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)
}


class CronError(ValueError):
    pass


def _number(text: str) -> int:
    try:
        return _NAMES[text] if text in _NAMES else int(text)
    except ValueError:
        raise CronError(f"bad value {text!r}") from None


def _values(expression: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for part in expression.lower().split(","):
        span, _, step_text = part.partition("/")
        step = int(step_text) if step_text else 1
        if span == "*":
            start, stop = low, high
        elif match := re.fullmatch(r"(\w+)-(\w+)", span):
            start, stop = map(_number, match.groups())
        else:
            start = _number(span)
            stop = high if step_text else start
        if not low <= start <= stop <= high:
            raise CronError(f"{part} is not within {low}-{high}")
        values.update(range(start, stop + 1, step))
    return frozenset(values)


@dataclass(frozen=True)
class Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    LIMITS: ClassVar = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))

    @classmethod
    def parse(cls, text: str) -> Cron:
        fields = text.split()
        if len(fields) != len(cls.LIMITS):
            raise CronError(f"{len(fields)} fields instead of {len(cls.LIMITS)}")
        return cls(*(_values(f, *limits) for f, limits in zip(fields, cls.LIMITS)))

    def _day_matches(self, moment: datetime) -> bool:
        weekday = moment.isoweekday() % 7
        by_day, by_weekday = moment.day in self.days, weekday in self.weekdays
        if len(self.days) < 31 and len(self.weekdays) < 7:
            return by_day or by_weekday
        return by_day and by_weekday

    def next_after(self, moment: datetime) -> datetime:
        moment = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        limit = moment + timedelta(days=366 * 4)
        while moment < limit:
            if moment.month not in self.months or not self._day_matches(moment):
                moment = moment.replace(hour=0, minute=0) + timedelta(days=1)
            elif moment.hour not in self.hours:
                moment = moment.replace(minute=0) + timedelta(hours=1)
            elif moment.minute not in self.minutes:
                moment += timedelta(minutes=1)
            else:
                return moment
        raise CronError("never")


def next_runs(text: str, after: str, number: int) -> list[str]:
    cron, moment, runs = Cron.parse(text), datetime.fromisoformat(after), []
    while len(runs) < number:
        moment = cron.next_after(moment)
        runs.append(moment.isoformat(sep=" ", timespec="minutes"))
    return runs
