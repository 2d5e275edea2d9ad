"""Makes sample values of a schema, always the same, without running a pattern.

Minimal, full and boundary values come from `const`, `enum`, `default`, `examples` and
the data at hand, then from the keywords with limits. They are candidates: callers must
validate them, as keywords such as `not` are ignored here. If nothing can be made for a
schema, the result has no values and says so (DESIGN.md, Negotiation).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.texts import text_of
from negotiation.schema.values import alternatives, contradiction, types_of
from negotiation.strict_json import Json, canonical_json

MAX_VALUES: Final = 4_000
"Largest number of JSON values in all samples of one schema together."

MAX_TEXT: Final = 4_096
"Longest text made to reach a minimum length; a larger minimum gives no sample."

MAX_ITEMS: Final = 50
"Largest number of items made to reach a minimum; a larger one gives no sample."

TEXT: Final = "sample text "
FORMATS: Final[dict[str, tuple[str, str]]] = {
    "date-time": ("2024-02-29T12:30:00Z", "1999-12-31T23:59:59+02:00"),
    "date": ("2024-02-29", "1999-12-31"),
    "time": ("12:30:00Z", "23:59:59+02:00"),
    "duration": ("PT15M", "P1DT2H"),
    "email": ("someone@example.com", "a@b.example"),
    "idn-email": ("someone@example.com", "a@b.example"),
    "hostname": ("example.com", "a.example"),
    "idn-hostname": ("example.com", "a.example"),
    "ipv4": ("192.0.2.1", "198.51.100.7"),
    "ipv6": ("2001:db8::1", "::1"),
    "uri": ("https://example.com/a?b=c", "urn:example:x"),
    "uri-reference": ("/a/b", "https://example.com/"),
    "iri": ("https://example.com/", "urn:example:x"),
    "iri-reference": ("/a/b", "https://example.com/"),
    "uuid": (
        "123e4567-e89b-42d3-a456-426614174000",
        "00000000-0000-4000-8000-000000000000",
    ),
    "json-pointer": ("/a/0", ""),
    "regex": ("^a+$", "b"),
    "path": ("notes.txt", "data/a.bin"),
}
"Two values of each known format."


class SampleKind(StrEnum):
    """The purpose of a sample."""

    GIVEN = "given"
    MINIMAL = "minimal"
    FULL = "full"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value for a schema."""

    kind: SampleKind
    "The purpose for which it was made."

    value: Json


@dataclass(frozen=True, slots=True)
class Samples:
    """The sample values of a schema."""

    values: tuple[Sample, ...]
    "Different values, in the order of `SampleKind`."

    partial: bool
    "True when no value could be made for at least one kind."


def make_samples(schema: Schema, given: Sequence[Json] = ()) -> Samples:
    """Return sample values, as far as countable keywords can tell they are valid.

    Args:
        schema: A schema with references replaced.
        given: Data at hand, such as the arguments of the call; used where it fits.
    """
    maker = _Maker()
    found: dict[bytes, Sample] = {}
    partial = False
    for value in given:
        if contradiction(schema, value) is None:
            sample = Sample(SampleKind.GIVEN, value)
            found.setdefault(canonical_json(value), sample)
    for kind in (SampleKind.MINIMAL, SampleKind.FULL, SampleKind.LOW, SampleKind.HIGH):
        try:
            value = maker.make(schema, kind, given)
        except (_CannotMakeError, OverflowError):
            # Overflow: an integer limit of hundreds of digits met a float.
            partial = True
            continue
        if contradiction(schema, value) is None:
            found.setdefault(canonical_json(value), Sample(kind, value))
        else:
            partial = True
    return Samples(tuple(found.values()), partial)


def example_of(schema: Schema) -> dict[str, Json]:
    """Return data for people to start from: an object with what is required.

    A value that cannot be made is shown as "…".

    Args:
        schema: As for `make_samples`.
    """
    if not isinstance(schema, dict):
        return {}
    properties: dict[str, Schema] = schema.get("properties", {})
    example: dict[str, Json] = {}
    for name in schema.get("required", ()):
        samples = make_samples(properties.get(name, True)).values
        made = {one.kind: one.value for one in samples}
        value = made.get(SampleKind.FULL, made.get(SampleKind.MINIMAL, "…"))
        example[name] = TEXT.strip() if value == TEXT else value
    return example


class _CannotMakeError(Exception):
    """No value can be made for a part of the schema."""


