"""The daemon: has every part, starts them, and ends them again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from anp.channel.listener import Page
from anp.identity.dids import agent_name
from anp.identity.well_known import PATH, WellKnown, make_well_known
from anp.sidecar.broadcast.broadcaster import Broadcaster
from anp.sidecar.calls.events import EventHub
from anp.sidecar.calls.journal import CallDesk
from anp.sidecar.calls.keys import PURPOSE, CallKeys
from anp.sidecar.config.offers import our_meta
from anp.sidecar.config.settings import Config
from anp.sidecar.discovery.parts import make_discovery
from anp.sidecar.gauges import watch_daemon
from anp.sidecar.groups.agent import GroupAgent
from anp.sidecar.groups.parts import make_groups
from anp.sidecar.groups.presets import GroupPresets
from anp.sidecar.groups.shelf import PURPOSE as GROUPS_AT_REST
from anp.sidecar.home.home import Home
from anp.sidecar.library.housekeeper import Housekeeper, configured_dids
from anp.sidecar.peers.directory import Directory
from anp.sidecar.peers.lists import LIST_PATH
from anp.sidecar.peers.web_identity import make_resolver
from anp.sidecar.plans.desk import PlanDesk
from anp.sidecar.subscriptions.parts import make_subscriptions
from anp.sidecar.telemetry.call_entry import CallEntry
from anp.sidecar.telemetry.call_log import CallLog
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.telemetry.tracing import tracer_provider
from anp.sidecar.telemetry.usage import UseCounter
from anp.sidecar.wiring import make_calls, make_code, make_minds, make_offer, make_peers
from anp.version import daemon_version
from cache.condition import StoreWatch
from cache.parts.agreements import Imported
from cache.records.records import AgreementRole

logger = logging.getLogger(__name__)


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
        self.was_ready = False
        "The readiness as `readiness` found it last."
        self.reload_lock = asyncio.Lock()
        self._kept: dict[str, Callable[[], object]] = {}
        self.started = time.time()
        self.port = config.listen.port
        peers = make_peers(home, config)
        self.own_web, self.identities = peers.own_web, peers.identities
        self.store, self.fetcher, self.web = peers.store, peers.fetcher, peers.web
        self.store_watch = StoreWatch(self.store)
        self.did_keys, self.policy, self.book = peers.did_keys, peers.policy, peers.book
        code = make_code(config, self.observer)
        self.sandbox, self.validator = code.sandbox, code.validator
        self.workshop = code.workshop
        minds = make_minds(config, peers, code, self.observer)
        self.spending, self.endpoint = minds.spending, minds.endpoint
        self.minds, self.agreer = minds.minds, minds.agreer
        offer = make_offer(
            home, config, peers, code, minds, self.observer, in_use=self.use_imported
        )
        self.exposure, self.attaching = offer.exposure, offer.attaching
        self.call_times = offer.call_times
        self.capability_calls, self.bundles = offer.capability_calls, offer.bundles
        self.consensus, self.heard = offer.consensus, offer.heard
        self.uses = UseCounter(self.store)
        calls = make_calls(
            home, config, peers, code, minds, offer, self.observer, self.uses
        )
        self.directory = Directory(
            store=self.store,
            book=self.book,
            policy=self.policy,
            did_keys=self.did_keys,
            contacts=peers.contacts,
            measures=peers.measures,
            connected=lambda: calls.links.peers,
            at_work=self._at_work,
        )
        self.links, self.provider, self.binder = (
            calls.links,
            calls.acceptor,
            calls.binder,
        )
        self.enforcer = calls.enforcer
        self.peer_lists, self.candidates = calls.peer_lists, calls.candidates
        self.finder, self.caller = calls.finder, calls.caller
        self.tasks, self.measures = calls.tasks, peers.measures
        self.tasks.own_url = lambda: self.url
        discovery = make_discovery(
            config,
            caller=self.caller,
            directory=self.directory,
            exposure=self.exposure,
            finder=self.finder,
            identities=self.identities,
            lists=self.peer_lists,
            measures=self.measures,
            requesters=self.binder.requesters,
            resolver=make_resolver(self.web),
            tasks=self.tasks,
            own_url=lambda: self.url,
        )
        self.groups = make_groups(
            config.groups,
            store=self.store,
            secret=peers.key.derive(GROUPS_AT_REST),
            identities=self.identities,
            resolver=make_resolver(self.web),
            policy=self.policy,
            finder=self.finder,
            requesters=self.binder.requesters,
            lines=self.tasks.lines,
            own_url=lambda: self.url,
        )
        self.dispatcher, self.announcer = discovery.dispatcher, discovery.announcer
        self.broadcaster = Broadcaster(
            consensus=self.consensus,
            directory=self.directory,
            finder=self.finder,
            requesters=self.binder.requesters,
        )
        self.plans = PlanDesk(
            tasks=self.tasks,
            dispatcher=self.dispatcher,
            finder=self.finder,
            identities=self.identities,
            groups=self.groups,
        )
        self.housekeeper = Housekeeper(
            self.store, lambda: configured_dids(self.config), also=self._prune
        )
        self.events = EventHub()
        self.subscriptions = make_subscriptions(
            key=peers.key,
            store=self.store,
            identities=self.identities,
            tasks=self.tasks,
            finder=self.finder,
            validator=self.validator,
            policy=self.policy,
            gate=self.capability_calls.gate,
            config=config.interaction,
            heard=self.heard,
            publish=self.events.publish,
        )
        self.group_agent = GroupAgent(
            self.groups,
            self.capability_calls,
            folders=lambda: self.tasks.folders,
            name=config.groups.agent,
        )
        self.group_presets = GroupPresets(
            self.groups, self.finder, config.group, own=self.identities.canonical
        )
        self.groups.publish = self._group_changed
        self.consensus.awaits = lambda peer: (
            self.tasks.sessions.standing.is_awaited(peer)
            or self.subscriptions.given.awaits(peer)
        )
        keys = CallKeys(self.store, peers.key.derive(PURPOSE))
        self.calls = CallDesk(self.dispatcher.call, self.events, keys=keys)
        self.agreer.desk.on_event = self.calls.negotiation
        self.call_log = CallLog(
            home.path / "calls", config.access_log, publish=self._call_ended
        )
        self.observer.on_call = self.call_log.put

    @property
    def did(self) -> str:
        """The DID we show ourselves with."""
        return self.identities.primary.did

    @property
    def url(self) -> str:
        """The URL at which peers reach us."""
        if self.config.listen.public_url:
            return self.config.listen.public_url
        if self.own_web is not None and self.own_web.url is not None:
            return self.own_web.url
        host = self.config.listen.host
        scheme = "ws" if self.config.listen.tls_cert is None else "wss"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def _group_changed(self, kind: str, data: dict[str, Any]) -> None:
        self.subscriptions.publish(kind, data)
        self.group_agent.look()

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
                negotiations=self.provider.negotiations,
                exposure=self.exposure,
                started=self.started,
                isolation=lambda: self.sandbox.isolation.level,
                reload_failed=lambda: self.last_reload_failed,
                ready=lambda: self.was_ready,
            )
            stack.push_async_callback(self.uses.close)
            stack.push_async_callback(self.call_log.close)
            stack.push_async_callback(self.sandbox.close)
            stack.push_async_callback(self.validator.close)
            if self.endpoint is not None:
                stack.push_async_callback(self.endpoint.close)
            stack.push_async_callback(self.attaching.close)
            stack.push_async_callback(self.consensus.close)
            specs = self.attaching.read(self.config.attach)
            # Processes of their own, which load side by side: a fork server each, and
            # the attached programs.
            with _first_error():
                async with asyncio.TaskGroup() as starting:
                    starting.create_task(self.sandbox.start())
                    starting.create_task(self.validator.start())
                    starting.create_task(self.attaching.reload(specs))
            await self.consensus.load()
            # Halves of the owner's protocols are ready before the first hello.
            await self.consensus.settle()
            # Before a peer can ask for a file.
            await asyncio.to_thread(self.tasks.folders.clear)
            await asyncio.to_thread(self.tasks.files.spool.load)
            await self.groups.load()
            self.group_agent.look()
            self.port = await self.links.listen(
                self.config.listen.host,
                self.config.listen.port,
                self._pages,
                lambda: self.url,
            )
            stack.push_async_callback(self.web.close)
            self.enforcer.start()
            stack.push_async_callback(self.enforcer.close)
            # Links first: their end may leave calls behind.
            stack.push_async_callback(self.provider.close)
            stack.push_async_callback(self.links.close)
            # What our calls still do beside would dial for ever.
            stack.push_async_callback(self.binder.requesters.close)
            stack.push_async_callback(self.calls.close)
            stack.push_async_callback(self.tasks.close)
            stack.push_async_callback(self.groups.close)
            stack.push_async_callback(self.group_agent.close)
            await self.tasks.resume()
            stack.push_async_callback(self.subscriptions.close)
            await self.subscriptions.resume()
            await self.groups.resume()
            stack.push_async_callback(self.group_presets.close)
            self.group_presets.start()
            self.keep_links()
            stack.push_async_callback(self.announcer.close)
            works = self.housekeeper.run, self.call_log.run, self.announcer.run
            for work in works:
                stack.callback(asyncio.create_task(work()).cancel)
            yield

    async def _prune(self) -> None:
        """Drop the sessions, groups and subscriptions older than the owner wants."""
        await self.tasks.upkeep.prune()
        await self.groups.prune()
        await self.subscriptions.prune()

    def _call_ended(self, entry: CallEntry) -> None:
        """Tell who follows the events of a call that has its entry in the log."""
        self.measures.called(entry)
        if self.events.watched:
            told = {"call": entry.id, **entry.to_json()}
            self.events.publish(f"call.{entry.direction}", told)

    def _at_work(self, peer: str) -> int:
        """Return how many calls and tasks of ours a peer has not ended."""
        agent, running = agent_name(peer), self.observer.running
        made = (one.peer for one in running if one.direction == "made")
        calls = sum(did is not None and agent_name(did) == agent for did in made)
        return calls + self.tasks.sessions.standing.at_work(peer)

    def keep_links(self) -> None:
        """Keep a connection to each peer with `keep_connection`, and to no other."""
        wanted = {peer.name for peer in self.config.peer if peer.keep_connection}
        for name in self._kept.keys() - wanted:
            self._kept.pop(name)()
        for name in wanted - self._kept.keys():
            find = partial(self.finder.find, name, trust_first_use=False)
            self._kept[name] = self.links.keep(
                name, find, lambda: our_meta(self.config, None)
            )

    async def reload(self) -> list[str]:
        """Read the attachments again, and all that depends on their capabilities.

        Returns:
            The names of all attachments.

        Raises:
            ConfigError: A file is broken; nothing was changed.
        """
        names = await self.attaching.reload(self.attaching.read(self.config.attach))
        await self.consensus.load()
        return names

    async def use_imported(self, imported: Sequence[Imported]) -> None:
        """Close channels on halves that an import replaced, after calls in flight.

        Args:
            imported: The stored halves, all of one document.
        """
        for one in imported:
            if one.half.role is AgreementRole.PROVIDER:
                await self.provider.retire(one.half.hash)
            else:
                self.binder.requesters.retire(one.agreements)

    def _pages(self) -> Mapping[str, Page]:
        pages = self.consensus.pages()
        listed = LIST_PATH if LIST_PATH in pages else None
        known = WellKnown(self.did, self.url, daemon_version(), listed)
        own = {} if self.own_web is None else self.own_web.pages()
        return {**pages, **own, PATH: ("application/json", make_well_known(known))}


@contextlib.contextmanager
def _first_error() -> Iterator[None]:
    """Raise the first error of a group of tasks as itself."""
    try:
        yield
    except BaseExceptionGroup as exc:
        raise exc.exceptions[0] from exc
