"""The agent's attachments: read from the owner's files, started, changed and ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from anp.errors import ConfigError
from anp.sidecar.attachments import (
    Attachment,
    AttachmentError,
    AttachmentLimits,
    AttachmentSpec,
    load_attachments,
    open_attachment,
)
from anp.sidecar.home.home import Home
from anp.sidecar.offer.exposure import Exposure

__all__ = ["Attaching"]

logger = logging.getLogger(__name__)


class Attaching:
    """Keeps the running attachments the same as those in the owner's files."""

    def __init__(self, home: Home, exposure: Exposure, *, max_calls: int) -> None:
        self._home = home
        self._exposure = exposure
        self._limits = AttachmentLimits(max_calls=max_calls)

    def limit(self, max_calls: int) -> None:
        """Limit the calls of each attachment from its next start on."""
        self._limits = AttachmentLimits(max_calls=max_calls)

    def read(self, declared: Iterable[AttachmentSpec]) -> dict[str, AttachmentSpec]:
        """Return all attachments as the owner's files have them now, by name.

        Args:
            declared: Those of the owner's configuration, as it is now.

        Raises:
            ConfigError: A file is broken.
        """
        specs: dict[str, AttachmentSpec] = {}
        for spec in (*declared, *load_attachments(self._home.attachments)):
            if spec.name in specs:
                raise ConfigError(
                    f"attachment {spec.name} is both in the configuration and in "
                    f"{self._home.attachments}; remove one of them"
                )
            specs[spec.name] = spec
        return specs

    async def reload(self, specs: Mapping[str, AttachmentSpec]) -> list[str]:
        """Start what is new or changed, and end what is gone.

        What is exposed no longer ends before anything is waited for.

        Args:
            specs: All attachments by name; see `read`.

        Returns:
            The names of all attachments.
        """
        gone = self._narrow(specs)
        await asyncio.gather(*(attachment.close() for attachment in gone))
        # A reload also starts unchanged ones anew: the code behind them may have
        # changed, and their schemas with it.
        await asyncio.gather(*(self._attach(spec) for spec in specs.values()))
        return sorted(specs)

    def _narrow(self, specs: Mapping[str, AttachmentSpec]) -> list[Attachment]:
        """Expose what runs as the owner wants it now; return what is to end."""
        gone = []
        for name, (_, attachment) in list(self._exposure.attachments.items()):
            if name in specs:
                self._exposure.put(specs[name], attachment)
            else:
                self._exposure.drop(name)
                gone.append(attachment)
        return gone

    async def _attach(self, spec: AttachmentSpec) -> None:
        old = self._exposure.attachments.get(spec.name)
        if old is not None:
            await old[1].close()
        attachment = open_attachment(
            spec,
            limits=self._limits,
            on_change=self._exposure.changed,
        )
        try:
            await attachment.start()
        except AttachmentError as exc:
            # It goes on trying by itself; until then its capabilities are not offered.
            logger.warning("attachment not healthy name=%s reason=%s", spec.name, exc)
        self._exposure.put(spec, attachment)

    async def close(self) -> None:
        """End every attachment."""
        attachments = [a for _, a in self._exposure.attachments.values()]
        await asyncio.gather(*(attachment.close() for attachment in attachments))
