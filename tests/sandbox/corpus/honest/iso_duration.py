# kind: ISO 8601 durations by regular expression
"""ISO 8601 durations (P3DT4H5M6.5S, P2W) to seconds and back."""

import re
from datetime import timedelta

_PATTERN = re.compile(
    r"""
    ^(?P<sign>[+-])?P
    (?:(?P<weeks>\d+)W)?
    (?:(?P<days>\d+)D)?
    (?:T
        (?:(?P<hours>\d+)H)?
        (?:(?P<minutes>\d+)M)?
        (?:(?P<seconds>\d+(?:\.\d+)?)S)?
    )?$
    """,
    re.VERBOSE,
)


class DurationError(ValueError):
    """Not an ISO 8601 duration."""


def parse_duration(text: str) -> float:
    match = _PATTERN.match(text)
    if match is None or text.endswith(("P", "T")):
        raise DurationError(f"invalid duration {text!r}")
    parts = match.groupdict(default="0")
    sign = -1 if parts.pop("sign") == "-" else 1
    delta = timedelta(**{name: float(value) for name, value in parts.items()})
    return sign * delta.total_seconds()


def format_duration(seconds: float) -> str:
    if not seconds:
        return "PT0S"
    prefix = "-P" if seconds < 0 else "P"
    delta = timedelta(seconds=abs(seconds))
    hours, rest = divmod(delta.seconds, 3600)
    minutes, whole = divmod(rest, 60)
    fraction = whole + delta.microseconds / 1_000_000
    date_part = f"{delta.days}D" if delta.days else ""
    time_part = "".join(
        f"{value:g}{unit}"
        for value, unit in ((hours, "H"), (minutes, "M"), (fraction, "S"))
        if value
    )
    return prefix + date_part + (f"T{time_part}" if time_part else "")


def total(durations: list[str]) -> str:
    return format_duration(sum(map(parse_duration, durations)))
