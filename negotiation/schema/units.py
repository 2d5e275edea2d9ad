"""Units of numbers, as far as names, descriptions and words state them.

Only whole names and symbols of `unit_names` count. Two units are equal if their words
mean the same; the sizes of others come from the library `pint`, which is loaded when
the first two units differ. Factors and offsets are exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from math import lcm
from typing import Any, Final

from negotiation.late_patterns import late_pattern
from negotiation.need import Schema
from negotiation.schema.plan import SAME_SIZE, Scale, values_of
from negotiation.schema.unit_names import (
    CURRENCIES,
    DEFINED,
    SUFFIXES,
    meanings_by_name,
    meanings_by_symbol,
)
from negotiation.schema.values import alternatives, types_of
from negotiation.schema.variants import Path

NUMBERS: Final = frozenset({"integer", "number"})
ROUNDED: Final = 0.51
"Largest difference that rounding to a whole number explains."

MAX_DEPTH: Final = 6
MAX_TEXT: Final = 4_000
"Longest part of a text that is searched for units, in characters."

MAX_WORDS: Final = 4
"Largest number of words of which one name of a unit consists."

WORD: Final = late_pattern(r"[^\W\d_²³]+|[°℃℉€$£¥″]+[A-Za-z]?")
NAME_WORD: Final = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
BETWEEN: Final = late_pattern(r"[ _-]")
OVER: Final = late_pattern(r"(?:\s+per\s+|\s?/\s?|_per_)(\d{1,6}\s?)?")
TIMES: Final = late_pattern(r"(?i:(sq|square)|cu|cubic)\.?[ _]")
POWER: Final = late_pattern(r"\^?([23])(?![\w.])|([²³])|\s(squared|cubed)\b")
DEGREES: Final = late_pattern(r"(?i:degrees?|deg)[ _]|°\s?(?=[A-Z]\w)")

STATED: Final = late_pattern(
    r"\b(?:[Ii]n|as)\s+(?:(?:whole|full)\s+)?|(?<!\w)[(\[（]\s*(?:in\s+)?|[,:;]\s+|\A\s*"
    r"|\b[Nn]umber of\s+"
)
"The words and signs behind which a description may state a unit."

REFERENCE: Final = late_pattern(
    r"(?i:\d|\b(?:the|an?|last|next|past|every|each|this|that|one|two|few|some|per)"
    r"|/)\s*\Z"
)
"Words before a unit in which it only tells a time or an amount, such as `last hour`."

LONE: Final = late_pattern(
    r"(?i)(?:second|minute|hour|day|week|month|year|degree|stone|foot|cup|mole)"
)
"Words that are no unit on their own outside brackets, as in `second place`."

ASKED: Final = late_pattern(
    r"\b(in|as)\s+(?:(?:whole|full)\s+)?(?=\S)|(?=°\s?[CF]\b|摄氏|华氏)|以(?=\S+?为单位)"
)
"The words behind which a requirement asks for a unit, or the place of its sign."

RATIO: Final = late_pattern(r"(?<![\w.-])([^\W\d_]+)\s+per\s+(?=[^\W\d_])")
ANY_WORD: Final = late_pattern(r"[^\W\d_][\w'-]*")
BELOW: Final = late_pattern(r"\s+per\s+([^\W\d_]+)")
SIGN: Final = late_pattern(r"摄氏度?|华氏度?|\w+?(?=为单位)")

COUNTED: Final = late_pattern(
    r"(?i)(?:^|_|(?<=[a-z])(?=[A-Z]))(ids?|count|index|page|ratio|percent|percentage|"
    r"share|rank|number|code)$|^(?:id|count|index|page|ratio)_"
)
"Names of ids, counts and ratios, which have no unit."


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as words state it."""

    meanings: tuple[str, ...]
    "Expressions of the library; several where the word has several sizes."

    said: str = field(compare=False)
    "The words."


def unit_at(text: str, at: int = 0) -> tuple[Unit, int] | None:
    """Return the unit whose words begin at a place of a text, and where they end."""
    found = _factor(text, at)
    if found is None:
        return None
    meanings, end = found
    while (link := OVER.match(text, end)) is not None:
        below = _factor(text, link.end())
        if below is None:
            break
        times = f"{link[1].strip()}*" if link[1] else ""
        meanings = tuple(
            f"{one}/({times}{other})" for one, other in product(meanings, below[0])
        )
        end = below[1]
    return Unit(meanings, text[at:end].strip()), end


def _factor(text: str, at: int) -> tuple[tuple[str, ...], int] | None:
    """Return the meanings of one unit, perhaps with its power, and where it ends."""
    head = TIMES.match(text, at)
    start = at if head is None else head.end()
    degrees = DEGREES.match(text, start)
    found = None if degrees is None else _named(text, degrees.end())
    found = found or _named(text, start)
    if found is None:
        return None
    meanings, end = found
    power = "" if head is None else ("2" if head[1] else "3")
    if not power and (after := POWER.match(text, end)) is not None:
        power = "2" if set("2²") & set(after[0]) or after[3] == "squared" else "3"
        end = after.end()
    if power:
        meanings = tuple(f"({one})**{power}" for one in meanings)
    return meanings, end


