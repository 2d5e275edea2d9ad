"""The consensus protocols of this daemon: known, made ready, published (ANP-90 to 95).

Code for a protocol comes from us: written in the daemon, from a bundle of the owner's,
from an agreement, or made from the document by our mind. What is in the list, and what
a hello confirms, can be served at that moment.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from anp.channel.listener import Page
from anp.errors import CallError, ConfigError, ErrorKind
from anp.protocols.gbz import GBZ_GROUPS_URI
from anp.sidecar.bundles.bundles import Bundles
from anp.sidecar.bundles.format import read_bundle
from anp.sidecar.config.interaction import TASK_PROTOCOLS
from anp.sidecar.consensus.entries import ConsensusEntry
from anp.sidecar.consensus.folder import ConsensusFolder
from anp.sidecar.consensus.published import PublishedDocuments, save_provider_half
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.offer.exposure import EVERYBODY
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.peers.lists import LIST_PATH, document_path
from cache.records.records import AgreementRole, HalfRecord, Hash, hash_text
from cache.store import Store
from negotiation.consensus.listing import render_listing
from negotiation.consensus.registry import (
    CodeKind,
    ConsensusProtocol,
    Registry,
    RegistryError,
)
from negotiation.consensus.written import WrittenCode
from negotiation.errors import NegotiationError
from negotiation.mind import Mind
from negotiation.need import Capability
from negotiation.need import Role as NegotiationRole

logger = logging.getLogger(__name__)

REFRESH_INTERVAL: Final = 5.0
"Seconds for which our own list is served before it is looked at again."

Serves = Callable[[str, str | None], Awaitable[HalfRecord | None]]
"Returns the half that serves a hash to a peer now, or to anybody."


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """A protocol whose code is part of the daemon."""

    protocol: ConsensusProtocol
    "Its URI, document and kind."

    code: WrittenCode
    "Speaks it, on either side."

    only_named: bool = False
    """True when a call takes it only if its caller names it: it is made for tasks, and
    a call of one turn has simpler ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProtocol:
    """A protocol that is known by a URI, as its owner sees it."""

    uri: str
    version: str
    hash: Hash
    summary: str
    code: CodeKind | None = None
    "The source of our code for it; null when it could not be made ready."

    served: bool = False
    "True when peers can use it with us now."

    published: bool = False
    "True when it stands in the list that peers are shown."

    problem: str | None = None
    "The reason if it cannot be used, in words."


