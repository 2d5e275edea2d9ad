"""The operations by which two sides change a session, and the answers to them.

They are those of GB/Z 185.6 point to point (GBZ-Q10); codecs of other protocols convert
their own to these. Each has a `ref`: a number that grows with every operation of one
side in one session, and stays the same when the operation is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anp.interaction.elements import Message, Session, Task, TaskChange, TaskProgress
from anp.interaction.errors import InteractionError, InteractionFault


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpen:
    """The requester makes a session, with its participants and modes (GBZ-25)."""

    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdate:
    """The requester changes participants, context or expiry."""

    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClose:
    """The requester ends the session; its open tasks are to be cancelled (GBZ-Q14)."""

    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreate:
    """The requester makes a task (GBZ-26)."""

    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdate:
    """The executor reports a state, or progress (GBZ-Q16)."""

    session: str
    content: TaskChange | TaskProgress

    at: datetime | None = None
    "Time of the change by the executor's clock, in UTC."

    messages: tuple[Message, ...] = ()
    "Newest messages; they are taken as if each had been sent before."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCancel:
    """The requester asks for the end of a task; the executor's next state counts."""

    session: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRange:
    """A piece of a file that a message of a task announced."""

    id: str
    "The URI of the file; see `Part.is_file`."

    offset: int
    "Bytes before it."

    length: int
    "Most bytes that are wanted."


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """Bytes of a file, in answer to a `FileRange`."""

    offset: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGet:
    """A side asks for the present state of a task; the answer is in the `ack`."""

    session: str
    task: str

    file: FileRange | None = None
    "A piece of one of its files that is wanted, too. Not in GB/Z 185.6: ours."


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSend:
    """A side sends a message, or a chunk of it."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyRegister:
    """The requester says where it wants news after the connection ended (GBZ-58)."""

    session: str

    address: str
    "URL of the requester's daemon; it counts only if the same DID is proved there."

    task: str = ""
    "The only task that is meant; empty means all tasks of the session."

    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyUnregister:
    """The requester takes a registration back."""

    session: str
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeCreate:
    """The requester has the service watch triggers and run a task (GBZ-65)."""

    session: str
    id: str

    subscription: Mapping[str, Any]
    "The whole object, as JSON; its fields are checked by who takes subscriptions."


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeCancel:
    """The requester ends a subscription."""

    session: str
    id: str


SubscriptionOperation = SubscribeCreate | SubscribeCancel
"""Operations of GB/Z 185.6 version 2 about subscriptions; their answers are those of
sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """The other side stored what an operation said."""

    session: str

    ref: int
    "Number of the operation that is answered."

    task: Task | None = None
    "The state of a task, in answer to `TaskGet`."

    piece: FilePiece | None = None
    "The piece of a file that it asked for."


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedOperation:
    """The other side refused an operation, which changed nothing there."""

    session: str
    "Empty when it could not be read."

    ref: int
    "Number of the operation that is answered; 0 when it could not be read."

    code: InteractionFault | str
    text: str

    retry_after: float = 0.0
    "Seconds after which the same may be taken; 0 when the peer does not say."


Operation = (
    SessionOpen
    | SessionUpdate
    | SessionClose
    | TaskCreate
    | TaskUpdate
    | TaskCancel
    | TaskGet
    | MessageSend
    | NotifyRegister
    | NotifyUnregister
    | SubscribeCreate
    | SubscribeCancel
    | Acknowledgement
    | RefusedOperation
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """An operation for a peer."""

    to: str
    "Id of the party."

    ref: int
    "Its number; an answer has that of the operation that it answers instead, and 0."

    operation: Operation


def refusal(session: str, ref: int, error: InteractionError) -> RefusedOperation:
    """Return the answer to an operation that was refused."""
    return RefusedOperation(
        session=session,
        ref=ref,
        code=error.code,
        text=error.text,
        retry_after=error.retry_after,
    )


def check_session(session: Session, max_participants: int) -> None:
    """Check a session of a requester's; InteractionError if it cannot be one."""
    ids = [(one.id, one.mode) for one in session.participants]
    if not ids or len(ids) > max_participants:
        raise InteractionError(
            InteractionFault.INVALID,
            f"a session has 1 to {max_participants} participants",
        )
    if len({*ids}) != len(ids) or session.requester.id in {one for one, _ in ids}:
        raise InteractionError(
            InteractionFault.INVALID, "a party takes part once in each mode"
        )


def party_ids(session: Session) -> set[tuple[str, str]]:
    """Return the participants by id and mode."""
    return {(one.id, one.mode) for one in session.participants}
