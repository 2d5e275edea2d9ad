"""What the store keeps of a short-term key for its resumption. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from cache.records.records import Record, Role

__all__ = ["MAX_KEY_COUNTER", "KeyRecord"]

MAX_KEY_COUNTER = 2**48
"Far above every counter that a key may reach."

_KeyId = Annotated[str, Field(pattern=r"\A[0-9a-f]{16}\z")]
_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]
_Counter = Annotated[int, Field(ge=-1, le=MAX_KEY_COUNTER)]


@dataclass(frozen=True)
class KeyRecord(Record):
    """A key of a channel, sealed, and how far its counters are spoken for."""

    kind: ClassVar[str] = "key"

    id: _KeyId
    "The `secretKeyId`."

    role: Role
    "Our side of the channel."

    peer_did: _Did
    "The peer, under the DID it has on the wire."

    binding: Annotated[str, Field(min_length=1, max_length=2048)]
    "Hash or URI of the protocol the channel is bound to."

    created: _Seconds
    "When it was stored, in seconds since 1970."

    expires: _Seconds
    "When the key ends, in seconds since 1970."

    sealed: Annotated[str, Field(max_length=256 * 1024)]
    "What is needed to go on with it, encrypted, base64; empty once it has ended."

    reserved: _Counter
    "The first counter for sending that nobody has reserved."

    mark: _Counter
    "The highest counter received that is claimed; from here down all are refused."

    @property
    def ended(self) -> bool:
        """Whether nothing may be sent or accepted under it any more."""
        return not self.sealed
