"""The objects that agents exchange: parties, sessions, tasks, messages and parts.

They belong to no protocol. Each codec converts them, and keeps what it does not know
in `extra`, so that the same codec can write it again. Numbers in JSON values stay as
they were read: an integer of any size is an `int`, everything else a double.

Ids are those of the wire; they are unique only together with the requester, since two
peers may choose the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import unquote

from anp.interaction.states import TaskState
from negotiation.strict_json import Json

LOCAL: Final = "local:"
"Prefix of the id of a party that is no peer but has a token of ours."

JWT: Final = "jwt:"
"Begins the name of one that has a token of an issuer that the owner trusts."


def party_name(party: str) -> str:
    """Return the id of a party for people: a DID as it is, a caller of ours by name."""
    if not party.startswith(LOCAL):
        return party
    name = party.removeprefix(LOCAL)
    is_issued = name.startswith(JWT)
    if is_issued:
        return f"{unquote(name.removeprefix(JWT))} (A2A, by JWT)"
    if name.startswith(":"):
        # A program here that has this daemon give parts of its task to others.
        return f"this {name[1:]}"
    return f"{name} (A2A)"


Extra = Mapping[str, Any]
"Fields of an object that the model does not know, as JSON."


FILE_URN: Final = "urn:anpd:file:"
"Beginning of the URI of a file that its sender keeps, and gives out piece by piece."

MAX_FILE_URI: Final = 200
"Longest such URI, in characters."


class PartyMode(StrEnum):
    """The way in which a party takes part in a session (GBZ-52)."""

    P2P = "p2p"
    GROUP = "group"


class SenderRole(StrEnum):
    """The role of a message's sender in its session (GBZ-34)."""

    REQUESTER = "requester"
    SERVICE = "service"


class MessagePurpose(StrEnum):
    """The purpose of a message (GBZ-39)."""

    COMMUNICATION = "communication"
    RESULT = "result"


class SessionState(StrEnum):
    """The state of a session; a closed one takes no new task or message."""

    OPEN = "open"
    CLOSED = "closed"


