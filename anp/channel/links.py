"""All links of the daemon: dialled, accepted, found again and kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from anp.channel.admission import Admission, Guest
from anp.channel.channel import Channel, ChannelAcceptor
from anp.channel.core.events import ChannelOpened
from anp.channel.core.limits import LinksConfig, next_wait
from anp.channel.core.shares import NoPlace
from anp.channel.dialler import Dialler
from anp.channel.keeper import KeyKeeper
from anp.channel.link import Link
from anp.channel.listener import Pages, PeerServers, listen
from anp.channel.pipe import FAREWELL, PromptConnection
from anp.channel.room import LinkFull
from anp.errors import AnpError, CallError, ErrorKind, PeerError
from anp.identity.dids import Identities, LocalIdentity, canonical_did
from anp.identity.resolver import Resolver
from anp.phases import waits_for
from anp.wire.meta_protocol import MetaProtocol, text_size
from anp.wire.replay import HelloMemory

# Keeps a connection to a peer open, so that one without an address can be called.


async def keep_link(
    name: str, connect: Callable[[], Awaitable[Link]], *, least: float, most: float
) -> None:
    """Connect again whenever the link has ended, until cancelled.

    Args:
        name: The owner's name for the peer, for the log.
        connect: Returns the link that is there, or a new one.
        least: Seconds before the second try; the wait grows with each.
        most: Longest wait, in seconds.
    """
    tries = 0
    while True:
        began = time.monotonic()
        try:
            link = await connect()
            await link.wait_ended()
            logger.info("kept connection is down peer=%s", name)
        except AnpError as exc:
            logger.info("kept connection is down peer=%s reason=%s", name, exc)
        if time.monotonic() - began > most:
            tries = 0
        draw = random.random()
        await asyncio.sleep(next_wait(tries, least=least, most=most, draw=draw))
        tries += 1


logger = logging.getLogger(__name__)

FULL = 1013
"WebSocket close code for a connection that may be tried again later."

LEAVE_TIMEOUT = 1.0
"Seconds in which a link that gives way to another may close in good order."

MAX_IDLE_CHECK = 15.0
"Most seconds between two looks for idle channels."


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A peer to be reached."""

    did: str

    url: str | None
    "Where to dial, or None when only an open link can reach it."

    guarded: bool = False
    "Only the peer itself named the URL, so it is dialled only if its address may be."


