"""The daemon: builds every part, wires them, and runs until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from anp.channel.channel import Channel
from anp.channel.core.events import NeedHelloAnswer
from anp.channel.dialler import Dialler
from anp.channel.keeper import PURPOSE, KeyKeeper
from anp.channel.links import Links
from anp.channel.listener import Page
from anp.errors import PeerError
from anp.identity.address import PeerAddress
from anp.identity.book import AddressBook
from anp.identity.dids import canonical_did
from anp.identity.keys import PrivateKey
from anp.identity.web.resolver import WebResolver
from anp.identity.well_known import PATH, WellKnown, make_well_known
from anp.sidecar.agreement.agreement import Agreer
from anp.sidecar.bound.base import BoundParts
from anp.sidecar.bound.natural import Spokesman
from anp.sidecar.bound.provider import ProviderParts
from anp.sidecar.bound.repairer import Repairer
from anp.sidecar.bound.requester import RequesterParts
from anp.sidecar.bundles.bundles import Bundles
from anp.sidecar.calls.acceptor import Acceptor
from anp.sidecar.calls.binder import Binder
from anp.sidecar.calls.caller import Caller
from anp.sidecar.calls.candidates import CandidateFinder
from anp.sidecar.calls.events import EventHub
from anp.sidecar.calls.journal import CallDesk
from anp.sidecar.config.offers import links_config, negotiation_limits, our_meta
from anp.sidecar.config.settings import Config
from anp.sidecar.consensus.builtin import written_protocols
from anp.sidecar.consensus.folder import ConsensusFolder
from anp.sidecar.consensus.registry import ConsensusDesk
from anp.sidecar.consensus.written import Heard, WrittenParts
from anp.sidecar.gauges import watch_daemon
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.home.home import Home
from anp.sidecar.minds.afterwards import Afterwards
from anp.sidecar.minds.minds import Minds
from anp.sidecar.minds.models import make_endpoint, make_spending
from anp.sidecar.offer.attached import Attaching
from anp.sidecar.offer.capability_calls import MAX_VALUES, CapabilityCalls
from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.lists import LIST_PATH, PeerLists, guarded_getter, peer_getter
from anp.sidecar.peers.pins import DidKeys, UrlPins
from anp.sidecar.peers.policy import PeerPolicy, PeerRules
from anp.sidecar.peers.web_identity import (
    load_own_web,
    make_fetcher,
    make_identities,
    make_resolver,
    server_tls,
)
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.telemetry.tracing import tracer_provider
from anp.sidecar.telemetry.usage import UseCounter
from anp.version import daemon_version
from anp.wire.messages import MetaProtocol
from cache.opening import open_store
from cache.parts.imports import Imported
from cache.records.records import AgreementRole
from negotiation.consensus.written import WrittenLimits
from negotiation.exchange.dialogue import DialogueLimits
from negotiation.mind import Offer
from sandbox.pool.pool import Sandbox, SandboxConfig
from sandbox.pool.validation import SchemaValidator

__all__ = ["Daemon"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Gate:
    """Stands in for the provider until it is built; links come first."""

    observer: Observer
    provider: Acceptor | None = None

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        assert self.provider is not None
        if self.observer.flights.closed:
            # Unanswered until its link ends: to the peer we are away, not unwilling.
            await asyncio.Event().wait()
        try:
            return await self.provider.answer_hello(hello)
        except PeerError:
            self.observer.handshake("provider", "refused")
            raise

    async def serve_channel(self, channel: Channel) -> None:
        assert self.provider is not None
        if not channel.resumed:
            self.observer.handshake("provider", "ok")
        await self.provider.serve_channel(channel)


class Daemon:
    """Every part of one daemon; `running` starts and ends them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        *,
        load: Callable[[], Config] | None = None,
        on_config: Callable[[Config], None] | None = None,
    ) -> None:
        """Build every part.

        Args:
            load: Reads the owner's configuration again, for a reload.
            on_config: Told when a reload changed it.
        """
        self.home = home
        self.config = config
        self.load = load
        self.on_config = on_config
        self._traces = tracer_provider(config.otel)
        self.observer = Observer(traces=self._traces)
        self.last_reload_failed = False
        self.reload_lock = asyncio.Lock()
        self._kept: dict[str, Callable[[], object]] = {}
        self.started = time.time()
        self.port = config.listen.port
        key_file = config.identity.key_file or home.key_file
        key = (
            PrivateKey.load(key_file)
            if key_file.exists()
            else PrivateKey.create(key_file)
        )
        self.own_web = load_own_web(home, config, key)
        self.identities = make_identities(key, config, self.own_web)
        self.store = open_store(
            config.cache.path or home.store,
            url=config.cache.url,
            prefix=config.cache.prefix,
            ca_file=config.cache.ca_file,
            owner=self.identities.canonical,
        )
        self.uses = UseCounter(self.store)
        self.fetcher = make_fetcher(config.fetch)
        self.did_keys = DidKeys(self.store)
        self.web = WebResolver(self.fetcher, pins=self.did_keys)
        self.heard = Heard()
        self.exposure = Exposure()
        self.attaching = Attaching(
            home, self.exposure, max_calls=config.limits.max_calls
        )
        self.sandbox = Sandbox(
            SandboxConfig(
                max_workers=config.sandbox.max_workers,
                memory=config.sandbox.memory,
                required_level=config.sandbox.level,
            ),
            on_run=self.observer.sandbox_run,
        )
        self.validator = SchemaValidator()
        self.workshop = Workshop(
            self.sandbox, self.validator, deadline=config.sandbox.call_timeout
        )
        self.policy = PeerPolicy(self.store, PeerRules.of(config))
        self.book = AddressBook(
            [PeerAddress(p.name, p.did, p.url) for p in config.peer],
            UrlPins(self.store),
        )
        own_did = self.identities.canonical
        self.spending = make_spending(self.store, config, self.observer)
        self.endpoint = make_endpoint(config.llm, self.validator.validate)
        self.minds = Minds(
            config.negotiation.mind,
            endpoint=self.endpoint,
            spending=self.spending,
            is_listed=self.policy.is_listed,
        )
        think = self.minds.think
        self.agreer = Agreer(
            store=self.store,
            workshop=self.workshop,
            think=think,
            limits=negotiation_limits(config),
            own_did=own_did,
            approve=config.negotiation.approve,
            approval_wait=config.negotiation.approval_wait,
            observer=self.observer,
        )
        gate = _Gate(self.observer)
        meta = partial(our_meta, config)
        self.links = Links(
            links_config(config),
            identities=self.identities,
            resolver=make_resolver(self.web),
            dialler=Dialler(tls=self.fetcher.tls, addresses=self.fetcher.addresses),
            server_tls=server_tls(config),
            acceptor=gate,
            on_handshake=partial(self.observer.handshake, "requester"),
            keeper=KeyKeeper(
                self.store,
                key.derive(PURPOSE),
                enabled=config.channels.resumption,
                max_counter=config.channels.renew_messages,
            ),
        )
        dialogue = DialogueLimits(
            message_timeout=config.negotiation.message_timeout,
            cases_timeout=config.negotiation.timeout / 2,
        )
        bound = BoundParts(
            workshop=self.workshop,
            store=self.store,
            repairer=Repairer(self.store, self.workshop, own_did=own_did),
            afterwards=Afterwards(self.store, think),
            limits=dialogue,
        )
        capabilities = self.capability_calls = CapabilityCalls(
            self.exposure,
            self.validator,
            timeout=config.call.timeout,
            observer=self.observer,
        )
        self.bundles = Bundles(
            store=self.store,
            workshop=self.workshop,
            exposure=self.exposure,
            own_did=own_did,
            in_use=self.use_imported,
        )
        self.consensus = ConsensusDesk(
            folder=ConsensusFolder(
                config.consensus.directory or home.consensus,
                store=self.store,
                fetch=self._fetch_document,
            ),
            order=config.consensus.order,
            written=written_protocols(envelope=config.consensus.envelope),
            publishes=config.publishes,
            approve=config.negotiation.approve,
            store=self.store,
            exposure=self.exposure,
            bundles=self.bundles,
            workshop=self.workshop,
            mind=lambda: think(own_did, ours=True).mind,
        )
        written = WrittenParts(
            validator=self.validator,
            dialogue=dialogue,
            limits=WrittenLimits(
                answer_timeout=config.call.timeout,
                max_served=config.limits.max_calls,
                max_message=MAX_VALUES,
            ),
            said=self.heard.said,
        )
        self.provider = gate.provider = Acceptor(
            exposure=self.exposure,
            policy=self.policy,
            store=self.store,
            agreer=self.agreer,
            parts=ProviderParts(
                common=bound,
                capabilities=capabilities,
                offered=lambda: Offer(self.exposure.offered()),
                max_calls=config.limits.max_calls,
                used=self.uses.count,
            ),
            spokesman=Spokesman(self.exposure, capabilities, think),
            consensus=self.consensus,
            written=written,
            answer=meta,
        )
        self.peer_lists = PeerLists(
            lifetime=config.consensus.list_lifetime,
            get=peer_getter(self.fetcher.tls),
            guarded_get=guarded_getter(self.fetcher),
        )
        self.candidates = CandidateFinder(
            desk=self.consensus,
            lists=self.peer_lists,
            store=self.store,
            workshop=self.workshop,
            think=think,
            enabled=config.consensus.use,
        )
        self.binder = Binder(
            links=self.links,
            store=self.store,
            agreer=self.agreer,
            parts=RequesterParts(bound, config.call.timeout),
            written=written,
            candidates=self.candidates,
            own_did=own_did,
            offer=meta,
            remember=self._remember,
            test_cases=config.negotiation.test_cases,
            shares_agreements=config.policy.share_agreements,
        )
        self.finder = PeerFinder(
            self.book,
            self.policy.is_blocked,
            web=self.web,
            tls=self.fetcher.tls,
            has_link=self.links.has_link,
        )
        self.caller = Caller(
            finder=self.finder,
            binder=self.binder,
            validator=self.validator,
            negotiation_timeout=config.negotiation.timeout,
            observer=self.observer,
            uses=self.uses,
            writes=lambda: self.store.writes,
        )
        self.events = EventHub()
        self.calls = CallDesk(self.caller.call, self.events)
        self.agreer.desk.on_event = self.calls.negotiation

    @property
    def did(self) -> str:
        """The DID we show ourselves with."""
        return self.identities.primary.did

    @property
    def url(self) -> str:
        """Where peers reach us."""
        if self.config.listen.public_url:
            return self.config.listen.public_url
        if self.own_web is not None and self.own_web.url is not None:
            return self.own_web.url
        host = self.config.listen.host
        scheme = "ws" if self.config.listen.tls_cert is None else "wss"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start every part, and end what was started."""
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.store.close)
            if self._traces is not None:
                # Sends what waits, for which it may block for a few seconds.
                stack.push_async_callback(asyncio.to_thread, self._traces.shutdown)
            watch_daemon(
                self.observer,
                links=self.links,
                exposure=self.exposure,
                started=self.started,
                isolation=lambda: self.sandbox.isolation.level,
                reload_failed=lambda: self.last_reload_failed,
            )
            stack.push_async_callback(self.uses.close)
            stack.push_async_callback(self.sandbox.close)
            stack.push_async_callback(self.validator.close)
            # Each has a fork server to start, which takes as long as all the rest.
            await asyncio.gather(self.sandbox.start(), self.validator.start())
            if self.endpoint is not None:
                stack.push_async_callback(self.endpoint.close)
            stack.push_async_callback(self.attaching.close)
            stack.push_async_callback(self.consensus.close)
            await self.reload()
            # Halves of the owner's protocols are ready before the first hello.
            await self.consensus.settle()
            self.port = await self.links.listen(
                self.config.listen.host, self.config.listen.port, self._pages
            )
            stack.push_async_callback(self.web.close)
            stack.push_async_callback(self.links.close)
            self.keep_links()
            yield

    def keep_links(self) -> None:
        """Keep a link open to each peer that has `keep_link`, and to no other."""
        wanted = {peer.name for peer in self.config.peer if peer.keep_link}
        for name in self._kept.keys() - wanted:
            self._kept.pop(name)()
        for name in wanted - self._kept.keys():
            find = partial(self.finder.find, name, trust_first_use=False)
            self._kept[name] = self.links.keep(
                name, find, lambda: our_meta(self.config, None)
            )

    async def reload(self) -> list[str]:
        """Read the attachments again, and what rests on what they can do.

        Returns:
            The names of all attachments.

        Raises:
            ConfigError: A file is broken; nothing was changed.
        """
        names = await self.attaching.reload(self.config.attach)
        await self.consensus.load()
        return names

    async def use_imported(self, imported: Sequence[Imported]) -> None:
        """Close the channels on what an import replaced, after their calls in flight.

        Args:
            imported: What was stored, of one document.
        """
        for one in imported:
            if one.half.role is AgreementRole.PROVIDER:
                await self.provider.retire(one.half.hash)
            else:
                self.binder.requesters.retire(one.agreements)

    async def _remember(self, channel: Channel) -> None:
        peer = canonical_did(channel.peer_did, channel.peer_key)
        await self.policy.remember(peer, shown_did=channel.peer_did)

    async def _fetch_document(self, uri: str, max_size: int) -> bytes:
        """Fetch the document of a protocol that the owner pinned by its hash."""
        return (await self.fetcher.fetch(uri, max_size=max_size)).body

    def _pages(self) -> Mapping[str, Page]:
        pages = self.consensus.pages()
        listed = LIST_PATH if LIST_PATH in pages else None
        known = WellKnown(self.did, self.url, daemon_version(), listed)
        own = {} if self.own_web is None else self.own_web.pages()
        return {**pages, **own, PATH: ("application/json", make_well_known(known))}
