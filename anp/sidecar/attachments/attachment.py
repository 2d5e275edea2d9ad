"""The interface that every kind of attachment has, its limits and its errors."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from anp.errors import AnpError
from negotiation.need import Capability

MAX_MESSAGE = 500
"Longest message of a tool that is passed on, in characters."

NO_REASON = "the agent handed the task back without a reason"
"The words for a requester whose task comes back without any."


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call, as its tool reports it."""

    progress: float | None = None
    "Work that is done, in the tool's own unit; None if it only says words."

    total: float | None = None
    "All the work in that unit, if the tool knows."

    message: str = ""
    "The tool's words."


report_progress: ContextVar[Callable[[Progress], None] | None] = ContextVar(
    "report_progress", default=None
)
"""Takes the progress of the call at hand, if anybody wants it. The task that makes the
call sets it; the tasks that it starts inherit it."""


class ToolError(AnpError):
    """The tool answered with an error; the provider half tells the peer.

    Codes are those of HTTP: 400 arguments it cannot take, 500 it failed, 502 its
    answer is no result, 503 too many calls are running, 504 it took too long.

    Args:
        may_have_run: False when the tool was certainly not called.
        private: The words are those of an exception of the owner's code, which are not
            meant for a peer; see `AttachmentSpec.show_errors`.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        may_have_run: bool = True,
        private: bool = False,
    ) -> None:
        message = message[:MAX_MESSAGE]
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.may_have_run = may_have_run
        self.private = private


class HandedBack(ToolError):
    """The agent did nothing and hands the task back, so that another one is asked.

    A task becomes `rejected` by it (GBZ-62, GBZ-Q20), unless the agent gave a part of
    the result before; a call of one turn ends with an error that says that nothing ran.

    Args:
        message: The agent's reason, which the requester reads.
        code: As of HTTP.
    """

    def __init__(self, message: str, *, code: int = 409) -> None:
        super().__init__(code, message or NO_REASON, may_have_run=False)


class AttachmentError(AnpError):
    """The attachment itself is dead or cannot be started; the owner has to look.

    Args:
        may_have_run: The call had been handed over when the attachment died.
    """

    def __init__(self, message: str, *, may_have_run: bool = False) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentLimits:
    """Times and sizes of one attachment."""

    supervisor: SupervisorConfig = field(default_factory=SupervisorConfig)
    "Times of the child."

    max_calls: int = 64
    "Calls that run at a time, with those that nobody waits for any more."

    max_tools: int = 512
    "Tools that are read; the rest are left out."

    max_schema: int = 64 * 1024
    'Largest schema of a tool, in bytes of JSON (DESIGN.md, "Trust").'

    max_description: int = 4096
    "Longest description of a tool, in characters; the rest is cut."

    max_result: int = 8 * 1024 * 1024
    "Largest result of a tool, in bytes of JSON."

    max_document: int = 16 * 1024 * 1024
    "Largest OpenAPI document, agent card or list of capabilities, in bytes."

    refresh: float = 60.0
    "Seconds after which a service over HTTP is asked again what it can do."


class Attachment(Protocol):
    """Something of the owner's that the daemon can call."""

    @property
    def name(self) -> str:
        """First half of its capabilities' names."""

    @property
    def kind(self) -> str:
        """One of the kinds of `AttachmentSpec`."""

    @property
    def healthy(self) -> bool:
        """True if it can be called now."""

    @property
    def problem(self) -> str | None:
        """Why it cannot be called, in words for the owner."""

    @property
    def begins_itself(self) -> bool:
        """True if it tells `Requester.begin` when its agent takes a task."""

    @property
    def show_errors(self) -> bool:
        """True if the owner lets peers read the exceptions of its code."""

    @property
    def skipped(self) -> tuple[str, ...]:
        """Tools that cannot be used and settings of no effect, each with the reason."""

    async def start(self) -> None:
        """Start it and read what it can do.

        Raises:
            AttachmentError: It could not be started; it is tried again in the
                background until `close`.
        """

    async def close(self) -> None:
        """End its child; idempotent."""

    def capabilities(self) -> list[Capability]:
        """Return what it can do, exposed or not, called `attachment.tool`."""

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """Call one capability by its full name.

        Args:
            arguments: Checked against the input schema by the caller.
            caller: DID of the peer the call is made for.
            timeout: Seconds for the call, with the wait for a restart.

        Returns:
            The output; the caller checks it against the output schema.

        Raises:
            CapabilityError: The tool answered with an error, or not in time.
            AttachmentError: The attachment is dead; `may_have_run` tells the rest.
        """
