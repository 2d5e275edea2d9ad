"""Records of subscriptions and of their firings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from cache.records.records import Count, Id, Party, Record, Seconds

_Sealed = Annotated[str, Field(max_length=1024 * 1024)]


@dataclass(frozen=True)
class SubscriptionRecord(Record, kind="subscription"):
    """A subscription with the state of its machine."""

    id: Id
    "Its order among all ids is that of the lists."

    revision: Count
    "Grows with each change, so that two daemons never build on the same state."

    updated: Seconds
    "When it was changed last, in seconds since 1970."

    open: bool
    "False when it has ended, and every firing was handed over."

    peer: Party | None
    "The peer whose subscription it is; None for one of ours."

    starting: tuple[Count, ...]
    "Numbers of the firings that are not handed over yet."

    holder: Id | None
    "Id of the run of a daemon that hands them over."

    until: Seconds
    "When that is another's to do, in seconds since 1970."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."


@dataclass(frozen=True)
class FiringRecord(Record, kind="firing"):
    """One start of a subscription's task."""

    subscription: Id

    number: Count
    "Counted 1, 2, 3… in the subscription."

    sealed: _Sealed
    "The caller's content, encrypted, in base64."
