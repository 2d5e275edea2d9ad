"""The base of every kind: keeps a child alive, and reads what the child prints.

It also gives the places of the calls that run, in fair shares.
"""

from __future__ import annotations

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from anp.extras import missing
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    ToolError,
)
from anp.sidecar.attachments.listing import ToolListing
from anp.sidecar.attachments.spec import AttachmentSpec
from negotiation.need import Capability
from sandbox.pool.shares import Rank, Share, current_share

logger = logging.getLogger(__name__)

EXTRAS: Final[Mapping[str, str]] = {"a2a": "a2a", "mcp": "mcp"}
"Kinds whose library is in an extra."

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
        # The log takes a limited number of these lines, for each child by itself.
        logger.info(
            "child printed attachment=%s text=%r",
            self._name,
            text,
            extra={"cause": self._name},
        )


PLACE_WAIT = 5.0
"Seconds that the call of a peer waits for a place, at most."

MAX_WAITING = 256
"Calls of one share that wait for a place."


class CallPlaces:
    """The places of the calls that run in one attachment, in fair shares.

    Unlisted peers have a quarter of the places. Nobody takes as many places as would
    then be left free: so one listed peer has half of all at most, one address half of
    that quarter, and whoever comes next finds a place. Only the owner may fill them.
    """

    def __init__(self) -> None:
        self._held: Counter[Share] = Counter()
        self._waiting: dict[Share, deque[asyncio.Future[None]]] = {}

    @property
    def held(self) -> int:
        """Places that are taken."""
        return self._held.total()

    async def take(self, total: int, *, timeout: float) -> Callable[[object], None]:
        """Take a place for `current_share`; a peer's call waits for it.

        Args:
            total: Places of all.
            timeout: Seconds to wait at most.

        Returns:
            Gives the place back, whatever its argument; called once.

        Raises:
            ToolError: There was none; nothing has run.
        """
        share = current_share.get()
        if share in self._waiting or not self._may(share, total):
            await self._wait(share, total, min(timeout, PLACE_WAIT))
        else:
            self._held[share] += 1

        def leave(_: object) -> None:
            self._held[share] -= 1
            if not self._held[share]:
                del self._held[share]
            self._grant(total)

        return leave

    def _may(self, share: Share, total: int) -> bool:
        free = total - self.held
        if share.rank is Rank.OWNER:
            return free > 0
        if share.rank is Rank.COMMON:
            held = sum(n for one, n in self._held.items() if one.rank is Rank.COMMON)
            free = min(free, max(1, total // 4) - held)
        return self._held[share] < free

    async def _wait(self, share: Share, total: int, timeout: float) -> None:
        running = self.held
        line = self._waiting.get(share, deque())
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            if share.rank is Rank.OWNER or not running or len(line) >= MAX_WAITING:
                raise TimeoutError
            line.append(turn)
            self._waiting[share] = line
            async with asyncio.timeout(timeout):
                await turn
        except BaseException as exc:
            if turn in line:
                self._leave_line(share, turn)
            elif turn.done() and not turn.cancelled():
                # It got its place in the very moment in which it was given up.
                self._held[share] -= 1
                self._grant(total)
            if not isinstance(exc, TimeoutError):
                raise
            text = f"{running} calls are still running"
            raise ToolError(503, text, may_have_run=False) from None

    def _leave_line(self, share: Share, turn: asyncio.Future[None]) -> None:
        line = self._waiting[share]
        line.remove(turn)
        if not line:
            del self._waiting[share]

    def _grant(self, total: int) -> None:
        """Give free places to those who wait, listed peers first."""
        while self._waiting:
            able = [share for share in self._waiting if self._may(share, total)]
            if not able:
                return
            share = min(able, key=lambda one: (one.rank, self._held[one]))
            # The next turn of this share comes after those of its equals.
            line = self._waiting.pop(share)
            turn = line.popleft()
            if line:
                self._waiting[share] = line
            # One that was cancelled in this moment needs no place any more.
            if not turn.done():
                self._held[share] += 1
                turn.set_result(None)


class SupervisedAttachment(ABC):
    """An attachment that lives again and again; see `Attachment`.

    Each life runs in a task of its own: it starts the child or reaches the service and
    serves its calls. After a death the next life begins, with longer and longer waits.

    Args:
        on_change: Called after health or capabilities may have changed.
    """

    begins_itself = False
    "True if it tells `Requester.begin` when its agent takes a task."

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
        self._places = CallPlaces()
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
        extra = EXTRAS.get(self.kind)
        if extra and (reason := missing(extra)):
            # Trying again would not bring the packages.
            self.problem = reason
            raise AttachmentError(f"attachment {self.name}: {reason}")
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
            # Once: a second time it may be at cleaning up, and would leave children.
            self._starting.cancel()
            self._starting = None
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
            wait = min(times.min_backoff * 2 ** min(deaths, 16), times.max_backoff)
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