class ConsensusDesk:
    """Keeps the protocols known by URI, and prepares our halves of them."""

    def __init__(
        self,
        *,
        folder: ConsensusFolder,
        order: Sequence[str],
        written: Sequence[WrittenEntry],
        publishes: bool,
        store: Store,
        gate: Gate,
        bundles: Bundles,
        workshop: Workshop,
        mind: Callable[[], Mind],
    ) -> None:
        """Make the registry; `load` reads the owner's folder.

        Args:
            folder: Holds the owner's entries and bundles.
            order: URIs, best first.
            written: Protocols of the daemon's own.
            publishes: True when peers are shown our list.
            mind: Gives a mind that writes provider halves. We pay if it asks a model:
                the owner put the documents here.
        """
        self.folder = folder
        self._order = tuple(order)
        self._written = {one.protocol.uri: one for one in written}
        self.publishes = publishes
        self._store = store
        self._gate = gate
        self._exposure = gate.exposure
        self._bundles = bundles
        self._workshop = workshop
        self._mind = mind
        self.published = PublishedDocuments(gate.exposure, workshop, store)
        "The documents of the exposed capabilities."
        self.awaits: Callable[[str], bool] = lambda peer: False
        "Tells if a peer is to bring us news of tasks that it does for us."

        self._serves: Serves | None = None
        self.registry = self._fresh()
        self._entries: dict[str, ConsensusEntry] = {}
        self._bundle_bytes: dict[str, bytes] = {}
        self._failed: dict[str, str] = {}
        self._pages: dict[str, Page] = {}
        self._refreshed = 0.0
        self._work: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    # Look-ups of known protocols.

    def wire(self, serves: Serves) -> None:
        """Take the function that finds the half for a hash; it is made later."""
        self._serves = serves
        self._exposure.watch(self._changed)

    async def load(self) -> None:
        """Read the owner's folder, fetch what is pinned, and make halves ready.

        Raises:
            ConfigError: A file is broken, or two name one URI for different texts.
        """
        # Otherwise what is published meanwhile would be missing from what is read.
        async with self._lock:
            await self._load()

    async def _load(self) -> None:
        entries, bundles = await asyncio.to_thread(self.folder.read)
        registry = self._fresh()
        problems: dict[str, str] = {}
        for where, entry in entries.items():
            try:
                found = await self.folder.text(entry, bundles)
                if found is None:
                    problems[entry.uri] = "its protocol text is not here"
                    continue
                text, kind = found
                registry.add(
                    ConsensusProtocol(
                        entry.uri,
                        entry.version,
                        text,
                        kind,
                        entry.summary,
                        published=entry.published,
                    )
                )
            except RegistryError as exc:
                raise ConfigError(f"{where}: {exc}") from None
        self._entries = {entry.uri: entry for entry in entries.values()}
        self._bundle_bytes = bundles
        self._failed = problems
        self.registry = registry
        for uri, reason in problems.items():
            logger.warning(
                "consensus protocol not usable uri=%s reason=%s", uri, reason
            )
        self._changed()

    def written(self, uri: str) -> WrittenEntry | None:
        """Return the daemon's own code for a URI, or None."""
        return self._written.get(uri)

    def written_of(self, digest: str) -> WrittenEntry | None:
        """Return the same for the hash of the protocol's text."""
        found = self._written.values()
        return next((one for one in found if one.protocol.hash == digest), None)

    def serves_written(self, digest: str, peer: str) -> bool:
        """Return whether a peer can use the daemon's own code for a hash."""
        known = self.written_of(digest) is not None
        return known and bool(self._gate.offered(WayIn.ENVELOPE, peer))

    def bundle(self, uri: str) -> bytes | None:
        """Return the bundle that the owner put here for a URI, or None."""
        return self._bundle_bytes.get(uri)

    # Serving.

    async def select(self, offered: Sequence[str], peer: str) -> str | None:
        """Return the URI to confirm to a peer, or None to negotiate (ANP-93)."""
        for protocol in self.registry.offered(offered):
            if protocol.uri in self._written:
                # Each call of it asks the gate for itself.
                is_news = protocol.uri in TASK_PROTOCOLS and self.awaits(peer)
                # Members of a group need no capability of one another.
                is_news = is_news or protocol.uri == GBZ_GROUPS_URI
                if is_news or self._gate.offered(WayIn.ENVELOPE, peer):
                    return protocol.uri
            elif await self._serve(protocol.hash, peer) is not None:
                return protocol.uri
            else:
                logger.info("protocol declined uri=%s", protocol.uri)
        return None

    def pages(self) -> Mapping[str, Page]:
        """Return our list and its documents by path; made anew every few seconds."""
        if not self.publishes:
            return {}
        if time.monotonic() - self._refreshed > REFRESH_INTERVAL:
            self._start()
        return self._pages

    async def list_for(self, peer: str, *, max_size: int) -> bytes:
        """Return the list as one peer may use it, also when nobody else is shown one.

        Args:
            peer: Its canonical DID, which it has proved.
            max_size: Bytes that the list may have.
        """
        shown = await self._shown(peer)
        own = _hashed(await asyncio.to_thread(self.published.all, peer))
        return await asyncio.to_thread(render_listing, shown, own, max_size=max_size)

    async def settle(self) -> None:
        """Wait for the work in progress on halves and on the list."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    async def close(self) -> None:
        """End the work in progress."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    # The owner.

    async def publish(
        self, digest: str, uri: str, *, version: str, summary: str
    ) -> ConsensusEntry:
        """Put an agreement's document under a URI of the owner's (ANP-95).

        Raises:
            CallError: `usage`, it cannot be named so; `policy`, we hold no provider
                half of it, or the owner revoked it.
        """
        record = await asyncio.to_thread(self._store.document, digest)
        if record is None:
            raise CallError(ErrorKind.USAGE, f"no protocol begins with {digest[:80]}")
        halves = await asyncio.to_thread(self._store.halves, record.hash)
        if await asyncio.to_thread(self._store.is_revoked, record.hash):
            raise CallError(ErrorKind.POLICY, f"{record.hash[:12]} was revoked by you")
        if not any(half.role is AgreementRole.PROVIDER for half in halves):
            raise CallError(
                ErrorKind.POLICY,
                f"{record.hash[:12]} has no provider's code here, so no peer could "
                "call it; publish it from the daemon that serves it",
            )
        protocol = ConsensusProtocol(
            uri, version, record.text, CodeKind.AGREED, summary, published=True
        )
        entry = ConsensusEntry(
            uri=uri, version=version, hash=record.hash, summary=summary
        )
        async with self._lock:
            try:
                self.registry.add(protocol)
            except RegistryError as exc:
                raise CallError(ErrorKind.USAGE, str(exc)) from None
            await asyncio.to_thread(self.folder.write, entry)
            self._entries[uri] = entry
        logger.info("protocol published uri=%s hash=%s", uri, record.hash[:12])
        self._changed()
        await self.settle()
        return entry

    async def unpublish(self, uri: str) -> ConsensusEntry:
        """Take a URI back; agreements that were made through it go on by their hash.

        Raises:
            CallError: `usage`, it is not one that `publish` put here.
        """
        async with self._lock:
            entry = self._entries.get(uri)
            if entry is None or not await asyncio.to_thread(self.folder.remove, uri):
                raise CallError(
                    ErrorKind.USAGE,
                    f"{uri[:200]!r} was not published with `anpd protocols publish`; "
                    f"what you put into {self.folder.path} yourself you remove there",
                )
            self.registry.remove(uri)
            del self._entries[uri]
            self._failed.pop(uri, None)
        logger.info("protocol unpublished uri=%s", uri)
        self._changed()
        await self.settle()
        return entry

    async def shown(self) -> list[KnownProtocol]:
        """Return every protocol known by URI, for people."""
        found = []
        for one in self.registry.all():
            if one.uri in self._written:
                served = bool(self._reached())
            else:
                served = await self._serve(one.hash, None) is not None
            found.append(
                KnownProtocol(
                    uri=one.uri,
                    version=one.version,
                    hash=one.hash,
                    summary=one.summary,
                    code=one.code,
                    served=served,
                    published=one.published and served and self.publishes,
                    problem=self._failed.get(one.uri),
                )
            )
        known = {one.uri for one in found}
        # As it is now: a URI may have been taken back while halves were looked for.
        failed = [
            entry
            for uri in self._failed
            if uri not in known and (entry := self._entries.get(uri)) is not None
        ]
        return found + [
            KnownProtocol(
                uri=one.uri,
                version=one.version,
                hash=one.hash,
                summary=one.summary,
                problem=self._failed[one.uri],
            )
            for one in failed
        ]

    # Inside.

    def _reached(self, peer: str | None = EVERYBODY) -> tuple[Capability, ...]:
        """Return the capabilities that a peer may call without the owner's word."""
        return self._gate.without_word(WayIn.ENVELOPE, peer)

    def _fresh(self) -> Registry:
        return Registry(
            (one.protocol for one in self._written.values()), order=self._order
        )

    def _changed(self) -> None:
        self._refreshed = 0.0
        self._start()

    def _start(self) -> None:
        if self._serves is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        """Make halves ready, then the list; again while something changed meanwhile."""
        try:
            while True:
                self._refreshed = time.monotonic()
                started = self._refreshed
                for protocol in self.registry.all():
                    await self._make_ready(protocol)
                await self._make_pages()
                if self._refreshed == started:
                    return
        except Exception:
            logger.exception("the list of protocols could not be made")

    async def _serve(self, digest: str, peer: str | None) -> HalfRecord | None:
        return None if self._serves is None else await self._serves(digest, peer)

    async def _make_ready(self, protocol: ConsensusProtocol) -> None:
        """See that there is a provider half for a protocol, if there can be one."""
        if protocol.code not in {CodeKind.BUNDLE, CodeKind.GENERATED}:
            return
        if await self._serve(protocol.hash, None) is not None:
            self._failed.pop(protocol.uri, None)
            return
        offered = self._exposure.offered(EVERYBODY)
        known = await asyncio.to_thread(self._store.halves, protocol.hash)
        if not offered or any(half.role is AgreementRole.PROVIDER for half in known):
            # Nothing to serve with; or there is a half, and a reason not to use it.
            return
        try:
            if protocol.code is CodeKind.BUNDLE:
                data = self._bundle_bytes.get(protocol.uri)
                if data is None:
                    # The folder was read anew meanwhile.
                    return
                bundle = await asyncio.to_thread(read_bundle, data)
                if bundle.half(NegotiationRole.PROVIDER) is not None:
                    await self._bundles.take_in(data, role=NegotiationRole.PROVIDER)
            else:
                await save_provider_half(
                    protocol.text,
                    offered,
                    workshop=self._workshop,
                    store=self._store,
                    mind=self._mind(),
                    origin=protocol.uri,
                )
        except (CallError, NegotiationError) as exc:
            reason = str(exc)[:300]
            if self._failed.get(protocol.uri) != reason:
                logger.info("not served uri=%s reason=%r", protocol.uri, reason)
            self._failed[protocol.uri] = reason
        else:
            self._failed.pop(protocol.uri, None)

    async def _make_pages(self) -> None:
        shown = await self._shown(EVERYBODY)
        own = await asyncio.to_thread(self.published.all)
        texts = [*(one.text for one, _ in shown), *(text for _, text in own)]
        documents = {document_path(hash_text(text)): _markdown(text) for text in texts}
        listing = await asyncio.to_thread(render_listing, shown, _hashed(own))
        self._pages = {LIST_PATH: ("application/json", listing), **documents}

    async def _shown(
        self, peer: str | None
    ) -> list[tuple[ConsensusProtocol, Sequence[Capability]]]:
        """Return the protocols for a list, with the capabilities a peer may call."""
        shown: list[tuple[ConsensusProtocol, Sequence[Capability]]] = []
        for one in self.registry.all():
            if not one.published:
                continue
            if one.uri in self._written:
                reached = self._reached(peer)
            else:
                half = await self._serve(one.hash, peer)
                found = [
                    self._exposure.capability(name, peer)
                    for name in (half.capabilities if half is not None else ())
                ]
                reached = tuple(each for each in found if each is not None)
            if reached:
                shown.append((one, reached))
        return shown


def _hashed(own: Sequence[tuple[Capability, str]]) -> list[tuple[Capability, str]]:
    """Return each capability with the hash of its document in place of the text."""
    return [(capability, hash_text(text)) for capability, text in own]


def _markdown(text: str) -> Page:
    return "text/markdown; charset=utf-8", text.encode("utf-8")
