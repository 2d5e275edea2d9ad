"""The shapes of a provider half's calls, told in its source for its own check.

A half may ask page after page, once for each item, a second capability where the first
has none, or join two lists by a key. Samples then have to be pages that end and lists
whose keys meet, and the check knows how many calls are due. So a module may contain
`SHAPES = {"each": [["shop.price", "request", ["items"]]]}`. The half never uses it; it
is read from the source, which is not run.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from jsonic.exact_numbers import write_json
from negotiation.document.message_judge import find
from negotiation.errors import JsonError
from negotiation.python_source import module_tree
from negotiation.rules.literals import literal
from negotiation.schema.values import same_json
from negotiation.strict_json import Json, parse_json

NAME: Final = "SHAPES"

MAX_MADE: Final = 60
"Largest number of capability calls that such a half makes for one request."

MAX_SHAPES: Final = 8
"Largest number of shapes of one kind; others are ignored."

MAX_SIZE: Final = 64 * 1024
"Most bytes of all shapes of a module; a half is no larger."

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ItemCalls:
    """A capability that is called once for each item of a list."""

    capability: str

    root: str
    "The value with the list: `request`, or the name of a capability called before."

    path: Path
    "The list in it."


@dataclass(frozen=True, slots=True)
class PagedCalls:
    """A capability that is called for page after page."""

    capability: str

    argument: str
    "The argument that chooses the page."

    items: Path
    "The list in its output, empty after the last page."

    following: Path
    "The cursor of the next page in its output; empty when pages are counted."

    offset: bool
    "True when the argument counts items and not pages."


@dataclass(frozen=True, slots=True)
class KeyJoin:
    """Two lists whose items belong together where their keys are equal."""

    left: tuple[str, Path]
    "Root and path of the key in each item of the list that is kept whole."

    right: tuple[str, Path]
    "The same of the list in which the partners are looked for."


@dataclass(frozen=True, slots=True)
class Fallback:
    """A capability that is asked where another one has none."""

    first: str
    second: str

    place: Path | None = None
    "Place in the first output that tells; None if only a failure does."

    value: Json = None
    "The value there that means none; null for one that is absent or empty."


@dataclass(frozen=True, slots=True)
class FailingValue:
    """A value in an output that means one of the document's error codes."""

    capability: str
    place: Path

    value: Json
    "The value; null for one that is absent or empty."

    code: str

    def is_in(self, output: Json) -> bool:
        """Return whether an output has the value."""
        return means(find(output, self.place), self.value)


def means(found: Json, value: Json) -> bool:
    """Return whether a value is the one that is meant; null for absent or empty."""
    if value is None:
        return found is None or found in ("", [])
    return same_json(found, value)


@dataclass(frozen=True, slots=True)
class ModuleShapes:
    """All shapes of one half; empty for one that makes its calls once, in a row."""

    each: tuple[ItemCalls, ...] = ()
    pages: tuple[PagedCalls, ...] = ()
    joins: tuple[KeyJoin, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()

    again: tuple[str, ...] = ()
    "Capabilities whose calls are repeated once after a passing failure."

    fails: tuple[FailingValue, ...] = ()

    def repeats(self, capability: str) -> bool:
        """Return whether a capability is called several times for one request."""
        names = [one.capability for one in self.each]
        return capability in [*names, *(one.capability for one in self.pages)]


def shapes_line(shapes: ModuleShapes) -> str:
    """Return the line of a module with its shapes; empty if it has none."""
    told: dict[str, Json] = {
        "each": [[one.capability, one.root, [*one.path]] for one in shapes.each],
        "pages": [
            [one.capability, one.argument, [*one.items], [*one.following], one.offset]
            for one in shapes.pages
        ],
        "joins": [
            [one.left[0], [*one.left[1]], one.right[0], [*one.right[1]]]
            for one in shapes.joins
        ],
        "fallbacks": [
            [one.first, one.second, one.place and [*one.place], one.value]
            for one in shapes.fallbacks
        ],
        "again": [*shapes.again],
        "fails": [
            [one.capability, [*one.place], one.value, one.code] for one in shapes.fails
        ],
    }
    kept = {name: listed for name, listed in told.items() if listed}
    return f"{NAME} = {literal(kept)}" if kept else ""


def shapes_in(source: str) -> ModuleShapes:
    """Return the shapes that a module tells; those that cannot be read are left out."""
    try:
        told = _told(module_tree(source))
        return ModuleShapes(
            each=tuple(
                ItemCalls(_text(name), _text(root), _path(path))
                for name, root, path in _rows(told, "each")
            ),
            pages=tuple(
                PagedCalls(
                    _text(name),
                    _text(argument),
                    _path(items),
                    _path(following),
                    offset is True,
                )
                for name, argument, items, following, offset in _rows(told, "pages")
            ),
            joins=tuple(
                KeyJoin((_text(one), _path(key)), (_text(other), _path(its)))
                for one, key, other, its in _rows(told, "joins")
            ),
            fallbacks=tuple(
                Fallback(
                    _text(first),
                    _text(second),
                    None if place is None else _path(place),
                    value,
                )
                for first, second, place, value in _rows(told, "fallbacks")
            ),
            again=tuple(map(_text, _rows(told, "again"))),
            fails=tuple(
                FailingValue(_text(name), _path(place), value, _text(code))
                for name, place, value, code in _rows(told, "fails")
            ),
        )
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, JsonError):
        # Another check reports a text that is not Python.
        return ModuleShapes()


def _told(tree: ast.Module) -> dict[str, Any]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=given) if name == NAME:
                # A literal may be more than JSON, such as a set or an infinite number.
                text = write_json(ast.literal_eval(given))
                told = parse_json(text, max_size=MAX_SIZE)
                return told if isinstance(told, dict) else {}
    return {}


def _rows(told: dict[str, Any], name: str) -> list[Any]:
    rows = told.get(name, [])
    if not isinstance(rows, list):
        raise TypeError
    return rows[:MAX_SHAPES]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: object) -> Path:
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(_text, value))
