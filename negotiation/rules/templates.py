"""Needs in words as templates: what differs from call to call becomes an argument.

"temperature in Oslo" is the template "temperature in {city}" with the argument `city`.
A model marks the values of the first sentence. A later sentence is read by a remembered
template alone where only one reading is possible and each value looks like those that
were marked before; every other sentence is left to the model. So a word that changes
the meaning, such as "yesterday" or "not", is never taken for a part of a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from negotiation.late_patterns import late_pattern
from negotiation.mind import Demand
from negotiation.rules.formats import OTHER_FORMAT, insisted_format
from negotiation.rules.names import AGAINST, CHANGES, COMMON, SENTENCE_END, content
from negotiation.schema.units import Unit, asked_units, names_unit
from negotiation.strict_json import Json, canonical_json

MAX_TEXT: Final = 400
"Longest requirement that is read as a template, in characters."

MAX_VALUES: Final = 6
"Largest number of values in one requirement."

MAX_VALUE: Final = 120
"Longest value in words, in characters."

NAME: Final = late_pattern(r"[A-Za-z]\w{0,31}", re.ASCII)
SLOT: Final = late_pattern(r"\{([A-Za-z]\w{0,31})\}", re.ASCII)
QUOTES: Final = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "`": "`"}
QUOTED: Final = late_pattern(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|「([^」]+)」|`([^`]+)`')
INTEGER: Final = late_pattern(r"0|[1-9][0-9]{0,14}")
TOKEN: Final = late_pattern(r"[^\s,;:!?()\[\]\"“”«»「」`]+")


def listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "weekday": listed("monday tuesday wednesday thursday friday saturday sunday"),
    "month": listed(
        "january february march april may june july august september october november "
        "december"
    ),
    "language": listed(
        "english german french spanish italian portuguese dutch danish swedish finnish "
        "norwegian polish russian turkish arabic hindi japanese korean chinese"
    ),
    "format": listed("json xml csv tsv yaml html pdf text markdown"),
}
"Words that a value may be only where such words were marked before."

SPEAKING: Final = listed(
    "yesterday today tomorrow tonight now then later earlier before after since until "
    "last next previous current currently daily hourly weekly monthly yearly spring "
    "summer autumn winter total general average mean maximum minimum highest lowest "
    "most least each every everywhere anywhere here there both other others another "
    "same only also again"
)
"Words that say which values are wanted, and are never values themselves."

Mark = tuple[str, str]
"A value as it stands in a requirement, and its name."


@dataclass(frozen=True, slots=True)
class Template:
    """A requirement whose values are named places in braces."""

    text: str

    shapes: Mapping[str, tuple[str, ...]]
    "The shapes of the values that were marked at each place."

    @property
    def parts(self) -> list[str]:
        """The words between the places, the first and the last one included."""
        return SLOT.split(self.text)[::2]

    @property
    def names(self) -> list[str]:
        """The names of the places, in their order."""
        return SLOT.findall(self.text)


def is_wordy(demand: Demand) -> bool:
    """Return whether a need consists of words that may hold values.

    A caller's input schema names the arguments already, and so do braces.
    """
    text = demand.need.requirement.strip()
    return (
        demand.need.is_sentence
        and isinstance(demand.arguments, dict)
        and len(text) <= MAX_TEXT
        and text.isprintable()
        and not set("{}") & set(text)
    )


def places_of(requirement: str) -> frozenset[str]:
    """Return the names of the arguments whose places stand in a requirement."""
    return frozenset(SLOT.findall(requirement))


def values_in_words(text: str, known: str = "") -> list[str]:
    """Return what looks like values in a requirement: quotations, numbers, names.

    Args:
        known: A text whose words are none, such as the name of a capability.
    """
    found = [next(filter(None, groups)) for groups in QUOTED.findall(text)]
    told = content(known)
    for sentence in SENTENCE_END.split(QUOTED.sub(" ", text)):
        for number, match in enumerate(TOKEN.finditer(sentence)):
            token = match[0].strip(".'")
            words = content(token) | content(token.casefold())
            if not _is_telling(token, first=number == 0) or words & told:
                continue
            found.append(token)
    return found


def _is_telling(token: str, *, first: bool) -> bool:
    """Return whether a word is a number, a code or a name, and no unit or format."""
    pattern = _pattern(token)
    if INTEGER.fullmatch(token) or ("9" in pattern and "A" in pattern):
        return True
    named = "Aa" in pattern and not first
    return named and _class_of(token.casefold()) not in {"unit", "format"}


def templated(
    demand: Demand, marks: Sequence[Mark], known: Sequence[Template]
) -> tuple[Template, Demand] | None:
    """Return a need as a template with its values as arguments; None if it has none.

    Args:
        marks: The values that a model found. One that does not stand in the words
            exactly once, or asks for a unit or a format, is ignored.
        known: Templates of before; one with the same words gives the names.
    """
    text = demand.need.requirement.strip()
    places = _places(text, marks)
    if not places or not is_wordy(demand):
        return None
    parts, values, wanted, end = [], [], [], 0
    for start, stop, name in places:
        parts.append(text[end:start])
        values.append(text[start:stop])
        wanted.append(name)
        end = stop
    parts.append(text[end:])
    if not all(parts[1:-1]) or not content(" ".join(parts)):
        return None
    same = next((one for one in known if one.parts == parts), None)
    names = _named(wanted, values, demand) if same is None else same.names
    made = "".join(
        f"{part}{{{name}}}" for part, name in zip(parts, names, strict=False)
    )
    template = Template(made + parts[-1], {} if same is None else same.shapes)
    if not _keeps_claims(text, template.text):
        return None
    taken = _with_values(template, values, demand)
    if taken is None:
        return None
    shapes = dict(template.shapes)
    for name, shape in zip(names, _shapes(parts, values), strict=True):
        before = shapes.get(name, ())
        shapes[name] = before if shape in before or not shape else (*before, shape)
    return replace(template, shapes=shapes), taken


def filled(template: Template, demand: Demand) -> Demand | None:
    """Return a need as a template with the values of its words, or None.

    There is exactly one way to read the words so, each value has a shape that was
    marked before at its place, and none contradicts the data.
    """
    if not is_wordy(demand):
        return None
    parts, names = template.parts, template.names
    readings = _readings(demand.need.requirement.strip(), parts)
    if len(readings) != 1:
        return None
    (values,) = readings
    shapes = _shapes(parts, values)
    for name, shape in zip(names, shapes, strict=True):
        if not shape or shape not in template.shapes.get(name, ()):
            return None
    return _with_values(template, values, demand)


def read_by(templates: Sequence[Template], demand: Demand) -> Demand | None:
    """Return a need as read by the only template that fits it; None if not just one."""
    found = {
        canonical_json([one.need.requirement, one.arguments]): one
        for template in templates
        if (one := filled(template, demand)) is not None
    }
    return next(iter(found.values())) if len(found) == 1 else None


# Places.


def _places(text: str, marks: Sequence[Mark]) -> list[tuple[int, int, str]]:
    """Return beginning, end and name of each usable mark, in the order of the text."""
    found: list[tuple[int, int, str]] = []
    for said, name in marks[:MAX_VALUES]:
        value = said.strip()
        quoted = len(value) > 2 and QUOTES.get(value[0]) == value[-1]
        value = value[1:-1].strip() if quoted else value
        starts = _occurrences(text, value)
        if len(starts) != 1:
            continue
        start, end = starts[0], starts[0] + len(value)
        quoted |= bool(text[:start]) and QUOTES.get(text[start - 1]) == text[end:][:1]
        if _is_value(value, quoted=quoted):
            found.append((start, end, name))
    found.sort()
    overlaps = any(one[1] > other[0] for one, other in pairwise(found))
    return [] if overlaps else found


def _occurrences(text: str, value: str) -> list[int]:
    """Return where a value stands in a text, and not inside a longer word."""
    found = []
    at = text.find(value) if value else -1
    while at >= 0:
        end = at + len(value)
        if not (
            _joined(text[at - 1 : at], value[0]) or _joined(value[-1], text[end:][:1])
        ):
            found.append(at)
        at = text.find(value, at + 1)
    return found


def _joined(one: str, other: str) -> bool:
    """Return whether two characters side by side belong to one word."""
    return bool(one and other) and all(
        char.isdigit() or _cased(char) for char in (one, other)
    )


def _cased(char: str) -> bool:
    return char.isupper() or char.islower()


def _is_value(value: str, *, quoted: bool) -> bool:
    """Return whether a marked text may be a value, and not a word of the request."""
    if quoted:
        return len(value) <= MAX_VALUE
    tokens = [token.strip(".'").casefold() for token in TOKEN.findall(value)]
    return (
        len(value) <= MAX_VALUE
        and any(char.isalnum() for char in value)
        and not any(names_unit(token) or token in SPEAKING for token in tokens)
        and not AGAINST.fullmatch(value)
    )


def _keeps_claims(text: str, template: str) -> bool:
    """Return whether a template still asks for the units and formats of the words."""
    return (
        _units(text) == _units(template)
        and insisted_format(text) == insisted_format(template)
        and len(OTHER_FORMAT.findall(text)) == len(OTHER_FORMAT.findall(template))
    )


def _units(text: str) -> set[Unit]:
    return {unit for _, unit in asked_units(text) if unit is not None}


def _named(wanted: Sequence[str], values: Sequence[str], demand: Demand) -> list[str]:
    """Return the names of the arguments; data that has the value already names it."""
    given = demand.arguments
    assert isinstance(given, dict)
    names: list[str] = []
    for name, value in zip(wanted, values, strict=True):
        same = [
            one
            for one, told in given.items()
            if NAME.fullmatch(one) and _equal(told, _typed(value)) and one not in names
        ]
        if len(same) == 1:
            names.append(same[0])
            continue
        base = name if NAME.fullmatch(name) else "value"
        number, free = 1, base
        while free in names or free in given:
            number += 1
            free = f"{base[:28]}_{number}"
        names.append(free)
    return names


# Values.


def _with_values(
    template: Template, values: Sequence[str], demand: Demand
) -> Demand | None:
    assert isinstance(demand.arguments, dict)
    quoted = _quoted(template.parts)
    arguments = dict(demand.arguments)
    for name, value, is_quoted in zip(template.names, values, quoted, strict=True):
        typed: Json = value if is_quoted else _typed(value)
        if name in arguments and not _equal(arguments[name], typed):
            return None
        arguments[name] = typed
    return replace(
        demand,
        need=replace(demand.need, requirement=template.text),
        arguments=arguments,
    )


def _typed(value: str) -> Json:
    return int(value) if INTEGER.fullmatch(value) else value


def _equal(given: Json, value: Json) -> bool:
    return type(given) is type(value) and given == value


def _quoted(parts: Sequence[str]) -> list[bool]:
    """Return for each place whether quotation marks stand around it."""
    return [
        bool(before and after) and QUOTES.get(before[-1]) == after[0]
        for before, after in pairwise(parts)
    ]


def _shapes(parts: Sequence[str], values: Sequence[str]) -> list[str]:
    shapes = []
    for before, value, quoted in zip(parts, values, _quoted(parts), strict=False):
        shape = shape_of(value, quoted=quoted)
        begins = not before.strip() or SENTENCE_END.search(f"{before.strip()} ")
        # At the beginning of a sentence every word has a capital letter.
        shapes.append("" if begins and shape.startswith("Aa") else shape)
    return shapes


def shape_of(value: str, *, quoted: bool = False) -> str:
    """Return the look of a value; empty where a look does not tell what it is.

    Words in small letters may mean anything, and so may text without capitals. Digits
    keep their number, letters only their case.
    """
    if len(value) > MAX_VALUE or value != value.strip() or not value.isprintable():
        return ""
    if quoted:
        around = {*QUOTES, *QUOTES.values(), "\\", "{", "}"}
        return "" if around & set(value) else "quoted"
    if INTEGER.fullmatch(value):
        return "integer"
    if AGAINST.search(value) or CHANGES.search(value):
        return ""
    return " ".join(shapes) if all(shapes := _token_shapes(value)) else ""


def _token_shapes(value: str) -> list[str]:
    found = []
    for token in value.split(" "):
        word = token.casefold().strip(".'")
        if word in SPEAKING or (word in COMMON and word != "new"):
            return [""]
        pattern = _class_of(word) or _pattern(token)
        telling = set(pattern) & set("A9@") or pattern in {"unit", *CLASSES}
        found.append(pattern if telling else "")
    return found


def _class_of(word: str) -> str:
    if names_unit(word):
        return "unit"
    return next((name for name, words in CLASSES.items() if word in words), "")


def _pattern(token: str) -> str:
    """Return a token with `A` and `a` for letters and `9` for each digit."""
    found = ""
    for char in token:
        if char.isascii() and char.isdigit():
            found += "9"
        elif _cased(char):
            one = "A" if char.isupper() else "a"
            found += "" if found.endswith(one) else one
        elif char.isalnum():
            return ""
        else:
            found += char
    return found


# Readings.


def _readings(text: str, parts: Sequence[str]) -> list[list[str]]:
    """Return at most two ways to read a text as words with values between them."""
    first, *middle, last = parts
    if not text.startswith(first) or not text.endswith(last):
        return []
    stop = len(text) - len(last)
    found: list[list[str]] = []
    dead: set[tuple[int, int]] = set()

    def read(number: int, at: int, values: list[str]) -> None:
        before = len(found)
        if number == len(middle):
            if at < stop and text[at:stop].strip():
                found.append([*values, text[at:stop]])
            return
        part = middle[number]
        place = text.find(part, at + 1, stop)
        while place >= 0 and len(found) < 2:
            after = place + len(part)
            if (number + 1, after) not in dead and text[at:place].strip():
                read(number + 1, after, [*values, text[at:place]])
            place = text.find(part, place + 1, stop)
        if len(found) == before:
            dead.add((number, at))

    read(0, len(first), [])
    return found
