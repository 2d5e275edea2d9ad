"""Makes different valid texts for a format or a simple pattern; runs no pattern.

A check that has only one text of a format holds against a half what is true of that
text alone. Callers validate the texts: a pattern is only read, as far as this module
understands it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

FORMATS: Final[dict[str, Callable[[int], str]]] = {
    "date-time": lambda n: (
        f"{2000 + n % 99}-{n % 12 + 1:02}-{n % 28 + 1:02}"
        f"T{(n * 5) % 24:02}:{n % 60:02}:{(n * 7) % 60:02}Z"
    ),
    "date": lambda n: f"{2000 + n % 99}-{n % 12 + 1:02}-{n % 28 + 1:02}",
    "time": lambda n: f"{(n * 5) % 24:02}:{n % 60:02}:{(n * 7) % 60:02}Z",
    "duration": lambda n: f"PT{n}M",
    "email": lambda n: f"someone{n}@host{n}.example",
    "idn-email": lambda n: f"someone{n}@host{n}.example",
    "hostname": lambda n: f"host{n}.example",
    "idn-hostname": lambda n: f"host{n}.example",
    "ipv4": lambda n: f"192.0.{n % 250 + 1}.{n % 250 + 1}",
    "ipv6": lambda n: f"2001:db8::{n:x}:{n:x}",
    "uri": lambda n: f"https://host{n}.example/{n}?q={n}",
    "uri-reference": lambda n: f"/a{n}/{n}",
    "iri": lambda n: f"https://host{n}.example/{n}?q={n}",
    "iri-reference": lambda n: f"/a{n}/{n}",
    "uuid": lambda n: f"{(n * 7919) % 2**32:08x}-e89b-42d3-a456-{n:012}",
    "json-pointer": lambda n: f"/a{n}/{n}",
    "regex": lambda n: f"^a{{{n}}}$",
}
"For each known format, a function that makes a text from a number, in all its parts."

MAX_PATTERN: Final = 300
"Longest pattern that is read, in characters."

MAX_REPEATED: Final = 64
"Largest number of characters that one repetition may need."

CLASSES: Final = {"d": "0123456789", "w": "abcdefghijklmnopqrstuvwxyz0123456789"}
COUNT: Final = re.compile(r"\{(\d{1,3})(,(\d{1,3})?)?\}")
PLAIN: Final = "abcdefghijklmnopqrstuvwxyz"


def text_of(schema: dict[str, Any], number: int) -> str | None:
    """Return a text for the format or pattern of a schema; None where none is known.

    Args:
        number: Different numbers give different texts, as far as there are any.
    """
    if "pattern" in schema:
        return _by_pattern(str(schema["pattern"]), number)
    make = FORMATS.get(str(schema.get("format")))
    return None if make is None else make(number)


class _UnknownError(Exception):
    """The pattern has something that is not understood here."""


def _by_pattern(pattern: str, number: int) -> str | None:
    if len(pattern) > MAX_PATTERN:
        return None
    inner = pattern.removeprefix("^")
    if inner.endswith("$") and not inner.endswith("\\$"):
        inner = inner[:-1]
    try:
        return _Pattern(inner, number).text()
    except (_UnknownError, IndexError, ValueError):
        return None


class _Pattern:
    """Reads characters, classes and counts, one after the other."""

    def __init__(self, pattern: str, number: int) -> None:
        self._left = pattern
        self._number = number

    def text(self) -> str:
        """Return a text that fits.

        Raises:
            _UnknownError: The pattern has groups, choices or other things.
        """
        made = ""
        while self._left:
            characters = self._characters()
            for _ in range(self._count()):
                made += characters[self._number % len(characters)]
                self._number = self._number // len(characters) + self._number + 1
        return made

    def _take(self, count: int = 1) -> str:
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def _characters(self) -> str:
        one = self._take()
        if one == "\\":
            return self._escaped(self._take())
        if one == "[":
            return self._class()
        if one in "(|)*+?{}^$":
            raise _UnknownError
        return PLAIN if one == "." else one

    def _escaped(self, letter: str) -> str:
        if letter in CLASSES:
            return CLASSES[letter]
        if letter.isalnum() or not letter:
            raise _UnknownError
        return letter

    def _class(self) -> str:
        if self._left.startswith("^"):
            raise _UnknownError
        found = ""
        while not self._left.startswith("]"):
            one = self._take()
            if not one:
                raise _UnknownError
            if one == "\\":
                found += self._escaped(self._take())
            elif self._left[:1] == "-" and self._left[1:2] not in ("]", ""):
                last = self._left[1]
                self._take(2)
                found += "".join(map(chr, range(ord(one), min(ord(last), 0x17F) + 1)))
            else:
                found += one
        self._take()
        if not found:
            raise _UnknownError
        return found

    def _count(self) -> int:
        if counted := COUNT.match(self._left):
            self._take(counted.end())
            count = int(counted[1])
        elif self._left[:1] in ("*", "+", "?") and self._left:
            self._take()
            count = 1
        else:
            count = 1
        if count > MAX_REPEATED or (self._left[:1] in ("?", "+") and self._left):
            raise _UnknownError
        return count
