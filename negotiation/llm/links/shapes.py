"""Shapes of calls besides one after the other: loops, choices, pages and joins.

A model names them in short flat lists of shown names. Each list, and the words about
it, stands in a question only where the schemas or the words of the document leave room
for it. Code renders and bounds them: `negotiation.llm.links.call_lines`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from negotiation.errors import JsonError
from negotiation.llm.asking.questions import BOOLEAN, TEXT, choice, many, record
from negotiation.llm.links.plans import ShownValues
from negotiation.llm.links.spots import (
    ITEMS,
    Root,
    Spot,
    bare_kind,
    covers,
    spots_of,
    without_null,
)
from negotiation.llm.links.trees import ValueLink
from negotiation.need import Capability, Schema
from negotiation.schema.keywords import cut
from negotiation.schema.terms import normal_name
from negotiation.schema.values import contradiction, types_of
from negotiation.strict_json import Json, parse_json

MAX_SHAPES: Final = 2
"Largest number of shapes of one kind in one answer."

MAX_FAILS: Final = 8
"Largest number of values that mean an error code."

ALTERNATIVES: Final = re.compile(
    r"\bif\b.{0,80}\b(?:no|none|not|without|lacks?|missing|unknown|absent|empty)\b"
    r"|otherwise|or else|fall ?back|\binstead\b|alternativ|否则|如果没有|备用",
    re.IGNORECASE | re.DOTALL,
)
"Words that may tell of a second source where the first has none."

REPETITION: Final = re.compile(
    r"\bretr(?:y|ies)|(?:try|call|ask)(?: it)? (?:again|once more|twice)|重试|再试",
    re.IGNORECASE,
)
"Words that may ask for a call to be repeated when it fails."

PAGING: Final = ("page", "cursor", "offset", "skip", "token", "marker", "after")
"Parts of names of arguments that choose a page."

NO_PAGING: Final = ("size", "limit", "per", "count", "auth", "access")
"Parts of names of arguments that do not, although they have one of the others."

TELLING: Final = ("status", "state", "result", "error", "code", "outcome", "reason")
"Parts of names of values that may tell of a failure."

WRAPPERS: Final = frozenset({"text", "result", "content", "output", "parts", "type"})
"Names of values that tell nothing about what is in them."

SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})

WORDS: Final[dict[str, str]] = {
    "each": "`call` is made once for each item of `list`. Its arguments may come from "
    "that item, and its places are those of the answer to it: `c:/price` to "
    "`result:/rows/*/price`.",
    "fallbacks": "`second` is called only if `first` has none: it fails with 404, "
    "gives too little for the result, or `place` in its answer is `value` (empty if "
    "absent). Call both, and link arguments and result for each of them.",
    "pages": "`call` is repeated until `list` in its answer is empty; `list` then "
    "holds the items of all pages. `argument` is the cursor that the answer before "
    "gives in `next`; if `next` is empty it counts pages, or items if `offset` is "
    "true, from `first`.",
    "joins": "items of two lists belong together where the keys `left` and `right` "
    "are equal; a row of the result may then take from both. All items of the left "
    "list are kept.",
    "again": "calls that are made once more if they fail for the moment.",
    "fails": "where `place` in an answer is `value` (empty if absent), the response "
    "is the error `code`.",
}
"Descriptions for a prompt."


@dataclass(frozen=True, slots=True)
class ShapeForm:
    """The shapes that a model may name for one document and offer."""

    lists: tuple[str, ...] = ()
    "Places of items for which a capability may be called one by one."

    alternatives: tuple[str, ...] = ()
    "Capabilities of which one may stand in for another."

    outputs: tuple[str, ...] = ()
    "Places of all outputs."

    paged: tuple[str, ...] = ()
    "Capabilities with an argument that chooses a page."

    arguments: tuple[str, ...] = ()
    "Those arguments."

    pages: tuple[str, ...] = ()
    "Lists of their outputs."

    following: tuple[str, ...] = ()
    "Other places of their outputs, of which one may be a cursor."

    keys: tuple[str, ...] = ()
    "Places by which items of two lists may belong together."

    again: tuple[str, ...] = ()
    "Capabilities that may be called a second time."

    telling: tuple[str, ...] = ()
    "Places of outputs whose value may tell of a failure."

    codes: tuple[str, ...] = ()
    "Error codes of the document."

    called: tuple[str, ...] = ()
    "All capabilities."

    def properties(self) -> dict[str, dict[str, Any]]:
        """Return the part of the answer's schema about shapes; mostly empty."""
        found: dict[str, dict[str, Any]] = {}
        if self.lists:
            one = record(list=choice(self.lists), call=choice(self.called))
            found["each"] = many(one, most=MAX_SHAPES)
        if self.alternatives:
            one = record(
                first=choice(self.alternatives),
                second=choice(self.alternatives),
                place=choice(["", *self.outputs]),
                value=TEXT,
            )
            found["fallbacks"] = many(one, most=MAX_SHAPES)
        if self.paged:
            one = record(
                call=choice(self.paged),
                list=choice(self.pages),
                argument=choice(self.arguments),
                next=choice(["", *self.following]),
                first=TEXT,
                offset=BOOLEAN,
            )
            found["pages"] = many(one, most=MAX_SHAPES)
        if self.keys:
            one = record(left=choice(self.keys), right=choice(self.keys))
            found["joins"] = many(one, most=1)
        if self.again:
            found["again"] = many(choice(self.again), most=len(self.again))
        if self.codes:
            one = record(
                place=choice(self.telling), value=TEXT, code=choice(self.codes)
            )
            found["fails"] = many(one, most=MAX_FAILS)
        return found

    def words(self) -> str:
        """Return the part of the prompt about shapes; empty where none can apply."""
        lines = [f"`{name}`: {WORDS[name]}" for name in self.properties()]
        if not lines:
            return ""
        return "\n".join(
            ["Besides `calls`, each list empty where it is not needed:", *lines]
        )


