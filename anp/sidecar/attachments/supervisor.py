"""Keeps one child alive: starts it, notices its death, starts it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from anp.sidecar.attachments.errors import AttachmentError

__all__ = ["Supervisor", "SupervisorConfig"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorConfig:
    """Times of one supervised child."""

    start_timeout: float = 30.0
    "Seconds a child may take until it can be called."

    min_backoff: float = 0.5
    "Seconds before the first restart; doubles with every death in a row."

    max_backoff: float = 30.0
    "Longest wait before a restart, in seconds."

    stable_after: float = 60.0
    "Seconds of life after which earlier deaths are forgotten."

    restart_wait: float = 5.0
    "Seconds a call waits for a child that is just being started again."

    stop_timeout: float = 10.0
    "Seconds a child may take to end before its task is cancelled."


class Supervisor:
    """Runs one life of a child after the other, each in a task of its own.

    Args:
        life: Opens the child, calls `opened`, serves it until it is dead or
            `stopping` is set, and cleans up. It raises `AttachmentError` with the
            reason when the child died or could not be started.
        on_change: Called after health or capabilities may have changed.
    """

    def __init__(
        self,
        name: str,
        life: Callable[[Supervisor], Coroutine[Any, Any, None]],
        *,
        config: SupervisorConfig,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._life = life
        self.config = config
        self._on_change = on_change
        self._ready = asyncio.Event()
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # The task of a life that has not been opened yet.
        self._starting: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()
        self.problem: str | None = "not started"

    @property
    def healthy(self) -> bool:
        """Whether the child can be called now."""
        return self._ready.is_set()

    def opened(self) -> None:
        """Say that the child can be called, or that its capabilities changed."""
        self.problem = None
        self._starting = None
        self._ready.set()
        self._tried.set()
        self.changed()

    def lost(self) -> None:
        """Say that the child can no longer be called; its life is about to end."""
        self._starting = None
        self._ready.clear()

    def changed(self) -> None:
        """Tell the owner of this attachment that something changed."""
        if self._on_change is not None:
            self._on_change()

    async def start(self) -> None:
        """Start the child and wait until it can be called.

        Raises:
            AttachmentError: It could not be started. It is tried again in the
                background until `close`.
        """
        if self._task is None:
            self._task = asyncio.create_task(
                self._supervise(), name=f"attachment {self._name}"
            )
        await self._tried.wait()
        if not self.healthy:
            raise AttachmentError(f"attachment {self._name}: {self.problem}")

    async def wait_ready(self, timeout: float) -> None:
        """Wait a moment for a child that is just being started again.

        Raises:
            AttachmentError: It cannot be called; nothing has run.
        """
        if self.healthy:
            return
        try:
            async with asyncio.timeout(min(timeout, self.config.restart_wait)):
                await self._ready.wait()
        except TimeoutError:
            raise AttachmentError(
                f"attachment {self._name} is down: {self.problem}"
            ) from None

    async def close(self) -> None:
        """End the child and its task; idempotent."""
        self.stopping.set()
        # A life that serves, or cleans up, sees `stopping`; one that starts may hang.
        if self._starting is not None:
            self._starting.cancel()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self.config.stop_timeout)
            self._task.cancel()
            await asyncio.wait({self._task})
        self._ready.clear()
        self.problem = "closed"

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        deaths = 0
        while not self.stopping.is_set():
            began = loop.time()
            await self._live_once()
            self.lost()
            self._tried.set()
            if self.stopping.is_set():
                return
            self.changed()
            deaths = 0 if loop.time() - began > self.config.stable_after else deaths
            wait = min(
                self.config.min_backoff * 2 ** min(deaths, 16), self.config.max_backoff
            )
            deaths += 1
            logger.warning(
                "attachment down name=%s problem=%r restart_in=%.1f",
                self._name,
                self.problem,
                wait,
            )
            await _wait_for(self.stopping, wait)
        self._tried.set()

    async def _live_once(self) -> None:
        """Run one life in a task of its own, and note why it ended."""
        # A task cannot outlive cancel scopes that a dead client left half open, so
        # every life gets a new one.
        life = asyncio.create_task(self._life(self))
        self._starting = life
        try:
            await life
            self.problem = "it ended"
        except AttachmentError as exc:
            self.problem = str(exc)
        except asyncio.CancelledError:
            if life.cancelled() and self.stopping.is_set():
                return
            life.cancel()
            await asyncio.wait({life})
            raise
        except Exception:
            # One attachment must not take the others down.
            logger.exception("attachment failed name=%s", self._name)
            self.problem = "it failed inside the daemon; see the log"


async def _wait_for(event: asyncio.Event, timeout: float) -> None:
    """Wait for `event`, at most `timeout` seconds."""
    waiter = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiter}, timeout=timeout)
    finally:
        waiter.cancel()
