"""Replaces `textwrap.TextWrapper`, whose class has a table that all objects share."""

from __future__ import annotations

import textwrap
from typing import Any

__all__ = ["TextWrapper"]

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
