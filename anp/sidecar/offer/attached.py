"""The agent's attachments: read from the owner's files, started, changed and ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from anp.errors import ConfigError
from anp.sidecar.attachments import (
    Attachment,
    AttachmentError,
    AttachmentLimits,
    AttachmentSpec,
    load_attachments,
    open_attachment,
)
from anp.sidecar.attachments.http.updates import UpdateDesk
from anp.sidecar.attachments.inbox.desk import Inbox
from anp.sidecar.attachments.spec import attachment_times, save_attachment
from anp.sidecar.attachments.supervisor import SupervisedAttachment
from anp.sidecar.home.home import Home
from anp.sidecar.offer.exposure import Exposure

logger = logging.getLogger(__name__)


class Attaching:
    """Keeps the running attachments the same as those in the owner's files."""

    def __init__(
        self,
        home: Home,
        exposure: Exposure,
        *,
        max_calls: int,
        inbox: Inbox | None = None,
    ) -> None:
        """Begin without attachments.

        Args:
            max_calls: Calls of each attachment at a time.
            inbox: The calls for agents that read them.
        """
        self.inbox = inbox or Inbox()
        self.updates = UpdateDesk()
        self._home = home
        self._exposure = exposure
        self._limits = AttachmentLimits(max_calls=max_calls)
        self._started: dict[str, tuple[AttachmentSpec, int | None]] = {}
        "Entry and time of the file that each attachment was started from."
        self._running: dict[str, SupervisedAttachment] = {}
        self._built_in: set[str] = set()
        self._leaving: dict[SupervisedAttachment, asyncio.Task[None]] = {}
        "Removed and replaced ones that still answer calls."

    def build_in(self, spec: AttachmentSpec, attachment: Attachment) -> None:
        """Offer capabilities of the daemon itself, which stand in no file."""
        self._built_in.add(spec.name)
        self._exposure.put(spec, attachment)

    def limit(self, max_calls: int) -> None:
        """Limit the calls of each attachment at a time."""
        self._limits = AttachmentLimits(max_calls=max_calls)
        for attachment in self._running.values():
            attachment.limit(max_calls)

    def read(self, declared: Iterable[AttachmentSpec]) -> dict[str, AttachmentSpec]:
        """Return all attachments as the owner's files have them now, by name.

        Args:
            declared: Those of the owner's configuration, as it is now.

        Raises:
            ConfigError: A file is broken.
        """
        specs: dict[str, AttachmentSpec] = {}
        for spec in (*declared, *load_attachments(self._home.attachments)):
            if spec.name in self._built_in:
                raise ConfigError(
                    f"attachment {spec.name}: the daemon itself offers capabilities of "
                    "this name, so give the attachment another one"
                )
            if spec.name in specs:
                raise ConfigError(
                    f"attachment {spec.name} is both in the configuration and in "
                    f"{self._home.attachments}; remove one of them"
                )
            specs[spec.name] = spec
        return specs

    def expose(self, capabilities: Mapping[str, bool]) -> None:
        """Write into the owner's files which capabilities peers may call.

        The next `reload` puts it into effect, and no attachment is started anew for it.

        Args:
            capabilities: True for each full name to expose, False for each to hide.

        Raises:
            ConfigError: One is of an attachment that `anpd attach` did not write, or
                a file is broken; nothing was changed.
        """
        wanted: dict[str, dict[str, bool]] = {}
        for name, exposed in capabilities.items():
            attachment, _, short = name.partition(".")
            wanted.setdefault(attachment, {})[short] = exposed
        folder = self._home.attachments
        saved = {one.name: one for one in load_attachments(folder)}
        for name in wanted:
            if name not in saved or not (folder / f"{name}.json").is_file():
                raise ConfigError(
                    f"attachment {name}: its entry was written by hand, so only you "
                    "change it: write its `expose`, then type: anpd reload"
                )
        for name, changes in wanted.items():
            spec = saved[name]
            expose = [one.removeprefix(f"{name}.") for one in spec.expose]
            found = _exposed(expose, changes, self._names_of(name))
            save_attachment(folder, replace(spec, expose=found))
            if name in self._started:
                started, _ = self._started[name]
                self._started[name] = (started, attachment_times(folder).get(name))

    def _names_of(self, name: str) -> list[str]:
        """Return the short names of the capabilities of a running attachment."""
        running = self._running.get(name)
        found = () if running is None else running.capabilities()
        return [one.name.partition(".")[2] for one in found]

    async def reload(self, specs: Mapping[str, AttachmentSpec]) -> list[str]:
        """Start what is new or changed, end what is gone, and leave the rest alone.

        What is hidden ends before anything is waited for. What is gone takes no new
        calls and ends after those in flight; so does what another one replaces, which
        is started beside it.

        Args:
            specs: All attachments by name; see `read`.

        Returns:
            The names of all attachments.
        """
        gone = self._narrow(specs)
        idle = [one for one in gone if not self._exposure.is_used(one)]
        leaving = [self._begin_to_leave(one) for one in gone]
        await asyncio.gather(
            *(task for one, task in zip(gone, leaving, strict=True) if one in idle)
        )
        times = await asyncio.to_thread(attachment_times, self._home.attachments)
        wanted = {
            name: (spec.of_program, times.get(name)) for name, spec in specs.items()
        }
        changed = [name for name in specs if self._started.get(name) != wanted[name]]
        await asyncio.gather(*(self._attach(specs[name]) for name in changed))
        self._started = wanted
        return sorted(specs)

    def _narrow(
        self, specs: Mapping[str, AttachmentSpec]
    ) -> list[SupervisedAttachment]:
        """Expose what runs as the owner wants it now; return what is to end."""
        for name, (_, attachment) in list(self._exposure.attachments.items()):
            if name in specs:
                self._exposure.put(specs[name], attachment)
            elif name not in self._built_in:
                self._exposure.drop(name)
        gone = [name for name in self._running if name not in specs]
        return [self._running.pop(name) for name in gone]

    async def _attach(self, spec: AttachmentSpec) -> None:
        attachment = open_attachment(
            spec,
            limits=self._limits,
            on_change=self._exposure.changed,
            inbox=self.inbox,
            updates=self.updates,
        )
        try:
            await attachment.start()
        except AttachmentError as exc:
            # It goes on trying by itself; until then its capabilities are not offered.
            logger.warning("attachment not healthy name=%s reason=%s", spec.name, exc)
        except BaseException:
            # Nobody else knows of it yet, so its child would stay.
            self._begin_to_leave(attachment)
            raise
        old = self._running.get(spec.name)
        self._running[spec.name] = attachment
        self._exposure.put(spec, attachment)
        if old is not None:
            self._begin_to_leave(old)

    def _begin_to_leave(self, old: SupervisedAttachment) -> asyncio.Task[None]:
        task = self._leaving[old] = asyncio.create_task(self._leave(old))
        return task

    async def _leave(self, old: SupervisedAttachment) -> None:
        try:
            await self._exposure.unused(old)
            await old.close()
        except Exception:
            logger.exception("attachment not closed name=%s", old.name)
        finally:
            self._leaving.pop(old, None)

    async def close(self) -> None:
        """End every attachment."""
        leaving = dict(self._leaving)
        for task in leaving.values():
            task.cancel()
        await asyncio.gather(*leaving.values(), return_exceptions=True)
        ending = (*self._running.values(), *leaving)
        await asyncio.gather(*(attachment.close() for attachment in ending))


def _exposed(
    before: Iterable[str], changes: Mapping[str, bool], known: Iterable[str]
) -> tuple[str, ...]:
    """Return the `expose` of an attachment after some names were shown or hidden.

    Args:
        before: Short names, or `*` for all.
        changes: By short name.
        known: Every short name that it has now; `*` stands for these.
    """
    names = [one for one in before if one not in changes]
    shown = [name for name, exposed in changes.items() if exposed]
    if "*" not in names:
        return (*names, *shown)
    if len(shown) == len(changes):
        return tuple(names)
    # From here on a tool that the attachment adds later is not exposed by itself.
    return tuple(one for one in known if changes.get(one, True))
