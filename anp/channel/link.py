"""The shell of one link: a WebSocket, its core, and the channels on it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from websockets.exceptions import ConnectionClosed

from anp.channel.admission import Guest
from anp.channel.channel import Channel, ChannelAcceptor, ChannelClosed, read_clocks
from anp.channel.core.events import (
    ChannelEnded,
    ChannelOpened,
    ChannelProved,
    ChannelRole,
    CloseLink,
    FrameIgnored,
    FrameReceived,
    HandshakeRefused,
    LinkEvent,
    LinkFault,
    NeedClaim,
    NeedHelloAnswer,
    NeedKey,
    NeedPeerKeyCheck,
    RenewalDue,
    ResumptionRefused,
)
from anp.channel.core.handshakes import TOO_MANY_CHANNELS
from anp.channel.core.limits import LinkConfig
from anp.channel.core.link_core import LinkCore
from anp.channel.core.traffic import Before
from anp.channel.handshake_answers import HandshakeAnswers
from anp.channel.keeper import KeyKeeper, Taken
from anp.channel.link_keys import LinkKeys
from anp.channel.pipe import Pipe, PromptConnection, Reader
from anp.channel.refusals import CANNOT_SERVE, refusal_of
from anp.channel.room import ChannelRoom
from anp.channel.stranger_work import StrangerWork, counted, current_meter
from anp.errors import CallError, ErrorCode, ErrorKind, PeerError
from anp.identity.dids import Identities, LocalIdentity, canonical_did
from anp.identity.resolver import Resolver
from anp.wire.frames import Frame
from anp.wire.keys import EphemeralKey
from anp.wire.meta_protocol import LostKey, MetaProtocol, text_size
from anp.wire.replay import HelloMemory
from cache.errors import CacheError

logger = logging.getLogger(__name__)

MAX_LOGGED_FAULTS = 8
"Faults of one link that get a line of their own; the rest are only counted."

FAULT_CODES = frozenset({1002, 1007, 1009})
"Close codes by which the WebSocket library refuses what a peer sent."


class Link:
    """One WebSocket connection to another daemon; either side opens channels on it.

    Args:
        guest: The place of a connection that the peer opened.
        strangers: The work for strangers, which gives way to what comes on a connection
            that we opened.
    """

    def __init__(
        self,
        connection: PromptConnection,
        *,
        config: LinkConfig,
        identities: Identities,
        resolver: Resolver,
        acceptor: ChannelAcceptor,
        hellos: HelloMemory,
        on_peer: Callable[[Link, ChannelOpened], None],
        keeper: KeyKeeper | None = None,
        guest: Guest | None = None,
        strangers: StrangerWork | None = None,
    ) -> None:
        self._pipe = Pipe(connection)
        self._guest = guest
        self._channels: dict[str, Channel] = {}
        self._core = LinkCore(
            config,
            identity_for=identities.for_did,
            hellos=hellos,
            random_bytes=os.urandom,
            make_key=EphemeralKey.of_system,
            now=time.monotonic(),
        )
        self._reader = Reader(
            connection,
            self._core,
            channels=self._channels,
            pump=self._pump,
            guest=guest,
            strangers=strangers,
        )
        self._config = config
        self._identities = identities
        self._acceptor = acceptor
        self._on_peer = on_peer
        self._opening: dict[str, asyncio.Future[Channel]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._rearmed = asyncio.Event()
        self._lost: str | None = None
        self._ended = asyncio.Event()
        self._proved = asyncio.Event()
        self._acting = False
        self._refused_keys: set[str] = set()
        limit = config.max_channels
        self.room = ChannelRoom(self._channels, self._opening, limit=limit)
        self.peers: dict[str, str] = {}
        "DIDs that the other end proved, each with its canonical form."
        self.faults = 0
        self.ignored = 0
        self.name = f"{id(self) & 0xFFFFFF:06x}"
        self.keys = LinkKeys(
            self._core,
            keeper,
            name=self.name,
            config=config,
            identities=identities,
            resolver=resolver,
            acceptor=acceptor,
            channels=self._channels,
            pump=self._pump,
            allow_long=self._allow_long_messages,
        )
        self._handshakes = HandshakeAnswers(
            self._core,
            name=self.name,
            resolver=resolver,
            acceptor=acceptor,
            keeper=keeper,
            guest=guest,
            ours=self._opening,
            turn=self._reader.turn,
            pump=self._pump,
            allow_long=self._allow_long_messages,
        )

    @property
    def alive(self) -> bool:
        """True while channels can be opened here."""
        return self._lost is None

    @property
    def address(self) -> str:
        """The IP address of the other end; empty where there is none."""
        return self._pipe.address

    @property
    def open_channels(self) -> Mapping[str, Channel]:
        """The open channels, by their ids."""
        return self._channels

    @property
    def busy(self) -> bool:
        """True while a channel is open or opening."""
        return self._core.busy

    async def run(self) -> None:
        """Read and write until the connection ends."""
        writer = asyncio.create_task(self._pipe.write())
        timers = asyncio.create_task(self._watch_timer())
        reason = "connection lost"
        try:
            await self._reader.read()
        except ConnectionClosed as exc:
            if exc.rcvd or exc.sent:
                reason = f"connection lost: {exc}"
            if exc.sent and exc.sent.code in FAULT_CODES and not exc.rcvd_then_sent:
                # The library refused a message before the core could see it.
                self._fault(f"{exc.sent.code}", exc.sent.reason)
        finally:
            reason = self._pipe.farewell or reason
            self._lost = reason
            self._core.link_lost(reason)
            self._pump()
            self._ended.set()
            self._proved.set()
            timers.cancel()
            self._pipe.finish()
            for task in self._tasks:
                task.cancel()
            work = asyncio.gather(writer, timers, *self._tasks, return_exceptions=True)
            try:
                await work
                await self._pipe.close(1000, "")
            finally:
                # Their callbacks hold this link, which would wait for the collector.
                self._reader.let_go()
                self.keys.let_go()
                self._handshakes.let_go()

    async def open_channel(
        self, identity: LocalIdentity, peer_did: str, meta: MetaProtocol
    ) -> Channel:
        """Open a channel as requester.

        Raises:
            CallError: The peer refused the handshake (`identity_refused`), did not
                answer in time, or the link was lost (`peer_unreachable`).
        """
        if not self.alive:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "the connection was lost")
        session_id = self._core.open_channel(
            identity, peer_did, meta, now=read_clocks()
        )
        self._rearmed.set()
        opening: asyncio.Future[Channel] = asyncio.get_running_loop().create_future()
        self._opening[session_id] = opening
        try:
            self._pump()
            channel = await opening
        finally:
            self._opening.pop(session_id, None)
            self._core.abandon(session_id)
        if not channel.peer_meta.extensions:
            # The official SDK stores a key in a task of its own; what comes right
            # behind `finished` it loses (WIRE row 29).
            await asyncio.sleep(0.05)
        return channel

    async def renew(self, channel: Channel, meta: MetaProtocol) -> Channel:
        """See `Channel.renew`."""
        identity = self._identities.for_did(channel.local_did)
        if identity is None:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "we have another DID by now")
        await self.room.make(until=time.monotonic())
        lost: LostKey | None = None
        if channel.id in self._refused_keys:
            lost = LostKey(channel.id, self._core.keys.first_counter(channel.id))
        renewed = await self.open_channel(
            identity, channel.peer_did, replace(meta, lost_key=lost)
        )
        told = renewed.peer_meta.lost_key
        if lost is not None and told == replace(lost, accepted=False):
            self._core.leave_channel(
                channel.id, "the peer has lost the key", unprocessed=True
            )
            self._pump()
        return renewed

    async def keep_key(self, channel: Channel, binding: str) -> None:
        """See `Channel.keep`."""
        await self.keys.keep(channel, binding)

    async def resume(self, taken: Taken) -> Channel:
        """Go on under a key of ours that was kept; nothing is sent for it.

        Raises:
            PeerError: It cannot be taken up, or the link was lost.
        """
        if not self.alive:
            raise PeerError(ErrorCode.NOT_ALLOWED, "the connection was lost")
        return await self.keys.resume(taken)

    async def wait_to_send(self, channel_id: str, frame: Frame) -> None:
        """Wait for what has to happen before `send_now` sends a frame."""
        before = self._core.may_send(channel_id, frame)
        if before is Before.BLOCK:
            await self.keys.reserve(channel_id)
        elif before is Before.PROOF:
            self._proved.clear()
            await self._proved.wait()

    def send_now(
        self, channel_id: str, frame: Frame, message_id: str | None = None
    ) -> str | None:
        """Send one frame, or return None; see `LinkCore.send_frame`."""
        if self._core.may_send(channel_id, frame) is not None:
            return None
        if channel_id not in self._channels:
            raise ChannelClosed("the channel ended", by_peer=False)
        sent = self._core.send_frame(
            channel_id, frame, now=read_clocks(), message_id=message_id
        )
        # It may be long, and is there encrypted by now.
        del frame
        self._pump()
        return sent

    def max_payload(self, channel_id: str) -> int:
        """See `LinkCore.max_payload`."""
        return self._core.max_payload(channel_id)

    async def wait_ended(self) -> None:
        """Wait until the connection has ended."""
        await self._ended.wait()

    async def close_channel(
        self, channel_id: str, reason: str, *, code: ErrorCode
    ) -> None:
        """Close one channel; the link stays."""
        self._core.close_channel(channel_id, code, reason, now=read_clocks())
        self._pump()

    async def close(self, reason: str = "closed", *, code: int = 1001) -> None:
        """Close the link and all channels on it; `code` is WebSocket's."""
        await self._pipe.close(code, reason)

    async def limit(self, config: LinkConfig) -> None:
        """Take another limit of channels; those over it close, the least used first."""
        self._core.limit_channels(config.max_channels)
        self.room.limit = config.max_channels
        now = time.monotonic()
        by_use = sorted(self._channels.values(), key=lambda one: -one.idle_for(now))
        for channel in by_use[: max(0, len(by_use) - config.max_channels)]:
            await channel.close("the owner allows fewer channels now")

    async def drop(self, reason: str, *, code: int = 1008) -> None:
        """Close the link soon, however slowly its other end reads."""
        await self._pipe.drop(code, reason)

    async def _watch_timer(self) -> None:
        while True:
            self._rearmed.clear()
            due = self._core.get_timer()
            wait = None if due is None else max(0.0, due - time.monotonic())
            try:
                async with asyncio.timeout(wait):
                    await self._rearmed.wait()
            except TimeoutError:
                self._core.handle_timer(now=read_clocks())
                self._pump()

    def _pump(self) -> None:
        for text in self._core.messages_to_send():
            self._pipe.put(text)
        if self._acting:
            # Who takes a frame sends another one; what is under way goes on behind.
            return
        self._acting = True
        try:
            while self._core.told and (event := self._core.next_event()) is not None:
                if isinstance(event, FrameReceived):
                    channel = self._channels.get(event.channel_id)
                    if channel is not None and not channel.deliver(event):
                        self._reader.held = True
                else:
                    self._act(event)
                    # Frames alone bring no timer forward.
                    self._rearmed.set()
        finally:
            self._acting = False
        if self._reader.held:
            self._reader.settle()

    def _act(self, event: LinkEvent) -> None:
        match event:
            case NeedPeerKeyCheck():
                self._spawn(self._handshakes.check_key(event))
            case NeedHelloAnswer():
                self._spawn_counted(self._handshakes.answer_hello(event))
            case ChannelOpened():
                self._opened(event)
            case HandshakeRefused():
                self._refused(event)
            case FrameIgnored():
                self._ignored(event)
            case ChannelEnded():
                self._channel_ended(event)
            case RenewalDue(channel_id):
                self._due(channel_id)
            case ResumptionRefused(channel_id, code):
                logger.info(
                    "key not resumed connection=%s code=%s: asking anew",
                    *(self.name, int(code)),
                )
                self._refused_keys.add(channel_id)
                self._due(channel_id)
            case ChannelProved():
                self._allow_long_messages()
                self._proved.set()
            case NeedKey():
                self._reader.held = True
                self._spawn_counted(self.keys.find(event))
            case NeedClaim():
                self._reader.held = True
                self._spawn_counted(self.keys.claim(event))
            case LinkFault(code, detail):
                self._fault(f"{int(code)}", detail)
            case CloseLink(code, reason):
                self._spawn(self._pipe.close(code, reason))

    def _due(self, channel_id: str) -> None:
        channel = self._channels.get(channel_id)
        if channel is not None:
            channel.renewal_due()

    def _channel_ended(self, event: ChannelEnded) -> None:
        ended = self._channels.pop(event.channel_id, None)
        self.room.changed()
        self._refused_keys.discard(event.channel_id)
        self._proved.set()
        if ended is None:
            return
        ended.end(
            event.reason,
            by_peer=event.by_peer,
            unprocessed=event.unprocessed,
            link_lost=self._lost is not None and self._pipe.farewell is None,
        )
        self.keys.ended(event, ended)

    def _fault(self, code: str, detail: str) -> None:
        self.faults += 1
        if self.faults <= MAX_LOGGED_FAULTS:
            logger.warning(
                "peer fault connection=%s code=%s detail=%s", self.name, code, detail
            )

    def _ignored(self, event: FrameIgnored) -> None:
        self.ignored += 1
        if event.count == 1:
            logger.warning(
                "frame ignored connection=%s channel=%s not_common=%s",
                self.name,
                event.channel_id,
                event.capability,
            )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _spawn_counted(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work for the peer; that for a stranger has its time counted."""
        if self._guest is None or not self._guest.stranger:
            self._spawn(work)
            return
        context = copy_context()
        context.run(current_meter.set, self._guest)
        context.run(lambda: self._spawn(counted(work)))

    def _allow_long_messages(self, agreed: int | None = None) -> None:
        """Before the peer has proven who it is a message may have 64 KiB only.

        The library ends the link over its limit, so it gets one above that of the core.
        """
        longest = max(self._config.max_message, text_size(agreed or 0))
        self._pipe.allow(max(self._core.hard_limit, 2 * longest))

    def _opened(self, event: ChannelOpened) -> None:
        channel = Channel(event, self)
        self._channels[event.channel_id] = channel
        self.peers[event.peer_did] = canonical_did(event.peer_did, event.public_key)
        if event.began is None or event.role is ChannelRole.PROVIDER:
            self._allow_long_messages()
        self._on_peer(self, event)
        self._spawn(self._handshakes.accepted(channel))
        for remark in event.peer_meta.remarks:
            logger.info("hello remark connection=%s remark=%s", self.name, remark)
        logger.info(
            "channel opened connection=%s role=%s peer=%s",
            *(self.name, event.role, event.peer_did),
        )
        is_provider = event.role is ChannelRole.PROVIDER
        answer = event.own_meta if is_provider else event.peer_meta
        binding = answer.used_protocol_hash or answer.selected_protocol
        if binding is not None and event.began is None:
            self._spawn(self.keys.keep(channel, binding))
        if is_provider:
            self._spawn_counted(self._serve(channel))
            return
        opening = self._opening.get(event.session_id)
        if opening is not None and not opening.done():
            opening.set_result(channel)

    async def _serve(self, channel: Channel) -> None:
        try:
            await self._acceptor.serve_channel(channel)
        except CacheError as exc:
            logger.warning("channel not served connection=%s reason=%s", self.name, exc)
            await channel.close(CANNOT_SERVE)
        except Exception:
            logger.exception("serving a channel failed connection=%s", self.name)
            await channel.close("internal error")

    def _refused(self, event: HandshakeRefused) -> None:
        opening = self._opening.get(event.session_id)
        if opening is None or opening.done():
            return
        error = refusal_of(event, lost=self._lost)
        if event.by_peer and event.detail == TOO_MANY_CHANNELS:
            # No refusal of us: it allows fewer channels than we do.
            error = self.room.refused()
        opening.set_exception(error)
