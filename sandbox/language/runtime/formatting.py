"""`str.format` without attribute look-ups, which a template as data could misuse."""

from __future__ import annotations

import re
from _string import (  # type: ignore[import-not-found]  # what `string` is made of
    formatter_field_name_split,
    formatter_parser,
)
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["format_map_text", "format_text"]

_SUSPECT = re.compile(r"\{[^{}:!]*[.\[]")
"Matches a field that looks something up; all others cannot reach any object."

MAX_NESTING = 2
"Nested templates in format specifications, as in CPython."


def format_text(template: str, /, *args: Any, **kwargs: Any) -> str:
    """Replaces `str.format`; AttributeError for a field with an attribute."""
    text = _exact(template)
    if _SUSPECT.search(text) is None:
        return text.format(*args, **kwargs)
    return _Formatting(args, kwargs).run(text, MAX_NESTING)


def format_map_text(template: str, mapping: Any, /) -> str:
    """Replaces `str.format_map`."""
    text = _exact(template)
    if _SUSPECT.search(text) is None:
        return text.format_map(mapping)
    return _Formatting((), mapping).run(text, MAX_NESTING)


def _exact(template: Any) -> str:
    if not isinstance(template, str):
        raise TypeError("format needs a str")
    # A subclass could show one text to us and another to the interpreter.
    return str.__getitem__(template, slice(None))


class _Formatting:
    def __init__(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        self._args = args
        self._named = named
        self._next: int | None = 0

    def run(self, text: str, depth: int) -> str:
        if depth < 0:
            raise ValueError("Max string recursion exceeded")
        parts = []
        for literal, field, specification, conversion in formatter_parser(text):
            parts.append(literal)
            if field is None:
                continue
            value = self._look_up(field)
            if conversion == "r":
                value = repr(value)
            elif conversion == "s":
                value = str(value)
            elif conversion == "a":
                value = ascii(value)
            elif conversion is not None:
                raise ValueError(f"Unknown conversion specifier {conversion!r}")
            nested = self.run(specification, depth - 1) if specification else ""
            parts.append(format(value, nested))
        return "".join(parts)

    def _look_up(self, field: str) -> Any:
        first, rest = formatter_field_name_split(field)
        named = type(first) is str and first != ""
        value: Any = self._named[first] if named else self._positional(first)
        for is_attribute, key in rest:
            if is_attribute:
                raise AttributeError(
                    f"format looks up no attribute ({key}); use an f-string"
                )
            value = value[key]
        return value

    def _positional(self, first: str | int) -> Any:
        automatic = first == ""
        if automatic and self._next is None:
            raise ValueError(
                "cannot switch from manual field specification to automatic field "
                "numbering"
            )
        if not automatic and self._next:
            raise ValueError(
                "cannot switch from automatic field numbering to manual field "
                "specification"
            )
        if automatic:
            assert self._next is not None
            index, self._next = self._next, self._next + 1
        else:
            index, self._next = int(first), None
        if index >= len(self._args):
            raise IndexError(
                f"Replacement index {index} out of range for positional args tuple"
            )
        return self._args[index]
