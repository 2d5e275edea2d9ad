"""Outputs that stand in for capabilities while a half is tried.

A half that makes its calls once, in a row, gets the same output each time. Where its
source tells more (`module_shapes`), pages come one after the other and end, each item
gets an answer of its own, and the keys of lists to be joined meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from negotiation.document.message_judge import find
from negotiation.need import Schema
from negotiation.schema.values import contradiction
from negotiation.schema.variants import Path, variants, with_leaf
from negotiation.strict_json import Json
from negotiation.trial.module_shapes import ModuleShapes, PagedCalls

ITEMS: Final = "*"

PAGES: Final = 2
"Pages with items; where pages are counted, an empty one follows."


class StandIns:
    """The outputs of capabilities for one message, by the number of the call.

    Args:
        schemas: Schema of each capability's output, by its name; `request` has that of
            the request's values.
    """

    def __init__(self, shapes: ModuleShapes, schemas: Mapping[str, Schema]) -> None:
        self._shapes = shapes
        self._schemas = schemas
        self._pages = {one.capability: one for one in shapes.pages}

    def first(self, name: str, value: Json) -> Json:
        """Return `value` as the first output of a capability, or as the request."""
        for each in self._shapes.each:
            if each.root == name:
                value = self._apart(name, value, each.path)
        value = self._with_keys(name, value, 0)
        if name in self._pages:
            value = self._page(self._pages[name], value, 0)
        return value

    def answer(self, name: str, number: int, base: Json) -> Json:
        """Return the output of a call.

        Args:
            number: Calls of this capability before, for the same message.
            base: Its first output, as `first` gives it.
        """
        if number == 0 or not self.repeats(name):
            return base
        value = self._another(name, base, number)
        value = self._with_keys(name, value, number)
        if name in self._pages:
            value = self._page(self._pages[name], value, number)
        return value

    def repeats(self, name: str) -> bool:
        """Return whether a capability is called several times for one request."""
        return self._shapes.repeats(name)

    def due(self, name: str) -> int:
        """Return how many calls of a paged capability are due."""
        return PAGES if self._pages[name].following else PAGES + 1

    def _another(self, name: str, value: Json, number: int) -> Json:
        """Return `value` with other content in each place that can vary."""
        schema, changed = self._schemas.get(name, True), value
        seen: dict[Path, int] = {}
        for one in variants(schema, value):
            turn = seen[one.path] = seen.get(one.path, 0) + 1
            if turn <= number:
                other = with_leaf(changed, one.path, one.leaf)
                if contradiction(schema, other) is None:
                    changed = other
        return changed

    def _page(self, pages: PagedCalls, value: Json, number: int) -> Json:
        """Return `value` as the page with a number; the last one ends the list."""
        schema = self._schemas.get(pages.capability, True)
        if not pages.following:
            if number < PAGES:
                return value
            return self._put(schema, value, pages.items, [[]])
        if number >= PAGES - 1:
            without = _without(value, pages.following)
            if contradiction(schema, without) is None:
                return without
            return self._put(schema, value, pages.following, [None, ""])
        return self._put(schema, value, pages.following, ["cursor 1", 7])

    def _put(
        self, schema: Schema, value: Json, path: Path, leaves_: Sequence[Json]
    ) -> Json:
        """Return `value` with the first leaf at `path` that its schema takes."""
        for leaf in leaves_:
            changed = _set(value, path, leaf)
            if contradiction(schema, changed) is None:
                return changed
        return value

    def _with_keys(self, name: str, value: Json, number: int) -> Json:
        """Return `value` with keys that the items of both lists of a join have."""
        for one in self._shapes.joins:
            keys = self._keys(one.left[0], one.left[1], one.right[0], one.right[1])
            if name == one.right[0]:
                value = self._with_partners(name, value, one.right[1], keys, number)
            elif name == one.left[0]:
                value = self._keyed(name, value, one.left[1], keys, 0)
        return value

    def _keys(self, left: str, key: Path, right: str, other: Path) -> list[Json]:
        """Return values that both keys may have."""
        one, two = (
            _schema_in(self._schemas.get(root, True), path)
            for root, path in ((left, key), (right, other))
        )
        made: list[Json] = [f"key {place}" for place in range(8)]
        listed = two.get("enum") if isinstance(two, dict) else None
        if isinstance(listed, list):
            made += listed
        made += range(11, 19)
        fitting = [
            each
            for each in made
            if contradiction(one, each) is None and contradiction(two, each) is None
        ]
        return fitting or [None]

    def _with_partners(
        self, name: str, value: Json, key: Path, keys: Sequence[Json], number: int
    ) -> Json:
        """Return `value` with two items that have the first keys."""
        at = key.index(ITEMS)
        items = find(value, key[:at])
        if not isinstance(items, list) or not items:
            return value
        schema = self._schemas.get(name, True)
        one = _set(value, key[:at], items[:1])
        two = _set(value, key[:at], [items[0], items[0]])
        if len(keys) > 1 and contradiction(schema, two) is None:
            one = self._apart(name, two, key[:at])
        return self._keyed(name, one, key, keys, 2 * number)

    def _apart(self, name: str, value: Json, path: Path) -> Json:
        """Return `value` with a second item of a list that differs from the first."""
        schema, changed = self._schemas.get(name, True), value
        for variant in variants(schema, value):
            if variant.path[: len(path) + 1] == (*path, "1"):
                other = with_leaf(changed, variant.path, variant.leaf)
                changed = other if contradiction(schema, other) is None else changed
        return changed

    def _keyed(
        self, name: str, value: Json, key: Path, keys: Sequence[Json], first: int
    ) -> Json:
        at = key.index(ITEMS)
        items = find(value, key[:at])
        if not isinstance(items, list) or keys == [None]:
            return value
        turn = len(keys) if first else min(2, len(keys))
        made = [
            _set(item, key[at + 1 :], keys[(first + place) % turn])
            for place, item in enumerate(items)
        ]
        changed = _set(value, key[:at], made)
        fits = contradiction(self._schemas.get(name, True), changed) is None
        return changed if fits else value


def _set(value: Json, path: Sequence[str], leaf: Json) -> Json:
    if not path:
        return leaf
    inner = value if isinstance(value, dict) else {}
    return {**inner, path[0]: _set(inner.get(path[0], {}), path[1:], leaf)}


def _without(value: Json, path: Sequence[str]) -> Json:
    if not isinstance(value, dict):
        return value
    if len(path) == 1:
        return {name: one for name, one in value.items() if name != path[0]}
    return {**value, path[0]: _without(value.get(path[0]), path[1:])}


def _schema_in(schema: Schema, path: Sequence[str]) -> Schema:
    """Return the schema at a path of names and items."""
    for step in path:
        inner = schema if isinstance(schema, dict) else {}
        names = inner.get("properties", {})
        schema = inner.get("items", True) if step == ITEMS else names.get(step, True)
    return schema
