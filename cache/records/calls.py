"""The record of a call that has an idempotency key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from cache.records.records import Hash, Record, Seconds


@dataclass(frozen=True)
class CallRecord(Record, kind="call"):
    """A call of our agent with an idempotency key, from its first byte on the wire."""

    id: Hash
    "Made of the caller's scope and key."

    request: Hash
    "Made of the request, to tell another request with the same key."

    created: Seconds
    "When the request was about to be sent, in seconds since 1970."

    repeatable: bool
    "The peer says that a second call does no more than the first."

    sealed: Annotated[str, Field(max_length=2 * 1024 * 1024)] = ""
    "The outcome, encrypted, in base64; empty while it is unknown."
