"""Checks of loops, choices and joins of a provider half.

Its source tells which of them it has (`module_shapes`). So it is known how many calls
are due and which, and a half that stops a page early, forgets the last item, joins by
another key or never asks the second capability is found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from negotiation.document.message_judge import find
from negotiation.errors import CapabilityFailed
from negotiation.need import Schema
from negotiation.schema.keywords import cut, keywords_of
from negotiation.schema.values import contradiction, default_of, same_json
from negotiation.schema.variants import Path, leaves, variants
from negotiation.strict_json import Json
from negotiation.trial.module_shapes import (
    FailingValue,
    Fallback,
    ItemCalls,
    KeyJoin,
    ModuleShapes,
    PagedCalls,
    means,
)
from negotiation.trial.stand_ins import StandIns

ITEMS: Final = "*"

Answer = Callable[[str, int], Json]
"Returns the output of a capability, by the number of its calls before."

Calls = list[tuple[str, Json]]


class ShapeChecks:
    """The checks of one half with one request.

    Args:
        inputs: Schemas of the arguments, by capability.
        outputs: Schemas of the outputs.
        best: First output of each capability, and the request's values as `request`.
        observe: Runs the half; returns its calls and its result, None for an error.
        told: Runs it, and returns the values of its response.
    """

    def __init__(
        self,
        shapes: ModuleShapes,
        stand: StandIns,
        *,
        inputs: Mapping[str, Schema],
        outputs: Mapping[str, Schema],
        best: Mapping[str, Json],
        observe: Callable[[Answer], Awaitable[tuple[Calls, Json]]],
        told: Callable[[Answer], Awaitable[Json]],
    ) -> None:
        self._shapes = shapes
        self._stand = stand
        self._inputs = inputs
        self._outputs = outputs
        self._best = best
        self._observe = observe
        self._told = told

    async def faults(self) -> list[str]:
        """Return the faults of all shapes."""
        found: list[str] = []
        for each in self._shapes.each:
            found += await self._each(each)
        for pages in self._shapes.pages:
            found += await self._pages(pages)
        for join in self._shapes.joins:
            found += await self._join(join)
        for fallback in self._shapes.fallbacks:
            found += await self._fallback(fallback)
        for name in self._shapes.again:
            found += await self._again(name)
        for failing in self._shapes.fails:
            found += await self._fails(failing)
        return found

    def _answer(self, name: str, number: int) -> Json:
        if name not in self._outputs:
            raise CapabilityFailed("403", "not allowed")
        return self._stand.answer(name, number, self._best[name])

    async def _each(self, shape: ItemCalls) -> list[str]:
        name = shape.capability
        calls, result = await self._observe(self._answer)
        items = find(self._best.get(shape.root), shape.path)
        made = sum(name == one for one, _ in calls)
        if result is None or not isinstance(items, list):
            return []
        if made != len(items):
            return [f"calls {name} {made} times for {len(items)} items"]
        if made < 2:
            return []
        given = [arguments for one, arguments in calls if one == name]
        if same_json(given[0], given[1]) and not same_json(items[0], items[1]):
            return [f"calls {name} with the same arguments for different items"]
        return self._uneven(name, await self._effects(name, made), f"{made} items")

    async def _pages(self, shape: PagedCalls) -> list[str]:
        name, due = shape.capability, self._stand.due(shape.capability)
        calls, result = await self._observe(self._answer)
        asked = [
            given.get(shape.argument) if isinstance(given, dict) else None
            for one, given in calls
            if one == name
        ]
        if result is None or not asked:
            return []
        if len(asked) != due:
            return [f"asks {name} for {len(asked)} pages where {due} are there"]
        for number in range(1, due):
            before = self._answer(name, number - 1)
            if shape.following:
                meant = find(before, shape.following)
            else:
                page = find(before, shape.items)
                step = len(page) if shape.offset and isinstance(page, list) else 1
                last = asked[number - 1]
                meant = last + step if isinstance(last, int) else None
            if not same_json(asked[number], meant):
                return [
                    f"asks {name} for page {cut(asked[number])} where {cut(meant)} "
                    "is the next"
                ]
        if fault := self._first_fault(shape, asked[0]):
            return [fault]
        whole = self._answer(name, 0)
        page = find(whole, shape.items)
        less = _with(whole, shape.items, page[:-1] if isinstance(page, list) else [])

        def shorter(other: str, number: int) -> Json:
            first = (other, number) == (name, 0)
            return less if first else self._answer(other, number)

        if page and same_json((await self._observe(shorter))[1], result):
            return [f"loses items of {name} from the first page"]
        effects = {
            (number, path): moved
            for (number, path), moved in (await self._effects(name, 2)).items()
            if path[: len(shape.items)] == shape.items and len(path) > len(shape.items)
        }
        at = len(shape.items)
        per_item = {
            ((number, path[at]), (*path[:at], ITEMS, *path[at + 1 :])): moved
            for (number, path), moved in effects.items()
        }
        return self._uneven(name, per_item, "all pages")

    def _first_fault(self, shape: PagedCalls, first: Json) -> str:
        """Return the fault of the first page that is asked for; empty without one."""
        if shape.following or not isinstance(first, int):
            return ""
        meant = default_of(self._argument(shape))
        if first in (0, 1) and (not meant or same_json(first, meant[0])):
            return ""
        return f"begins with {first} when it asks {shape.capability} for all pages"

    def _argument(self, shape: PagedCalls) -> Schema:
        inputs = keywords_of(self._inputs.get(shape.capability, True))
        found: Schema = inputs.get("properties", {}).get(shape.argument, True)
        return found

    async def _join(self, shape: KeyJoin) -> list[str]:
        (left, key), (name, other) = shape.left, shape.right
        at = other.index(ITEMS)
        if name not in self._outputs:
            return []
        effects = await self._effects(name, 1)
        items = find(self._best.get(left), key[: key.index(ITEMS)])
        partners = find(self._best[name], other[:at])
        if not isinstance(items, list) or not isinstance(partners, list):
            return []
        per_item = {
            (path[at], (*path[:at], ITEMS, *path[at + 1 :])): moved
            for (_, path), moved in effects.items()
            if path[:at] == other[:at] and len(path) > at
        }
        plain = [moved for (_, path), moved in per_item.items() if path != other]
        if plain and not any(plain):
            return [f"takes nothing from the items of {name} that it joins"]
        if len(items) < len(partners):
            return []
        return self._uneven(name, per_item, "items that belong together")

    async def _fallback(self, shape: Fallback) -> list[str]:
        first, second = shape.first, shape.second
        calls, result = await self._observe(self._answer)
        told = shape.place is not None and means(
            find(self._best.get(first), shape.place), shape.value
        )
        asked = [name for name, _ in calls]
        if result is not None and first in asked and second in asked and not told:
            return [f"asks {second} although {first} has what it is asked for"]
        ways: list[tuple[str, Answer]] = [("fails with 404", self._failing(first))]
        if shape.place is not None and first in self._best:
            ways += self._telling(shape)
        for how, answer in ways:
            calls, result = await self._observe(answer)
            if first not in [name for name, _ in calls]:
                # An earlier capability has what is asked for, or there is none.
                continue
            if second not in [name for name, _ in calls]:
                return [f"does not ask {second} when {first} {how}"]
            moved = await self._effects(second, 1, answer)
            if result is not None and moved and not any(moved.values()):
                return [f"takes nothing from {second} when {first} {how}"]
        calls, result = await self._observe(self._failing(first, "500"))
        if result is not None and first in [name for name, _ in calls]:
            return [f"says good although {first} failed with 500"]
        return []

    def _telling(self, shape: Fallback) -> list[tuple[str, Answer]]:
        """Return the answer in which the first output tells that there is none."""
        assert shape.place is not None
        for leaf in (shape.value, "", []):
            value = _with(self._best[shape.first], shape.place, leaf)
            fits = contradiction(self._outputs[shape.first], value) is None
            if fits and means(leaf, shape.value):
                told = f"has {cut(leaf)} in {'/'.join(shape.place)}"
                return [(told, self._giving(shape.first, value))]
        return []

    async def _again(self, name: str) -> list[str]:
        def once(one: str, number: int) -> Json:
            if one == name and number == 0:
                raise CapabilityFailed("503", "not now")
            return self._answer(one, max(0, number - (one == name)))

        expected = await self._observe(self._answer)
        calls, result = await self._observe(once)
        made = [one for one, _ in calls].count(name)
        usual = [one for one, _ in expected[0]].count(name)
        if not usual or expected[1] is None:
            return []
        if made != usual + 1 or result is None:
            return [f"does not call {name} once more when it fails with 503"]
        calls, _ = await self._observe(self._failing(name, "503"))
        if [one for one, _ in calls].count(name) != 2:
            return [f"does not call {name} just once more when it goes on failing"]
        calls, _ = await self._observe(self._failing(name))
        if [one for one, _ in calls].count(name) != 1:
            return [f"calls {name} again although it failed with 404"]
        return []

    async def _fails(self, shape: FailingValue) -> list[str]:
        name = shape.capability
        value = _with(self._best.get(name), shape.place, shape.value)
        if name not in self._outputs or contradiction(self._outputs[name], value):
            return []
        answer = self._giving(name, value)
        calls, _ = await self._observe(answer)
        if name not in [one for one, _ in calls]:
            return []
        said = leaves(await self._told(answer)).values()
        if shape.code in map(str, said):
            return []
        place = f"{cut(shape.value)} in /{'/'.join(shape.place)} of {name}"
        return [f"does not say {shape.code} for {place}"]

    def _failing(self, name: str, code: str = "404") -> Answer:
        def answer(one: str, number: int) -> Json:
            if one == name:
                raise CapabilityFailed(code, "it failed")
            return self._answer(one, number)

        return answer

    def _giving(self, name: str, value: Json) -> Answer:
        def answer(one: str, number: int) -> Json:
            return value if one == name else self._answer(one, number)

        return answer

    async def _effects(
        self, name: str, count: int, given: Answer | None = None
    ) -> dict[tuple[int, Path], bool]:
        """Return which leaves of the first outputs of a capability have an effect.

        Args:
            count: Outputs that are varied, each alone.
            given: The other outputs; by default those of the samples.
        """
        answer = given or self._answer
        _, base = await self._observe(answer)
        found: dict[tuple[int, Path], bool] = {}
        for number in range(count):
            try:
                whole = answer(name, number)
            except CapabilityFailed:
                continue
            for one in variants(self._outputs[name], whole):

                def varied(
                    other: str, turn: int, number: int = number, value: Json = one.value
                ) -> Json:
                    return (
                        value
                        if (other, turn) == (name, number)
                        else answer(other, turn)
                    )

                _, result = await self._observe(varied)
                moved = result is None or not same_json(result, base)
                key = number, one.path
                found[key] = found.get(key, False) or moved
        return found

    def _uneven(
        self, name: str, effects: Mapping[tuple[Any, Path], bool], of: str
    ) -> list[str]:
        """Return the fault of a value that counts in some outputs or items only."""
        counts: dict[Path, set[bool]] = {}
        for (_, path), moved in effects.items():
            counts.setdefault(path, set()).add(moved)
        return [
            f"does not take /{'/'.join(path)} of {name} from {of}"
            for path, moved in counts.items()
            if len(moved) == 2
        ][:1]


def _with(value: Json, path: Path, leaf: Json) -> Json:
    if not path:
        return leaf
    inner = value if isinstance(value, dict) else {}
    if len(path) == 1 and leaf is None and path[0] in inner:
        return {name: one for name, one in inner.items() if name != path[0]}
    return {**inner, path[0]: _with(inner.get(path[0], {}), path[1:], leaf)}
