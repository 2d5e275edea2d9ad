"""The program beside the sensors: it knows neither packed bytes nor anpd."""

from __future__ import annotations

from typing import Literal, TypedDict

Unit = Literal["C", "F", "K"]


class Reading(TypedDict):
    """What a sensor shows."""

    value: float
    unit: Unit
    raw: int


class SensorNotFoundError(LookupError):
    """There is no such sensor."""

    code = 404

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # Peers read this; the words of other exceptions stay in the log.
        self.caller_message = message


RAW: dict[str, int] = {"roof": -48, "boiler": 1184}
"Counts of the converters; one is a sixteenth of a degree Celsius."


def read(sensor: str, unit: Unit) -> Reading:
    """Read a temperature sensor in a unit."""
    raw = RAW.get(sensor)
    if raw is None:
        raise SensorNotFoundError(f"no sensor {sensor}")
    celsius = raw / 16
    values = {"C": celsius, "F": celsius * 9 / 5 + 32, "K": celsius + 273.15}
    return {"value": values[unit], "unit": unit, "raw": raw}
