"""The record of a short-term key, kept for its resumption. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from cache.records.records import AgreementRole, Record

__all__ = ["MAX_KEY_COUNTER", "KeyRecord"]

MAX_KEY_COUNTER = 2**48
"Upper bound of stored counters; far above any counter that a key may reach."

_KeyId = Annotated[str, Field(pattern=r"\A[0-9a-f]{16}\z")]
_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]
_Counter = Annotated[int, Field(ge=-1, le=MAX_KEY_COUNTER)]


@dataclass(frozen=True)
class KeyRecord(Record):
    """A channel's key, encrypted, with the counters that are already used."""

    kind: ClassVar[str] = "key"

    id: _KeyId
    "The `secretKeyId`."

    role: AgreementRole
    "Our side of the channel."

    peer_did: _Did
    "The peer's DID as on the wire."

    binding: Annotated[str, Field(min_length=1, max_length=2048)]
    "Hash or URI of the protocol the channel is bound to."

    created: _Seconds
    "When the record was stored, in seconds since 1970."

    expires: _Seconds
    "When the key ends, in seconds since 1970."

    sealed: Annotated[str, Field(max_length=256 * 1024)]
    "State for resumption, encrypted, in base64; empty once the key has ended."

    reserved: _Counter
    "The first counter for sending that is not reserved."

    mark: _Counter
    "The highest received counter that is claimed; it and all below are refused."

    @property
    def ended(self) -> bool:
        """True when nothing may be sent or accepted under the key any more."""
        return not self.sealed
