"""Records of groups: their heads, and their events in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from cache.records.records import Id, Record, Seconds

MAX_GROUP_CONTENT = 8 * 1024 * 1024
"Most bytes of a head or a page, as the caller gives them."

_Sealed = Annotated[str, Field(max_length=MAX_GROUP_CONTENT * 4 // 3 + 4)]
_Number = Annotated[int, Field(ge=1, lt=10**12)]


@dataclass(frozen=True)
class GroupRecord(Record, kind="group"):
    """The head of a group: everything but its events."""

    id: Id
    updated: Seconds
    "When it was changed last, in seconds since 1970."

    open: bool
    "False when nothing is said in it any more."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."


@dataclass(frozen=True)
class GroupPageRecord(Record, kind="group_page"):
    """Events of a group that were stored at one time."""

    group: Id

    first: _Number
    "Number of the first event in it."

    count: Annotated[int, Field(ge=1)]
    at: Seconds
    "Seconds since 1970."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."


@dataclass(frozen=True)
class GroupRowRecord(Record, kind="group_row"):
    """One of the small things about a group that change often, such as a key."""

    group: Id

    name: Id
    sealed: _Sealed
    "The caller's content, encrypted, in base64."


@dataclass(frozen=True)
class GroupLeaseRecord(Record, kind="group_lease"):
    """The daemon of a fleet that has a group, until a time."""

    group: Id
    owner: Id
    "Id of one run of a daemon."

    until: Seconds
    "When the lease ends, in seconds since 1970."
