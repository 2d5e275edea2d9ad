"""The objects in messages of the envelope 1.1: sessions, tasks, messages and parts."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from anp.interaction.elements import (
    Chunk,
    Message,
    Part,
    PartKind,
    Party,
    PartyMode,
    SenderRole,
    Session,
    Task,
)
from anp.interaction.states import MAX_STATE, TaskState, is_legal
from anp.protocols.envelope.session_words import MODES, PURPOSES, ROLES, SessionEntry
from anp.protocols.fields import MAX_ITEMS, MAX_PARTIES, Fields, invalid
from negotiation.strict_json import Json


def read_session(fields: Fields) -> Session:
    """Read a session, whose id stands elsewhere; InteractionError if it is none."""
    parties = fields.items("participants", limit=MAX_PARTIES)
    if not parties:
        raise invalid("parameters: participants is not an array of at least one")
    return Session(
        id="",
        requester=_party(fields.inner(fields.take("requester"), "requester")),
        participants=tuple(
            _party(fields.inner(one, "a participant")) for one in parties
        ),
        expires=fields.date_time("expires"),
        context=read_mixed(fields, "context"),
        extra=dict(fields.rest),
    )


def _party(fields: Fields) -> Party:
    address = fields.address("address") if fields.has("address") else ""
    mode = fields.word("mode", MODES, needed=False) or PartyMode.P2P
    return Party(
        id=fields.text("id"),
        address=address,
        mode=mode,
        params=fields.mapping("params"),
        extra=dict(fields.rest),
    )


def read_mixed(fields: Fields, name: str) -> tuple[Message, ...] | tuple[Task, ...]:
    """Read an array that has messages only, or tasks only."""
    values = fields.items(name, limit=MAX_ITEMS)
    found = [fields.inner(one, f"an element of {name}") for one in values]
    kinds = {(one.has("parts"), one.has("state")) for one in found}
    if kinds - {(True, False), (False, True)} or len(kinds) > 1:
        raise invalid(f"{name} has neither messages only nor tasks only")
    if kinds == {(True, False)}:
        return tuple(read_said(one) for one in found)
    return tuple(read_task(one) for one in found)


def read_task(fields: Fields, *, id: str = "", session: str = "") -> Task:
    """Read a task; one whose id stands elsewhere is given it, and has no state."""
    messages = read_mixed(fields, "messages")
    depends_on = fields.items("depends_on", limit=MAX_ITEMS)
    if not all(isinstance(one, str) for one in depends_on):
        raise invalid("a task: depends_on is not an array of texts")
    if not all(isinstance(one, Message) for one in messages):
        raise invalid("a task: messages has something else")
    told: dict[str, Any] = {}
    if not id:
        told = {
            "id": fields.text("message_id"),
            "session": fields.text("session_id"),
            "state": _state(fields),
            "changed_at": fields.date_time("at"),
            "capability": fields.optional_text("action"),
            "code": fields.optional_text("code", limit=MAX_STATE),
            "reason": fields.for_people("reason"),
            "may_have_run": fields.boolean("may_have_run") or False,
        }
    else:
        told = {"id": id, "session": session, "state": TaskState.REQUESTED}
    return Task(
        **told,
        requester="",
        executor="",
        messages=tuple(one for one in messages if isinstance(one, Message)),
        depends_on=tuple(depends_on),
        inputs=read_mixed(fields, "inputs"),
        parent=fields.optional_text("parent"),
        trigger=fields.mapping("trigger") or None,
        extra=dict(fields.rest),
    )


def _state(fields: Fields) -> str:
    state = fields.text("state", limit=MAX_STATE)
    if not is_legal(state):
        raise invalid("a task: state is not one of the words for states")
    return state


def read_said(
    fields: Fields,
    *,
    session: str = "",
    task: str = "",
    sender: str = "",
    role: SenderRole | None = None,
) -> Message:
    """Read a message; its place is read from it where it is not given."""
    chunk = None
    if not session:
        session = fields.text("session_id")
        sender = fields.text("sender_id")
        task = fields.optional_text("task")
        chunk = read_chunk(fields)
    if role is None:
        role = fields.word("role", ROLES)
    parts = fields.items("parts", limit=MAX_ITEMS)
    if not parts:
        raise invalid(f"a message: parts is not an array of 1 to {MAX_ITEMS}")
    return Message(
        id=fields.text("id"),
        session=session,
        task=task,
        sender=sender,
        role=role,
        purpose=fields.word("purpose", PURPOSES, needed=False),
        final=fields.boolean("final"),
        chunk=chunk,
        parts=tuple(_part(fields.inner(one, "a part")) for one in parts),
        metadata=fields.mapping("metadata"),
        extra=dict(fields.rest),
    )


def read_chunk(fields: Fields) -> Chunk | None:
    """Read the place of a chunk in its message; None for a whole message."""
    index = fields.integer(SessionEntry.CHUNK_INDEX)
    last = fields.boolean(SessionEntry.LAST_CHUNK)
    if (index is None) != (last is None):
        raise invalid("chunk_index and last_chunk come together")
    return None if index is None else Chunk(index=index, last=bool(last))


def _part(fields: Fields) -> Part:
    media_type = fields.media_type("type")
    sha256 = fields.sha256("sha256")
    kind, content = _content(fields)
    return Part(
        kind=kind,
        content=content,
        media_type=media_type,
        name=fields.optional_text("name"),
        size=fields.integer("size"),
        sha256=sha256,
        continued=fields.boolean("continued") or False,
        metadata=fields.mapping("metadata"),
        extra=dict(fields.rest),
    )


_KINDS: Final = {
    "text": PartKind.TEXT,
    "value": PartKind.JSON,
    "bytes": PartKind.BYTES,
    "uri": PartKind.URI,
}


def _content(fields: Fields) -> tuple[PartKind, Json | bytes]:
    given = [name for name in _KINDS if fields.has(name)]
    if len(given) != 1:
        raise invalid("a part has one of text, value, bytes and uri")
    kind, content = _KINDS[given[0]], fields.take(given[0])
    if kind is PartKind.JSON:
        return kind, content
    if not isinstance(content, str):
        raise invalid(f"a part: {given[0]} is not a text")
    if kind is not PartKind.BYTES:
        return kind, content
    try:
        return kind, base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("a part: bytes is not base64") from None
