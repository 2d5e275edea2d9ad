"""The record of the keys that a DID on the web was met with. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from cache.records.records import Record

__all__ = ["MAX_DID_KEYS", "DidKeysRecord"]

MAX_DID_KEYS = 16
"Keys of one DID that are remembered."

_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Key = Annotated[str, Field(pattern=r"\Az[1-9A-HJ-NP-Za-km-z]+\z", max_length=256)]
_Keys = Annotated[tuple[_Key, ...], Field(max_length=MAX_DID_KEYS)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]


@dataclass(frozen=True)
class DidKeysRecord(Record):
    """The trusted keys of a DID, and new ones that wait for the owner's decision."""

    kind: ClassVar[str] = "did_keys"

    did: _Did
    "The DID in its canonical form."

    trusted: _Keys
    "Keys that may sign for it, as multibase."

    seen: _Seconds
    "When the trusted keys last changed, in seconds since 1970."

    waiting: _Keys = ()
    "Keys that its document lists since then and that the owner has not confirmed."

    changed: _Seconds | None = None
    "When the waiting ones were first used, in seconds since 1970."
