"""The pure core of one link: its channels, their frames and what they may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from anp.channel.events import (
    ChannelOpened,
    CloseLink,
    FrameIgnored,
    FrameReceived,
    HandshakeRefused,
    LinkEvent,
)
from anp.channel.handshakes import Completed, Handshakes
from anp.channel.limits import LinkConfig
from anp.channel.optional import UnagreedFrames, check_agreed, missing_capability
from anp.channel.output import LinkOutput
from anp.errors import AnpError, ErrorCode, LocalError, PeerError
from anp.wire.envelope import (
    check_envelope_dids,
    check_envelope_version,
    open_envelope,
    seal,
)
from anp.wire.frames import Frame, ProtocolType, decode_frame, encode_frame
from anp.wire.handshake import Identity
from anp.wire.keys import SessionKeys
from anp.wire.messages import (
    DestinationHello,
    Envelope,
    Finished,
    Heartbeat,
    Message,
    MetaProtocol,
    Register,
    Response,
    SourceHello,
    make_pong,
    parse_message,
)
from anp.wire.replay import HelloMemory, IvMemory
from negotiation.errors import MessageError
from negotiation.messages import ChannelClose, parse_meta, render_meta

__all__ = ["EXTENSION_CLOSE", "FrameTooLarge", "LinkCore"]

EXTENSION_CLOSE = "close"
"Name of our extension that ends one channel with a meta message (DESIGN.md)."


class FrameTooLarge(AnpError):
    """A payload is larger than the peer takes; nothing was sent (WIRE row 34)."""


@dataclass(slots=True)
class _Channel:
    """One open channel."""

    opened: ChannelOpened
    keys: SessionKeys
    seen_ivs: IvMemory
    unagreed: UnagreedFrames


class LinkCore:
    """Everything a link decides, for channels of both directions (WIRE).

    After each call send what `messages_to_send` returns, act on every `next_event`,
    and re-arm `get_timer`. `now` is seconds on one monotonic clock, `wall_now` UTC.

    Args:
        identity_for: Our identity for a DID a peer addressed, or None.
        hellos: Memory of hellos, shared by all links of the daemon.
    """

    def __init__(
        self,
        config: LinkConfig,
        *,
        identity_for: Callable[[str], Identity | None],
        hellos: HelloMemory,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> None:
        self._config = config
        self._must_open_by = now + config.first_channel_timeout
        self._random_bytes = random_bytes
        self._output = LinkOutput(config.max_faults, random_bytes)
        self._handshakes = Handshakes(
            config,
            self._output,
            identity_for=identity_for,
            hellos=hellos,
            random_bytes=random_bytes,
        )
        self._channels: dict[str, _Channel] = {}
        self._ever_open = False

    @property
    def channels(self) -> frozenset[str]:
        """Ids of the open channels."""
        return frozenset(self._channels)

    @property
    def busy(self) -> bool:
        """Whether a channel is open or a handshake is under way."""
        return bool(self._channels) or self._handshakes.under_way

    def open_channel(
        self,
        identity: Identity,
        peer_did: str,
        meta: MetaProtocol,
        *,
        now: float,
        wall_now: datetime,
    ) -> str:
        """Start a handshake as requester and return its session id."""
        return self._handshakes.dial(
            identity, peer_did, meta, now=now, wall_now=wall_now
        )

    def key_checked(
        self,
        session_id: str,
        error: PeerError | None,
        *,
        now: float,
        wall_now: datetime,
    ) -> None:
        """Say whether the peer's DID owns its key; see `NeedPeerKeyCheck`."""
        self._handshakes.key_checked(session_id, error, now=now, wall_now=wall_now)
        self._take_completed(now=now, wall_now=wall_now)

    def answer_hello(
        self, session_id: str, meta: MetaProtocol, *, now: float, wall_now: datetime
    ) -> None:
        """Accept a hello; see `NeedHelloAnswer`."""
        self._handshakes.answer(session_id, meta, now=now, wall_now=wall_now)
        self._take_completed(now=now, wall_now=wall_now)

    def refuse_hello(
        self,
        session_id: str,
        code: ErrorCode,
        detail: str,
        *,
        now: float,
        wall_now: datetime,
    ) -> None:
        """Refuse a hello with `code`."""
        self._handshakes.refuse(session_id, code, detail, now=now, wall_now=wall_now)

    def abandon(self, session_id: str) -> None:
        """Forget a handshake nobody waits for any more."""
        self._handshakes.abandon(session_id)

    def receive_text(
        self, text: str | bytes, *, now: float, wall_now: datetime
    ) -> None:
        """Handle one WebSocket message. What is wrong with it becomes `PeerFault`."""
        limit = (
            self._config.max_message
            if self._ever_open
            else self._config.max_first_message
        )
        size = len(text if isinstance(text, bytes) else text.encode(errors="replace"))
        if size > limit:
            self._output.fault(
                ErrorCode.NOT_ALLOWED, f"message of {size} bytes, limit {limit}"
            )
            self._output.tell(CloseLink(1009, "message too big"))
            return
        try:
            message = parse_message(text, max_size=limit)
            self._route(message, size, now=now, wall_now=wall_now)
        except PeerError as exc:
            self._output.fault(exc.code, exc.detail)

    def send_frame(
        self, channel_id: str, frame: Frame, *, now: float, wall_now: datetime
    ) -> str:
        """Encrypt one frame for a channel and return the envelope's message id.

        Raises:
            LocalError: The channel is not open (any more), or not both sides listed
                the capability the frame needs (ANP-81).
            FrameTooLarge: The protocol data is over `max_payload`.
        """
        channel = self._channels.get(channel_id)
        if channel is None:
            raise LocalError(f"no channel {channel_id}")
        check_agreed(frame.protocol_type, channel.opened.capabilities)
        if len(frame.data) > self._config.max_payload:
            raise FrameTooLarge(
                f"too_large: {len(frame.data)} bytes of protocol data, "
                f"the peer takes {self._config.max_payload}"
            )
        opened = channel.opened
        message_id = self._random_bytes(16).hex()
        envelope = seal(
            channel.keys,
            encode_frame(frame, opened.frame_format),
            source_did=opened.local_did,
            destination_did=opened.peer_did,
            message_id=message_id,
            iv=self._random_bytes(12),
            timestamp=wall_now,
            version=opened.frame_format.version,
        )
        self._output.say([envelope])
        return message_id

    def close_channel(
        self,
        channel_id: str,
        code: ErrorCode,
        reason: str,
        *,
        now: float,
        wall_now: datetime,
    ) -> None:
        """End a channel and tell the peer, in our extension or with a `response`."""
        channel = self._channels.get(channel_id)
        if channel is None:
            return
        opened = channel.opened
        if EXTENSION_CLOSE in opened.extensions:
            close = render_meta(ChannelClose(code=int(code), reason=reason))
            self.send_frame(
                channel_id, Frame(ProtocolType.META, close), now=now, wall_now=wall_now
            )
        else:
            self._output.respond(
                ErrorCode.ENCRYPTION_KEY_EXPIRED,
                reason,
                source_did=opened.local_did,
                destination_did=opened.peer_did,
                original_type="message",
                original_id="",
                wall_now=wall_now,
            )
        self._end(channel_id, reason, by_peer=False)

    def link_lost(self, reason: str) -> None:
        """End everything: a channel ends with its link."""
        self._handshakes.link_lost(reason)
        for channel_id in list(self._channels):
            self._end(channel_id, reason, by_peer=False)

    def messages_to_send(self) -> list[str]:
        """Return the messages to send now, in order, and forget them."""
        return self._output.messages_to_send()

    def next_event(self) -> LinkEvent | None:
        """Return the oldest event not yet returned, or None."""
        return self._output.next_event()

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        due = [channel.opened.expires_at for channel in self._channels.values()]
        if not self._ever_open:
            due.append(self._must_open_by)
        return min([*due, *self._handshakes.timers()], default=None)

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """Fail handshakes that took too long and end channels whose key expired."""
        self._handshakes.handle_timer(now=now, wall_now=wall_now)
        for channel_id, channel in list(self._channels.items()):
            if now >= channel.opened.expires_at:
                self._end(channel_id, "the key expired", by_peer=False)
        if not self._ever_open and now >= self._must_open_by:
            self._must_open_by = float("inf")
            self._output.tell(CloseLink(1008, "no channel was opened"))

    def _end(self, channel_id: str, reason: str, *, by_peer: bool) -> None:
        del self._channels[channel_id]
        self._output.ended(channel_id, reason, by_peer=by_peer)

    def _route(
        self, message: Message, size: int, *, now: float, wall_now: datetime
    ) -> None:
        match message:
            case Heartbeat(message="ping"):
                self._output.say([make_pong(message, timestamp=wall_now)])
            case Heartbeat() | Register():
                # A pong we did not ask for and a router's registration change nothing
                # here (WIRE rows 31, 32).
                return
            case SourceHello():
                self._handshakes.receive_hello(
                    message, channels=len(self._channels), now=now, wall_now=wall_now
                )
            case DestinationHello() | Finished() | Response():
                self._handshakes.receive(message, now=now, wall_now=wall_now)
                self._take_completed(now=now, wall_now=wall_now)
            case Envelope():
                self._receive_envelope(message, size, now=now, wall_now=wall_now)

    def _take_completed(self, *, now: float, wall_now: datetime) -> None:
        while (completed := self._handshakes.next_completed()) is not None:
            self._open_channel(completed, now=now, wall_now=wall_now)

    def _open_channel(
        self, completed: Completed, *, now: float, wall_now: datetime
    ) -> None:
        key_id, session_id = completed.opened.channel_id, completed.opened.session_id
        if key_id in self._channels:
            reason = "the key id is in use on this link"
            self._output.tell(
                HandshakeRefused(session_id, ErrorCode.NOT_ALLOWED, reason, False)
            )
            self._output.fault(ErrorCode.NOT_ALLOWED, reason)
            return
        self._channels[key_id] = _Channel(
            completed.opened,
            completed.keys,
            IvMemory([completed.finished_iv]),
            UnagreedFrames(self._config.max_unagreed_frames),
        )
        self._ever_open = True
        self._output.tell(completed.opened)
        for envelope in completed.held:
            try:
                self._receive_envelope(envelope, 0, now=now, wall_now=wall_now)
            except PeerError as exc:
                self._output.fault(exc.code, exc.detail)

    def _receive_envelope(
        self, envelope: Envelope, size: int, *, now: float, wall_now: datetime
    ) -> None:
        channel = self._channels.get(envelope.secret_key_id)
        if channel is None:
            if self._handshakes.hold(envelope, size):
                return
            error = PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "unknown key id")
        elif now >= channel.opened.expires_at:
            error = PeerError(ErrorCode.DECRYPTION_KEY_EXPIRED, "the key expired")
            self._end(envelope.secret_key_id, "the key expired", by_peer=False)
        else:
            try:
                self._open(channel, envelope, now=now, wall_now=wall_now)
                return
            except PeerError as exc:
                error = exc
        self._output.respond(
            error.code,
            "this message is refused",
            source_did=envelope.destination_did,
            destination_did=envelope.source_did,
            original_type="message",
            original_id=envelope.message_id,
            wall_now=wall_now,
        )
        raise error

    def _open(
        self, channel: _Channel, envelope: Envelope, *, now: float, wall_now: datetime
    ) -> None:
        opened = channel.opened
        check_envelope_dids(
            envelope, source_did=opened.peer_did, destination_did=opened.local_did
        )
        check_envelope_version(envelope, opened.frame_format.version)
        plaintext = open_envelope(channel.keys, envelope)
        # Only what decrypts is remembered, or anybody could fill the memory.
        try:
            channel.seen_ivs.check(envelope.iv)
        except PeerError as exc:
            if exc.code == ErrorCode.ENCRYPTION_KEY_EXPIRED:
                self._end(opened.channel_id, exc.detail, by_peer=False)
            raise
        frame = decode_frame(plaintext, opened.frame_format)
        missing = missing_capability(frame.protocol_type, opened.capabilities)
        if missing is not None:
            self._ignore(channel, missing, now=now, wall_now=wall_now)
            return
        if frame.protocol_type is ProtocolType.META and self._closes(channel, frame):
            return
        self._output.tell(FrameReceived(opened.channel_id, frame, envelope.message_id))

    def _ignore(
        self, channel: _Channel, missing: str, *, now: float, wall_now: datetime
    ) -> None:
        """Drop a frame that needs a capability of both sides; too many end it all."""
        channel_id = channel.opened.channel_id
        too_many = channel.unagreed.add()
        self._output.tell(FrameIgnored(channel_id, missing, channel.unagreed.count))
        if too_many:
            self.close_channel(
                channel_id,
                ErrorCode.NOT_ALLOWED,
                f"{channel.unagreed.count} frames that need {missing}, which not both "
                "sides listed",
                now=now,
                wall_now=wall_now,
            )

    def _closes(self, channel: _Channel, frame: Frame) -> bool:
        """End the channel if the frame is the extension's `channelClose`."""
        if EXTENSION_CLOSE not in channel.opened.own_meta.extensions:
            return False
        try:
            message = parse_meta(frame.data)
        except MessageError:
            return False
        if not isinstance(message, ChannelClose):
            return False
        self._end(channel.opened.channel_id, message.reason[:200], by_peer=True)
        return True
