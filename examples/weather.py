"""A weather station that measures in degrees Celsius.

It knows nothing of anpd. To offer it to peers:

    anpd attach python examples/weather.py --expose '*'
"""

from __future__ import annotations

from typing import Annotated, TypedDict


class Weather(TypedDict):
    """The weather at one place."""

    cityName: str
    temperatureCelsius: Annotated[float, "Degrees Celsius."]
    skyCondition: str


SKIES = {"Oslo": (-3.5, "snow"), "Nairobi": (26.0, "sun"), "北京": (12.5, "clear")}


def get_weather(city_name: Annotated[str, "Such as Oslo."]) -> Weather:
    """The weather in a city now, in degrees Celsius."""
    degrees, sky = SKIES.get(city_name, (20.0, "unknown"))
    return {
        "cityName": city_name,
        "temperatureCelsius": degrees,
        "skyCondition": sky,
    }