class Links:
    """Opens channels to peers, over a link that is there or a new one."""

    def __init__(
        self,
        config: LinksConfig,
        *,
        identities: Identities,
        resolver: Resolver,
        acceptor: ChannelAcceptor,
        keeper: KeyKeeper | None = None,
        dialler: Dialler | None = None,
        server_tls: ssl.SSLContext | None = None,
        on_handshake: Callable[[str], None] | None = None,
        on_contact: Callable[[LinkTarget, CallError | None], None] | None = None,
        is_listed: Callable[[str], bool] = lambda did: False,
    ) -> None:
        """Make the links' house; `listen` opens its door.

        Args:
            is_listed: Tells whether the owner listed a canonical DID; it may block.
            on_handshake: Told how each handshake of ours as requester ended: `ok`,
                `refused`, `unreachable` or `failed`.
            on_contact: Told of each peer that we reached, and of each that we could
                not reach, with the reason.
        """
        self._config = config
        self._dialler = dialler or Dialler()
        self.server_tls = server_tls
        "The certificate of the port, which may be loaded anew; None speaks plain."
        self._keeper = keeper
        self._identities = identities
        self._resolver = resolver
        self._acceptor = acceptor
        self._hellos = HelloMemory()
        self._links: set[Link] = set()
        self.admission = Admission(config.max_links)
        "The places of the connections that peers opened."
        self._is_listed = is_listed
        self._guests: dict[Link, Guest] = {}
        self._by_peer: dict[str, Link] = {}
        self._dialing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: PeerServers | None = None
        self._on_handshake = on_handshake
        self._on_contact = on_contact or (lambda target, problem: None)
        self.on_opened: Callable[[Channel], None] = lambda channel: None
        "Told of every channel that opens, in either direction."

    @property
    def open_channels(self) -> int:
        """Number of channels that are open on all links."""
        return sum(len(link.open_channels) for link in self._links)

    @property
    def channels(self) -> list[Channel]:
        """Every open channel, in either direction."""
        return [one for link in self._links for one in link.open_channels.values()]

    @property
    def peers(self) -> dict[str, str]:
        """The DIDs that were proved on open links, each with its canonical form."""
        return {
            did: canonical
            for link in self._links
            for did, canonical in link.peers.items()
        }

    async def limit(self, max_links: int, max_channels: int) -> None:
        """Take other limits; what is over them closes, the least used first.

        Args:
            max_links: See `LinksConfig`.
            max_channels: See `LinkConfig`; it holds for each link.
        """
        config = replace(self._config.link, max_channels=max_channels)
        self._config = replace(self._config, link=config, max_links=max_links)
        self.admission.limit(max_links)
        by_use = sorted(self._guests, key=lambda link: -link.room.silence())
        surplus = by_use[: max(0, len(by_use) - max_links)]
        await asyncio.gather(
            *(link.drop("the owner allows fewer connections now") for link in surplus),
            *(link.limit(config) for link in self._links.difference(surplus)),
        )

    async def cut_off(self, dids: Collection[str], reason: str) -> None:
        """Close every link whose other end proved one of these DIDs."""
        wanted = set(dids)
        dropped = [link for link in self._links if wanted & link.peers.keys()]
        await asyncio.gather(*(link.drop(reason) for link in dropped))

    @property
    def listening(self) -> bool:
        """True while the port for peers is open; see `admission` for its places."""
        return self._server is not None and self._server.serving

    def stop_listening(self) -> None:
        """Take no new links; those that are up stay."""
        if self._server is not None:
            self._server.close(close_connections=False)

    @property
    def open_links(self) -> int:
        """Number of links that are up."""
        return len(self._links)

    async def listen(
        self, host: str, port: int, pages: Pages, own_url: Callable[[], str] = str
    ) -> int:
        """Accept links on `host`:`port` and return the port; see `listen`."""
        self._server = await listen(
            host,
            port,
            on_connection=self._accept,
            pages=pages,
            own_url=own_url,
            max_size=self._config.link.max_first_message,
            open_timeout=self._config.link.handshake.timeout,
            ping_interval=self._config.ping_interval,
            accepts=lambda: self.admission.occupancy.listed_can_connect,
            admission=self.admission,
            tls=self.server_tls,
        )
        self._start(self._close_idle())
        return self._server.port

    async def open_channel(self, target: LinkTarget, meta: MetaProtocol) -> Channel:
        """Open a channel to a peer as requester.

        Raises:
            CallError: `peer_unreachable` or `identity_refused`, with the reason;
                `local_resource` when every channel of the link is in use.
        """
        identity = self._identities.speaking_to(target.did)
        lock = self._dialing.setdefault(target.did, asyncio.Lock())
        until = time.monotonic() + self._config.handshake_timeout
        async with lock:
            link = self._find(target.did)
            if link is not None:
                try:
                    return await self._open_with_room(
                        link, identity, target, meta, until=until
                    )
                except CallError as exc:
                    answered = exc.retry_after is not None
                    if exc.kind is not ErrorKind.PEER_UNREACHABLE or answered:
                        # Other channels on the link go on.
                        raise
                    # The link was half dead and nothing was sent on a channel yet,
                    # so a new one is tried.
                    await link.close()
            link = await self._dial(target)
            try:
                return await self._open(link, identity, target, meta)
            except CallError:
                if not link.busy:
                    await link.close("handshake failed")
                raise

    async def resume_channel(
        self, target: LinkTarget, *bindings: str, size: int
    ) -> Channel | None:
        """Return a channel under a key that was kept for a protocol, or None.

        Nothing was sent for it: the first call on it is the first frame of its link.
        The peer may have lost the key; `Channel.wait_renewal` tells when it says so.

        Args:
            bindings: What the protocol is known by: its hash, and perhaps its URI.
            size: Bytes of the first call; a peer reads long ones only from those whom
                it knows already.

        Raises:
            CallError: `peer_unreachable`.
        """
        if (
            self._keeper is None
            or text_size(size) > self._config.link.max_first_message
        ):
            return None
        if not self._keeper.enabled:
            return None
        lock = self._dialing.setdefault(target.did, asyncio.Lock())
        async with lock:
            # Inside: of two callers one takes the key, the other finds it in use.
            taken = await self._keeper.find_own(target.did, *bindings)
            if taken is None:
                return None
            link = self._find(target.did) or await self._dial(target)
            try:
                return await link.resume(taken)
            except PeerError as exc:
                logger.info("key not taken up peer=%s reason=%s", target.did, exc)
                return None

    def has_link(self, did: str) -> bool:
        """Say if a link to a DID is up, so that it can be called without address."""
        return self._find(did) is not None

    def keep(
        self,
        name: str,
        find: Callable[[], Awaitable[LinkTarget]],
        meta: Callable[[], MetaProtocol],
    ) -> Callable[[], object]:
        """Keep a link to a peer open, dialling again with growing waits.

        Args:
            name: How the owner calls the peer, for the log.
            find: Says who it is and where, each time anew.

        Returns:
            What ends that; the link itself stays until it is idle.
        """

        async def connect() -> Link:
            target = await find()
            return self._find(target.did) or await self._greet(target, meta())

        least, most = self._config.min_backoff, self._config.max_backoff
        return self._start(keep_link(name, connect, least=least, most=most)).cancel

    async def close(self) -> None:
        """Stop listening and close every link."""
        if self._server is not None:
            self._server.close(close_connections=False)
        await asyncio.gather(*(self._shut(link) for link in self._links))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        if self._keeper is not None:
            await self._keeper.close()

    async def _shut(self, link: Link) -> None:
        guest = self._guests.get(link)
        if guest is not None and guest.stranger:
            # What it has sent may wait for turns for long, and its farewell behind it.
            await link.drop(FAREWELL, code=1001)
        else:
            await link.close(FAREWELL)

    def _find(self, did: str) -> Link | None:
        link = self._by_peer.get(did)
        return link if link is not None and link.alive else None

    async def _open_with_room(
        self,
        link: Link,
        identity: LocalIdentity,
        target: LinkTarget,
        meta: MetaProtocol,
        *,
        until: float,
    ) -> Channel:
        """Open a channel on a link that may be full of channels.

        Raises:
            CallError: `local_resource`, all of them are in use; see also `_open`.
        """
        while True:
            await link.room.make(until=until)
            try:
                return await self._open(link, identity, target, meta)
            except LinkFull as exc:
                # The peer allows fewer channels than we do, which the link knows now.
                logger.info("link full connection=%s reason=%s", link.name, exc.detail)

    async def _open(
        self,
        link: Link,
        identity: LocalIdentity,
        target: LinkTarget,
        meta: MetaProtocol,
    ) -> Channel:
        outcome = "failed"
        waits_for("handshake: the peer proves its identity")
        try:
            async with asyncio.timeout(self._config.handshake_timeout):
                channel = await link.open_channel(identity, target.did, meta)
            outcome = "ok"
            self._on_contact(target, None)
            return channel
        except CallError as exc:
            refused = exc.kind is ErrorKind.IDENTITY_REFUSED
            outcome = "refused" if refused else "unreachable"
            self._on_contact(target, exc)
            raise
        except TimeoutError:
            outcome = "unreachable"
            late = CallError(
                ErrorKind.PEER_UNREACHABLE,
                f"{target.did} did not answer the handshake in "
                f"{self._config.handshake_timeout:g} s",
            )
            self._on_contact(target, late)
            raise late from None
        finally:
            if self._on_handshake is not None:
                self._on_handshake(outcome)

    async def _dial(self, target: LinkTarget) -> Link:
        if target.url is None:
            raise CallError(
                ErrorKind.PEER_UNREACHABLE,
                f"no address is known for {target.did} and it has no connection to us; "
                "give one as ws://host:port/#did",
            )
        waits_for(f"connecting to {target.url}")
        try:
            connection = await self._dialler.dial(
                target.url,
                guarded=target.guarded,
                open_timeout=self._config.connect_timeout,
                ping_interval=self._config.ping_interval,
                max_size=self._config.link.max_first_message,
            )
        except CallError as exc:
            self._on_contact(target, exc)
            raise
        link = self._link(connection)
        self._start(self._run(link))
        return link

    def _link(self, connection: PromptConnection, guest: Guest | None = None) -> Link:
        return Link(
            connection,
            config=self._config.link,
            identities=self._identities,
            resolver=self._resolver,
            acceptor=self._acceptor,
            hellos=self._hellos,
            on_peer=self._register,
            guest=guest,
            strangers=self.admission.work,
            keeper=self._keeper,
        )

    async def _accept(self, connection: PromptConnection) -> None:
        guest = self.admission.find(connection.remote_address)
        link = self._link(connection, guest)
        if guest is not None:
            guest.silence = link.room.silence
            guest.give_way = partial(self._give_way, link, guest)
            self._guests[link] = guest
        try:
            await self._run(link)
        finally:
            self._guests.pop(link, None)

    async def _run(self, link: Link) -> None:
        self._links.add(link)
        logger.info(
            "connection opened connection=%s connections=%d",
            link.name,
            len(self._links),
        )
        try:
            await link.run()
        finally:
            self._links.discard(link)
            for did in [d for d, known in self._by_peer.items() if known is link]:
                del self._by_peer[did]
            logger.info(
                "connection closed connection=%s faults=%d ignored=%d",
                link.name,
                link.faults,
                link.ignored,
            )

    def _register(self, link: Link, opened: ChannelOpened) -> None:
        """Remember under which DIDs the other end of a link has proved itself."""
        canonical = canonical_did(opened.peer_did, opened.public_key)
        for did in {opened.peer_did, canonical}:
            known = self._by_peer.get(did)
            if known is None or not known.alive:
                self._by_peer[did] = link
        self.on_opened(link.open_channels[opened.channel_id])
        guest = self._guests.get(link)
        if guest is not None and not guest.proved:
            self._start(self._prove(link, guest, canonical))

    async def _prove(self, link: Link, guest: Guest, did: str) -> None:
        """Give a link the place of a peer that proved its DID, or end it."""
        try:
            listed = await asyncio.to_thread(self._is_listed, did)
        except Exception:
            # Without the store nobody is known; a common place may still be free.
            logger.exception("peer not looked up connection=%s", link.name)
            listed = False
        try:
            self.admission.prove(guest, did, listed=listed)
        except NoPlace as exc:
            logger.info("connection refused connection=%s reason=%s", link.name, exc)
            await _leave(link, guest, "no place for another connection")

    def _give_way(self, link: Link, guest: Guest) -> None:
        logger.info("connection gives way to another connection=%s", link.name)
        self._start(_leave(link, guest, "this place is given to another"))

    async def _close_idle(self) -> None:
        """Close channels without calls, from time to time."""
        limit = self._config.idle_timeout
        while True:
            await asyncio.sleep(min(limit / 4, MAX_IDLE_CHECK))
            for link in list(self._links):
                try:
                    await link.room.close_idle(limit)
                except Exception:
                    # The channels of the other links are to close all the same.
                    logger.exception("not tidied up connection=%s", link.name)
                # Otherwise the last one would be held until the next round.
                del link

    async def _greet(self, target: LinkTarget, meta: MetaProtocol) -> Link:
        """Make ourselves known to a peer, and return the link."""
        channel = await self.open_channel(target, meta)
        link = self._find(target.did)
        await channel.close("only the link is kept")
        if link is None:
            raise CallError(
                ErrorKind.PEER_UNREACHABLE, "the connection was lost at once"
            )
        return link

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _leave(link: Link, guest: Guest, reason: str) -> None:
    # It has no place any more, and may not stay for as long as it likes.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LEAVE_TIMEOUT):
            await link.close(reason, code=FULL)
    guest.hang_up()
