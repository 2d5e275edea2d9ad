"""The errors of `anp`: one class for each reaction to them."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class ErrorCode(IntEnum):
    """Codes of the outer `response` message (WIRE row 25).

    503 is ours: nothing is wrong with the message or with who sent it, and it can be
    sent again later. A peer that does not know it reads a refusal.
    """

    OK = 200
    NOT_ALLOWED = 403
    DID_NOT_FOUND = 404
    UNAVAILABLE = 503
    ENCRYPTION_FAILED = 4000
    DECRYPTION_FAILED = 4001
    INVALID_ENCRYPTION_KEY = 4002
    INVALID_DECRYPTION_KEY = 4003
    ENCRYPTION_KEY_EXPIRED = 4004
    DECRYPTION_KEY_EXPIRED = 4005


class ErrorKind(StrEnum):
    """Kinds of failure that people, programs and exit codes share (SIDECAR.md)."""

    UNEXPECTED = "unexpected"
    USAGE = "usage"
    CONFIGURATION = "configuration"
    DAEMON_UNREACHABLE = "daemon_unreachable"
    IDENTITY_REFUSED = "identity_refused"
    NEGOTIATION_REJECTED = "negotiation_rejected"
    APPROVAL_PENDING = "approval_pending"
    POLICY = "policy"
    TIMEOUT = "timeout"
    APPLICATION_ERROR = "application_error"
    GENERATED_CODE = "generated_code"
    PEER_UNREACHABLE = "peer_unreachable"
    LOCAL_RESOURCE = "local_resource"
    INTERRUPTED = "interrupted"


EXIT_CODES: dict[ErrorKind, int] = {
    ErrorKind.UNEXPECTED: 1,
    ErrorKind.USAGE: 2,
    ErrorKind.CONFIGURATION: 3,
    ErrorKind.DAEMON_UNREACHABLE: 4,
    ErrorKind.IDENTITY_REFUSED: 5,
    ErrorKind.NEGOTIATION_REJECTED: 6,
    ErrorKind.APPROVAL_PENDING: 7,
    ErrorKind.POLICY: 8,
    ErrorKind.TIMEOUT: 9,
    ErrorKind.APPLICATION_ERROR: 10,
    ErrorKind.GENERATED_CODE: 11,
    ErrorKind.PEER_UNREACHABLE: 12,
    ErrorKind.LOCAL_RESOURCE: 13,
    ErrorKind.INTERRUPTED: 130,
}


class AnpError(Exception):
    """Base of all errors of `anp`."""


class LocalError(AnpError):
    """Our own code misused an interface of ours: a bug."""


class ConfigError(AnpError):
    """The owner's configuration or files are wrong; the message says what to do."""


class PeerError(AnpError):
    """The peer violated the protocol. It may see `code`; `detail` is for our logs."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(f"{code.value}: {detail}")
        self.code = code
        self.detail = detail


class CallError(AnpError):
    """A call did not give a result; `kind` says to programs why, `detail` to people."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        may_have_run: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.may_have_run = may_have_run
        # Seconds after which the same call may go better, or None.
        self.retry_after = retry_after


class UnknownError(CallError):
    """The request names something that does not exist, such as a peer."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorKind.USAGE, detail)


class ConflictError(CallError):
    """The request contradicts an earlier one."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorKind.USAGE, detail)


class BusyError(CallError):
    """As much is under way as may be; the same request may go well later."""

    def __init__(self, detail: str, *, retry_after: float) -> None:
        super().__init__(ErrorKind.POLICY, detail, retry_after=retry_after)


def told_by_peer(code: int | str, message: str) -> str:
    """Return the line about an error that a peer answered; its code stands there once.

    Args:
        message: The peer's words, which may begin with the code.
    """
    return f"the peer answered {code}: {message.removeprefix(f'{code}:').strip()}"


def no_answer(seconds: float, limit: str) -> str:
    """Return the line about a call that got no answer, and the way on.

    Args:
        seconds: How long it was waited for.
        limit: Name of the limit that was reached.
    """
    return (
        f"no answer in {seconds:g} s ({limit}); more time: --timeout, and for work "
        "that lasts a task: `anpd tasks start …`"
    )
