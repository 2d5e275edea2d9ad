"""The base of every kind: keeps a child alive, and reads what the child prints."""

from __future__ import annotations

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from anp.sidecar.attachments.attachment import AttachmentError, AttachmentLimits
from anp.sidecar.attachments.listing import ToolListing
from anp.sidecar.attachments.spec import AttachmentSpec
from negotiation.need import Capability

__all__ = ["OutputTail", "SupervisedAttachment", "child_environment", "wait_at_most"]

logger = logging.getLogger(__name__)

PASSED_ON = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    }
)
"Variables a child inherits besides `LC_*`; all else might be a secret of ours."


def child_environment(
    extra: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of a child: a small safe set, and what the owner gave."""
    safe = {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith("LC_")
    }
    return safe | dict(extra)


class OutputTail:
    """Reads what a child prints so that it never blocks, and keeps the last lines."""

    MAX_LINES = 20
    MAX_LINE = 200

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: deque[str] = deque(maxlen=self.MAX_LINES)

    @property
    def last_line(self) -> str:
        """The last line that was not blank; often it says why a child died."""
        return next((line for line in reversed(self._lines) if line.strip()), "")

    async def drain(self, reader: asyncio.StreamReader) -> None:
        """Read until the end; a line is logged and kept up to 200 characters."""
        rest = b""
        while chunk := await reader.read(64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._keep(line)
            # A child that prints no newlines must not fill our memory.
            rest = rest[: self.MAX_LINE]
        if rest:
            self._keep(rest)

    def _keep(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()[: self.MAX_LINE]
        self._lines.append(text)
        logger.debug("child printed attachment=%s text=%r", self._name, text)


class SupervisedAttachment(ABC):
    """An attachment that lives again and again; see `Attachment`.

    Each life runs in a task of its own: it starts the child or reaches the service and
    serves its calls. After a death the next life begins, with longer and longer waits.

    Args:
        on_change: Called after health or capabilities may have changed.
    """

    def __init__(
        self,
        spec: AttachmentSpec,
        *,
        limits: AttachmentLimits,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._spec = spec
        self._limits = limits
        self._listing = ToolListing()
        self._on_change = on_change
        self._ready = asyncio.Event()
        self._tried = asyncio.Event()
        self._supervision: asyncio.Task[None] | None = None
        # The task of a life that has not been opened yet.
        self._starting: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self.problem: str | None = "not started"

    @abstractmethod
    async def _live(self) -> None:
        """Live once.

        It opens the child, calls `_opened`, serves it until it is dead or `_stopping`
        is set, and cleans up.

        Raises:
            AttachmentError: The child died or could not be started; with the reason.
        """

    @abstractmethod
    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """Make a call; see `Attachment.call`."""

    @property
    def name(self) -> str:
        """First half of its capabilities' names."""
        return self._spec.name

    @property
    def kind(self) -> str:
        """One of the kinds of `AttachmentSpec`."""
        return self._spec.kind

    @property
    def show_errors(self) -> bool:
        """True if the owner lets peers read the exceptions of its code."""
        return self._spec.show_errors

    @property
    def skipped(self) -> tuple[str, ...]:
        """Tools that cannot be used and settings of no effect, each with the reason."""
        return self._listing.skipped

    def capabilities(self) -> list[Capability]:
        """Return what it can do, with the schemas of the last listing."""
        return list(self._listing.capabilities)

    @property
    def listing(self) -> ToolListing:
        """The last listing of its tools."""
        return self._listing

    def _tool_of(self, capability: str) -> str:
        """Return the tool's own name, by the full name of its capability."""
        short = capability.removeprefix(f"{self.name}.")
        return self._listing.tools.get(capability, short)

    def limit(self, max_calls: int) -> None:
        """Take another limit of calls at a time; it holds for the next ones."""
        self._limits = replace(self._limits, max_calls=max_calls)

    @property
    def healthy(self) -> bool:
        """True if it can be called now; for a service, when it was last asked."""
        return self._ready.is_set()

    def _opened(self) -> None:
        """Say that the child can be called, or that its capabilities changed."""
        self.problem = None
        self._starting = None
        self._ready.set()
        self._tried.set()
        self._changed()

    def _lost(self) -> None:
        """Say that the child can no longer be called; its life is about to end."""
        self._starting = None
        self._ready.clear()

    def _changed(self) -> None:
        """Tell the owner of this attachment that something changed."""
        if self._on_change is not None:
            self._on_change()

    async def start(self) -> None:
        """Start the child and wait until it can be called.

        Raises:
            AttachmentError: It could not be started. It is tried again in the
                background until `close`.
        """
        if self._supervision is None:
            self._supervision = asyncio.create_task(
                self._supervise(), name=f"attachment {self.name}"
            )
        await self._tried.wait()
        if not self.healthy:
            raise AttachmentError(f"attachment {self.name}: {self.problem}")

    async def _wait_ready(self, capability: str, timeout: float) -> None:
        """Wait a moment for a child that is just being started again.

        Raises:
            AttachmentError: It cannot be called, or no longer has the capability;
                nothing has run.
        """
        if not self.healthy:
            wait = min(timeout, self._limits.supervisor.restart_wait)
            try:
                async with asyncio.timeout(wait):
                    await self._ready.wait()
            except TimeoutError:
                raise AttachmentError(
                    f"attachment {self.name} is down: {self.problem}"
                ) from None
        # A tool may have gone with a restart since the caller looked.
        if not any(each.name == capability for each in self._listing.capabilities):
            raise AttachmentError(f"there is no capability {capability} any more")

    async def close(self) -> None:
        """End the child and its task; idempotent."""
        self._stopping.set()
        # A life that serves, or cleans up, sees `_stopping`; one that starts may hang.
        if self._starting is not None:
            self._starting.cancel()
        if self._supervision is not None:
            await asyncio.wait(
                {self._supervision}, timeout=self._limits.supervisor.stop_timeout
            )
            self._supervision.cancel()
            await asyncio.wait({self._supervision})
        self._ready.clear()
        self.problem = "closed"

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        times = self._limits.supervisor
        deaths = 0
        while not self._stopping.is_set():
            began = loop.time()
            await self._live_once()
            self._lost()
            self._tried.set()
            if self._stopping.is_set():
                return
            self._changed()
            deaths = 0 if loop.time() - began > times.stable_after else deaths
            wait = min(
                times.min_backoff * 2 ** min(deaths, 16),
                times.max_backoff,
            )
            deaths += 1
            logger.warning(
                "attachment down name=%s problem=%r restart_in=%.1f",
                self.name,
                self.problem,
                wait,
            )
            await wait_at_most(self._stopping, wait)
        self._tried.set()

    async def _live_once(self) -> None:
        """Run one life in a task of its own, and note why it ended."""
        # A task cannot outlive cancel scopes that a dead client left half open, so
        # every life gets a new one.
        life = asyncio.create_task(self._live())
        self._starting = life
        try:
            await life
            self.problem = "it ended"
        except AttachmentError as exc:
            self.problem = str(exc)
        except asyncio.CancelledError:
            if life.cancelled() and self._stopping.is_set():
                return
            life.cancel()
            await asyncio.wait({life})
            raise
        except Exception:
            # One attachment must not take the others down.
            logger.exception("attachment failed name=%s", self.name)
            self.problem = "it failed inside the daemon; see the log"


async def wait_at_most(event: asyncio.Event, timeout: float) -> None:
    """Wait for `event`, at most `timeout` seconds."""
    waiter = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiter}, timeout=timeout)
    finally:
        waiter.cancel()
