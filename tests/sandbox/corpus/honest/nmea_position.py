# kind: GPS sentences with checksums
"""NMEA sentences from a tracker."""

from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import reduce
from operator import xor


class SentenceError(ValueError):
    """A sentence is damaged."""


@dataclass
class Fix:
    at: datetime
    lat: float
    lon: float
    knots: float = 0.0

    @property
    def kmh(self) -> float:
        return round(self.knots * 1.852, 2)

    def to_message(self) -> dict:
        return {**asdict(self), "at": self.at.isoformat(), "kmh": self.kmh}


def checksum(body: str) -> str:
    return f"{reduce(xor, body.encode('ascii'), 0):02X}"


def _angle(text: str, hemisphere: str) -> float:
    point = text.index(".")
    degrees, minutes = text[: point - 2], text[point - 2 :]
    value = int(degrees or 0) + float(minutes) / 60
    return round(-value if hemisphere in "SW" else value, 6)


def parse(sentence: str) -> dict:
    if not sentence.startswith("$") or "*" not in sentence:
        raise SentenceError("no sentence")
    body, _, given = sentence[1:].strip().rpartition("*")
    if (actual := checksum(body)) != given.upper():
        raise SentenceError(f"checksum is {actual}, not {given}")
    kind, *fields = body.split(",")
    if kind[2:] != "RMC":
        raise SentenceError(f"{kind} is not supported")
    time, status, lat, north, lon, east, speed, _, date, *_ = fields
    if status != "A":
        raise SentenceError("no fix")
    moment = datetime.strptime(date + time.split(".")[0], "%d%m%y%H%M%S")
    fix = Fix(moment.replace(tzinfo=timezone.utc), _angle(lat, north), _angle(lon, east))
    if speed:
        fix.knots += float(speed)
    return fix.to_message()


def build(talker: str, *fields: object) -> str:
    body = ",".join([talker, *("" if f is None else str(f) for f in fields)])
    return f"${body}*{checksum(body)}"


def build_query(number: int) -> str:
    return build("PQ", "RMC", None, number, 0.5)
