"""Errors of `negotiation`: one class for each way in which a caller reacts."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class NegotiationError(Exception):
    """Base of all errors of `negotiation`."""


class MisuseError(NegotiationError):
    """Our own code misused an interface of this package: a bug."""


class JsonError(NegotiationError):
    """A text is not strict JSON (ANP-18), or is over a limit."""


class MessageFault(StrEnum):
    """The reason for refusing the bytes of a meta message; counters use these names."""

    NOT_JSON = "not_json"
    UNKNOWN_ACTION = "unknown_action"
    BAD_FIELD = "bad_field"
    TOO_LARGE = "too_large"


class MessageError(NegotiationError):
    """A peer's bytes are not a meta message; `kind` tells how to handle them."""

    def __init__(self, kind: MessageFault, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class MessageDropped(NegotiationError):
    """A message of the peer is dropped and counted (ANP-Q17); internal to machines.

    The text gives the reason in our words and quotes nothing of the peer.
    """


class CommunicationEnded(NegotiationError):
    """An event ends the communication; internal to machines.

    `by_peer` is True when the peer broke the rules or could not repair its code.
    """

    def __init__(self, reason: str, *, by_peer: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.by_peer = by_peer


class DocumentError(NegotiationError):
    """A candidate cannot be read; the peer may see the reason in the text."""


class SchemaError(NegotiationError):
    """A JSON Schema is over a limit or uses a forbidden keyword."""


class MindError(NegotiationError):
    """Our own mind failed (model, budget, network). The peer never sees the text."""


class HalfError(NegotiationError):
    """A module half failed.

    `outcome` is one of the stable names of the sandbox's report, `line` the line of the
    half's text, counted from 1.
    """

    def __init__(
        self,
        outcome: str,
        reason: str,
        line: int | None = None,
        *,
        raised: bool = False,
    ) -> None:
        """Describe the failure.

        Args:
            raised: True when the reason is that of an exception in the half's code.
        """
        where = "" if line is None else f" (line {line})"
        super().__init__(f"{outcome}: {reason}{where}")
        self.outcome = outcome
        self.reason = reason
        self.line = line
        self.raised = raised

    @property
    def told(self) -> str:
        """The failure in words for people and peers.

        The text of the error itself is for who writes the code again, and for the log.
        """
        if self.raised:
            return "the code for this protocol failed with this message"
        return _FAILURES.get(self.outcome, self.reason)


_FAILURES = {
    "timeout": "the code for this protocol took too long",
    "memory": "the code for this protocol needed too much memory",
    "crashed": "the code for this protocol crashed",
    "output_too_large": "the code for this protocol gave too large a message",
    "forbidden_syscall": "the code for this protocol tried what it may not do",
    "bad_frame": "the code for this protocol gave no answer that can be read",
    "busy": "busy: no worker was free to run the code for this protocol",
}
"Words for outcomes whose reason is about the worker, not about the half."


def told_of(exc: Exception) -> str:
    """Return an error of ours in words for people and peers."""
    return exc.told if isinstance(exc, HalfError) else str(exc)


NOT_RUN = "not run: "
"""Beginning of a provider's words for a failure before any capability was called.

Every document has room for words, while codes differ, so these words tell the requester
that a repetition doubles nothing. Without them the call may have run.
"""

NO_VALUE = "gave no value"
"End of a half's words for a value that is absent where the document needs it."

APPROVAL_PENDING = "approval-pending"
"Says to a peer: our owner has to approve this first; ask again later."


class CapabilityFailed(NegotiationError):
    """A capability answered with an error; the half sees it as `CapabilityError`.

    `ran` is False when the capability was certainly not called, or when its agent said
    that it did nothing; `handed_back` is True then, and another agent may be asked.
    """

    def __init__(
        self, code: str, message: str, *, ran: bool = True, handed_back: bool = False
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.ran = ran
        self.handed_back = handed_back

    def again(self) -> Self:
        """Return this error without the functions that it has passed.

        An error that was raised holds the frames of the functions that it passed, and
        through their variables often itself. Its cause is not copied either.
        """
        twin = type(self).__new__(type(self), *self.args)
        vars(twin).update(vars(self))
        return twin

    @property
    def told(self) -> str:
        """The words for the peer; they begin with `NOT_RUN` if nothing ran."""
        if not self.ran:
            return NOT_RUN + self.message
        # A tool's own words must not say so for it.
        claims = self.message.startswith(NOT_RUN)
        return f"failed: {self.message}" if claims else self.message


class CasesError(NegotiationError):
    """A text has no usable test cases, or no case has a given request."""


class TransportClosed(NegotiationError):
    """The channel of a negotiation is closed; nothing can be sent any more."""


class FailureKind(StrEnum):
    """The reason why a negotiation failed; logs and the API share the names."""

    REJECTED = "rejected"
    ROUNDS = "rounds"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol_error"
    CODE_GENERATION = "code_generation"
    MIND = "mind"
    CANCELLED = "cancelled"
    LINK_LOST = "link_lost"
