"""The contents that one part of a plan gave, put together for the whole."""

from __future__ import annotations

from collections.abc import Sequence

from anp.interaction.chunks import join_parts
from anp.interaction.elements import Message, Part


def contents_of(messages: Sequence[Message]) -> list[Part]:
    """Return the contents of a part's results, without the files.

    A file stays with the task that it came for, whose id the message about it has.

    Args:
        messages: The results in the order in which they came, chunks in any.
    """
    by_message: dict[str, list[Message]] = {}
    for message in messages:
        by_message.setdefault(message.id, []).append(message)
    found: list[Part] = []
    for chunks in by_message.values():
        chunks.sort(key=lambda one: 0 if one.chunk is None else one.chunk.index)
        found += join_parts(part for one in chunks for part in one.parts)
    return [part for part in found if not part.is_file]
