"""Errors of interaction: one class, with a code that travels to the peer."""

from __future__ import annotations

from enum import StrEnum


class InteractionFault(StrEnum):
    """Reasons to refuse an operation; the peer and the local caller see the code."""

    INVALID = "invalid"
    "An object lacks a field, or a field has a wrong value."

    UNKNOWN_OPERATION = "unknown_operation"
    UNKNOWN_SESSION = "unknown_session"
    UNKNOWN_TASK = "unknown_task"

    UNKNOWN_FILE = "unknown_file"
    "The file is not kept here, or not any more. Not in the text of GB/Z: ours."

    NOT_ALLOWED = "not_allowed"
    "The sender is not who may do this."

    STATE = "state"
    "The task's state does not allow the change."

    CLOSED = "closed"
    "The session is closed or has expired."

    CONFLICT = "conflict"
    "The id is taken by something else."

    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    "A limit on the number of tasks, sessions or chunks is reached."

    EXPIRED = "expired"
    "Chunks of the message came too late, or an invitation counts no more."

    UNKNOWN_GROUP = "unknown_group"
    UNKNOWN_SUBSCRIPTION = "unknown_subscription"

    TAKEN = "taken"
    "Another member accepted the offer first."


class InteractionError(Exception):
    """An operation is refused and changes nothing.

    The text is for the peer and for people; it quotes at most a short part of the
    peer's own words.
    """

    def __init__(
        self, code: InteractionFault, text: str, *, retry_after: float = 0.0
    ) -> None:
        """Describe the refusal.

        Args:
            retry_after: Seconds after which the same may be taken; 0 for unknown.
        """
        super().__init__(text)
        self.code = code
        self.text = text
        self.retry_after = retry_after


def fault_of(code: str) -> InteractionFault:
    """Return the fault that a hub names; one that we do not know is of the state."""
    try:
        return InteractionFault(code)
    except ValueError:
        return InteractionFault.STATE
