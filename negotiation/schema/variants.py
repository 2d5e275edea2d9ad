"""Values that differ from another one in a single place, still valid by counting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from negotiation.need import Schema
from negotiation.schema.texts import text_of
from negotiation.schema.values import alternatives, contradiction, same_json
from negotiation.strict_json import Json

MAX_VARIANTS: Final = 80
"Largest number of variants of one value."

PER_PLACE: Final = 2
"Variants of each place: with two a factor can be told from an offset."

MAX_TEXT: Final = 4_096

Path = tuple[str, ...]
"Names and numbers of items from the top to a place."


@dataclass(frozen=True, slots=True)
class Variant:
    """A value that differs from the base in one place."""

    path: Path
    value: Json

    leaf: Json
    "The value at that place."


def variants(schema: Schema, value: Json) -> list[Variant]:
    """Return variants of `value`, two for each place that can vary.

    Callers validate them: keywords that cannot be counted are not looked at.
    """
    found: list[Variant] = []
    for path, leaf in leaves(value).items():
        if len(found) >= MAX_VARIANTS:
            break
        others = _others(schema_at(schema, value, path), leaf, len(found))
        for other in others[:PER_PLACE]:
            whole = with_leaf(value, path, other)
            if contradiction(schema, whole) is None:
                found.append(Variant(path, whole, other))
    return found


def leaves(value: Json, path: Path = ()) -> dict[Path, Json]:
    """Return the texts, numbers and truth values in `value`, by their places."""
    if isinstance(value, dict):
        parts = ((str(name), one) for name, one in value.items())
    elif isinstance(value, list):
        parts = ((str(number), one) for number, one in enumerate(value))
    else:
        return {path: value}
    return {
        place: leaf
        for name, one in parts
        for place, leaf in leaves(one, (*path, name)).items()
    }


def schema_at(schema: Schema, value: Json, path: Path) -> Schema:
    """Return the schema of one place in `value`."""
    schema = next(
        (one for one in alternatives(schema) if contradiction(one, value) is None),
        schema,
    )
    if not path:
        return schema
    name, inner = path[0], True if isinstance(schema, bool) else schema
    below: Schema = True
    if isinstance(value, dict):
        if isinstance(inner, dict):
            rest = inner.get("additionalProperties", True)
            below = inner.get("properties", {}).get(name, rest)
        return schema_at(below, value.get(name), path[1:])
    assert isinstance(value, list)
    if isinstance(inner, dict):
        first = inner.get("prefixItems", [])
        number = int(name)
        below = first[number] if number < len(first) else inner.get("items", True)
    return schema_at(below, value[int(name)], path[1:])


def _others(schema: Schema, leaf: Json, number: int) -> list[Json]:
    keywords = schema if isinstance(schema, dict) else {}
    if "const" in keywords:
        return []
    candidates: Iterator[Json]
    if "enum" in keywords:
        candidates = iter(keywords["enum"])
    else:
        candidates = iter(_made(keywords, leaf, number))
    return [
        one
        for one in candidates
        if not same_json(one, leaf) and contradiction(schema, one) is None
    ]


def _made(keywords: dict[str, Any], leaf: Json, number: int) -> list[Json]:
    match leaf:
        case bool():
            return [not leaf]
        case int():
            step = keywords.get("multipleOf", 1)
            step = step if isinstance(step, int) and step else 1
            return [leaf + step * by for by in (37, 101, 1, 2, -37, -1, -2)]
        case float():
            return [leaf + by for by in (37.5, 101.25, 0.5, 0.25, -0.5, -0.25)]
        case str():
            return _texts(keywords, leaf, number)
        case _:
            return []


def _texts(keywords: dict[str, Any], leaf: str, number: int) -> list[Json]:
    if keywords.keys() & {"format", "pattern"}:
        made = (text_of(keywords, 41 + 3 * number + by) for by in (1, 12, 25))
        return [one for one in made if one is not None]
    least = keywords.get("minLength", 0)
    most = keywords.get("maxLength", MAX_TEXT)
    texts = []
    for by in (1, 2):
        text = f"other {number + by}".ljust(min(int(least), MAX_TEXT), ".")
        texts.append(text if len(text) <= most else chr(96 + by) * int(most))
    return [one for one in texts if one != leaf]


def with_leaf(value: Json, path: Path, leaf: Json) -> Json:
    """Return `value` with another leaf at one of its places."""
    if not path:
        return leaf
    if isinstance(value, dict):
        return {**value, path[0]: with_leaf(value[path[0]], path[1:], leaf)}
    assert isinstance(value, list)
    number = int(path[0])
    return [
        with_leaf(one, path[1:], leaf) if place == number else one
        for place, one in enumerate(value)
    ]
