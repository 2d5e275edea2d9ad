"""Errors and findings of the sandbox."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of the static policy in a source (SANDBOX.md, Layer 1)."""

    line: int | None
    "Line number from 1; None when the finding concerns the whole source."

    reason: str
    "The refused construct, and a replacement for it."

    source: str = ""
    "The line itself, shortened."


class SandboxError(Exception):
    """A module did not return a value (SANDBOX.md, Report to the user).

    `outcome` is one of `rejected`, `error`, `timeout`, `memory`, `output_too_large`,
    `forbidden_syscall`, `crashed`, `capability_limit`, `bad_frame`; and, decided by the
    daemon, `forbidden` (the isolation is too low for such code), `quarantined`, and
    `busy` (no worker is free; nothing is wrong with the code).
    `stage` is `load` or `call`. `limit` and `used` are in the unit of that limit.
    With `collateral` the worker ended through the fault of another call in it; then
    `may_have_run` is true if this call had already called a capability.
    """

    def __init__(
        self,
        outcome: str,
        reason: str,
        *,
        stage: str = "call",
        function: str | None = None,
        line: int | None = None,
        limit: int | float | None = None,
        used: int | float | None = None,
        findings: tuple[Finding, ...] = (),
        collateral: bool = False,
    ) -> None:
        super().__init__(f"{outcome}: {reason}")
        self.outcome = outcome
        self.reason = reason
        self.stage = stage
        self.protocol: str | None = None
        self.function = function
        self.line = line
        self.limit = limit
        self.used = used
        self.findings = findings
        self.collateral = collateral
        self.may_have_run = False

    def report(self) -> dict[str, Any]:
        """Return the report as a JSON object; unknown fields are left out."""
        known = {
            "outcome": self.outcome,
            "stage": self.stage,
            "protocol": self.protocol,
            "function": self.function,
            "line": self.line,
            "reason": self.reason,
            "limit": self.limit,
            "used": self.used,
            "findings": [asdict(finding) for finding in self.findings] or None,
            "may_have_run": self.may_have_run or None,
        }
        return {name: value for name, value in known.items() if value is not None}


class CapabilityFailure(Exception):
    """A capability answered with an error; the module sees it as `CapabilityError`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class FrameError(Exception):
    """Bytes are not a valid frame, or a value may not be sent in one."""
