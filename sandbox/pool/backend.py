"""The interface between the pool and its workers; other backends can implement it."""

from __future__ import annotations

from typing import Any, Protocol

from sandbox.lock.lockdown import Isolation

__all__ = ["WorkerBackend", "Worker"]


class Worker(Protocol):
    """A place where a module runs, such as `WorkerProcess`."""

    pid: int
    calls: int

    @property
    def alive(self) -> bool:
        """True while it accepts requests."""

    async def ask_timed(
        self, request: dict[str, Any], *, deadline: float
    ) -> tuple[dict[str, Any], float]:
        """Send one request; return the reply and the seconds it took.

        Raises:
            SandboxError: There is no reply; the worker has ended, unless the request
                could not be sent.
        """

    def kill(self, why: str) -> None:
        """End it now; does nothing when it has ended."""


class WorkerBackend(Protocol):
    """Starts workers; `sandbox.processes.process.ForkServer` is one."""

    @property
    def isolation(self) -> Isolation:
        """The level of protection of its workers; `reduced` before `start`."""

    async def start(self) -> None:
        """Prepare to spawn workers; SandboxError if that fails."""

    async def close(self) -> None:
        """End all its processes."""

    async def spawn(self) -> Worker:
        """Return a new worker without a module; SandboxError if that fails."""
