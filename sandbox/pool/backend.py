"""What the pool needs of whatever holds workers; another backend fits here."""

from __future__ import annotations

from typing import Any, Protocol

from sandbox.lock.lockdown import Isolation

__all__ = ["Backend", "Worker"]


class Worker(Protocol):
    """One place where a module runs, such as `WorkerProcess`."""

    pid: int
    calls: int

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""

    async def ask_timed(
        self, request: dict[str, Any], *, deadline: float
    ) -> tuple[dict[str, Any], float]:
        """Send one request; return the reply and the seconds of its own.

        Raises:
            SandboxError: There is no reply; the worker is gone, unless the request
                itself could not cross.
        """

    def kill(self, why: str) -> None:
        """End it now; harmless when it has ended."""


class Backend(Protocol):
    """Starts workers; `sandbox.processes.process.ForkServer` is one."""

    @property
    def isolation(self) -> Isolation:
        """How well its workers are locked; `reduced` before `start`."""

    async def start(self) -> None:
        """Get ready; SandboxError if it cannot."""

    async def close(self) -> None:
        """End everything it started."""

    async def spawn(self) -> Worker:
        """Return a new worker without a module; SandboxError if there is none."""
