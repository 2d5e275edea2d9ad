"""Messages of a sealed group in messages that the hub passes on unread.

The hub sees a message with one data item: sealed bytes, or keys. Everything that the
members say is inside: parts, purpose, the task's id and metadata.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from anp.interaction.elements import Message, MessagePurpose, Part, PartKind, SenderRole
from anp.protocols.fields import Fields, invalid
from anp.protocols.gbz.reader import read_message
from anp.protocols.gbz.writer import json_bytes, written_message
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

SEALED_TYPE: Final = "application/vnd.anpd.sealed"
"Media type of a sealed message."

KEYS_TYPE: Final = "application/vnd.anpd.sealing+json"
"Media type of entries, packages and grants."

MAX_KEYS: Final = 1024
"Most entries, packages and grants in one message."

MAX_CONTENT: Final = 16 * 1024 * 1024


def content_bytes(message: Message) -> bytes:
    """Return the bytes of a message that are to be sealed."""
    return json_bytes(written_message(message))


def read_content(data: bytes, outer: Message, *, sender: str) -> Message:
    """Return the message of unsealed bytes; its sender is the one that sealed it.

    Raises:
        InteractionError: They are no message.
    """
    try:
        fields = Fields(parse_json(data, max_size=MAX_CONTENT), "a sealed message")
    except JsonError as exc:
        raise invalid(f"a sealed message: {exc}") from None
    found = read_message(fields)
    return replace(found, sender=sender, session=outer.session)


def sealed_message(data: bytes, message: Message) -> Message:
    """Return the message that carries sealed bytes in place of `message`."""
    part = Part(kind=PartKind.BYTES, content=data, media_type=SEALED_TYPE)
    # Agents choose ids, and may put words into them.
    name = hashlib.sha256(data).hexdigest()
    return _carrier(f"sealed-{name[:32]}", message.session, message.sender, part)


def keys_message(
    items: Sequence[Mapping[str, Any]], *, id: str, group: str, sender: str
) -> Message:
    """Return the message that carries entries, packages and grants."""
    part = Part(kind=PartKind.JSON, content=list(items), media_type=KEYS_TYPE)
    return _carrier(id, group, sender, part)


def sealed_of(message: Message) -> bytes | None:
    """Return the sealed bytes that a message carries, or None."""
    part = message.parts[0]
    if part.media_type != SEALED_TYPE or len(message.parts) > 1:
        return None
    return part.content if isinstance(part.content, bytes) else None


def keys_of(message: Message) -> list[Any] | None:
    """Return the entries, packages and grants that a message carries, or None."""
    part = message.parts[0]
    if part.media_type != KEYS_TYPE or not isinstance(part.content, list):
        return None
    return part.content[:MAX_KEYS]


def _carrier(id: str, session: str, sender: str, part: Part) -> Message:
    return Message(
        id=id,
        session=session,
        sender=sender,
        role=SenderRole.REQUESTER,
        purpose=MessagePurpose.COMMUNICATION,
        parts=(part,),
    )
