"""How a worker ended, and what that means for its call."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from sandbox.errors import SandboxError

__all__ = ["Ending"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended, as the kernel told the fork server."""

    status: int
    "Exit status, or minus the number of the signal that ended it."

    cpu: float
    "CPU seconds that it used in its life."

    text: str
    "The beginning of what it wrote to standard error; hostile."

    def error(self, cpu_seconds: int) -> SandboxError:
        """Return what this means for the call that the worker had.

        Args:
            cpu_seconds: Its limit.
        """
        if self.status >= 0:
            return SandboxError("crashed", f"it ended itself with status {self.status}")
        number = -self.status
        if number == signal.SIGSYS:
            return SandboxError(
                "forbidden_syscall",
                "it asked the kernel for something that a module may not",
            )
        if number == signal.SIGXCPU or (
            number == signal.SIGKILL and self.cpu >= cpu_seconds
        ):
            return SandboxError(
                "timeout",
                f"it used its {cpu_seconds} CPU seconds",
                limit=cpu_seconds,
                used=round(self.cpu, 3),
            )
        if number == signal.SIGKILL:
            return SandboxError(
                "crashed", "SIGKILL from outside, perhaps for lack of memory"
            )
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return SandboxError("crashed", f"it was ended by {name}")