def _named(text: str, at: int) -> tuple[tuple[str, ...], int] | None:
    """Return the meanings of the longest name that begins at a place."""
    words: list[str] = []
    ends: list[int] = []
    place = at
    while len(words) < MAX_WORDS and (match := WORD.match(text, place)) is not None:
        words.append(match[0])
        ends.append(match.end())
        if BETWEEN.match(text, match.end()) is None:
            break
        place = match.end() + 1
    for number in range(len(words), 0, -1):
        if meanings := _meanings(words[:number]):
            return meanings, ends[number - 1]
    return None


def _meanings(words: list[str]) -> tuple[str, ...]:
    """Return the units that words mean together; nothing where they mean none."""
    if len(words) == 1 and (found := meanings_by_symbol().get(words[0])):
        return found
    name = "_".join(words).casefold()
    names = meanings_by_name()
    for one in (name, name.removesuffix("s"), name.removesuffix("es")):
        if one in names and (len(one) > 1):
            return names[one]
    head, under, rest = name.partition("_")
    if under and head.endswith("s"):
        # As in "pounds per square inch" and "millimetres of mercury".
        return names.get(f"{head[:-1]}_{rest}", ())
    return ()


def names_unit(word: str) -> bool:
    """Return whether a word, in small letters, is the name or the symbol of a unit."""
    return bool(_meanings([word])) or word in SUFFIXES


def unit_of(path: Path, schema: Schema) -> Unit | None:
    """Return the unit that the schema of a number states; None if none, or several.

    Args:
        path: Its place; the last step is its name. Ids, counts and ratios have no unit.
    """
    name = path[-1] if path else ""
    if COUNTED.search(name):
        return None
    if (found := _unit_in_name(name)) is not None or not isinstance(schema, dict):
        return found
    for keyword in ("title", "description"):
        about = schema.get(keyword, "")
        units = set(_stated(about[:MAX_TEXT])) if isinstance(about, str) else set()
        if units:
            return units.pop() if len(units) == 1 else None
    return None


def _unit_in_name(name: str) -> Unit | None:
    words = [one.lower() for one in NAME_WORD.findall(name)]
    if len(words) > 1 and (symbol := SUFFIXES.get(words[-1])):
        return Unit(meanings_by_symbol()[symbol], words[-1])
    for number in range(len(words)):
        text = "_".join(words[number:])
        unit, end = unit_at(text) or (None, 0)
        # A single word stands last or is a plural: `delay_minutes`, `minutes_late`,
        # but neither `second_place` nor `hour_angle`.
        last = end == len(text) or words[number].endswith("s")
        if unit is not None and len(unit.said) > 1 and last:
            return unit
    return None


def _stated(text: str) -> Iterator[Unit]:
    """Yield the units that a description states, also as its last words."""
    starts = {place.end(): place[0].strip() for place in STATED.finditer(text)}
    for match in WORD.finditer(text):
        at = match.start()
        found = unit_at(text, at)
        if found is None or REFERENCE.search(text, 0, at):
            continue
        unit, end = found
        sign = starts.get(at)
        last = not text[end:].strip(" .)]）")
        if sign is None:
            # "Temperature of the air, degrees Celsius" and "Price EUR" end with it.
            if last and len(unit.said) > 1 and not LONE.fullmatch(unit.said):
                yield unit
        elif sign[:1] in ("(", "[", "（") or (
            not LONE.fullmatch(unit.said)
            and (len(unit.said) > 1 or sign[:2] in ("in", "as"))
        ):
            yield unit


def asked_units(text: str) -> list[tuple[str, Unit | None]]:
    """Return what a text asks for "in X" or as "X per Y", with the unit that X is.

    Words that are no unit have None; they may be anything, such as a city.
    """
    asked: list[tuple[str, Unit | None]] = []
    text = text[:MAX_TEXT]
    for match in ASKED.finditer(text):
        sign = SIGN.match(text, match.end())
        found = unit_at(sign[0]) if sign else unit_at(text, match.end())
        word = sign or ANY_WORD.match(text, match.end())
        if found is not None and not LONE.fullmatch(found[0].said):
            asked.append((found[0].said, found[0]))
            below = None if sign else BELOW.match(text, found[1])
            asked += [] if below is None else [(below[1], None)]
        elif word is not None and match[1] != "as":
            asked.append((word[0], None))
    for match in RATIO.finditer(text):
        if (found := unit_at(text, match.start())) and found[1] > match.end():
            asked.append((found[0].said, found[0]))
            continue
        below = ANY_WORD.match(text, match.end())
        words = match[1], below[0] if below else ""
        asked += [(one, None) for one in words if unit_at(one) is None]
    return [*dict.fromkeys(one for one in asked if one[0])]