class PartKind(StrEnum):
    """The form of a part's content."""

    TEXT = "text"
    "`content` is a `str`."

    BYTES = "bytes"
    "`content` is `bytes`."

    JSON = "json"
    "`content` is any JSON value."

    URI = "uri"
    "`content` is a `str` that nobody fetches by itself."


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One agent in a session (GBZ-51, GBZ-52)."""

    id: str
    "Its DID, or an alias."

    address: str = ""
    "URL at which it can be reached; empty when it is not told."

    mode: PartyMode = PartyMode.P2P

    params: Extra = field(default_factory=dict)
    "Parameters of the mode, such as `groupId`, and the `style` of point to point."

    reads_log: bool = False
    "It follows the log here, so that nothing is sent to it; no protocol carries this."

    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The smallest unit of content (GBZ-20)."""

    kind: PartKind

    content: Json | bytes
    "The content, of the type that `kind` says."

    media_type: str = "text/plain"

    name: str = ""
    "Name for people, such as a file's; never a path."

    size: int | None = None
    "Bytes of the content elsewhere, if they were announced."

    sha256: str = ""
    "Hash of the content elsewhere, if it was announced: 64 hex characters."

    continued: bool = False
    "The content goes on in the first part of the next chunk of its message."

    metadata: Extra = field(default_factory=dict)

    extra: Extra = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """True for a file that its sender keeps until it is read."""
        return (
            self.kind is PartKind.URI
            and str(self.content).startswith(FILE_URN)
            and len(str(self.content)) <= MAX_FILE_URI
            and self.size is not None
            and bool(self.sha256)
        )

    @classmethod
    def text(cls, content: str, **more: Any) -> Part:
        """Return a part with a text."""
        return cls(kind=PartKind.TEXT, content=content, **more)

    @classmethod
    def value(cls, content: Json, **more: Any) -> Part:
        """Return a part with a JSON value."""
        more = {"media_type": "application/json", **more}
        return cls(kind=PartKind.JSON, content=content, **more)

    @classmethod
    def data(cls, content: bytes, **more: Any) -> Part:
        """Return a part with bytes."""
        more = {"media_type": "application/octet-stream", **more}
        return cls(kind=PartKind.BYTES, content=content, **more)

    @classmethod
    def link(cls, content: str, **more: Any) -> Part:
        """Return a part with the URI of its content."""
        more = {"media_type": "application/octet-stream", **more}
        return cls(kind=PartKind.URI, content=content, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The place of a message's part in the whole message (GBZ-41, GBZ-42)."""

    index: int
    "Counted from 0."

    last: bool = False
    "True only for the highest index."


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, or one chunk of it (GBZ-21)."""

    id: str
    session: str

    sender: str
    "Id of the party that sent it."

    role: SenderRole

    parts: tuple[Part, ...]
    "At least one."

    task: str = ""
    "Id of its task; empty when it belongs to none."

    purpose: MessagePurpose | None = None

    final: bool | None = None
    "True for the last result, False for an earlier one. Only services tell it."

    chunk: Chunk | None = None
    "None for a whole message."

    metadata: Extra = field(default_factory=dict)

    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A unit of work with its present state (GBZ-22)."""

    id: str
    session: str

    requester: str
    "Id of the party that created it."

    executor: str
    "Id of the party that does it; empty in an offer to a group."

    state: str = TaskState.REQUESTED
    "One of `TaskState`, or a word that begins with `x-`."

    changed_at: datetime | None = None
    "Time of the last change of state, in UTC."

    capability: str = ""
    "Full name of the wanted capability; empty when the messages say what to do."

    messages: tuple[Message, ...] = ()
    "The request at creation, and the newest messages in a report."

    said: tuple[Part, ...] = ()
    """The words and values of a local caller's request, if `messages` have arguments of
    a capability in place of them; no protocol carries this."""

    depends_on: tuple[str, ...] = ()
    "Ids of tasks of the same session that must have ended first."

    needs: tuple[str, ...] = ()
    """For each of `depends_on` the final states that will do, joined by blanks; empty
    when each has to be completed. Only the requester knows it."""

    needs_any: bool = False
    "True when one of `depends_on` is enough."

    inputs: tuple[Message, ...] | tuple[Task, ...] = ()
    "Results that it needs of other tasks: all messages or all tasks (GBZ-49)."

    parent: str = ""
    "Id of the task that it is a part of."

    trigger: Extra | None = None
    "The firing of a subscription that started it."

    code: str = ""
    "Code of a failure or refusal."

    reason: str = ""
    "The reason of a failure or refusal, in words."

    may_have_run: bool = False
    "True for a failed task whose work may have been done nevertheless."

    cancel_requested: bool = False
    "The requester has asked for its end."

    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation, made by its requester (GBZ-24)."""

    id: str
    requester: Party

    participants: tuple[Party, ...]
    "The services; one that takes part in both modes stands here twice."

    state: SessionState = SessionState.OPEN

    created: datetime | None = None
    "In UTC."

    expires: datetime | None = None
    "Time after which it counts as closed, in UTC; None means never."

    context: tuple[Message, ...] | tuple[Task, ...] = ()
    "History from before it began: all messages or all tasks (GBZ-53)."

    owner: str = ""
    "Id of the local caller that it belongs to, if any; no protocol carries this."

    alias: str = ""
    "Its id for that caller, if it is another; no protocol carries this."

    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """A new state of a task."""

    task: str
    state: str
    code: str = ""
    reason: str = ""
    may_have_run: bool = False

    at: datetime | None = None
    "Time of the change by the clock of who made it, in UTC."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """An information about a task at work; it changes no state (GBZ-Q2)."""

    task: str

    progress: int | float | None = None
    "Amount that is done, in a unit of the agent's own."

    total: int | float | None = None
    "The whole amount, if it is known."

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest:
    """The requester asks for the end of a task; the executor's next state counts."""

    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The requester's wish for news over connections of the service's (GBZ-58)."""

    address: str
    "URL of the requester's daemon; empty when the wish is taken back."

    task: str = ""
    "The only task that is meant; empty means all tasks of the session."

    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTarget:
    """An address that a local caller wants told of a task, and how far it is told.

    It stands in the head and in no event, so that nobody who reads the log sees it.
    """

    task: str
    "Id of the task in the session."

    id: str
    "The caller's name of it, unique for the task."

    url: str

    version: str
    "Version of the protocol whose objects it takes."

    token: str = ""
    "Goes with each object, so that the receiver knows that it is ours."

    scheme: str = ""
    "Scheme of the `Authorization` header; empty for none."

    credentials: str = ""

    grant: str = ""
    "Hash of the token with which it was set, and with which it ends; empty for none."

    told: int = 0
    "Number of the newest event of which it is told."

    done: bool = False
    "True when the task has ended and the address was told of it."


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The state of a session on one side, besides its tasks; stored with each step."""

    own: str
    "Our id in the session."

    session: Session

    last: int
    "Number of the newest event."

    opened: Mapping[str, int] = field(default_factory=dict)
    "Events with which the session was told to each peer."

    unacknowledged: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Events that a peer has not acknowledged, as first and last number of each run of
    them in turn: (3, 5, 9, 9) are 3, 4, 5 and 9."""

    registered: tuple[Registration, ...] = ()
    "The requester's wishes for news that stand."

    pushes: tuple[PushTarget, ...] = ()
    subscriptions: Mapping[str, str] = field(default_factory=dict)
    "Capabilities of its subscriptions, by their ids."
    threads: Mapping[str, str] = field(default_factory=dict)
    "Names by which agents of ours know the session, by their attachments."
    protocol: str = ""
    """URI of the protocol that alone carries a session of ours, empty for the best; of
    a peer's session, the one over which it spoke last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionWish:
    """The requester has the executor watch triggers and do a task, or ends that."""

    id: str
    subscription: Extra | None = None
    "The object with triggers and task, as JSON; None ends it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """The content of an event that is damaged where it is stored."""


EventContent = (
    Unreadable
    | Session
    | Task
    | TaskChange
    | TaskProgress
    | CancelRequest
    | Message
    | Registration
    | SubscriptionWish
)
"""The content of an event: a session as it is now; a new task; a change or progress of
it; a request to cancel it; a message; a wish; or nothing that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """One entry in the log of a session."""

    number: int
    "Counted 1, 2, 3… in the session; watchers go on from the number they know."

    at: datetime
    "Time of the entry by our clock, in UTC."

    by: str
    "Id of the party that caused it."

    content: EventContent

    ref: int = 0
    "The number that the peer gave it; 0 for what our own side caused."
