# kind: calendars and recurring dates
"""Month views and recurring dates for the scheduling protocol."""

import calendar
import datetime as dt
from itertools import islice
from typing import Iterator

WEEKDAYS = dict(zip(("MO", "TU", "WE", "TH", "FR", "SA", "SU"), range(7)))


def month_grid(year: int, month: int) -> list[list[int]]:
    return calendar.Calendar(firstweekday=calendar.SUNDAY).monthdayscalendar(year, month)


def _rule(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(";"))


def _occurrences(start: dt.date, rule: dict[str, str]) -> Iterator[dt.date]:
    interval = int(rule.get("INTERVAL", 1))
    match rule["FREQ"]:
        case "DAILY":
            current = start
            while True:
                yield current
                current += dt.timedelta(days=interval)
        case "WEEKLY":
            days = sorted(WEEKDAYS[day] for day in rule["BYDAY"].split(","))
            monday = start - dt.timedelta(days=start.weekday())
            while True:
                for day in days:
                    if (when := monday + dt.timedelta(days=day)) >= start:
                        yield when
                monday += dt.timedelta(weeks=interval)
        case "MONTHLY":
            year, month = start.year, start.month
            while True:
                _, last = calendar.monthrange(year, month)
                yield dt.date(year, month, min(start.day, last))
                years, month0 = divmod(month - 1 + interval, 12)
                year, month = year + years, month0 + 1
        case other:
            raise NotImplementedError(f"FREQ={other}")


def expand(start: str, rule: str) -> list[str]:
    parsed = _rule(rule)
    count = int(parsed.get("COUNT", "10"))
    first = dt.date.fromisoformat(start)
    return [day.isoformat() for day in islice(_occurrences(first, parsed), count)]


def facts(year: int) -> dict:
    return {
        "leap": calendar.isleap(year),
        "february": calendar.monthrange(year, 2)[1],
        "first_day": calendar.day_name[calendar.weekday(year, 1, 1)],
        "fridays_13": [
            calendar.month_abbr[m]
            for m in range(1, 13)
            if dt.date(year, m, 13).weekday() == calendar.FRIDAY
        ],
    }