def shape_form(
    told: str,
    capabilities: Iterable[Capability],
    *,
    request: ShownValues,
    result: ShownValues,
    takes: Mapping[str, ShownValues],
    gives: Mapping[str, ShownValues],
    codes: Iterable[Json] = (),
) -> ShapeForm:
    """Return the shapes that may apply.

    Args:
        told: The words of the document.
        codes: Error codes that the document lists.
    """
    names = tuple(gives)
    wants_list = any(_is_list(one) for one in result.spots)
    outputs = tuple(spot.name for one in gives.values() for spot in one.spots)
    telling = tuple(
        spot.name for one in gives.values() for spot in one.spots if _tells(spot)
    )
    form = ShapeForm(called=names)
    if telling:
        form = replace(form, telling=telling, codes=tuple(map(str, codes)))
    by_item = any(
        spot.sure and len(spot.path) == 1 and not _is_list(spot)
        for one in takes.values()
        for spot in one.spots
    )
    lists = _lists(request)
    if wants_list:
        lists += [
            one
            for name, each in gives.items()
            for one in _lists(each)
            if _looked_up(one, each, name, takes, gives)
        ]
    if by_item:
        form = replace(form, lists=tuple(lists))
    if len(names) > 1 and (ALTERNATIVES.search(told) or _alike(takes, gives)):
        form = replace(form, alternatives=names)
    if wants_list:
        form = replace(form, **_paged(takes, gives), keys=_keys(request, gives))
    if REPETITION.search(told):
        safe = (one for one in capabilities if one.read_only or one.idempotent)
        form = replace(form, again=tuple(one.name for one in safe if one.name in gives))
    return replace(form, outputs=outputs)


def _is_list(spot: Spot) -> bool:
    return bare_kind(without_null(spot.schema)) == "array"


