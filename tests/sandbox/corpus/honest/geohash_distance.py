# kind: geohash and distances on a sphere
"""Geohashes of positions and distances between them."""

from math import asin, cos, degrees, hypot, pi, radians, sin, sqrt
from typing import NamedTuple

_ALPHABET = "0123456789bcdefghjkmnpqrstuvwxyz"
_INDEX = {ch: i for i, ch in enumerate(_ALPHABET)}
EARTH_RADIUS_KM = 6371.0088


class Point(NamedTuple):
    lat: float
    lon: float

    def distance(self, other: "Point") -> float:
        (lat1, lon1), (lat2, lon2) = (map(radians, p) for p in (self, other))
        h = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
        return 2 * EARTH_RADIUS_KM * asin(sqrt(h))


def encode(lat: float, lon: float, length: int = 8) -> str:
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise ValueError(f"position out of range: {lat:+.3f}, {lon:+.3f}")
    ranges = [[-180.0, 180.0], [-90.0, 90.0]]
    bits, code = 0, []
    for step in range(length * 5):
        value, bounds = (lon, ranges[0]) if step % 2 == 0 else (lat, ranges[1])
        middle = sum(bounds) / 2
        upper = value >= middle
        bounds[0 if upper else 1] = middle
        bits = bits << 1 | upper
        if step % 5 == 4:
            code.append(_ALPHABET[bits])
            bits = 0
    return "".join(code)


def decode(code: str) -> dict[str, float]:
    lat, lon = [-90.0, 90.0], [-180.0, 180.0]
    even = True
    for ch in code.lower():
        try:
            value = _INDEX[ch]
        except KeyError:
            raise ValueError(f"{ch!r} is no geohash character") from None
        for shift in range(4, -1, -1):
            bounds = lon if even else lat
            bounds[not value >> shift & 1] = sum(bounds) / 2
            even = not even
    return {
        "lat": round(sum(lat) / 2, 5),
        "lon": round(sum(lon) / 2, 5),
        "error": round(hypot(lat[1] - lat[0], lon[1] - lon[0]) / 2, 6),
    }


def nearest(here: list[float], places: dict[str, list[float]]) -> list:
    origin = Point(*here)
    name, km = min(
        ((name, origin.distance(Point(*at))) for name, at in places.items()),
        key=lambda pair: pair[1],
    )
    return [name, round(km, 1)]


def turn(angle: float) -> float:
    return round(degrees(angle % (2 * pi)), 3)
