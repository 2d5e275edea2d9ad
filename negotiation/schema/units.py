"""Units of numbers, as far as their names or descriptions say them in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from negotiation.late_patterns import late_pattern
from negotiation.need import Schema
from negotiation.schema.values import types_of
from negotiation.schema.variants import Path

Unit = tuple[str, float, float]
"Dimension, and factor and offset of the way to the dimension's own unit."

UNITS: Final[dict[str, Unit]] = {
    "celsius": ("temperature", 1.0, 0.0),
    "fahrenheit": ("temperature", 5 / 9, -160 / 9),
    "kelvin": ("temperature", 1.0, -273.15),
    "millimetre": ("length", 0.001, 0.0),
    "centimetre": ("length", 0.01, 0.0),
    "metre": ("length", 1.0, 0.0),
    "kilometre": ("length", 1000.0, 0.0),
    "mile": ("length", 1609.344, 0.0),
    "foot": ("length", 0.3048, 0.0),
    "gram": ("mass", 1.0, 0.0),
    "kilogram": ("mass", 1000.0, 0.0),
    "pound": ("mass", 453.59237, 0.0),
    "millisecond": ("time", 0.001, 0.0),
    "second": ("time", 1.0, 0.0),
    "minute": ("time", 60.0, 0.0),
    "hour": ("time", 3600.0, 0.0),
    "kilobyte": ("data", 1000.0, 0.0),
    "byte": ("data", 1.0, 0.0),
    "megabyte": ("data", 1e6, 0.0),
}
SHORT: Final = {
    "c": "celsius",
    "f": "fahrenheit",
    "mm": "millimetre",
    "cm": "centimetre",
    "km": "kilometre",
    "mi": "mile",
    "ft": "foot",
    "kg": "kilogram",
    "lb": "pound",
    "lbs": "pound",
    "ms": "millisecond",
    "sec": "second",
    "secs": "second",
    "kb": "kilobyte",
    "mb": "megabyte",
}
"Signs that are clear at the end of a name; a single m or s may mean anything."

ASKED: Final = late_pattern(
    r"(?:\b(?:in|as)\s+(?:degrees?\s+|whole\s+)?|°\s?)([A-Za-z]+)|(摄氏|华氏)"
)
"A unit that a text asks for, such as `in Celsius`, or the sign of one."

SIGNS: Final = {"摄氏": "celsius", "华氏": "fahrenheit"}
MAX_DEPTH: Final = 6

WORD: Final = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
PLURALS: Final = {"feet": "foot", "meter": "metre", "kilometer": "kilometre"}
ROUNDED: Final = 0.51
"Largest difference that rounding to a whole number explains."


def unit_of(path: Path, schema: Schema) -> Unit | None:
    """Return the unit of a number; None if its name and description say none, or two.

    Args:
        path: Its place; the last step is its name.
    """
    words = [one.lower() for one in WORD.findall(path[-1] if path else "")]
    if len(words) > 1 and words[-1] in SHORT:
        return UNITS[SHORT[words[-1]]]
    about = schema.get("description", "") if isinstance(schema, dict) else ""
    if isinstance(about, str):
        words += [one.lower() for one in WORD.findall(about[:500])]
    found = {name for word in words if (name := _long(word)) is not None}
    return UNITS[found.pop()] if len(found) == 1 else None


def _long(word: str) -> str | None:
    for one in (word, word.removesuffix("s")):
        name = PLURALS.get(one, one)
        name = f"{name[:-5]}metre" if name.endswith("meter") else name
        if name in UNITS:
            return name
    return None


def names_unit(word: str) -> bool:
    """Return whether a word, in small letters, is the name or the sign of a unit."""
    return word in SHORT or _long(word) is not None


def asked_units(text: str) -> dict[str, str]:
    """Return the units that a text asks for, by their dimension."""
    asked: dict[str, str] = {}
    for word, sign in ASKED.findall(text[:4_000]):
        name = SIGNS.get(sign) or _long(word.lower()) or ""
        if not name and word in {"C", "F"}:
            name = SHORT[word.lower()]
        if name:
            asked[UNITS[name][0]] = name
    return asked


def missed_unit(text: str, schema: Schema) -> str:
    """Return why values do not have a unit that `text` asks for; empty if they may.

    They may when a number of `schema` tells that unit, or none tells another one of its
    dimension.
    """
    asked = asked_units(text)
    if not asked:
        return ""
    told = dict(_told(schema, ()))
    for dimension, name in asked.items():
        others = [path for path, unit in told.items() if unit[0] == dimension]
        if others and UNITS[name] not in told.values():
            where = "/".join(others[0])
            return f"{name} is asked for, and {where} is in another unit of {dimension}"
    return ""


def _told(schema: Schema, path: Path) -> Iterator[tuple[Path, Unit]]:
    """Yield the numbers of a schema that tell a unit."""
    if not isinstance(schema, dict) or len(path) > MAX_DEPTH:
        return
    if types_of(schema) & {"integer", "number"}:
        unit = unit_of(path, schema)
        if unit is not None:
            yield path, unit
    for name, inner in schema.get("properties", {}).items():
        yield from _told(inner, (*path, name))
    if "items" in schema:
        yield from _told(schema["items"], path)


def converted(value: float, source: Unit, target: Unit) -> float:
    """Return `value` in another unit of the same dimension."""
    return (value * source[1] + source[2] - target[2]) / target[1]


def is_near(value: float, expected: float) -> bool:
    """Return whether two numbers are equal up to rounding."""
    whole = isinstance(value, int) or value == round(value)
    return abs(value - expected) <= max(ROUNDED if whole else 0.06, abs(expected) / 200)
