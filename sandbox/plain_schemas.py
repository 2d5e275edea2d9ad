"""Checks of values by schemas that are proved harmless, without a worker.

Only keywords that take time by the size of the value are known here: no `pattern`, no
reference that comes back to itself. A check says that a value fits, and nothing else.
Everything that it does not know is asked in a worker, which also finds the words for
what does not fit.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from jsonic.exact_numbers import number_text, read_number

MAX_NODES: Final = 2_000
"Schemas in one schema, where one that is referred to twice counts twice."

MAX_SCHEMA_DEPTH: Final = 32
"Deepest nesting of a schema."

MAX_STEPS: Final = 50_000
"Values times the schemas that one of them meets; about ten milliseconds."

MAX_BYTES: Final = 1024 * 1024
"Longest text that is parsed here."

MAX_KEPT: Final = 256
"Schemas whose checks are kept."

MAX_DEPTH: Final = 64
"Deepest nesting of a value."

MAX_BITS: Final = 2_048
"Longest integer; the limit of frames between the daemon and a worker."

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
REFERENCE: Final = re.compile(r"#/\$defs/(\w+)", re.ASCII)

WITHOUT_MEANING: Final = frozenset(
    {"title", "description", "default", "examples", "format", "deprecated"}
    | {"readOnly", "writeOnly", "$comment", "$defs"}
)
"Keywords that no value can break."

Check = Callable[[Any], bool]
"True if a value fits."


class _Unknown(Exception):
    """A schema has something that is not known here."""


@dataclass(frozen=True, slots=True)
class _Plain:
    check: Check

    breadth: int
    "Most schemas that one value meets."


@dataclass(slots=True)
class _Compiler:
    """Makes the check of one schema."""

    definitions: dict[str, Any]
    left: int = MAX_NODES
    open: list[str] = field(default_factory=list)
    "References that are being followed."

    def schema(self, schema: Any, depth: int) -> _Plain:
        """Return the check of a schema.

        Raises:
            _Unknown: It may be harmful, malformed, or just unusual.
        """
        self.left -= 1
        if self.left < 0 or depth > MAX_SCHEMA_DEPTH:
            raise _Unknown
        if type(schema) is bool:
            return _Plain(lambda _: schema, 1)
        if type(schema) is not dict:
            raise _Unknown
        return self._keywords(schema, depth)

    def _keywords(self, schema: dict[str, Any], depth: int) -> _Plain:
        checks: list[Check] = []
        together, inside = 1, 0
        for name, value in schema.items():
            if name in WITHOUT_MEANING or (name, value) == ("$schema", DIALECT):
                continue
            if name in _SIMPLE:
                checks.append(_SIMPLE[name](value))
            elif name in {"anyOf", "allOf", "oneOf", "$ref"}:
                found = self._branches(name, value, depth)
                together += sum(one.breadth for one in found)
                checks.append(_combined(name, [one.check for one in found]))
            elif name == "items":
                one = self.schema(value, depth + 1)
                inside = max(inside, one.breadth)
                checks.append(_items(one.check))
            elif name not in {"properties", "additionalProperties"}:
                raise _Unknown
        if "properties" in schema or "additionalProperties" in schema:
            found = self._properties(schema, checks, depth)
            inside = max([inside, *(one.breadth for one in found)])
        return _Plain(_all(checks), together + inside)

    def _branches(self, name: str, value: Any, depth: int) -> list[_Plain]:
        if name != "$ref":
            if type(value) is not list or not value:
                raise _Unknown
            return [self.schema(one, depth + 1) for one in value]
        match = REFERENCE.fullmatch(value) if type(value) is str else None
        if match is None or match[1] in self.open or match[1] not in self.definitions:
            raise _Unknown
        self.open.append(match[1])
        found = self.schema(self.definitions[match[1]], depth + 1)
        self.open.pop()
        return [found]

    def _properties(
        self, schema: dict[str, Any], checks: list[Check], depth: int
    ) -> list[_Plain]:
        named = schema.get("properties", {})
        if type(named) is not dict:
            raise _Unknown
        found = {name: self.schema(one, depth + 1) for name, one in named.items()}
        others = self.schema(schema.get("additionalProperties", True), depth + 1)
        each = {name: one.check for name, one in found.items()}
        checks.append(_object(each, others.check))
        return [*found.values(), others]


# Checks of one keyword. Each leaves values of other types alone, as JSON Schema does.


def _items(check: Check) -> Check:
    return lambda value: type(value) is not list or all(map(check, value))


def _object(named: dict[str, Check], others: Check) -> Check:
    def check(value: Any) -> bool:
        if type(value) is dict:
            # By the value's names: a schema may have far more.
            for name, item in value.items():
                if not named.get(name, others)(item):
                    return False
        return True

    return check


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> bool:
        # Each value comes here, and a generator takes longer.
        for one in checks:  # noqa: SIM110
            if not one(value):
                return False
        return True

    return check


def _combined(name: str, checks: list[Check]) -> Check:
    if name == "anyOf":
        return lambda value: any(one(value) for one in checks)
    if name == "oneOf":
        return lambda value: sum(one(value) for one in checks) == 1
    return _all(checks)


_TYPES: Final[dict[str, Check]] = {
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: (
        type(value) is int or (isinstance(value, float) and value.is_integer())
    ),
}


def _is_number(value: Any) -> bool:
    return type(value) is int or isinstance(value, float)


def _type(value: Any) -> Check:
    names = value if type(value) is list else [value]
    if not names or not all(type(one) is str and one in _TYPES for one in names):
        raise _Unknown
    if len(names) == 1:
        return _TYPES[names[0]]
    return _combined("anyOf", [_TYPES[name] for name in names])


def _required(value: Any) -> Check:
    if type(value) is not list or not all(type(one) is str for one in value):
        raise _Unknown
    names = frozenset(value)
    return lambda found: type(found) is not dict or names.issubset(found)


def _listed(values: Any) -> Check:
    if type(values) is not list:
        raise _Unknown
    allowed = frozenset(map(_scalar, values))

    def check(value: Any) -> bool:
        if type(value) in {dict, list}:
            return False
        return (type(value) is bool, value) in allowed

    return check


def _scalar(value: Any) -> tuple[bool, Any]:
    if not (value is None or isinstance(value, str | int | float)):
        raise _Unknown
    # In JSON true is no 1.
    return type(value) is bool, value


def _bounded(kind: str, fits: Callable[[Any, Any], bool]) -> Callable[[Any], Check]:
    """Return what makes the check of a keyword with a limit."""
    measured: dict[str, Callable[[Any], Any]] = {
        "number": lambda value: value if _is_number(value) else None,
        "string": lambda value: len(value) if type(value) is str else None,
        "array": lambda value: len(value) if type(value) is list else None,
        "object": lambda value: len(value) if type(value) is dict else None,
    }
    measure = measured[kind]

    def made(limit: Any) -> Check:
        if not _is_number(limit):
            raise _Unknown

        def check(value: Any) -> bool:
            size = measure(value)
            return size is None or fits(size, limit)

        return check

    return made


def _least(size: Any, limit: Any) -> bool:
    return bool(size >= limit)


def _most(size: Any, limit: Any) -> bool:
    return bool(size <= limit)


_SIMPLE: Final[dict[str, Callable[[Any], Check]]] = {
    "type": _type,
    "required": _required,
    "enum": _listed,
    "const": lambda value: _listed([value]),
    "minimum": _bounded("number", _least),
    "maximum": _bounded("number", _most),
    "exclusiveMinimum": _bounded("number", lambda size, limit: size > limit),
    "exclusiveMaximum": _bounded("number", lambda size, limit: size < limit),
    "minLength": _bounded("string", _least),
    "maxLength": _bounded("string", _most),
    "minItems": _bounded("array", _least),
    "maxItems": _bounded("array", _most),
    "minProperties": _bounded("object", _least),
    "maxProperties": _bounded("object", _most),
}


def surely_schema(schema: Any) -> bool:
    """Return True if a value surely is a schema without patterns; False says nothing.

    As the metaschema of 2020-12 has it; keywords that it does not name say nothing.
    """
    return _is_plain(schema, [MAX_NODES], MAX_SCHEMA_DEPTH) and _is_schema(schema)


def _is_schema(schema: Any) -> bool:
    if type(schema) is not dict:
        return type(schema) is bool
    return all(name in _FORMS and _FORMS[name](value) for name, value in schema.items())


def _is_scalar(value: Any) -> bool:
    return type(value) not in {dict, list}


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_types(value: Any) -> bool:
    if type(value) is list:
        return bool(value) and _are_names(value) and set(value) <= _TYPES.keys()
    return type(value) is str and value in _TYPES


def _are_names(value: Any) -> bool:
    return (
        type(value) is list
        and all(type(one) is str for one in value)
        and len(set(value)) == len(value)
    )


def _are_schemas(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(_is_schema, value))


def _are_named_schemas(value: Any) -> bool:
    return type(value) is dict and all(map(_is_schema, value.values()))


_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    "$schema": lambda value: type(value) is str and value == DIALECT,
    "$ref": lambda value: type(value) is str and bool(REFERENCE.fullmatch(value)),
    "type": _are_types,
    "required": _are_names,
    "enum": lambda value: type(value) is list and all(map(_is_scalar, value)),
    **dict.fromkeys(("const", "default"), _is_scalar),
    **dict.fromkeys(("items", "additionalProperties"), _is_schema),
    **dict.fromkeys(("anyOf", "allOf", "oneOf"), _are_schemas),
    **dict.fromkeys(("properties", "$defs"), _are_named_schemas),
    **dict.fromkeys(
        ("title", "description", "format", "$comment"), lambda value: type(value) is str
    ),
    **dict.fromkeys(
        ("deprecated", "readOnly", "writeOnly"), lambda value: type(value) is bool
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number
    ),
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems"),
            *("minProperties", "maxProperties"),
        ),
        _is_size,
    ),
}
"Keywords, and the forms of their values, which need no look at anything else."


class PlainSchemas:
    """Tells which values surely fit; the checks of schemas are made once and kept.

    A schema that was used here must not be changed: it is known by its identity.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[Any, _Plain | None]] = OrderedDict()

    def fits(self, schema: Any, value: Any) -> bool:
        """Return True if a value surely fits; False says nothing."""
        plain = self._plain(schema)
        if plain is None:
            return False
        if not _is_plain(value, [MAX_STEPS // plain.breadth], MAX_DEPTH):
            return False
        return plain.check(value)

    def fits_json(self, schema: Any, data: bytes) -> bool:
        """Return True if bytes surely are JSON that fits; False says nothing."""
        plain = self._bounded(schema, data)
        try:
            return plain is not None and plain.check(parse_strict(data))
        except (ValueError, RecursionError):
            return False

    def fits_parsed(self, schema: Any, data: bytes, value: Any) -> bool:
        """Return True if JSON that was parsed strictly surely fits, as `fits_json`.

        Args:
            value: The same as `data`; nobody else knows how many values are in it.
        """
        plain = self._bounded(schema, data)
        try:
            return plain is not None and plain.check(value)
        except RecursionError:
            return False

    def _bounded(self, schema: Any, data: bytes) -> _Plain | None:
        """Return the checks of a schema if those of some bytes surely end soon."""
        plain = self._plain(schema)
        if plain is None or len(data) > MAX_BYTES:
            return None
        return plain if _has_few_nodes(data, MAX_STEPS // plain.breadth) else None

    def _plain(self, schema: Any) -> _Plain | None:
        known = self._kept.get(id(schema))
        if known is not None:
            self._kept.move_to_end(id(schema))
            return known[1]
        definitions = schema.get("$defs", {}) if type(schema) is dict else {}
        try:
            found = _Compiler(definitions).schema(schema, 0)
        except (_Unknown, TypeError):
            found = None
        # The schema is kept with its check, so that no other one can get its identity.
        self._kept[id(schema)] = schema, found
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return found


def _is_plain(value: Any, left: list[int], depth: int) -> bool:
    """Return True for a value that a frame may hold, with not too many values in it.

    Args:
        left: The number of values that it may have; counted down.
        depth: Levels that it may have.
    """
    kind = type(value)
    if kind is str:
        return value.isascii() or _is_text(value)
    if kind is bool or value is None:
        return True
    if kind is int:
        return bool(value.bit_length() <= MAX_BITS)
    if isinstance(value, float):
        return math.isfinite(value) and (
            kind is float or number_text(value) is not None
        )
    return (kind is dict or kind is list) and _are_plain(value, left, depth)


def _are_plain(value: Any, left: list[int], depth: int) -> bool:
    """Return True for an object or a list whose names and values are plain."""
    left[0] -= len(value) + 1
    if left[0] < 0 or depth == 0:
        return False
    # Each value of each message comes here, and a generator takes longer.
    if type(value) is dict:
        for name in value:
            if type(name) is not str or not (name.isascii() or _is_text(name)):
                return False
        value = value.values()
    for item in value:  # noqa: SIM110
        if not _is_plain(item, left, depth - 1):
            return False
    return True


def _has_few_nodes(data: bytes, most: int) -> bool:
    """Tell whether the JSON in some bytes surely has at most so many values."""
    left = most - 1
    if len(data) <= left:
        return True
    for sign in b",[{":
        # Faster than counting where a long text has few of them.
        place = data.find(sign)
        while place >= 0:
            left -= 1
            if left < 0:
                return False
            place = data.find(sign, place + 1)
    return left >= 0


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_strict(data: bytes) -> Any:
    """Parse strict JSON (RFC 8259, ANP-18).

    Raises:
        ValueError: It is none; UnicodeDecodeError, the bytes are not UTF-8.
        RecursionError: It is nested too deeply.
    """
    return _DECODER.decode(_text_of(data))


def _text_of(data: bytes) -> str:
    text = data.decode("utf-8")
    if text.startswith("\ufeff"):
        said = "Unexpected UTF-8 BOM (decode using utf-8-sig)"
        raise json.JSONDecodeError(said, text, 0)
    return text


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has a name twice")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# Made once: `json.loads` with any option makes a new decoder for each call.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_no_repeats, parse_constant=_no_constant, parse_float=read_number
)
