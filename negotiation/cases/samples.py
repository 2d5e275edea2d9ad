"""Values for test cases: samples in which all places of one type differ.

With equal values no case would notice that two fields are swapped, or that one is a
constant (DESIGN.md, Test cases).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Final

from negotiation.errors import JsonError
from negotiation.mind import Validator
from negotiation.need import Schema
from negotiation.schema.samples import SampleKind, make_samples
from negotiation.schema.texts import text_of
from negotiation.schema.values import alternatives, contradiction, json_type
from negotiation.strict_json import Json, canonical_json

TITLES: Final = {
    SampleKind.GIVEN: "the data at hand",
    SampleKind.FULL: "everything",
    SampleKind.MINIMAL: "as little as is allowed",
    SampleKind.LOW: "at the lower limits",
    SampleKind.HIGH: "at the upper limits",
}
"Description of each kind of value, for the titles of cases."

ODD: Final = '<&"\\\u00e9'
"Characters that XML, JSON or binary encodings treat specially."

EXTRA: Final = "extra1"
"Name of an additional property, which no schema lists."

ORDER: Final = (SampleKind.FULL, SampleKind.MINIMAL, SampleKind.LOW, SampleKind.HIGH)


async def telling_values(
    schema: Schema, given: Sequence[Json], validator: Validator
) -> list[tuple[SampleKind, Json]]:
    """Return values of `schema`: given data first, then the most telling ones.

    Args:
        given: Data at hand.
        validator: Checks the values; invalid ones are left out.
    """
    made = make_samples(schema, ()).values
    telling = Telling()
    candidates: list[tuple[SampleKind, Json]] = [
        (SampleKind.GIVEN, value) for value in given
    ]
    for kind in ORDER:
        for sample in made:
            if sample.kind is not kind:
                continue
            if kind is SampleKind.FULL:
                candidates.append(
                    (kind, telling.value(schema, sample.value, extra=True))
                )
            elif kind is SampleKind.MINIMAL:
                candidates.append((kind, telling.value(schema, sample.value)))
    # Limit values stay as they are; the unchanged others are the last resort.
    for kind in (SampleKind.LOW, SampleKind.HIGH, SampleKind.FULL, SampleKind.MINIMAL):
        candidates += [(kind, one.value) for one in made if one.kind is kind]
    seen: set[bytes] = set()
    shapes: list[Json] = []
    found: list[tuple[SampleKind, Json]] = []
    for kind, value in candidates:
        try:
            key = canonical_json(value)
        except JsonError:
            continue
        shape = _shape(value)
        # A minimal value with all properties shows nothing new.
        if key in seen or (kind is SampleKind.MINIMAL and shape in shapes):
            continue
        if await validator.validate(schema, value):
            continue
        seen.add(key)
        shapes.append(shape)
        found.append((kind, value))
    return found


class Telling:
    """Gives each place of a value different content, as far as the schema allows.

    It counts over all its values, so that places of two values differ too.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._flags = cycle((True, False))
        self._listed: dict[bytes, Iterator[int]] = {}

    def value(self, schema: Schema, value: Json, *, extra: bool = False) -> Json:
        """Return `value` with different content.

        Args:
            extra: True adds unusual content where the schema allows it: additional
                properties, special characters, and small items beside full ones.
        """
        changed = self._changed(schema, value, extra)
        return value if contradiction(schema, changed) else changed

    def _changed(self, schema: Schema, value: Json, extra: bool) -> Json:
        if isinstance(schema, dict):
            if "const" in schema:
                return value
            if "enum" in schema:
                return self._one_of(schema["enum"], value)
            for branch in alternatives(schema):
                if branch is not schema and contradiction(branch, value) is None:
                    return self._changed(branch, value, extra)
        match value:
            case None:
                return None
            case bool():
                return next(self._flags)
            case dict():
                return self._object(schema, value, extra)
            case list():
                return self._array(schema, value, extra)
            case _:
                return _leaf(schema, value, next(self._numbers), odd=extra)

    def _object(self, schema: Schema, value: dict[str, Json], extra: bool) -> Json:
        result = {
            name: self.value(_property(schema, name), item, extra=extra)
            for name, item in value.items()
        }
        more = schema.get("additionalProperties") if isinstance(schema, dict) else None
        if not extra or not more or EXTRA in result:
            return result
        for sample in make_samples(more).values:
            added = self.value(more, sample.value)
            if contradiction(schema, {**result, EXTRA: added}) is None:
                return {**result, EXTRA: added}
        return result

    def _array(self, schema: Schema, values: list[Json], extra: bool) -> Json:
        """Return two items where there is one, so that their order can be checked."""
        first = schema.get("prefixItems", []) if isinstance(schema, dict) else []
        rest = schema.get("items", True) if isinstance(schema, dict) else True
        if len(values) == 1 and not first:
            second = next(iter(_smallest(rest)), values[0]) if extra else values[0]
            two = [self.value(rest, values[0], extra=extra), self.value(rest, second)]
            if contradiction(schema, two) is None:
                return two
        return [
            self.value(first[place] if place < len(first) else rest, item, extra=extra)
            for place, item in enumerate(values)
        ]

    def _one_of(self, values: list[Json], value: Json) -> Json:
        """Return another listed value of the same type in each place."""
        kind = json_type(value)
        alike = [one for one in values if json_type(one) == kind]
        if not alike:
            return value
        numbers = self._listed.setdefault(canonical_json(values), count())
        return alike[next(numbers) % len(alike)]


def _smallest(schema: Schema) -> list[Json]:
    """Return sample values without any optional part."""
    made = make_samples(schema).values
    return [sample.value for sample in made if sample.kind is SampleKind.MINIMAL]


def _leaf(schema: Schema, value: Json, number: int, *, odd: bool) -> Json:
    """Return a different text or number for a place.

    Args:
        odd: True for a text with characters that encodings treat specially.
    """
    keywords = schema if isinstance(schema, dict) else {}
    candidates: list[Json]
    match value:
        case str() if keywords.keys() & {"format", "pattern"}:
            made = text_of(keywords, number)
            candidates = [] if made is None else [made]
        case str():
            text = f"text {number}"
            least = keywords.get("minLength", 0)
            least = min(int(least), 4_096) if isinstance(least, int | float) else 0
            candidates = [text, text.ljust(least, "."), str(number), _letter(number)]
            if odd:
                candidates.insert(0, f"{text} {ODD}")
        case int():
            step = keywords.get("multipleOf", 1)
            scale = int(step) if isinstance(step, int) and step else 1
            candidates = [
                *(10 + number, value + number, value - number, number),
                *(scale * (10 + number), value + scale * number),
            ]
        case float():
            candidates = [10.5 + number, value + number / 8, value - number / 8]
        case _:
            candidates = []
    for candidate in candidates:
        if contradiction(schema, candidate) is None:
            return candidate
    return value


def _letter(number: int) -> str:
    """Return a single letter, for places without room for more."""
    return chr(ord("a") + number % 26)


def _property(schema: Schema, name: str) -> Schema:
    if not isinstance(schema, dict):
        return True
    rest: Schema = schema.get("additionalProperties", True)
    found: Schema = schema.get("properties", {}).get(name, rest)
    return found


def _shape(value: Json) -> Json:
    """Return the names and types in a value, without its content."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return json_type(value)
