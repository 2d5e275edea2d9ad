"""Circles and polygons on the earth, and positions inside them (GBZ-63)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

EARTH_RADIUS: Final = 6_371_008.8
"Mean radius of the earth, in metres."


@dataclass(frozen=True, slots=True)
class Position:
    """A point on the earth."""

    latitude: float
    "Degrees north of the equator, from -90 to 90."

    longitude: float
    "Degrees east of Greenwich, from -180 to 180."


@dataclass(frozen=True, slots=True)
class Circle:
    """Everything within a distance of a point, along the surface."""

    centre: Position

    radius: float
    "Metres."

    def contains(self, position: Position) -> bool:
        """Tell whether a position is inside; the edge is."""
        one, other = math.radians(self.centre.latitude), math.radians(position.latitude)
        across = math.radians(position.longitude - self.centre.longitude)
        half = (
            math.sin((other - one) / 2) ** 2
            + math.cos(one) * math.cos(other) * math.sin(across / 2) ** 2
        )
        distance = 2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, half)))
        return distance <= self.radius


@dataclass(frozen=True, slots=True)
class Polygon:
    """An area between straight lines on the map, which may cross the 180th meridian."""

    corners: tuple[Position, ...]
    "At least three; the last one is joined to the first."

    def contains(self, position: Position) -> bool:
        """Tell whether a position is inside, counting the edges north of it."""
        # East of the position is positive, so that the map is never cut near it.
        points = [
            (_turned(one.longitude - position.longitude), one.latitude)
            for one in self.corners
        ]
        inside = False
        for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1], strict=True):
            if (x1 > 0) != (x2 > 0) and abs(x1 - x2) < 180:
                height = y1 + (y2 - y1) * x1 / (x1 - x2)
                inside ^= height > position.latitude
        return inside


def _turned(degrees: float) -> float:
    """Return an angle between -180 and 180 degrees."""
    return (degrees + 180) % 360 - 180
