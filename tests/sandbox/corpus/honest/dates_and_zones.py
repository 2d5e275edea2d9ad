# kind: dates, time zones and formats
"""Meeting times: the peer writes local times with an offset, we keep UTC."""

from datetime import date, datetime, time, timedelta, timezone

UTC = timezone.utc
_FORMATS = ("%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p")


def _offset(text: str) -> timezone:
    sign = -1 if text.startswith("-") else 1
    hours, minutes = map(int, text.lstrip("+-").split(":"))
    return timezone(sign * timedelta(hours=hours, minutes=minutes))


def parse_local(text: str, offset: str) -> str:
    for pattern in _FORMATS:
        try:
            naive = datetime.strptime(text, pattern)
        except ValueError:
            continue
        else:
            return naive.replace(tzinfo=_offset(offset)).astimezone(UTC).isoformat()
    raise ValueError(f"no known date format: {text}")


def to_wire(iso: str, offset: str) -> dict:
    moment = datetime.fromisoformat(iso)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    local = moment.astimezone(_offset(offset))
    return {
        "date": local.strftime("%d %b %Y"),
        "time": f"{local:%H:%M:%S}",
        "weekday": local.isoweekday(),
        "week": local.isocalendar().week,
        "epoch": int(moment.timestamp()),
        "day_of_year": local.timetuple().tm_yday,
    }


def working_days(start: str, end: str, holidays: list[str]) -> int:
    closed = {date.fromisoformat(day) for day in holidays}
    day, last, count = date.fromisoformat(start), date.fromisoformat(end), 0
    while day <= last:
        if day.weekday() < 5 and day not in closed:
            count += 1
        day += timedelta(days=1)
    return count


def slots(day: str, minutes: int) -> list[str]:
    current = datetime.combine(date.fromisoformat(day), time(9, 0), tzinfo=UTC)
    end = current.replace(hour=11)
    step = timedelta(minutes=minutes)
    result = []
    while current + step <= end:
        result.append(f"{current.isoformat(timespec='minutes')}/{current + step:%H:%M}")
        current += step
    return result
