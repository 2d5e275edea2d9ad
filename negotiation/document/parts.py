"""The parts of a message: fields that a half fills in, and the place of the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from negotiation.need import Schema
from negotiation.strict_json import Json

__all__ = ["Fixed", "Mark", "Message", "Place", "Slot", "build_message"]


class Slot(Enum):
    """A field that a half fills in when it writes a message."""

    MESSAGE_ID = auto()
    ACTION = auto()
    CODE = auto()
    CODE_TEXT = auto()
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that is the same in every message."""

    value: Json


@dataclass(frozen=True, slots=True)
class Mark:
    """A field that distinguishes success from failure."""

    path: tuple[str, ...]
    "Names from the top of the message to the field."

    good: tuple[Json, ...]
    "The values that mean success; we write the first."

    bad: Slot | Fixed
    "The value that we write when something failed."

    required: bool
    "False when a message may leave it out, which then has no meaning."


@dataclass(frozen=True, slots=True)
class Place:
    """The place of the values in a message."""

    path: tuple[str, ...]
    "Name of the property that holds them; empty when they are among the other fields."

    schema: Schema
    "Schema of the values."

    optional: bool = False
    "True when the property may be absent."


Message = tuple[tuple[tuple[str, ...], Slot | Fixed], ...]
"The fields of a message other than its values, each with its path."


def build_message(
    fields: Message,
    slots: Mapping[Slot, Json],
    *,
    place: Place | None = None,
    value: Json = None,
) -> dict[str, Json]:
    """Return a message of `fields`, with `value` at `place` if one is given."""
    message: dict[str, Any] = {}
    if place is not None and place.path:
        message[place.path[0]] = value
    elif place is not None and isinstance(value, dict):
        message.update(value)
    for path, leaf in fields:
        inner = message
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = leaf.value if isinstance(leaf, Fixed) else slots[leaf]
    return message
