"""Tasks and sessions as this daemon names them."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from anp.errors import UnknownError
from anp.interaction.conversation import Conversation
from anp.interaction.elements import SessionEvent, Task, Unreadable
from anp.interaction.operations import Operation
from anp.interaction.step import Step
from anp.interaction.stored import StoredFormError, read_event, read_task
from cache.parts.logs import LogEvent, LogItem

NO_PROTOCOL: Final = "no_protocol"
"Code of a task whose peer does not know the protocol of its session, or no longer."

NEW: Final = "new "
"Before the id of a task, in the names of a session: no protocol for tasks took it."

SENT: Final = "sent "
"The same for a task that went out over A2A, and that the peer did not name yet."

Act = Callable[[Conversation], Step]
"One input of a session's machine."


def receive(operation: Operation, *, sender: str, ref: int, uri: str = "") -> Act:
    """Return the input that an operation of a peer is, at the time when it is given.

    Args:
        uri: The protocol over which it came, if there is a line that speaks it.
    """

    def act(conversation: Conversation) -> Step:
        if uri and not conversation.is_requester:
            conversation.protocol = uri
        return conversation.receive(
            operation, sender=sender, ref=ref, now=time.monotonic(), wall_now=utc_now()
        )

    return act


def is_new(conversation: Conversation, task: Task) -> bool:
    """Return whether a task is to be made as a call, since nobody was told of it."""
    return NEW + task.id in conversation.threads


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task with the ids under which this daemon has it."""

    id: str
    "Our own id of it, new among all tasks; other than the one on the wire."

    log: str
    "Our own id of its session."

    task: Task


def known_task(item: LogItem) -> KnownTask:
    """Return the task that a store has; StoredFormError if it is damaged."""
    return KnownTask(item.id, item.log, read_task(item.content))


def event_in(row: LogEvent) -> SessionEvent:
    """Return the event that a store has, also when its content is damaged."""
    if not row.damaged:
        with suppress(StoredFormError):
            return read_event(row.content)
    return SessionEvent(
        number=row.number,
        at=datetime.fromtimestamp(row.at, UTC),
        by="",
        content=Unreadable(),
    )


@dataclass(slots=True, eq=False)
class LiveSession:
    """A session in memory."""

    log: str
    conversation: Conversation
    items: dict[str, str]
    "Our own ids of its tasks, by the ids on the wire."

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    broken: bool = False
    "The store differs from memory, so that it has to be read again."

    busy: bool | None = None
    "`Conversation.is_busy` as it is stored; None if that is not known."


class NoTask(UnknownError):
    """There is no task or session of an id."""

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no {what}")


class Maker(StrEnum):
    """The side that made a session: the last letter of our own ids of it and its tasks.

    So a list shows at once what a local program may see.
    """

    AGENT = "a"
    OWNER = "o"
    PEER = "p"


def maker_of(own_id: str) -> Maker | None:
    """Return the maker of the session that our own id belongs to; None for no such id.

    Args:
        own_id: Id of a session or of a task.
    """
    return Maker(own_id[-1]) if re.fullmatch(r"[0-9a-f]{24}[aop]", own_id) else None


def new_id(maker: str) -> str:
    """Return an id whose order is that of time; see `Maker`."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}{maker}"


def session_name(requester: str, session: str) -> str:
    """Return the name under which a session is found by its id on the wire.

    Args:
        requester: Its requester's DID, since two of them may choose the same id.
    """
    name = f"session\0{requester}\0{session}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def owner_name(caller: str) -> str:
    """Return the name of the list of a local caller's tasks."""
    name = f"owner\0{caller}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)
