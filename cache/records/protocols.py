"""Records of revocations and use, which remain when an agreement is pruned."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, ClassVar

from pydantic import Field

from cache.records.records import AgreementState, Count, Hash, Record

__all__ = ["COUNTS", "MAX_REASON", "RevocationRecord", "UsageRecord"]

MAX_REASON = 1000
"Longest reason of an owner, in characters."

_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]


@dataclass(frozen=True)
class RevocationRecord(Record):
    """The owner revoked a document (DESIGN.md, Links and channels: Revoked).

    It stays when everything else about the document is pruned, so that the same text
    is not agreed again.
    """

    kind: ClassVar[str] = "revocation"

    hash: Hash

    peer_did: _Did | None
    "Canonical DID of the only peer concerned; None concerns all."

    at: _Seconds
    "Seconds since 1970."

    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    "The owner's reason; never sent."

    kept: dict[str, AgreementState] = field(default_factory=dict)
    "States of the records that were not active before the revocation, by key."


@dataclass(frozen=True)
class UsageRecord(Record):
    """Numbers of calls by outcome, for one document or for all together."""

    kind: ClassVar[str] = "usage"

    hash: Hash | None
    "Hash of the document; None counts all calls."

    agreement: Count = 0
    "Our calls through an existing agreement."

    consensus: Count = 0
    "Our calls through a protocol known by its URI."

    negotiated: Count = 0
    "Our calls that negotiated first."

    natural_language: Count = 0
    "Our calls in natural language."

    failed: Count = 0
    "Our calls without an answer, failed negotiations among them."

    served: Count = 0
    "Calls of peers that were answered."

    first_used: _Seconds | None = None
    "When the first counted call ended, in seconds since 1970."

    last_used: _Seconds | None = None
    "When the last counted call ended, in seconds since 1970."

    @property
    def hit_rate(self) -> float | None:
        """Share of our calls through protocols that needed no negotiation, or None."""
        hits = self.agreement + self.consensus
        calls = hits + self.negotiated
        return hits / calls if calls else None

    def plus(self, other: UsageRecord) -> UsageRecord:
        """Return the sum of both records, under the hash of this one."""
        firsts = [t for t in (self.first_used, other.first_used) if t is not None]
        lasts = [t for t in (self.last_used, other.last_used) if t is not None]
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return replace(
            self,
            **sums,
            first_used=min(firsts, default=None),
            last_used=max(lasts, default=None),
        )


COUNTS = tuple(
    each.name
    for each in fields(UsageRecord)
    if each.name not in {"hash", "first_used", "last_used"}
)
"Names of the fields that count calls."
