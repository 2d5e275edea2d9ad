"""The places of a schema that values can be read from or written to, with names.

A model refers to places only by these names: its answers are looked up and never
parsed. A name is `root:/pointer`; `*` stands for each item of a list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from negotiation.llm.asking.questions import one_line
from negotiation.need import Schema
from negotiation.schema.keywords import pointer
from negotiation.schema.plan import values_of, words
from negotiation.schema.values import alternatives, default_of, types_of
from negotiation.strict_json import Json

ITEMS: Final = "*"
"The step of a path from a list to each of its items."

SENT: Final = frozenset({"request", "arguments"})
"Roots whose defaults count: an answer's missing value is missing."

MAX_SPOTS: Final = 150
"Largest number of named places in one schema; deeper ones are not shown."

MAX_NAME: Final = 160
"Longest name of a place, in characters; places with longer ones are not shown."

MAX_LISTED: Final = 800
"Longest list of values at a place, in characters."

MAX_LEVELS: Final = 8
"Deepest place that is named."


@dataclass(frozen=True, slots=True)
class Root:
    """A whole value with its schema."""

    name: str
    "Its name in prompts: `request`, `arguments`, or the name of a capability."

    schema: Schema
    "Its schema, with references replaced."

    paired: bool = False
    "True for a list of pairs: `left` is an item, `right` what belongs to it."


@dataclass(frozen=True, slots=True)
class Spot:
    """One place in a value; root and path identify it."""

    root: str

    path: tuple[str, ...]
    "Property names from the top, `ITEMS` for each item of a list."

    schema: Schema = field(compare=False)

    sure: bool = field(compare=False)
    "True when it exists in every value, or in every item that contains it."

    @property
    def default(self) -> tuple[Json, ...]:
        """The value for a message that leaves it out: the schema's default, or none."""
        if self.sure or self.root not in SENT or nullable(self.schema):
            return ()
        return default_of(self.schema)

    @property
    def name(self) -> str:
        """Its name in prompts and answers."""
        return f"{self.root}:{self.pointer}"

    @property
    def pointer(self) -> str:
        """Its path as text; empty for the whole value."""
        return "".join(f"/{_token(step)}" for step in self.path)


def spots_of(root: Root, *, whole: bool = True) -> tuple[Spot, ...]:
    """Return the places of a value, each before those inside it.

    Args:
        whole: True if the value as a whole is one of them.
    """
    found: list[Spot] = []
    for spot in _walk(root.name, (), root.schema, sure=True):
        if len(found) >= MAX_SPOTS:
            break
        if (spot.path or whole) and len(spot.name) <= MAX_NAME:
            found.append(spot)
    return tuple(found)


def _walk(
    root: str, path: tuple[str, ...], schema: Schema, *, sure: bool
) -> Iterator[Spot]:
    yield Spot(root, path, schema, sure)
    inner = without_null(schema)
    if not isinstance(inner, dict) or len(path) >= MAX_LEVELS:
        return
    stays = sure and not nullable(schema)
    kind = bare_kind(inner)
    if kind == "object":
        required = inner.get("required", ())
        for name, one in inner.get("properties", {}).items():
            # The star stands for items, so a property of that name is not shown.
            if name != ITEMS:
                there = stays and name in required
                yield from _walk(root, (*path, name), one, sure=there)
    elif kind == "array" and isinstance(inner.get("items"), dict):
        yield from _walk(root, (*path, ITEMS), inner["items"], sure=stays)


def nullable(schema: Schema) -> bool:
    """Return whether null is one of several allowed values."""
    branches = alternatives(schema)
    return len(branches) > 1 and any(types_of(one) == {"null"} for one in branches)


def without_null(schema: Schema) -> Schema:
    """Return `schema` without null, if a single schema remains."""
    branches = [one for one in alternatives(schema) if types_of(one) != {"null"}]
    return branches[0] if len(branches) == 1 else schema


def bare_kind(schema: Schema) -> str:
    """Return the only JSON type of `schema`; empty when it has several."""
    types = types_of(schema)
    return next(iter(types)) if len(types) == 1 else ""


def covers(outer: Spot, inner: Spot) -> bool:
    """Return whether `inner` is `outer` or inside it."""
    return outer.root == inner.root and inner.path[: len(outer.path)] == outer.path


def described(spots: Iterable[Spot]) -> str:
    """Return a description of the places, one line each."""
    lines = []
    for spot in spots:
        about = spot.schema if isinstance(spot.schema, dict) else {}
        said = [_kind_words(spot.schema)]
        said += [
            f"{word} {one_line(str(about[word]), 60)}"
            for word in ("format", "minimum", "maximum", "pattern", "default")
            if word in about
        ]
        said += [] if spot.sure or not spot.path else ["optional"]
        text = about.get("description") or about.get("title")
        more = f" - {one_line(text)}" if isinstance(text, str) else ""
        lines.append(f"{one_line(spot.name)} ({', '.join(said)}){more}")
    return "\n".join(lines) or "(nothing)"


def _kind_words(schema: Schema) -> str:
    """Return a schema's values in words; listed ones in full, to be mapped."""
    listed = values_of(schema)
    if not listed:
        return words(schema)
    values = json.dumps(listed, ensure_ascii=False)
    return f"one of {one_line(values, MAX_LISTED)}"


def _token(step: str) -> str:
    return step if step == ITEMS else pointer(step)
