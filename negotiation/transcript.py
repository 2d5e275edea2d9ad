"""The messages of one negotiation as they were sent, and the error that ends it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from negotiation.errors import FailureKind, NegotiationError
from negotiation.late_patterns import late_pattern
from negotiation.messages import ProtocolNegotiation, Status

_NAMES: Final = r"(`[^`\n]{1,200}`(?:, `[^`\n]{1,200}`)*)"

CALLS: Final = late_pattern(rf"Calls {_NAMES}\.(?:\nGives no value for {_NAMES}\.)?")
"Words of a provider that go with an acceptance."

MAX_EMPTY: Final = 32
"Largest number of empty places that are told."

OFFERED: Final = late_pattern(
    r"^- `([^`\n]{1,200})` \((?:changes nothing|may change something)\)", re.MULTILINE
)
"A capability in a document in the provider's own terms."


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


def calls_in_words(capabilities: Iterable[str], empty: Sequence[str] = ()) -> str:
    """Return the words by which a provider tells its caller what it will call.

    Args:
        empty: JSON pointers of the places of the result that get no value.
    """
    names = _quoted(sorted(capabilities))
    places = _quoted(empty[:MAX_EMPTY])
    if not names:
        return ""
    return f"Calls {names}." + (f"\nGives no value for {places}." if places else "")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(
        f"`{one}`" for one in names if len(one) <= 200 and not set(one) & {"`", "\n"}
    )


def empty_notes(places: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for the caller about each place of a result without a value.

    Args:
        places: JSON pointers, as in `Plan.empty`.
    """
    return tuple(
        f"{place[:200]} gets no value: no value on the other side has this name, but "
        "others that are not used may mean it"
        for place in places[:MAX_EMPTY]
    )


def empty_told(transcript: Sequence[Turn]) -> tuple[str, ...]:
    """Return the places that stay empty by what the provider says as it accepts."""
    for turn in reversed(transcript):
        if turn.direction is Direction.RECEIVED and turn.status is Status.ACCEPTED:
            told = CALLS.fullmatch(turn.summary)
            listed = told[2] if told is not None else None
            return tuple(listed.strip("`").split("`, `"))[:MAX_EMPTY] if listed else ()
    return ()


def calls_told(transcript: Sequence[Turn], document: str) -> tuple[str, ...]:
    """Return the capabilities that the provider says it calls; empty if it does not.

    Args:
        transcript: The requester's, of a negotiation that ended well.
        document: The agreed document, which names them if it is the provider's.
    """
    for turn in reversed(transcript):
        told = CALLS.fullmatch(turn.summary)
        if turn.direction is Direction.RECEIVED and turn.status is Status.ACCEPTED:
            return () if told is None else tuple(told[1].strip("`").split("`, `"))
        if turn.direction is Direction.RECEIVED and turn.candidate == document:
            return tuple(OFFERED.findall(document))
    return ()
