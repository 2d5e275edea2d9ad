"""The schemas of answers, in the form that servers with strict schemas take.

Every object lists all its properties as required and takes no others; a choice is an
`enum` of strings. What a schema of this kind cannot say, code checks afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["BOOLEAN", "TEXT", "choice", "many", "record"]

TEXT: dict[str, Any] = {"type": "string"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def record(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with just these properties."""
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
    # Plain texts: members of an enumeration do not cross into a worker.
    return {"type": "string", "enum": list(dict.fromkeys(map(str, words)))}
