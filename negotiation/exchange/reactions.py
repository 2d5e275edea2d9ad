"""The states of a negotiation: the meaning of the peer's status, and time limits."""

from __future__ import annotations

from enum import Enum, auto

from negotiation.errors import FailureKind
from negotiation.exchange.limits import MIND_REASON, NegotiationLimits
from negotiation.messages import Status


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


def wait_of(state: NegotiationState, limits: NegotiationLimits) -> float:
    """Return the seconds that `state` may last."""
    match state:
        case NegotiationState.PROPOSE | NegotiationState.JUDGE:
            return limits.answer_timeout
        case NegotiationState.EXPECT_CODE:
            return limits.codegen_timeout
        case _:
            return limits.message_timeout


def waits_for_peer(state: NegotiationState, *, own_code: bool) -> bool:
    """Return whether `state` waits for the peer.

    Args:
        own_code: True when our code for the present candidate is ready.
    """
    if state is NegotiationState.EXPECT_CODE:
        return own_code
    return state in {NegotiationState.EXPECT_PROPOSAL, NegotiationState.EXPECT_ANSWER}


def expiry(
    state: NegotiationState, limits: NegotiationLimits, *, own_code: bool
) -> tuple[FailureKind, str, str | None]:
    """Return the failure of a negotiation whose `state` lasted too long.

    Returns:
        The kind, the reason, and the text for the peer if it is different.
    """
    match state:
        case NegotiationState.EXPECT_CODE:
            # ANP-44: counts as failed code generation on either side.
            whose = "the peer's" if own_code else "our"
            reason = f"{whose} code was not ready in {limits.codegen_timeout:g} s"
            return FailureKind.CODE_GENERATION, reason, None
        case NegotiationState.PROPOSE | NegotiationState.JUDGE:
            reason = f"our mind gave no answer in {limits.answer_timeout:g} s"
            return FailureKind.TIMEOUT, reason, MIND_REASON
        case _:
            reason = f"no answer of the peer in {limits.message_timeout:g} s"
            return FailureKind.TIMEOUT, reason, None
