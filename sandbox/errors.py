"""What can go wrong in the sandbox."""

from __future__ import annotations

__all__ = ["CapabilityFailure", "FrameError", "SandboxError"]


class SandboxError(Exception):
    """A module did not give a value (SANDBOX.md, Report to the user).

    `outcome` is one of `rejected`, `error`, `timeout`, `memory`, `output_too_large`,
    `crashed`, `capability_limit`, `bad_frame` and `forbidden`. `limit` and `used` are
    in the unit of the limit that was met. With `collateral` the worker ended for a
    fault of another call in it.
    """

    def __init__(
        self,
        outcome: str,
        reason: str,
        *,
        function: str | None = None,
        line: int | None = None,
        limit: int | float | None = None,
        used: int | float | None = None,
        collateral: bool = False,
    ) -> None:
        super().__init__(f"{outcome}: {reason}")
        self.outcome = outcome
        self.reason = reason
        self.function = function
        self.line = line
        self.limit = limit
        self.used = used
        self.collateral = collateral


class CapabilityFailure(Exception):
    """A capability answered with an error; the module sees it as `CapabilityError`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class FrameError(Exception):
    """Bytes that are no frame, or a value that may not cross."""
