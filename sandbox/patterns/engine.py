"""Compiled patterns, and the search for them in a text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from sandbox.patterns.translation import PatternError, quiet_options, translated

MAX_MEMORY: Final = 2 * 1024 * 1024
"Bytes that one compiled pattern may take; the search of a text keeps to them too."

MAX_COMPILED: Final = 64
"Compiled patterns that are kept; with `MAX_MEMORY` half of the memory of a worker."


@lru_cache(maxsize=MAX_COMPILED)
def compiled(pattern: str) -> Any:
    """Return a pattern of ECMA-262, compiled by RE2.

    Raises:
        PatternError: See `translated`; or it takes too much memory.
    """
    try:
        return re2.compile(translated(pattern), _options())
    except re2.error as exc:
        text = exc.args[0] if exc.args else ""
        words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if str(words).startswith("invalid repetition size"):
            words = "repetitions inside each other come to more than 1000"
        raise PatternError(
            f"the pattern does not compile: {str(words)[:100]}"
        ) from None
    except UnicodeEncodeError:
        raise PatternError("the pattern has a lone surrogate") from None


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern of ECMA-262 is found anywhere in a text.

    Raises:
        PatternError: See `compiled`.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        # A lone surrogate is one character that no pattern here can name.
        data = (
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        )
    return compiled(pattern).search(data) is not None


def _options() -> re2.Options:
    options = quiet_options()
    options.max_mem = MAX_MEMORY
    options.never_capture = True
    return options
