"""The messages of one negotiation as they were sent, and the error that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from negotiation.errors import FailureKind, NegotiationError
from negotiation.messages import ProtocolNegotiation, Status

__all__ = ["Direction", "NegotiationEnded", "Turn"]


class Direction(StrEnum):
    """The sender of a turn: our side or the peer."""

    SENT = "sent"
    RECEIVED = "received"


@dataclass(frozen=True, slots=True)
class Turn:
    """One `protocolNegotiation` message in the transcript."""

    direction: Direction

    sequence_id: int
    "Its number on the wire."

    status: Status
    "Its status on the wire."

    candidate: str
    "Its `candidateProtocols`; empty when there was none."

    summary: str
    "Its `modificationSummary`; empty when there was none."

    seconds: float
    "Seconds since the negotiation began."

    @classmethod
    def of(
        cls, direction: Direction, message: ProtocolNegotiation, seconds: float
    ) -> Turn:
        """Return the turn for `message`."""
        return cls(
            direction,
            message.sequence_id,
            message.status,
            message.candidate_protocols,
            message.modification_summary,
            seconds,
        )


class NegotiationEnded(NegotiationError):
    """A negotiation ended without an agreement (ANP-33, ANP-44, ANP-46).

    `reason` is in words for the owner and may quote the peer; `by_peer` is true if the
    peer ended it or was at fault; `transcript` has every turn up to the end.
    """

    def __init__(
        self,
        kind: FailureKind,
        reason: str,
        *,
        by_peer: bool,
        transcript: tuple[Turn, ...] = (),
    ) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason
        self.by_peer = by_peer
        self.transcript = transcript