class _Maker:
    """Makes values within one budget."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def make(self, schema: Schema, kind: SampleKind, given: Sequence[Json]) -> Json:
        """Return a value of `kind`, preferring values that the schema itself has."""
        self._left -= 1
        if schema is False or self._left < 0:
            raise _CannotMakeError
        if schema is True:
            return _any_value(kind)
        for value in _offered(schema, kind, given):
            if contradiction(schema, value) is None:
                return value
        if schema.keys() & {"const", "enum"}:
            raise _CannotMakeError
        if "allOf" in schema:
            return self.make(_merged(schema), kind, given)
        branches = alternatives(schema)
        if len(branches) > 1 or branches[0] is not schema:
            return self._branch(branches, kind, given)
        return self._plain(schema, kind, given)

    def _branch(
        self, branches: list[Schema], kind: SampleKind, given: Sequence[Json]
    ) -> Json:
        """Return a value of one branch; each kind tries another branch first."""
        named = [one for one in branches if types_of(one) != {"null"}]
        null = [one for one in branches if types_of(one) == {"null"}]
        order = {
            SampleKind.MINIMAL: [*null, *named],
            SampleKind.LOW: [*null, *named],
            SampleKind.HIGH: [*reversed(named), *null],
        }.get(kind, [*named, *null])
        for branch in order:
            try:
                return self.make(branch, kind, given)
            except _CannotMakeError:
                continue
        raise _CannotMakeError

    def _plain(
        self, schema: dict[str, Any], kind: SampleKind, given: Sequence[Json]
    ) -> Json:
        types = types_of(schema)
        if len(types) > 1:
            return _any_value(kind)
        (name,) = types
        match name:
            case "null":
                return None
            case "boolean":
                return kind in (SampleKind.FULL, SampleKind.HIGH)
            case "integer":
                return _integer(schema, kind)
            case "number":
                return _number(schema, kind)
            case "string":
                return _string(schema, kind)
            case "array":
                return self._array(schema, kind, given)
            case _:
                return self._object(schema, kind, given)

    def _array(
        self, schema: dict[str, Any], kind: SampleKind, given: Sequence[Json]
    ) -> Json:
        least = int(schema.get("minItems", 0))
        most = schema.get("maxItems", math.inf)
        wanted = {SampleKind.FULL: 1, SampleKind.HIGH: 2}.get(kind, 0)
        count = int(min(max(least, wanted), most))
        if kind is SampleKind.HIGH and most <= MAX_ITEMS:
            count = int(most)
        if count > MAX_ITEMS:
            raise _CannotMakeError
        first = schema.get("prefixItems", [])
        rest = schema.get("items", True)
        inner = [item for one in given if isinstance(one, list) for item in one]
        values = [
            self.make(first[index] if index < len(first) else rest, kind, inner)
            for index in range(count)
        ]
        if schema.get("uniqueItems"):
            values = list({canonical_json(value): value for value in values}.values())
            if len(values) < least:
                values = self._different(rest, least, inner)
        return values

    def _different(
        self, items: Schema, count: int, given: Sequence[Json]
    ) -> list[Json]:
        """Return `count` different items, from an enum, a range or all the kinds."""
        if isinstance(items, dict) and "enum" in items:
            values = list(items["enum"])
        elif types_of(items) == {"integer"} and isinstance(items, dict):
            step = items.get("multipleOf", 1)
            low = _integer(items, SampleKind.LOW)
            values = [low + step * place for place in range(count)]
        else:
            values = [self.make(items, kind, given) for kind in SampleKind]
        unique = list({canonical_json(value): value for value in values}.values())
        if len(unique) < count:
            raise _CannotMakeError
        return unique[:count]

    def _object(
        self, schema: dict[str, Any], kind: SampleKind, given: Sequence[Json]
    ) -> Json:
        properties: dict[str, Schema] = schema.get("properties", {})
        required = list(schema.get("required", ()))
        optional = [name for name in properties if name not in required]
        extra: Schema = schema.get("additionalProperties", True)
        result: dict[str, Json] = {}
        for name in required:
            inner = _inside(given, name)
            result[name] = self.make(properties.get(name, extra), kind, inner)
        enough = int(schema.get("minProperties", 0))
        most = schema.get("maxProperties", math.inf)
        for name in optional:
            if kind is SampleKind.MINIMAL and len(result) >= enough:
                break
            if len(result) >= most:
                break
            try:
                inner = _inside(given, name)
                result[name] = self.make(properties[name], kind, inner)
            except _CannotMakeError:
                # An optional property for which no value can be made is left out.
                continue
        while len(result) < enough:
            name = f"extra{len(result) + 1}"
            result[name] = self.make(extra, kind, ())
        if not properties and not required and extra is not False:
            filled = kind in (SampleKind.FULL, SampleKind.HIGH)
            if filled and not result and most >= 1 and "propertyNames" not in schema:
                result["extra1"] = self.make(extra, kind, ())
        return result


def _any_value(kind: SampleKind) -> Json:
    if kind is SampleKind.MINIMAL:
        return None
    return {"any": [1]} if kind is SampleKind.FULL else TEXT.strip()


def _offered(
    schema: dict[str, Any], kind: SampleKind, given: Sequence[Json]
) -> Iterator[Json]:
    """Yield the values in the schema or the data at hand, the best first."""
    if "const" in schema:
        yield schema["const"]
    listed = schema.get("enum", ())
    yield from reversed(listed) if kind is SampleKind.HIGH else listed
    containers = types_of(schema) & {"object", "array"}
    if kind in (SampleKind.LOW, SampleKind.HIGH) and "pattern" not in schema:
        # These two kinds test the limits, which such values seldom reach.
        return
    if containers and kind is SampleKind.MINIMAL:
        return
    if kind is not SampleKind.FULL:
        if "default" in schema:
            yield schema["default"]
        yield from schema.get("examples", ())
    else:
        yield from schema.get("examples", ())
        if "default" in schema:
            yield schema["default"]
    if not containers:
        yield from given


def _inside(given: Sequence[Json], name: str) -> list[Json]:
    return [one[name] for one in given if isinstance(one, dict) and name in one]


def _merged(schema: dict[str, Any]) -> Schema:
    """Return `schema` with its `allOf` merged, well enough for a candidate."""
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for branch in schema["allOf"]:
        if isinstance(branch, bool):
            continue
        properties = {**merged.get("properties", {}), **branch.get("properties", {})}
        required = [*merged.get("required", ()), *branch.get("required", ())]
        merged = {**merged, **branch}
        if properties:
            merged["properties"] = properties
        if required:
            merged["required"] = list(dict.fromkeys(required))
    return merged


def _integer(schema: dict[str, Any], kind: SampleKind) -> int:
    low = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    if "exclusiveMinimum" in schema:
        low.append(math.floor(schema["exclusiveMinimum"]) + 1)
    high = [math.floor(schema["maximum"])] if "maximum" in schema else []
    if "exclusiveMaximum" in schema:
        high.append(math.ceil(schema["exclusiveMaximum"]) - 1)
    step = schema.get("multipleOf", 1)
    if isinstance(step, float) and not step.is_integer():
        raise _CannotMakeError
    step = int(step)
    least, most = max(low, default=None), min(high, default=None)
    value = {SampleKind.FULL: 7, SampleKind.LOW: -3, SampleKind.HIGH: 1000}.get(kind, 0)
    if least is not None and (kind is SampleKind.LOW or value < least):
        value = least
    if most is not None and (kind is SampleKind.HIGH or value > most):
        value = most
    down = kind is SampleKind.HIGH or (most is not None and value == most)
    return value // step * step if down else -(-value // step) * step


def _number(schema: dict[str, Any], kind: SampleKind) -> float:
    least = max(
        (schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema),
        default=None,
    )
    most = min(
        (schema[name] for name in ("maximum", "exclusiveMaximum") if name in schema),
        default=None,
    )
    step = schema.get("multipleOf")
    if step is not None:
        if isinstance(step, float) and not step.is_integer():
            return step
        return _integer(schema, kind)
    usual = {SampleKind.FULL: 1.5, SampleKind.LOW: -2.5, SampleKind.HIGH: 1000.25}
    value: float = usual.get(kind, 0)
    if least is not None and (kind is SampleKind.LOW or value < least):
        value = least
    if most is not None and (kind is SampleKind.HIGH or value > most):
        value = most
    at_limit = value in (schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum"))
    if at_limit:
        if least is not None and most is not None:
            return float(least + most) / 2
        value = value + 1 if least is not None else value - 1
    return value


def _string(schema: dict[str, Any], kind: SampleKind) -> str:
    least = int(schema.get("minLength", 0))
    most = schema.get("maxLength", math.inf)
    if least > MAX_TEXT:
        raise _CannotMakeError
    if "pattern" in schema:
        made = text_of(schema, list(SampleKind).index(kind))
        if made is None:
            raise _CannotMakeError
        return made
    if "format" in schema:
        known = FORMATS.get(schema["format"])
        if known is None:
            raise _CannotMakeError
        second = kind in (SampleKind.HIGH, SampleKind.FULL)
        return known[1] if second else known[0]
    length = {SampleKind.FULL: len(TEXT), SampleKind.HIGH: len(TEXT) * 2}.get(kind, 1)
    if kind is SampleKind.LOW:
        length = least
    elif kind is SampleKind.HIGH and most <= MAX_TEXT:
        length = int(most)
    length = int(min(max(length, least), most))
    return (TEXT * (length // len(TEXT) + 1))[:length]
