"""Source text of plain values: the only form in which foreign data enters a half."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jsonic.exact_numbers import ExactFloat
from negotiation.errors import HalfError
from negotiation.strict_json import Json


def literal(value: Json) -> str:
    """Return the source text of a plain value.

    Raises:
        HalfError: It is not of plain JSON types, so that its `repr` is not safe.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return repr(value)
    if isinstance(value, float) and kind is float and math.isfinite(value):
        return repr(value)
    if isinstance(value, ExactFloat):
        # A number in source text would be rounded.
        return f"json.loads({str(value)!r})"
    if isinstance(value, list) and kind is list:
        return "[" + ", ".join(map(literal, value)) + "]"
    names_are_plain = isinstance(value, dict) and all(type(key) is str for key in value)
    if isinstance(value, dict) and kind is dict and names_are_plain:
        pairs = (f"{key!r}: {literal(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    raise HalfError("rejected", "a constant of the document is no plain JSON value")


def names_literal(names: Sequence[str]) -> str:
    """Return the source text of a tuple of names."""
    return "(" + "".join(f"{name!r}, " for name in names).rstrip(" ") + ")"


def indented(lines: Sequence[str]) -> list[str]:
    """Return `lines` indented by one level."""
    return [f"    {line}" for line in lines]
