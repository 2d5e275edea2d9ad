"""Patterns of our own that are compiled when they are first used.

There are a hundred, some of which take milliseconds to compile, and a daemon needs none
of them to start.
"""

from __future__ import annotations

import re
from typing import Any, cast


def late_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use, with `re.compile`.

    It has the methods of a pattern, but is no argument for the functions of `re`.
    """
    return cast("re.Pattern[str]", _LatePattern(text, flags))


class _LatePattern:
    """Stands for a pattern; after the first use its methods are the pattern's own."""

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # Asked for by `copy` and others, before there is a text.
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found
