"""The end of a worker, and the error that it means for the worker's call."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from sandbox.errors import SandboxError

__all__ = ["Ending"]


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a worker, as the kernel reported it to the fork server."""

    status: int
    "Exit status, or minus the number of the signal that ended the worker."

    cpu: float
    "CPU seconds used in its lifetime."

    text: str
    "The beginning of its output on standard error; hostile."

    def error(self, cpu_seconds: int) -> SandboxError:
        """Return the error for the call that the worker was running.

        Args:
            cpu_seconds: The worker's limit of CPU time.
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
