"""Builds the parts of a daemon, group by group, from its home and configuration.

Each function takes what the groups before it made and returns one frozen record. No
part is started here: `Daemon.running` does that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anp.channel.channel import Channel
from anp.channel.dialler import Dialler
from anp.channel.keeper import PURPOSE, KeyKeeper
from anp.channel.links import Links
from anp.errors import ConfigError
from anp.extras import missing
from anp.identity.address import PeerAddress
from anp.identity.book import AddressBook
from anp.identity.dids import Identities, canonical_did
from anp.identity.keys import PrivateKey
from anp.identity.web.fetcher import Fetcher
from anp.identity.web.resolver import WebResolver
from anp.sidecar.a2a.channel import A2aChannels
from anp.sidecar.agreement.agreement import Agreer
from anp.sidecar.agreement.queue import OwnerDesk
from anp.sidecar.attachments.inbox.desk import Inbox
from anp.sidecar.bound.base import BoundParts, RequesterParts
from anp.sidecar.bound.natural import Spokesman
from anp.sidecar.bound.provider import ProviderParts
from anp.sidecar.bound.repairer import Repairer
from anp.sidecar.bound.work import WorkDesk
from anp.sidecar.bundles.bundles import Bundles
from anp.sidecar.calls.acceptor import Acceptor, LateAcceptor
from anp.sidecar.calls.binder import Binder
from anp.sidecar.calls.caller import Caller
from anp.sidecar.calls.candidates import CandidateFinder
from anp.sidecar.calls.enforcer import Enforcer
from anp.sidecar.config.offers import links_config, negotiation_limits, our_meta
from anp.sidecar.config.settings import Config
from anp.sidecar.consensus.builtin import written_protocols
from anp.sidecar.consensus.folder import ConsensusFolder
from anp.sidecar.consensus.registry import ConsensusDesk
from anp.sidecar.consensus.written import Heard, WrittenParts
from anp.sidecar.discovery.registry import SPEC as REGISTRY
from anp.sidecar.discovery.registry import Registry
from anp.sidecar.files.spool import PURPOSE as FILES_AT_REST
from anp.sidecar.files.spool import Spool
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.home.home import Home
from anp.sidecar.minds.accounts import Spending
from anp.sidecar.minds.afterwards import Afterwards
from anp.sidecar.minds.minds import Minds
from anp.sidecar.minds.models import make_endpoint, make_spending
from anp.sidecar.minds.templates import Templates
from anp.sidecar.offer.attached import Attaching
from anp.sidecar.offer.call_times import CallTimes
from anp.sidecar.offer.capability_calls import MAX_VALUES, CapabilityCalls
from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.offer.gate import Gate
from anp.sidecar.peers.contacts import Contacts
from anp.sidecar.peers.figures import Measures
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.lists import PeerLists, guarded_getter, peer_getter
from anp.sidecar.peers.pins import DidKeys, StoredBook
from anp.sidecar.peers.policy import PeerPolicy, PeerRules
from anp.sidecar.peers.web_identity import (
    OwnWeb,
    load_own_web,
    make_fetcher,
    make_identities,
    make_resolver,
    server_tls,
)
from anp.sidecar.tasks.sealed_logs import PURPOSE as SESSIONS_AT_REST
from anp.sidecar.tasks.sealed_logs import SealedLogs
from anp.sidecar.tasks.service import TaskService
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.telemetry.usage import UseCounter
from cache.parts.agreements import Imported
from cache.store import Store, open_store
from negotiation.consensus.written import WrittenLimits
from negotiation.exchange.limits import DialogueLimits
from negotiation.mind import Offer
from sandbox.pool.config import SandboxConfig
from sandbox.pool.pool import Sandbox
from sandbox.pool.validation import SchemaValidator

if TYPE_CHECKING:
    # Loaded where the owner set a model.
    from negotiation.llm.asking.endpoint import ModelEndpoint


@dataclass(frozen=True, slots=True)
class PeerParts:
    """Our identity, the store, and the parts that know peers."""

    key: PrivateKey
    own_web: OwnWeb | None
    "Our place on the web of DIDs, if we have one."

    identities: Identities
    store: Store
    fetcher: Fetcher
    "Fetches URLs that peers name."

    did_keys: DidKeys
    web: WebResolver
    policy: PeerPolicy
    book: AddressBook
    contacts: Contacts
    measures: Measures


def make_peers(home: Home, config: Config) -> PeerParts:
    """Load or create our key, open the store, and read the address book."""
    key_file = config.identity.key_file or home.key_file
    key = (
        PrivateKey.load(key_file) if key_file.exists() else PrivateKey.create(key_file)
    )
    own_web = load_own_web(home, config, key)
    identities = make_identities(key, config, own_web)
    if config.cache.url and (reason := missing("redis")):
        raise ConfigError(f"cache.url: {reason}")
    store = open_store(
        config.cache.path or home.store,
        url=config.cache.url,
        prefix=config.cache.prefix,
        ca_file=config.cache.ca_file,
        owner=identities.canonical,
    )
    fetcher, did_keys = make_fetcher(config.fetch), DidKeys(store)
    return PeerParts(
        key=key,
        own_web=own_web,
        identities=identities,
        store=store,
        fetcher=fetcher,
        did_keys=did_keys,
        web=WebResolver(fetcher, pins=did_keys),
        policy=PeerPolicy(store, PeerRules.of(config)),
        book=AddressBook(
            [PeerAddress(p.name, p.did, p.url) for p in config.peer], StoredBook(store)
        ),
        contacts=Contacts(),
        measures=Measures(),
    )


@dataclass(frozen=True, slots=True)
class CodeParts:
    """Everything that runs or checks the code of protocols."""

    sandbox: Sandbox
    validator: SchemaValidator
    workshop: Workshop


def make_code(config: Config, observer: Observer) -> CodeParts:
    """Set up the sandbox and the workers that judge schemas."""
    sandbox = Sandbox(
        SandboxConfig(
            max_workers=config.sandbox.max_workers,
            memory=config.sandbox.memory,
            # One setting is changed in passing; two are not.
            required_level=config.sandbox.level
            if config.sandbox.without_kernel == "as my own"
            else "full",
            idle_timeout=config.sandbox.idle_timeout,
        ),
        on_run=observer.sandbox_run,
    )
    validator = SchemaValidator()
    workshop = Workshop(
        sandbox,
        validator,
        deadline=config.sandbox.call_timeout,
        plans=config.sandbox.plans == "daemon",
    )
    return CodeParts(sandbox, validator, workshop)


@dataclass(frozen=True, slots=True)
class MindParts:
    """The parts that decide in negotiations, and the budgets they spend from."""

    spending: Spending
    endpoint: ModelEndpoint | None
    "The language model; None when the owner set none."

    minds: Minds
    agreer: Agreer
    "Negotiates on a channel."


def make_minds(
    config: Config, peers: PeerParts, code: CodeParts, observer: Observer
) -> MindParts:
    """Set up the model, its accounts, and the negotiations that use it."""
    spending = make_spending(peers.store, config, observer)
    endpoint = make_endpoint(config.llm, code.validator.validate)
    minds = Minds(
        config.negotiation.decided_by,
        endpoint=endpoint,
        spending=spending,
        is_listed=peers.policy.is_listed,
    )
    agreer = Agreer(
        store=peers.store,
        workshop=code.workshop,
        think=minds.think,
        limits=negotiation_limits(config),
        own_did=peers.identities.canonical,
        desk=OwnerDesk(
            peers.store,
            approve=config.negotiation.approve,
            approval_wait=config.negotiation.approval_wait,
            is_listed=peers.policy.is_listed,
        ),
        observer=observer,
    )
    return MindParts(spending, endpoint, minds, agreer)


@dataclass(frozen=True, slots=True)
class OfferParts:
    """Our capabilities for peers, and the protocols that need no negotiation."""

    call_times: CallTimes
    exposure: Exposure
    attaching: Attaching
    capability_calls: CapabilityCalls
    bundles: Bundles
    consensus: ConsensusDesk
    heard: Heard
    "Events and notices of peers that no call waits for."


def make_offer(
    home: Home,
    config: Config,
    peers: PeerParts,
    code: CodeParts,
    minds: MindParts,
    observer: Observer,
    *,
    in_use: Callable[[Sequence[Imported]], Awaitable[None]],
) -> OfferParts:
    """Set up attachments, exposure, bundles and consensus protocols.

    Args:
        in_use: Told what a bundle brought, to end what it replaces.
    """
    exposure, own_did = Exposure(config.peer), peers.identities.canonical
    bundles = Bundles(
        store=peers.store,
        workshop=code.workshop,
        exposure=exposure,
        own_did=own_did,
        in_use=in_use,
    )

    gate = Gate(
        exposure,
        policy=peers.policy,
        store=peers.store,
        approve=config.negotiation.approve,
        words=minds.agreer.desk.words_on_capabilities,
        quarantined=code.workshop.quarantined,
    )

    async def fetch_document(uri: str, max_size: int) -> bytes:
        """Fetch the document of a protocol that the owner pinned by its hash."""
        return (await peers.fetcher.fetch(uri, max_size=max_size)).body

    consensus = ConsensusDesk(
        folder=ConsensusFolder(
            config.consensus.directory or home.consensus,
            store=peers.store,
            fetch=fetch_document,
        ),
        order=config.consensus.order,
        written=written_protocols(envelope=config.consensus.envelope),
        publishes=config.publishes,
        store=peers.store,
        gate=gate,
        bundles=bundles,
        workshop=code.workshop,
        mind=lambda: minds.minds.think(own_did, ours=True).mind,
    )
    minds.agreer.published = lambda: {one.hash for one in consensus.registry.all()}
    call_times = CallTimes(config.call, config.peer, config.interaction)
    attaching = Attaching(
        home,
        exposure,
        max_calls=config.limits.max_calls,
        inbox=Inbox(max_wait=config.interaction.max_wait),
    )
    if config.registry.serve:
        registry = Registry(config.registry, resolver=make_resolver(peers.web))
        attaching.build_in(REGISTRY, registry)
    return OfferParts(
        call_times=call_times,
        exposure=exposure,
        attaching=attaching,
        capability_calls=CapabilityCalls(
            gate,
            code.validator,
            times=call_times,
            timeout=config.call.timeout,
            observer=observer,
        ),
        bundles=bundles,
        consensus=consensus,
        heard=Heard(),
    )


@dataclass(frozen=True, slots=True)
class CallParts:
    """Links, and the calls over them in both directions."""

    links: Links
    enforcer: Enforcer
    acceptor: Acceptor
    "Serves the channels that peers open."

    peer_lists: PeerLists
    candidates: CandidateFinder
    binder: Binder
    finder: PeerFinder
    caller: Caller
    tasks: TaskService
    "Tasks that last, in both directions."


def make_calls(
    home: Home,
    config: Config,
    peers: PeerParts,
    code: CodeParts,
    minds: MindParts,
    offer: OfferParts,
    observer: Observer,
    uses: UseCounter,
) -> CallParts:
    """Set up links, and the parts that carry calls from and to peers."""
    store, own_did, think = peers.store, peers.identities.canonical, minds.minds.think
    meta, gate = partial(our_meta, config), LateAcceptor(observer)
    links = Links(
        links_config(config),
        identities=peers.identities,
        resolver=make_resolver(peers.web),
        dialler=Dialler(tls=peers.fetcher.tls, addresses=peers.fetcher.addresses),
        server_tls=server_tls(config),
        acceptor=gate,
        on_handshake=partial(observer.handshake, "requester"),
        on_contact=peers.contacts.note,
        is_listed=peers.policy.is_listed,
        keeper=KeyKeeper(
            store,
            peers.key.derive(PURPOSE),
            enabled=config.channels.resumption,
            max_counter=config.channels.renew_messages,
        ),
    )
    dialogue = DialogueLimits(
        message_timeout=config.negotiation.message_timeout,
        cases_timeout=config.negotiation.timeout / 2,
    )
    bound = BoundParts(
        workshop=code.workshop,
        store=store,
        repairer=Repairer(store, code.workshop, own_did=own_did),
        afterwards=Afterwards(store, think),
        limits=dialogue,
    )
    written = WrittenParts(
        validator=code.validator,
        dialogue=dialogue,
        limits=WrittenLimits(
            answer_timeout=config.call.timeout,
            max_served=config.limits.max_calls,
            max_message=MAX_VALUES,
        ),
        said=offer.heard.said,
    )
    enforcer = Enforcer(
        links=links, policy=peers.policy, exposure=offer.exposure, store=store
    )
    gate.acceptor = acceptor = Acceptor(
        policy=peers.policy,
        enforcer=enforcer,
        store=store,
        agreer=minds.agreer,
        parts=ProviderParts(
            common=bound,
            capabilities=offer.capability_calls,
            offered=lambda peer: Offer(offer.exposure.offered(peer)),
            max_calls=config.limits.max_calls,
            work=WorkDesk(offer.call_times, default=config.call.timeout),
            used=uses.count,
        ),
        spokesman=Spokesman(offer.capability_calls, think),
        consensus=offer.consensus,
        written=written,
        answer=meta,
    )
    peer_lists = PeerLists(
        lifetime=config.consensus.list_lifetime,
        get=peer_getter(peers.fetcher.tls),
        guarded_get=guarded_getter(peers.fetcher),
    )
    candidates = CandidateFinder(
        desk=offer.consensus,
        lists=peer_lists,
        store=store,
        workshop=code.workshop,
        think=think,
        enabled=config.consensus.use,
    )

    async def remember(channel: Channel) -> None:
        peer = canonical_did(channel.peer_did, channel.peer_key)
        await peers.policy.note_seen(peer, shown_did=channel.peer_did)

    binder = Binder(
        links=links,
        store=store,
        agreer=minds.agreer,
        parts=RequesterParts(bound, config.call.timeout),
        written=written,
        enforcer=enforcer,
        candidates=candidates,
        own_did=own_did,
        offer=meta,
        remember=remember,
        templates=Templates(think, minds.spending),
        test_cases=config.negotiation.test_cases,
        shares_agreements=config.policy.share_agreements,
    )
    finder = PeerFinder(
        peers.book,
        peers.policy.is_blocked,
        web=peers.web,
        tls=peers.fetcher.tls,
        has_link=links.has_link,
        on_problem=peers.contacts.note_url,
        on_version=peers.measures.told_version,
    )
    binder.requesters.on_proved = finder.proved
    caller = Caller(
        finder=finder,
        binder=binder,
        validator=code.validator,
        negotiation_timeout=config.negotiation.timeout,
        times=offer.call_times,
        observer=observer,
        uses=uses,
        store=store,
        use=minds.agreer.desk.words_on_capabilities.use,
    )
    tasks = TaskService(
        logs=SealedLogs(store, peers.key.derive(SESSIONS_AT_REST)),
        identities=peers.identities,
        finder=finder,
        requesters=binder.requesters,
        capabilities=offer.capability_calls,
        caller=caller,
        policy=peers.policy,
        limits=written.limits,
        config=config.interaction,
        spool=Spool(
            home.files,
            peers.key.derive(FILES_AT_REST),
            max_file=config.interaction.max_file,
            max_files=config.interaction.max_files,
        ),
        call_files=home.call_files,
        is_linked=links.has_link,
        order=[one for one in config.interaction.order if offer.consensus.written(one)],
        think=think,
        measures=peers.measures,
    )
    acceptor.tasks = A2aChannels(
        tasks, peers.identities.canonical, offer.capability_calls.gate
    ).serve
    enforcer.also = tasks.recheck
    enforcer.on_recheck = offer.capability_calls.gate.look_again
    return CallParts(
        links, enforcer, acceptor, peer_lists, candidates, binder, finder, caller, tasks
    )
