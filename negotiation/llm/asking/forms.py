"""Builds schemas of answers in the form that strict servers accept.

Every object requires all its properties and allows no others; a choice is an `enum` of
strings. Conditions that such a schema cannot express are checked by code afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["BOOLEAN", "TEXT", "choice", "many", "record"]

TEXT: dict[str, Any] = {"type": "string"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def record(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def many(items: dict[str, Any], *, most: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "maxItems": most}


def choice(words: Iterable[str]) -> dict[str, Any]:
    """Return the schema of one of `words`, in their order, each once."""
    # Plain strings, since enumeration members cannot be sent to a worker.
    return {"type": "string", "enum": list(dict.fromkeys(map(str, words)))}
