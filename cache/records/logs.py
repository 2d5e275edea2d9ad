"""Records of append-only logs: their heads, events, items, and ways to find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from cache.records.records import Count, Hash, Id, Record, Seconds

MAX_LOG_CONTENT = 8 * 1024 * 1024
"Most bytes of one event, item or head, as the caller gives them."

_Sealed = Annotated[str, Field(max_length=MAX_LOG_CONTENT * 4 // 3 + 4)]
_Number = Annotated[int, Field(ge=1, lt=10**12)]


@dataclass(frozen=True)
class LogRecord(Record, kind="log"):
    """The head of a log: a session, for one."""

    id: Id
    "Its order among all ids is that of the logs in lists."

    created: Seconds
    "Seconds since 1970."

    updated: Seconds
    "When it was changed last, in seconds since 1970."

    first: Count
    "Number of the oldest event that is kept, 1 if none was dropped."

    last: Count
    "Number of the newest event; 0 before the first."

    size: Count
    "Bytes of the kept events."

    open: bool
    "False when it may be dropped for its age or size."

    busy: bool
    "Something about it is unfinished, so that a restart has to look at it."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."

    names: tuple[Hash, ...] = ()
    "Names under which it can be found."

    gone: bool = False
    "It is being deleted; nobody sees it any more."


@dataclass(frozen=True)
class LogEventRecord(Record, kind="log_event"):
    """One event of a log."""

    log: Id

    number: _Number
    "Counted 1, 2, 3… in the log."

    at: Seconds
    "Seconds since 1970."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."


@dataclass(frozen=True)
class LogItemRecord(Record, kind="log_item"):
    """The present state of something that a log is about: a task, for one."""

    log: Id

    id: Id
    "Its order among all ids is that of the items in lists."

    updated: Seconds
    "When it was changed last, in seconds since 1970."

    open: bool
    "False when it changes no more."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."

    names: tuple[Hash, ...] = ()
    "Names under which it can be found."

    owner: Hash | None = None
    "The list of its own in which it stands besides, such as that of one caller."


@dataclass(frozen=True)
class LogMarkRecord(Record, kind="log_mark"):
    """An entry in one of the lists: all items, open items, busy logs, of an owner."""

    area: Annotated[str, Field(pattern=r"^(items|open|busy|of-[0-9a-f]{64})$")]

    id: Id
    "The item, or the log in the list of busy ones."

    log: Id


@dataclass(frozen=True)
class LogLeaseRecord(Record, kind="log_lease"):
    """The daemon that works on an item, until a time."""

    item: Id
    log: Id

    owner: Id
    "Id of one run of a daemon."

    until: Seconds
    "When the lease ends, in seconds since 1970."


@dataclass(frozen=True)
class LogNameRecord(Record, kind="log_name"):
    """A name of a log, or of an item."""

    name: Hash
    "A hash that the caller made, so that a peer's id is no key."

    log: Id

    item: Id | None = None
    "The item that is named; None when the log is."
