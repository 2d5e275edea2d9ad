"""The meaning of the peer's status in each state of a negotiation, as a table."""

from __future__ import annotations

from enum import Enum, auto

from negotiation.messages import Status

__all__ = ["END_STATES", "REACTIONS", "Reaction", "NegotiationState"]


class NegotiationState(Enum):
    """The state of a negotiation on our side."""

    PROPOSE = auto()
    EXPECT_PROPOSAL = auto()
    EXPECT_ANSWER = auto()
    JUDGE = auto()
    EXPECT_CODE = auto()
    READY = auto()
    FAILED = auto()


END_STATES = {NegotiationState.READY, NegotiationState.FAILED}
"States in which inputs have no effect any more."


class Reaction(Enum):
    """The meaning of a `protocolNegotiation` from the peer in a state."""

    CONSIDER = auto()
    "The peer sent a candidate for our mind to judge."

    AGREE = auto()
    "The peer accepts our candidate."

    CONFIRM = auto()
    "The peer repeats the verdict (WIRE row 38)."

    END = auto()
    "The peer ends the negotiation (ANP-Q23)."

    OUT_OF_TURN = auto()
    "It is not the peer's turn (ANP-Q4, ANP-Q14)."

    NOTHING_TO_ACCEPT = auto()
    "There is no candidate of ours that the peer could accept (ANP-Q29)."


REACTIONS: dict[NegotiationState, dict[Status, Reaction]] = {
    NegotiationState.PROPOSE: {
        Status.NEGOTIATING: Reaction.OUT_OF_TURN,
        Status.ACCEPTED: Reaction.NOTHING_TO_ACCEPT,
        Status.REJECTED: Reaction.END,
    },
    NegotiationState.EXPECT_PROPOSAL: {
        Status.NEGOTIATING: Reaction.CONSIDER,
        Status.ACCEPTED: Reaction.NOTHING_TO_ACCEPT,
        Status.REJECTED: Reaction.END,
    },
    NegotiationState.EXPECT_ANSWER: {
        Status.NEGOTIATING: Reaction.CONSIDER,
        Status.ACCEPTED: Reaction.AGREE,
        Status.REJECTED: Reaction.END,
    },
    NegotiationState.JUDGE: {
        Status.NEGOTIATING: Reaction.OUT_OF_TURN,
        Status.ACCEPTED: Reaction.NOTHING_TO_ACCEPT,
        Status.REJECTED: Reaction.END,
    },
    NegotiationState.EXPECT_CODE: {
        Status.NEGOTIATING: Reaction.OUT_OF_TURN,
        Status.ACCEPTED: Reaction.CONFIRM,
        Status.REJECTED: Reaction.END,
    },
}
"The meaning of each status in each state other than the end states."
