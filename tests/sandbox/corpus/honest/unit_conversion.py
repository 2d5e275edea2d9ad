# kind: unit conversion with tables and formulas
"""Converts quantities between the units the two agents use."""

import math
import re
from functools import partial
from typing import Callable

_TO_BASE: dict[str, tuple[str, float]] = {
    "m": ("length", 1.0),
    "km": ("length", 1_000.0),
    "mi": ("length", 1_609.344),
    "ft": ("length", 0.3048),
    "g": ("mass", 0.001),
    "kg": ("mass", 1.0),
    "lb": ("mass", 0.45359237),
    "l": ("volume", 1.0),
    "gal": ("volume", 3.785411784),
}


def _linear(scale: float, offset: float, value: float) -> float:
    return value * scale + offset


_TEMPERATURE: dict[tuple[str, str], Callable[[float], float]] = {
    ("C", "F"): partial(_linear, 1.8, 32),
    ("F", "C"): lambda f: (f - 32) / 1.8,
    ("C", "K"): partial(_linear, 1, 273.15),
}


class UnitError(LookupError):
    pass


def convert(value: float, source: str, target: str, digits: int = 6) -> float:
    if source == target:
        return float(value)
    if (formula := _TEMPERATURE.get((source, target))) is not None:
        return round(formula(value), digits)
    try:
        kind, factor = _TO_BASE[source]
        other_kind, other_factor = _TO_BASE[target]
    except KeyError as exc:
        raise UnitError(f"unknown unit {exc.args[0]}") from None
    if kind != other_kind:
        raise UnitError(f"{source} is {kind}, {target} is {other_kind}")
    return round(value * factor / other_factor, digits)


def parse_quantity(text: str) -> dict:
    if not (m := re.fullmatch(r"\s*([-+]?\d+(?:[.,]\d+)?)\s*([A-Za-z]+)\s*", text)):
        raise UnitError(f"not a quantity: {text!r}")
    number = float(m[1].replace(",", "."))
    return {"value": number, "unit": m.group(2)}


def human_size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    exponent = min(int(math.log(size, 1024)), 4)
    return f"{size / 1024 ** exponent:.1f} {'KMGT'[exponent - 1]}iB"
