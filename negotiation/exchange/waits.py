"""The time limit of each state of a negotiation, and the failure when it is over."""

from __future__ import annotations

from negotiation.errors import FailureKind
from negotiation.exchange import wording
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.reactions import NegotiationState

__all__ = ["expiry", "wait_of", "waits_for_peer"]


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
            return FailureKind.TIMEOUT, reason, wording.MIND_REASON
        case _:
            reason = f"no answer of the peer in {limits.message_timeout:g} s"
            return FailureKind.TIMEOUT, reason, None
