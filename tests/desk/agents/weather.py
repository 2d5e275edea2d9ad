"""A weather station that measures in the units of its country."""

from typing import TypedDict


class Position(TypedDict):
    latitude: float
    longitude: float


class Weather(TypedDict):
    temperature_f: float
    wind_mph: float
    visibility_miles: float


class Day(TypedDict):
    date: str
    max_c: float
    min_c: float


class Days(TypedDict):
    days: list[Day]


def observe(position: Position) -> Weather:
    """What is measured now: degrees Fahrenheit, miles per hour, statute miles."""
    warm = position["latitude"] < 45
    return {
        "temperature_f": 86.0 if warm else 41.0,
        "wind_mph": 10.0,
        "visibility_miles": 5.0,
    }


def daily(place: str, count: int) -> Days:
    """Forecast by day, today first: highest and lowest temperature in Celsius."""
    return {
        "days": [
            {"date": f"2026-07-{day + 1:02}", "max_c": 30.5 + day, "min_c": 18.0}
            for day in range(count)
        ]
    }
