"""The daemon: builds every part, wires them, and runs until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anp.channel.channel import Channel
from anp.channel.core import EXTENSION_CLOSE
from anp.channel.events import NeedHelloAnswer
from anp.channel.limits import LinkConfig
from anp.channel.links import Links, LinksConfig, Target
from anp.channel.listener import Page
from anp.errors import CallError, ConfigError, ErrorKind
from anp.identity.address import PeerAddress, parse_peer
from anp.identity.book import AddressBook
from anp.identity.dids import Identities, canonical_did
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.identity.well_known import PATH, WellKnown, make_well_known
from anp.sidecar.afterwards import Afterwards
from anp.sidecar.agreeing import Agreer
from anp.sidecar.attachments import (
    AttachmentError,
    AttachmentLimits,
    AttachmentSpec,
    load_attachments,
    open_attachment,
)
from anp.sidecar.binding import Binder
from anp.sidecar.capabilities import CapabilityCalls
from anp.sidecar.config import Config
from anp.sidecar.exposure import Exposure, PeerPolicy
from anp.sidecar.finding import PeerFinder
from anp.sidecar.home import ApiAddress, Home, write_ready_file
from anp.sidecar.inbound import Provider
from anp.sidecar.loading import HalfLoader
from anp.sidecar.minds import Minds
from anp.sidecar.modelling import make_endpoint, make_spending
from anp.sidecar.natural import Spokesman
from anp.sidecar.outbound import Caller
from anp.sidecar.repairing import Repairer
from anp.sidecar.serving import ServedParts
from anp.sidecar.session import SessionParts
from anp.version import daemon_version
from anp.wire.messages import MetaProtocol
from cache.errors import StoreUnavailable
from cache.imports import Imported
from cache.records import PinRecord, Role
from cache.store import Store
from negotiation.dialogue import DialogueLimits
from negotiation.limits import ANSWER_TIMEOUT, NegotiationLimits
from negotiation.mind import Offer
from negotiation.task import Task
from sandbox.pool import Sandbox, SandboxConfig
from sandbox.validation import SchemaValidator

__all__ = ["Daemon", "run_daemon"]

logger = logging.getLogger(__name__)

EXTENSIONS = (EXTENSION_CLOSE,)
"Extensions of the channel that this daemon lists (WIRE)."


class _Pins:
    """The store's pins as the address book wants them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_pin(self, url: str) -> str | None:
        pin = self._store.pin(url)
        return pin.did if pin else None

    def put_pin(self, url: str, did: str) -> None:
        self._store.save_pin(PinRecord(url=url, did=did, created=time.time()))

    def all_pins(self) -> list[tuple[str, str]]:
        return [(pin.url, pin.did) for pin in self._store.pins()]


@dataclass(slots=True)
class _Gate:
    """Stands in for the provider until it is built; links come first."""

    provider: Provider | None = None

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        assert self.provider is not None
        return await self.provider.answer_hello(hello)

    async def serve_channel(self, channel: Channel) -> None:
        assert self.provider is not None
        await self.provider.serve_channel(channel)


