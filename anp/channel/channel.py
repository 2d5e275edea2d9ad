"""One channel as the rest of the daemon sees it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic, time_ns
from typing import Protocol

from anp.channel.core.events import (
    ChannelOpened,
    ChannelRole,
    FrameReceived,
    NeedHelloAnswer,
)
from anp.channel.core.limits import KEY_EXPIRED
from anp.errors import CallError, ErrorCode, ErrorKind
from anp.wire.frames import Frame, ProtocolType, frame_of
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment, moment_of

logger = logging.getLogger(__name__)

MAX_WAITING_FRAMES = 128
"Frames that wait for the channel's reader before the link is read no further."


def read_clocks() -> Moment:
    """Return the present moment."""
    return moment_of((monotonic(), time_ns()))


class ChannelClosed(CallError):
    """The channel ended; `detail` says why."""

    def __init__(
        self,
        reason: str,
        *,
        by_peer: bool,
        unprocessed: bool = False,
        link_lost: bool = False,
    ) -> None:
        super().__init__(ErrorKind.PEER_UNREACHABLE, reason)
        self.by_peer = by_peer
        # It ended with its link, and neither side wanted it to: no daemon stopped.
        self.link_lost = link_lost
        # The peer proved that it acted on nothing we sent, so it may be sent again.
        self.unprocessed = unprocessed


def call_cut_off(ended: ChannelClosed) -> CallError:
    """Return the error of a call that was in flight when its channel ended."""
    kind = ErrorKind.PEER_UNREACHABLE
    if ended.detail == KEY_EXPIRED:
        kind = ErrorKind.TIMEOUT
        detail = "no answer before the channel's key expired (channels.key_lifetime)"
    elif ended.by_peer:
        detail = f"the peer ended the channel: {ended.detail}"
    else:
        detail = f"link_lost: {ended.detail}"
    return CallError(kind, detail, may_have_run=True)


class _Link(Protocol):
    @property
    def address(self) -> str: ...

    def max_payload(self, channel_id: str) -> int: ...

    def send_now(
        self, channel_id: str, frame: Frame, message_id: str | None = None
    ) -> str | None: ...

    async def wait_to_send(self, channel_id: str, frame: Frame) -> None: ...

    async def close_channel(
        self, channel_id: str, reason: str, *, code: ErrorCode
    ) -> None: ...

    async def renew(self, channel: Channel, meta: MetaProtocol) -> Channel: ...

    async def keep_key(self, channel: Channel, binding: str) -> None: ...


class ChannelAcceptor(Protocol):
    """Decides on the channels that peers ask for, and serves those that they opened."""

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        """Return our side of `metaProtocol`; PeerError refuses the hello."""
        ...

    async def serve_channel(self, channel: Channel) -> None:
        """Serve a channel a peer opened, until it ends."""
        ...


def nothing() -> None:
    """Do nothing, in place of work that is not there yet or not any more."""


def _always() -> bool:
    return True


def _never(_: FrameReceived) -> bool:
    return False


class Channel:
    """One short-term key between two DIDs, for calls in one direction."""

    def __init__(self, opened: ChannelOpened, link: _Link) -> None:
        self._opened = opened
        self._link = link
        self._frames: deque[FrameReceived] = deque()
        # Those who wait for a frame; an `asyncio.Event` takes twice as long for each.
        self._waiting: list[asyncio.Future[None]] = []
        self._room = asyncio.Event()
        # Made anew for whoever is told: an error that was raised holds all that it
        # passed, and this channel with it.
        self._ended: Callable[[], ChannelClosed] | None = None
        self._end = asyncio.Event()
        self._renewal = asyncio.Event()
        self.resumed = opened.began is not None
        self.kept = self.resumed
        "True if its key outlives the link."
        self.retired = False
        self.in_use: Callable[[], bool] = _always
        "Tells whether a call or a negotiation is under way; set by who uses it."
        self.take: Callable[[FrameReceived], bool] = _never
        """Takes a frame as it comes, if `receive` is being waited for; set by who does.

        False: `receive` shall return it. It saves a round of the event loop.
        """
        self._used_at = monotonic()

    @property
    def id(self) -> str:
        """The `secretKeyId`."""
        return self._opened.channel_id

    @property
    def ours(self) -> bool:
        """True if we opened it, as requester."""
        return self._opened.role is ChannelRole.REQUESTER

    @property
    def address(self) -> str:
        """The IP address of the other end of its link; empty where there is none."""
        return self._link.address

    @property
    def local_did(self) -> str:
        """Our DID on this channel."""
        return self._opened.local_did

    @property
    def peer_did(self) -> str:
        """The peer's verified DID."""
        return self._opened.peer_did

    @property
    def peer_key(self) -> bytes:
        """The peer's public key, 65 bytes."""
        return self._opened.public_key

    @property
    def own_meta(self) -> MetaProtocol:
        """Our side of the meta-protocol: our offers, or our answer as provider."""
        return self._opened.own_meta

    @property
    def peer_meta(self) -> MetaProtocol:
        """The peer's side of the meta-protocol, offers or answer."""
        return self._opened.peer_meta

    @property
    def opened(self) -> ChannelOpened:
        """The result of the handshake."""
        return self._opened

    @property
    def extensions(self) -> frozenset[str]:
        """Extensions that both sides listed."""
        return self._opened.extensions

    @property
    def capabilities(self) -> frozenset[str]:
        """Optional capabilities both sides listed; only these are used (ANP-81)."""
        return self._opened.capabilities

    @property
    def max_payload(self) -> int:
        """Bytes of protocol data that one frame may have (WIRE row 34)."""
        return self._link.max_payload(self.id)

    @property
    def open(self) -> bool:
        """True while frames can be sent."""
        return self._ended is None

    @property
    def ended(self) -> ChannelClosed | None:
        """Why the channel ended, or None while it is open."""
        return None if self._ended is None else self._ended()

    async def send(
        self, protocol_type: ProtocolType, data: bytes, *, message_id: str | None = None
    ) -> str:
        """Send one frame and return its envelope's message id.

        Args:
            message_id: The id it is to have, if it was announced before.

        Raises:
            ChannelClosed: The channel has ended.
            FrameTooLarge: Nothing was sent (WIRE row 34).
            LocalError: `capabilities` lacks what frames of this type need (ANP-81);
                nothing was sent.
        """
        while (
            sent := self.send_now(protocol_type, data, message_id=message_id)
        ) is None:
            await self._link.wait_to_send(self.id, Frame(protocol_type, data))
        return sent

    def send_now(
        self, protocol_type: ProtocolType, data: bytes, *, message_id: str | None = None
    ) -> str | None:
        """Send one frame as `send` does; None if something has to happen before."""
        if self._ended is not None:
            raise self._ended()
        self._used_at = monotonic()
        frame = frame_of((protocol_type, data))
        return self._link.send_now(self._opened.channel_id, frame, message_id)

    async def receive(self) -> FrameReceived:
        """Return the next frame; what came before the end is still handed out.

        Raises:
            ChannelClosed: The channel has ended.
        """
        while not self._frames:
            if self._ended is not None:
                raise self._ended()
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                self._waiting.remove(waiting)
        event = self._frames.popleft()
        if len(self._frames) == MAX_WAITING_FRAMES - 1:
            self._room.set()
        return event

    def idle_for(self, now: float) -> float:
        """Return the seconds for which nothing was under way here; 0 while it is.

        Args:
            now: `time.monotonic()`.
        """
        if self._frames or self.in_use():
            return 0.0
        return now - self._used_at

    def unheard_for(self, now: float) -> float:
        """Return the seconds for which the peer has let us wait; 0 if it has not."""
        if not self._waiting or self._frames:
            return 0.0
        return now - self._used_at

    def put_back(self, event: FrameReceived) -> None:
        """Make a frame that was read the next one to be read."""
        self._frames.appendleft(event)
        self._wake()

    async def close(
        self, reason: str, *, code: ErrorCode = ErrorCode.ENCRYPTION_KEY_EXPIRED
    ) -> None:
        """End the channel and tell the peer; harmless when it has ended."""
        if self._ended is None:
            await self._link.close_channel(self.id, reason, code=code)

    async def cut(
        self, reason: str, *, code: ErrorCode = ErrorCode.ENCRYPTION_KEY_EXPIRED
    ) -> None:
        """End the channel as `close` does; what came and was not read yet is dropped.

        Nothing more of the peer's is acted on, as far as it waits here.
        """
        self._frames.clear()
        await self.close(reason, code=code)

    async def wait_renewal(self) -> bool:
        """Wait until the key is to be renewed; False when the channel ended before."""
        await self._renewal.wait()
        return self.open

    async def renew(self, meta: MetaProtocol) -> Channel:
        """Open the channel that follows this one, on the same link (DESIGN.md).

        This one goes on: an answer goes out under the key its request came with.
        When its key was taken up again and the peer proves that it acted on nothing
        that came under it, this channel ends and its calls may be sent anew.

        Raises:
            CallError: There is none; see `Link.open_channel`.
        """
        return await self._link.renew(self, meta)

    async def keep(self, binding: str) -> None:
        """Let the key outlive its link, if both sides do that.

        Args:
            binding: Hash or URI of the protocol the channel is bound to.
        """
        if self.open:
            await self._link.keep_key(self, binding)

    def retire(self) -> None:
        """Take no new calls; those in flight go on."""
        self.retired = True

    def renewal_due(self) -> None:
        """Wake who waits for `wait_renewal`; called by the link."""
        self._renewal.set()

    async def wait_ended(self) -> ChannelClosed:
        """Wait for the end and return why."""
        await self._end.wait()
        assert self._ended is not None
        return self._ended()

    def deliver(self, event: FrameReceived) -> bool:
        """Hand over a frame of the link.

        Returns:
            False when the reader is so far behind that the link is to be read no
            further before `caught_up`.
        """
        self._used_at = monotonic()
        if self._ended is not None:
            return True
        is_next = self._waiting and not self._waiting[0].done() and not self._frames
        if is_next and self._taken(event):
            return True
        self._frames.append(event)
        if self._waiting:
            self._wake()
        return len(self._frames) < MAX_WAITING_FRAMES

    def _taken(self, event: FrameReceived) -> bool:
        try:
            return self.take(event)
        except Exception as exc:  # noqa: BLE001 - it is raised where the frame is read
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_exception(exc)
            return True

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def caught_up(self) -> None:
        """Wait until the reader is not far behind any more, or the channel ended."""
        while self._ended is None and len(self._frames) >= MAX_WAITING_FRAMES:
            self._room.clear()
            await self._room.wait()

    def end(
        self,
        reason: str,
        *,
        by_peer: bool,
        unprocessed: bool = False,
        link_lost: bool = False,
    ) -> None:
        """Mark the channel as ended; called by the link."""
        if self._ended is None:
            self._ended = partial(
                ChannelClosed,
                reason,
                by_peer=by_peer,
                unprocessed=unprocessed,
                link_lost=link_lost,
            )
            # Whoever set them holds this channel.
            self.in_use, self.take = _always, _never
            self._renewal.set()
            self._end.set()
            self._wake()
            self._room.set()
            logger.info(
                "channel closed peer=%s by_peer=%s reason=%r",
                self.peer_did,
                by_peer,
                reason[:200],
            )
