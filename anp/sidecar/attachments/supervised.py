"""What every attachment has in common: who it is, its lives, what it listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.listing import ToolListing
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.supervisor import Supervisor
from negotiation.need import Capability

__all__ = ["Supervised"]


class Supervised(ABC):
    """An attachment whose lives a supervisor begins; see `Attachment`."""

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
        self._supervisor = Supervisor(
            spec.name, self._live, config=limits.supervisor, on_change=on_change
        )

    @abstractmethod
    async def _live(self, supervisor: Supervisor) -> None:
        """Live once; see `Supervisor`."""

    @property
    def name(self) -> str:
        """First half of its capabilities' names."""
        return self._spec.name

    @property
    def kind(self) -> str:
        """One of the kinds of `AttachmentSpec`."""
        return self._spec.kind

    @property
    def healthy(self) -> bool:
        """Whether it can be called now; for a service, when it was last asked."""
        return self._supervisor.healthy

    @property
    def problem(self) -> str | None:
        """Why it cannot be called."""
        return self._supervisor.problem

    @property
    def skipped(self) -> tuple[str, ...]:
        """What it has that cannot be used, each with the reason."""
        return self._listing.skipped

    async def start(self) -> None:
        """Start it and read what it can do; see `Attachment.start`."""
        await self._supervisor.start()

    async def close(self) -> None:
        """End what it runs; idempotent."""
        await self._supervisor.close()

    def capabilities(self) -> list[Capability]:
        """Return what it can do, with the schemas of the last listing."""
        return list(self._listing.capabilities)