def stated_units(schema: Schema, path: Path = ()) -> Iterator[tuple[Path, Unit]]:
    """Yield the numbers and listed words of a schema that state a unit."""
    if len(path) > MAX_DEPTH:
        return
    about = words_about(schema)
    for branch in alternatives(schema):
        if not isinstance(branch, dict):
            continue
        one = {**about, **branch}
        if types_of(one) & NUMBERS and (unit := unit_of(path, one)) is not None:
            yield path, unit
        for value in values_of(one)[:64]:
            listed = unit_at(value) if isinstance(value, str) else None
            if listed is not None and listed[1] == len(str(value)):
                yield path, listed[0]
        for name, inner in one.get("properties", {}).items():
            yield from stated_units(inner, (*path, name))
        if "items" in one:
            yield from stated_units(one["items"], path)


def words_about(schema: Schema) -> dict[str, Any]:
    """Return the words about a value, which stand beside the branches of a union."""
    if not isinstance(schema, dict):
        return {}
    return {name: schema[name] for name in ("title", "description") if name in schema}


def has_numbers(schema: Schema, depth: int = 0) -> bool:
    """Return whether a value of a schema may be or hold a number."""
    for one in alternatives(schema):
        if one is False or depth > MAX_DEPTH:
            continue
        if not isinstance(one, dict) or types_of(one) & NUMBERS:
            return True
        parts = [*one.get("properties", {}).values()]
        parts += [one["items"]] if "items" in one else []
        if any(has_numbers(part, depth + 1) for part in parts):
            return True
        if not parts and types_of(one) & {"object", "array"}:
            return True
    return False


def is_near(value: float, expected: float) -> bool:
    """Return whether two numbers are equal up to rounding."""
    whole = isinstance(value, int) or value == round(value)
    return abs(value - expected) <= max(ROUNDED if whole else 0.06, abs(expected) / 200)


def scale_between(source: Unit, target: Unit) -> Scale | str:
    """Return the exact way from one unit to another, or the reason why there is none.

    A word with several sizes has a way only where one of them fits the other side.
    """
    if source == target:
        return SAME_SIZE
    ways = ways_between(source, target)
    if not ways:
        return f"{source.said} and {target.said} do not measure the same thing"
    unclear = max((source, target), key=lambda one: len(one.meanings))
    # One of several currencies is no better than another, as dollars and cents show.
    is_money = all(one[:3] in CURRENCIES for one in unclear.meanings)
    if len(ways) > 1 or (is_money and len(unclear.meanings) > 1):
        sizes = ", ".join(one.replace("_", " ") for one in unclear.meanings)
        return f"{unclear.said} may be {sizes}; the words have to say which"
    return ways[0]


def ways_between(source: Unit, target: Unit) -> list[Scale]:
    """Return the ways between all meanings of two units."""
    pairs = product(source.meanings, target.meanings)
    found = (SAME_SIZE if one == other else _way(one, other) for one, other in pairs)
    return [one for one in found if one is not None]


def same_kind(one: Unit, other: Unit) -> bool:
    """Return whether two units measure the same thing, in some meaning of each."""
    return one == other or bool(ways_between(one, other))


@lru_cache(1024)
def _way(source: str, target: str) -> Scale | None:
    """Return the way between two meanings; None if they measure different things."""
    (dimension, factor, offset), (other, by, less) = _size(source), _size(target)
    if dimension != other:
        return None
    times, plus = factor / by, (offset - less) / by
    over = lcm(times.denominator, plus.denominator)
    return Scale(int(times * over), int(plus * over), over)


@lru_cache(1024)
def _size(meaning: str) -> tuple[tuple[Any, ...], Fraction, Fraction]:
    """Return the dimension of a meaning, and factor and offset to its own unit."""
    library = _library()
    if "/" in meaning or "*" in meaning:
        # A difference of temperatures: no degree of a scale can be multiplied.
        meaning = meaning.replace("degree_C", "delta_degree_C")
        meaning = meaning.replace("degree_F", "delta_degree_F")
    quantity = library.parse_expression(meaning)
    zero, one = (
        library.Quantity(Fraction(value), quantity.units).to_root_units()
        for value in (0, 1)
    )
    factor = Fraction(one.magnitude - zero.magnitude) * Fraction(quantity.magnitude)
    dimension = tuple(sorted(one.dimensionality.items()))
    return dimension, factor, Fraction(zero.magnitude)


@cache
def _library() -> Any:
    """Return the library's units; it takes half a second to load."""
    import pint

    library: Any = pint.UnitRegistry(non_int_type=Fraction)
    for one in DEFINED:
        library.define(one)
    return library