def _tells(spot: Spot) -> bool:
    """Return whether a value may tell that a capability failed, as its answer."""
    if not spot.path or ITEMS in spot.path:
        return False
    kind = bare_kind(without_null(spot.schema))
    named = any(one in spot.path[-1].casefold() for one in TELLING)
    return kind in SCALARS and (named or kind == "boolean" or not spot.sure)


def _lists(shown: ShownValues) -> list[str]:
    """Return the places of the items of lists that are in no other list."""
    return [
        spot.name
        for spot in shown.spots
        if spot.path[-1:] == (ITEMS,) and spot.path.count(ITEMS) == 1
    ]


def _looked_up(
    items: str,
    shown: ShownValues,
    giver: str,
    takes: Mapping[str, ShownValues],
    gives: Mapping[str, ShownValues],
) -> bool:
    """Return whether another capability may tell more about each item of a list.

    It then takes an item, or an argument with the name of one of its values.
    """
    at = shown.find(items)
    assert at is not None, "a place that is shown"
    plain = bare_kind(without_null(at.schema)) in SCALARS
    known = [
        normal_name(spot.path[-1])
        for spot in shown.spots
        if covers(at, spot) and len(spot.path) == len(at.path) + 1
    ]
    for name, taken in takes.items():
        needed = [one for one in taken.spots if one.sure and len(one.path) == 1]
        tells = any(one.path for one in gives[name].spots)
        if name == giver or not tells or len(needed) != 1:
            continue
        argument = normal_name(needed[0].path[0])
        if plain or any(
            argument.endswith(one) or one.endswith(argument) for one in known
        ):
            return True
    return False


def _alike(takes: Mapping[str, ShownValues], gives: Mapping[str, ShownValues]) -> bool:
    """Return whether two capabilities need the same and give a value of one name."""
    seen: list[tuple[set[str], set[tuple[str, str]]]] = []
    for name, shown in gives.items():
        needed = {
            normal_name(one.path[0])
            for one in takes[name].spots
            if one.sure and len(one.path) == 1
        }
        given = {
            (normal_name(spot.path[-1]), bare_kind(without_null(spot.schema)))
            for spot in shown.spots
            if spot.path and spot.path[-1] not in {ITEMS, *WRAPPERS}
        }
        given = {pair for pair in given if pair[1] in SCALARS}
        if any(needed == others and given & theirs for others, theirs in seen):
            return True
        seen.append((needed, given))
    return False


def _paged(
    takes: Mapping[str, ShownValues], gives: Mapping[str, ShownValues]
) -> dict[str, Any]:
    found: dict[str, tuple[str, ...]] = {}
    for name, taken in takes.items():
        arguments = tuple(one.name for one in taken.spots if _chooses_page(one))
        plain = [one for one in gives[name].spots if ITEMS not in one.path]
        pages = tuple(one.name for one in plain if _is_list(one))
        if not arguments or not pages:
            continue
        others = tuple(one.name for one in plain if one.path and not _is_list(one))
        for key, more in (
            ("paged", (name,)),
            ("arguments", arguments),
            ("pages", pages),
            ("following", others),
        ):
            found[key] = (*found.get(key, ()), *more)
    return found


def _chooses_page(spot: Spot) -> bool:
    if len(spot.path) != 1 or not types_of(spot.schema) & {"integer", "string"}:
        return False
    name = spot.path[0].casefold()
    return any(one in name for one in PAGING) and not any(
        one in name for one in NO_PAGING
    )


def _keys(request: ShownValues, gives: Mapping[str, ShownValues]) -> tuple[str, ...]:
    """Return the scalars of items of lists, if there are lists to be joined."""
    found: list[Spot] = []
    lists: set[tuple[str, ...]] = set()
    for shown in (request, *gives.values()):
        for spot in shown.spots:
            kind = bare_kind(without_null(spot.schema))
            is_key = kind in SCALARS - {"boolean"} and spot.path[-1:] != (ITEMS,)
            if is_key and spot.path.count(ITEMS) == 1:
                found.append(spot)
                lists.add((spot.root, *spot.path[: spot.path.index(ITEMS)]))
    if len(lists) < 2 or lists <= {one for one in lists if one[0] == "request"}:
        return ()
    return tuple(one.name for one in found)


