"""The bytes in which events, sessions and tasks are stored: JSON of our own.

Nobody else reads them, so they follow the elements field by field; a field with its
default value is left out. Whoever stores them encrypts them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from anp.interaction.elements import (
    CancelRequest,
    Chunk,
    EventContent,
    Message,
    MessagePurpose,
    Part,
    PartKind,
    Party,
    PartyMode,
    PushTarget,
    Registration,
    SenderRole,
    Session,
    SessionEvent,
    SessionHead,
    SessionState,
    SubscriptionWish,
    Task,
    TaskChange,
    TaskProgress,
)
from jsonic.exact_numbers import read_number, write_json

VERSION: Final = 1
"Version of the form; raised when the meaning of a field changes."

_KINDS: Final[dict[str, type[Any]]] = {
    "session": Session,
    "task": Task,
    "change": TaskChange,
    "progress": TaskProgress,
    "cancel": CancelRequest,
    "message": Message,
    "registration": Registration,
    "subscription": SubscriptionWish,
}
"Kinds of content that an event may have."

_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


class StoredFormError(Exception):
    """Bytes are not what this module writes; they count as damaged."""


def event_bytes(event: SessionEvent) -> bytes:
    """Return an event as bytes."""
    head = {"number": event.number, "at": event.at.isoformat(), "by": event.by}
    if event.ref:
        head["ref"] = event.ref
    return _bytes({**head, _NAMES[type(event.content)]: _plain(event.content)})


def read_event(data: bytes) -> SessionEvent:
    """Return the event of `event_bytes`; StoredFormError if it is none."""
    value = _value(data)
    try:
        (name,) = value.keys() & _KINDS.keys()
        content: EventContent = _read(_KINDS[name], value[name])
        return SessionEvent(
            number=value["number"],
            at=datetime.fromisoformat(value["at"]),
            by=value["by"],
            content=content,
            ref=value.get("ref", 0),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise StoredFormError(f"no event: {type(exc).__name__}") from None


def head_bytes(head: SessionHead) -> bytes:
    """Return the head of a session as bytes."""
    return _bytes({"head": _plain(head)})


def read_head(data: bytes) -> SessionHead:
    """Return the head of `head_bytes`; StoredFormError if it is none."""
    found: SessionHead = _only(data, "head", SessionHead)
    return found


def task_bytes(task: Task) -> bytes:
    """Return a task as bytes."""
    return _bytes({"task": _plain(task)})


def read_task(data: bytes) -> Task:
    """Return the task of `task_bytes`; StoredFormError if it is none."""
    found: Task = _only(data, "task", Task)
    return found


def fingerprint(element: Any) -> bytes:
    """Return 16 bytes that are the same for equal elements only, numbers included."""
    return hashlib.blake2b(_canonical(element), digest_size=16).digest()


def element_size(element: Any) -> int:
    """Return the bytes of an element's stored form."""
    return len(_canonical(element))


def _canonical(element: Any) -> bytes:
    # Sorted, since a peer may write the keys of an object in another order each time.
    text = write_json(_plain(element), ensure_ascii=False, sort_keys=True)
    return text.encode("utf-8", "surrogatepass")


def _only(data: bytes, name: str, kind: type[Any]) -> Any:
    value = _value(data)
    try:
        return _read(kind, value[name])
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise StoredFormError(f"no {name}: {type(exc).__name__}") from None


def _bytes(value: dict[str, Any]) -> bytes:
    text = write_json(
        {"v": VERSION, **value},
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )
    return text.encode("utf-8")


def _value(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data, parse_float=read_number)
    except (ValueError, RecursionError):
        raise StoredFormError("not JSON") from None
    if not isinstance(value, dict) or value.get("v") != VERSION:
        raise StoredFormError("not of this version")
    return value


def _plain(value: Any) -> Any:
    """Return `value` as JSON; elements become objects without their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {}
        for one in fields(value):
            item = getattr(value, one.name)
            default = (
                one.default_factory()
                if one.default_factory is not MISSING
                else one.default
            )
            if item is default or (item == default and type(item) is type(default)):
                continue
            found[one.name] = _plain(item)
        return found
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _read(kind: type[Any], value: Mapping[str, Any]) -> Any:
    """Return the element of `kind` whose stored form is `value`."""
    found = dict(value)
    for name, convert in _CONVERSIONS.get(kind, {}).items():
        if found.get(name) is not None:
            found[name] = convert(found[name])
    if kind is Part and found["kind"] is PartKind.BYTES:
        found["content"] = base64.b64decode(found["content"], validate=True)
    return kind(**found)


def _parts(value: list[Any]) -> tuple[Part, ...]:
    return tuple(_read(Part, one) for one in value)


def _messages(value: list[Any]) -> tuple[Any, ...]:
    return tuple(_read(Message, one) for one in value)


def _either(value: list[Any]) -> tuple[Any, ...]:
    # Only a message has parts, and it always has them.
    return tuple(_read(Message if "parts" in one else Task, one) for one in value)


_CONVERSIONS: Final[dict[type[Any], dict[str, Any]]] = {
    Party: {"mode": PartyMode},
    Part: {"kind": PartKind},
    Chunk: {},
    Message: {
        "role": SenderRole,
        "purpose": MessagePurpose,
        "chunk": lambda value: _read(Chunk, value),
        "parts": _parts,
    },
    Task: {
        "changed_at": datetime.fromisoformat,
        "messages": _messages,
        "said": _parts,
        "depends_on": tuple,
        "needs": tuple,
        "inputs": _either,
    },
    TaskChange: {"at": datetime.fromisoformat},
    Registration: {"expires": datetime.fromisoformat},
    SessionHead: {
        "session": lambda value: _read(Session, value),
        "unacknowledged": lambda value: {
            peer: tuple(numbers) for peer, numbers in value.items()
        },
        "registered": lambda value: tuple(_read(Registration, one) for one in value),
        "pushes": lambda value: tuple(_read(PushTarget, one) for one in value),
    },
    Session: {
        "requester": lambda value: _read(Party, value),
        "participants": lambda value: tuple(_read(Party, one) for one in value),
        "state": SessionState,
        "created": datetime.fromisoformat,
        "expires": datetime.fromisoformat,
        "context": _either,
    },
}
"""Conversions of fields that JSON cannot hold as they are, by element and field."""
