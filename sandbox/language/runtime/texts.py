"""Replacements for `str.format` and `textwrap.TextWrapper`.

A template may be data, which could misuse attribute look-ups; so this `format` has
none. The original TextWrapper has a table that all its objects share.
"""

from __future__ import annotations

import re
import textwrap
from _string import formatter_field_name_split, formatter_parser  # type: ignore[import-not-found]  # what `string` is made of
from collections.abc import Mapping, Sequence
from typing import Any

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


_DEFAULTS: dict[str, Any] = {
    "width": 70,
    "initial_indent": "",
    "subsequent_indent": "",
    "expand_tabs": True,
    "replace_whitespace": True,
    "fix_sentence_endings": False,
    "break_long_words": True,
    "drop_whitespace": True,
    "break_on_hyphens": True,
    "tabsize": 8,
    "max_lines": None,
    "placeholder": " [...]",
}


class TextWrapper:
    """Wraps text with the options in its attributes."""

    def __init__(self, width: int = 70, **options: Any) -> None:
        for name in options:
            if name not in _DEFAULTS:
                raise TypeError(f"TextWrapper has no option {name!r}")
        self.__dict__.update({**_DEFAULTS, "width": width, **options})

    def wrap(self, text: str) -> list[str]:
        """Return the lines of the wrapped `text`."""
        options: Any = {name: self.__dict__.get(name) for name in _DEFAULTS}
        return textwrap.TextWrapper(**options).wrap(text)

    def fill(self, text: str) -> str:
        """Return the wrapped `text` as one text."""
        return "\n".join(self.wrap(text))
