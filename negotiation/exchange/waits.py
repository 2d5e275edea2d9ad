"""How long each state of a negotiation waits, for whom, and what it means when over."""

from __future__ import annotations

from negotiation.errors import FailureKind
from negotiation.exchange import wording
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.reactions import State

__all__ = ["expiry", "wait_of", "waits_for_peer"]


def wait_of(state: State, limits: NegotiationLimits) -> float:
    """Return how many seconds `state` may last."""
    match state:
        case State.PROPOSE | State.JUDGE:
            return limits.answer_timeout
        case State.EXPECT_CODE:
            return limits.codegen_timeout
        case _:
            return limits.message_timeout


def waits_for_peer(state: State, *, own_code: bool) -> bool:
    """Return whether `state` waits for the peer.

    Args:
        own_code: Whether our code for the candidate on the table is ready.
    """
    if state is State.EXPECT_CODE:
        return own_code
    return state in {State.EXPECT_PROPOSAL, State.EXPECT_ANSWER}


def expiry(
    state: State, limits: NegotiationLimits, *, own_code: bool
) -> tuple[FailureKind, str, str | None]:
    """Return why a negotiation ends whose `state` lasted too long.

    Returns:
        The kind, the reason, and what the peer sees if that is something else.
    """
    match state:
        case State.EXPECT_CODE:
            # ANP-44: counts as failed code generation, whoever is late.
            whose = "the peer's" if own_code else "our"
            reason = f"{whose} code was not ready in {limits.codegen_timeout:g} s"
            return FailureKind.CODE_GENERATION, reason, None
        case State.PROPOSE | State.JUDGE:
            reason = f"our mind gave no answer in {limits.answer_timeout:g} s"
            return FailureKind.TIMEOUT, reason, wording.MIND_REASON
        case _:
            reason = f"no answer of the peer in {limits.message_timeout:g} s"
            return FailureKind.TIMEOUT, reason, None