class Daemon:
    """Every part of one daemon; `running` starts and ends them."""

    def __init__(self, home: Home, config: Config) -> None:
        self.home = home
        self.config = config
        self.started = time.time()
        self.port = config.listen.port
        key_file = config.identity.key_file or home.key_file
        key = (
            PrivateKey.load(key_file)
            if key_file.exists()
            else PrivateKey.create(key_file)
        )
        self.identities = Identities.of_method(key, config.identity.method)
        self.store = Store(config.cache.path or home.store)
        self.exposure = Exposure()
        self.sandbox = Sandbox(
            SandboxConfig(
                max_workers=config.sandbox.max_workers,
                memory=config.sandbox.memory,
                required_level=config.sandbox.level,
            )
        )
        self.validator = SchemaValidator()
        blocked = {p.did for p in config.peer if p.did and p.policy == "block"}
        self.policy = PeerPolicy(
            self.store,
            default=config.peers_policy,
            allowed=frozenset(
                p.did for p in config.peer if p.did and p.policy == "allow"
            ),
            blocked=frozenset(blocked),
        )
        self.book = AddressBook(
            [PeerAddress(p.name, p.did, p.url) for p in config.peer],
            _Pins(self.store),
        )
        own_did = self.identities.canonical
        self.spending = make_spending(self.store, config)
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
            sandbox=self.sandbox,
            validator=self.validator,
            think=think,
            limits=NegotiationLimits(
                timeout=config.negotiation.timeout,
                message_timeout=config.negotiation.message_timeout,
                codegen_timeout=config.negotiation.codegen_timeout,
                # A model's answer may take as long as the owner lets it.
                answer_timeout=(
                    ANSWER_TIMEOUT if self.endpoint is None else config.llm.timeout
                ),
                max_rounds=config.negotiation.max_rounds,
            ),
            half_deadline=config.sandbox.call_timeout,
            own_did=own_did,
            approve=config.negotiation.approve,
            approval_wait=config.negotiation.approval_wait,
        )
        gate = _Gate()
        self.links = Links(
            LinksConfig(
                link=LinkConfig(
                    max_message=config.limits.max_message,
                    max_payload=config.limits.max_payload,
                    max_channels=config.limits.max_channels,
                ),
                max_links=config.limits.max_links,
            ),
            identities=self.identities,
            resolver=ChainResolver(),
            acceptor=gate,
        )
        loader = HalfLoader(
            self.sandbox, self.validator, deadline=config.sandbox.call_timeout
        )
        afterwards = Afterwards(self.store, think)
        repairer = Repairer(
            store=self.store,
            afterwards=afterwards,
            check=self.agreer.try_half,
            own_did=own_did,
        )
        dialogue = DialogueLimits(
            message_timeout=config.negotiation.message_timeout,
            cases_timeout=config.negotiation.timeout / 2,
        )
        capabilities = CapabilityCalls(
            self.exposure, self.validator, timeout=config.call.timeout
        )
        self.provider = gate.provider = Provider(
            exposure=self.exposure,
            policy=self.policy,
            store=self.store,
            agreer=self.agreer,
            sandbox=self.sandbox,
            parts=ServedParts(
                capabilities=capabilities,
                loader=loader,
                repairer=repairer,
                validator=self.validator,
                afterwards=afterwards,
                offered=lambda: Offer(self.exposure.offered()),
                quarantined=lambda half, peer: self.sandbox.quarantined(
                    half.hash, source=half.source, peer=peer
                ),
                limits=dialogue,
                max_calls=config.limits.max_calls,
            ),
            spokesman=Spokesman(self.exposure, capabilities, think),
            answer=self._meta,
        )
        self.binder = Binder(
            links=self.links,
            store=self.store,
            agreer=self.agreer,
            parts=SessionParts(
                loader=loader,
                repairer=repairer,
                validator=self.validator,
                afterwards=afterwards,
                limits=dialogue,
                call_timeout=config.call.timeout,
            ),
            own_did=own_did,
            offer=self._meta,
            remember=self._remember,
            test_cases=config.negotiation.test_cases,
        )
        self.caller = Caller(
            finder=PeerFinder(self.book, self.policy.is_blocked),
            binder=self.binder,
            store=self.store,
            validator=self.validator,
            negotiation_timeout=config.negotiation.timeout,
        )

    @property
    def did(self) -> str:
        """The DID we show ourselves with."""
        return self.identities.primary.did

    @property
    def url(self) -> str:
        """Where peers reach us."""
        if self.config.listen.public_url:
            return self.config.listen.public_url
        host = self.config.listen.host
        return f"ws://{f'[{host}]' if ':' in host else host}:{self.port}/"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start every part, and end what was started."""
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.store.close)
            await self.sandbox.start()
            stack.push_async_callback(self.sandbox.close)
            await self.validator.start()
            stack.push_async_callback(self.validator.close)
            if self.endpoint is not None:
                stack.push_async_callback(self.endpoint.close)
            stack.push_async_callback(self._close_attachments)
            await self.reload()
            self.port = await self.links.listen(
                self.config.listen.host, self.config.listen.port, self._pages
            )
            stack.push_async_callback(self.links.close)
            for peer in self.config.peer:
                if peer.keep_link and peer.did:
                    target = Target(peer.did, peer.url)
                    self.links.keep(target, lambda: self._meta(None))
            yield

    async def reload(self) -> list[str]:
        """Read the attachments again; start what is new or changed, end what is gone.

        Returns:
            The names of all attachments.

        Raises:
            ConfigError: A file is broken; nothing was changed.
        """
        specs: dict[str, AttachmentSpec] = {}
        for spec in (*self.config.attach, *load_attachments(self.home.attachments)):
            if spec.name in specs:
                raise ConfigError(
                    f"attachment {spec.name} is both in the configuration and in "
                    f"{self.home.attachments}; remove one of them"
                )
            specs[spec.name] = spec
        for name, (_, attachment) in list(self.exposure.attachments.items()):
            if name not in specs:
                self.exposure.drop(name)
                await attachment.close()
        # A reload also starts unchanged ones anew: the code behind them may have
        # changed, and their schemas with it.
        await asyncio.gather(*(self._attach(spec) for spec in specs.values()))
        return sorted(specs)

    async def use_imported(self, imported: Sequence[Imported]) -> None:
        """Close the channels on what an import replaced, after their calls in flight.

        Args:
            imported: What was stored, of one document.
        """
        for one in imported:
            if one.half.role is Role.PROVIDER:
                await self.provider.retire(one.half.hash)
            else:
                self.binder.retire(one.agreements)

    def task(self, wanted: object) -> Task:
        """Return the task that a name from `[[task]]`, a text or an object means.

        Raises:
            CallError: `usage`, it is none of these.
        """
        if isinstance(wanted, str) and wanted.strip():
            for entry in self.config.task:
                if entry.name == wanted:
                    return Task(
                        entry.requirement,
                        dict(entry.input_schema) if entry.input_schema else None,
                        dict(entry.output_schema) if entry.output_schema else None,
                    )
            return Task(wanted)
        if isinstance(wanted, dict) and isinstance(wanted.get("requirement"), str):
            schemas = [wanted.get("input_schema"), wanted.get("output_schema")]
            unknown = wanted.keys() - {"requirement", "input_schema", "output_schema"}
            if not unknown and all(s is None or isinstance(s, dict) for s in schemas):
                return Task(wanted["requirement"], *schemas)
        raise CallError(
            ErrorKind.USAGE,
            "the task has to be a text, the name of a [[task]], or an object with "
            "requirement, input_schema and output_schema",
        )

    def canonical_peer(self, text: str) -> str:
        """Return the DID under which a peer is stored, for a name, DID or prefix.

        Raises:
            CallError: `usage`, nobody is known by that.
        """
        known = self.store.peers()
        for peer in known:
            if text == peer.did or text in peer.aliases or text in peer.names:
                return peer.did
        for entry in self.config.peer:
            if entry.name == text and entry.did:
                return entry.did
        address = parse_peer(text)
        did = address.did
        if did is None and address.url is not None:
            pin = self.store.pin(address.url)
            did = pin.did if pin else None
        if did is None:
            raise CallError(ErrorKind.USAGE, f"no peer is known as {text!r}")
        for peer in known:
            if did in peer.aliases:
                return peer.did
        return did

    async def _attach(self, spec: AttachmentSpec) -> None:
        old = self.exposure.attachments.get(spec.name)
        if old is not None:
            await old[1].close()
        attachment = open_attachment(
            spec,
            limits=AttachmentLimits(max_calls=self.config.limits.max_calls),
            on_change=self.exposure.changed,
        )
        try:
            await attachment.start()
        except AttachmentError as exc:
            # It goes on trying by itself; until then its capabilities are not offered.
            logger.warning("attachment not healthy name=%s reason=%s", spec.name, exc)
        self.exposure.put(spec, attachment)

    async def _close_attachments(self) -> None:
        attachments = [a for _, a in self.exposure.attachments.values()]
        await asyncio.gather(*(attachment.close() for attachment in attachments))

    async def _remember(self, channel: Channel) -> None:
        peer = canonical_did(channel.peer_did, channel.peer_key)
        await self.policy.remember(peer, shown_did=channel.peer_did)

    def _meta(self, digest: str | None) -> MetaProtocol:
        """Return our side of `metaProtocol`, offering or confirming `digest`."""
        return MetaProtocol(
            supported_capabilities=self.config.negotiation.capabilities,
            used_protocol_hash=digest,
            extensions=EXTENSIONS,
        )

    def _pages(self) -> Mapping[str, Page]:
        known = WellKnown(self.did, self.url, daemon_version())
        return {PATH: ("application/json", make_well_known(known))}


async def run_daemon(
    home: Home,
    config: Config,
    *,
    ready_file: Path | None,
    on_ready: Callable[[str, str], None],
) -> None:
    """Run the daemon of `home` until SIGINT or SIGTERM.

    Args:
        ready_file: Gets `url` and `did` as JSON when peers can connect.
        on_ready: The same for people, with URL and DID.

    Raises:
        CallError: The home or the port is in use.
        ConfigError: The owner's files are wrong.
    """
    from anp.sidecar.api import serve_api

    home.create()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with home.lock():
        try:
            daemon = Daemon(home, config)
        except StoreUnavailable as exc:
            raise CallError(ErrorKind.LOCAL_RESOURCE, str(exc)) from exc
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            async with daemon.running(), serve_api(daemon) as socket_path:
                home.write_api(
                    ApiAddress(str(socket_path), os.getpid(), daemon.url, daemon.did)
                )
                try:
                    if ready_file is not None:
                        write_ready_file(ready_file, url=daemon.url, did=daemon.did)
                    on_ready(daemon.url, daemon.did)
                    await stop.wait()
                finally:
                    home.remove_api()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
