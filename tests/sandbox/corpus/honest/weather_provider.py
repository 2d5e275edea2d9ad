# kind: generator half: try/finally, while/else, aggregated capability answers
"""Provider half: polls a slow forecast job and combines it with station data."""

from __future__ import annotations

import json
import logging
from statistics import mean
from typing import Any, Generator, Literal, TypedDict

logger = logging.getLogger(__name__)

MAX_POLLS = 3
Unit = Literal["celsius", "fahrenheit"]


class Forecast(TypedDict):
    day: str
    high: float
    low: float


class ForecastUnavailable(RuntimeError):
    def __init__(self, *, polls: int) -> None:
        super().__init__(f"no forecast after {polls} poll(s)")


def _convert(value: float, unit: Unit) -> float:
    return round(value if unit == "celsius" else value * 9 / 5 + 32, 1)


def _poll(job: str) -> Generator[Any, Any, list[Forecast]]:
    polls = 0
    while polls < MAX_POLLS:
        polls += 1
        state = yield call("forecast_status", {"job": job, "poll": polls})
        logger.debug("job %s: %r", job, state)
        match state:
            case {"done": True, "days": list(days)}:
                break
            case {"done": False}:
                continue
            case {"error": str(reason)}:
                raise ForecastUnavailable(polls=polls) from ValueError(reason)
    else:
        raise ForecastUnavailable(polls=polls)
    return days


def handle_request(data: bytes) -> Generator[Any, Any, bytes]:
    request = json.loads(data)
    unit: Unit = request.get("unit", "celsius")
    job = yield call("start_forecast", {"city": request["city"]})
    released = False
    try:
        days = yield from _poll(job)
        stations = yield call("stations", {"city": request["city"]})
        now = [s["temperature"] for s in stations if s.get("temperature") is not None]
    finally:
        released = yield call("release", {"job": job})
    forecast = {
        day["day"]: {key: _convert(day[key], unit) for key in ("high", "low")} for day in days
    }
    return json.dumps(
        {
            "city": request["city"],
            "now": _convert(mean(now), unit) if now else None,
            "forecast": forecast,
            "warmest": max(days, key=lambda d: d["high"])["day"] if days else None,
            "released": released,
        }
    ).encode()