def meant_value(schema: Schema, text: str) -> Json:
    """Return the value at a place that `text` means; None for an absent one.

    Raises:
        ValueError: The schema has no such value.
    """
    if not text.strip():
        return None
    tried: list[Json] = [text]
    with contextlib.suppress(JsonError):
        tried.insert(0, parse_json(text, max_size=4_000))
    for value in tried:
        if contradiction(schema, value) is None:
            return value
    raise ValueError(f"{cut(text)} is no value that is possible there")


@dataclass(frozen=True, slots=True)
class Pairing:
    """A list of pairs: the items of a list, each with what belongs to it."""

    root: Root

    left: Spot
    "The items of the list."

    right: Spot
    "The partners: an output of the call for each item, or the items of a second list."

    aliases: dict[str, str] = field(compare=False)
    "Beginnings of the names of its places, and those that a model was shown."

    def moved(self, links: Sequence[ValueLink]) -> list[ValueLink]:
        """Return the links with those of rows that need pairs moved to the pairs."""
        of_list: dict[tuple[str, ...], list[ValueLink]] = {}
        for link in links:
            of_list.setdefault(_to_items(link.target), []).append(link)
        changed: list[ValueLink] = []
        for prefix, group in of_list.items():
            sources = [spot for link in group for spot in link.sources]
            needed = prefix and any(covers(self.right, one) for one in sources)
            if self.right.path:
                # Rows of one list alone stay what they are.
                needed = needed and any(covers(self.left, one) for one in sources)
            changed += map(self._moved, group) if needed else group
        return changed

    def _moved(self, link: ValueLink) -> ValueLink:
        return replace(link, sources=tuple(map(self._side, link.sources)))

    def _side(self, spot: Spot) -> Spot:
        for name, side in (("left", self.left), ("right", self.right)):
            if covers(side, spot):
                path = (ITEMS, name, *spot.path[len(side.path) :])
                inside = (one for one in spots_of(self.root) if one.path == path)
                moved = Spot(self.root.name, path, spot.schema, spot.sure)
                return next(inside, moved)
        return spot


def _to_items(path: tuple[str, ...]) -> tuple[str, ...]:
    return path[: path.index(ITEMS) + 1] if ITEMS in path else ()


def paired(name: str, left: Spot, right: Spot) -> Pairing:
    """Return the pairs of two sides.

    Args:
        name: Name for them, in reasons too.
    """
    joined = bool(right.path)
    schema: Schema = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"left": left.schema, "right": right.schema},
            # An item of a list may have no partner in the other one.
            "required": ["left"] if joined else ["left", "right"],
        },
    }
    aliases = {f"{name}:/*/left": left.name, f"{name}:/*/right": right.name}
    return Pairing(Root(name, schema, paired=True), left, right, aliases)


def unbounded(schema: Schema, path: Sequence[str]) -> Schema:
    """Return a schema whose list at `path` may have the items of many pages."""
    if not isinstance(schema, dict):
        return schema
    if not path:
        inner = without_null(schema)
        kept = inner if isinstance(inner, dict) else schema
        limits = {"minItems", "maxItems", "uniqueItems"}
        return {name: one for name, one in kept.items() if name not in limits}
    inner = without_null(schema)
    base = inner if isinstance(inner, dict) else schema
    properties = dict(base.get("properties", {}))
    properties[path[0]] = unbounded(properties.get(path[0], True), path[1:])
    required = list(dict.fromkeys([*base.get("required", ()), path[0]]))
    return {**base, "properties": properties, "required": required}
