"""The pure core of one link: handshakes, channels, frames and their limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from anp.channel.events import (
    ChannelEnded,
    ChannelOpened,
    ChannelRole,
    CloseLink,
    FrameReceived,
    HandshakeRefused,
    LinkEvent,
    NeedHelloAnswer,
    NeedPeerKeyCheck,
    PeerFault,
)
from anp.errors import AnpError, ErrorCode, LocalError, PeerError
from anp.wire.envelope import check_envelope_dids, open_envelope, seal
from anp.wire.frames import Frame, ProtocolType, decode_frame, encode_frame
from anp.wire.handshake import (
    HandshakeCompleted,
    HandshakeConfig,
    HandshakeFailed,
    Identity,
    Initiator,
    NeedAnswer,
    NeedKeyCheck,
    Responder,
)
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
    make_response,
    parse_message,
)
from anp.wire.replay import HelloMemory, IvMemory
from negotiation.errors import MessageError
from negotiation.messages import ChannelClose, parse_meta, render_meta

__all__ = ["EXTENSION_CLOSE", "FrameTooLarge", "LinkConfig", "LinkCore"]

EXTENSION_CLOSE = "close"
"Name of our extension that ends one channel with a meta message (DESIGN.md)."


class FrameTooLarge(AnpError):
    """A payload is larger than the peer takes; nothing was sent (WIRE row 34)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """Limits of one link."""

    handshake: HandshakeConfig = field(default_factory=HandshakeConfig)
    "Limits of each handshake."

    max_first_message: int = 64 * 1024
    "Largest message before the first channel is open, in bytes (WIRE row 34)."

    max_message: int = 1024 * 1024
    "Largest message afterwards, in bytes."

    max_payload: int = 768 * 1024
    "Largest protocol data we send in one frame, in bytes (WIRE row 34)."

    max_held_frames: int = 16
    "Envelopes held until the requester's `finished` arrives."

    max_held_bytes: int = 1024 * 1024
    "Bytes held in the same way."

    max_handshakes: int = 8
    "Handshakes under way at once that the peer began."

    max_channels: int = 64
    "Channels on one link."

    first_channel_timeout: float = 60.0
    "Seconds after which a link on which no channel was ever opened is closed."

    max_faults: int = 32
    "Faults of the peer after which the link is closed."


@dataclass(slots=True)
class _Channel:
    """One open channel."""

    opened: ChannelOpened
    keys: SessionKeys
    seen_ivs: IvMemory


@dataclass(slots=True)
class _Accepting:
    """A handshake the peer began, with what arrived too early for it."""

    responder: Responder
    hello: SourceHello
    held: list[Envelope] = field(default_factory=list)
    held_bytes: int = 0


@dataclass(slots=True)
class _Facts:
    """What a handshake has told so far."""

    meta: MetaProtocol
    public_key: bytes = b""


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
        self._identity_for = identity_for
        self._hellos = hellos
        self._random_bytes = random_bytes
        self._dialing: dict[str, Initiator] = {}
        self._accepting: dict[str, _Accepting] = {}
        self._facts: dict[str, _Facts] = {}
        self._channels: dict[str, _Channel] = {}
        self._ever_open = False
        self._faults = 0
        self._outgoing: list[str] = []
        self._events: deque[LinkEvent] = deque()

    @property
    def channels(self) -> frozenset[str]:
        """Ids of the open channels."""
        return frozenset(self._channels)

    @property
    def busy(self) -> bool:
        """Whether a channel is open or a handshake is under way."""
        return bool(self._channels or self._dialing or self._accepting)

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
        initiator = Initiator(
            self._config.handshake,
            identity=identity,
            peer_did=peer_did,
            meta=meta,
            now=now,
            wall_now=wall_now,
            random_bytes=self._random_bytes,
        )
        self._dialing[initiator.session_id] = initiator
        self._facts[initiator.session_id] = _Facts(meta)
        self._pump(initiator.session_id, now=now, wall_now=wall_now)
        return initiator.session_id

    def key_checked(
        self,
        session_id: str,
        error: PeerError | None,
        *,
        now: float,
        wall_now: datetime,
    ) -> None:
        """Say whether the peer's DID owns its key; see `NeedPeerKeyCheck`."""
        handshake = self._handshake(session_id)
        if handshake is None:
            return
        if error is None:
            handshake.key_checked(None, now=now, wall_now=wall_now)
        else:
            handshake.key_checked(
                error.detail, now=now, wall_now=wall_now, code=error.code
            )
        self._pump(session_id, now=now, wall_now=wall_now)

    def answer_hello(
        self, session_id: str, meta: MetaProtocol, *, now: float, wall_now: datetime
    ) -> None:
        """Accept a hello; see `NeedHelloAnswer`."""
        accepting = self._accepting.get(session_id)
        if accepting is None:
            return
        self._facts[session_id].meta = meta
        accepting.responder.answer(meta, now=now, wall_now=wall_now)
        self._pump(session_id, now=now, wall_now=wall_now)

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
        accepting = self._accepting.get(session_id)
        if accepting is None:
            return
        accepting.responder.refuse(code, detail, now=now, wall_now=wall_now)
        self._pump(session_id, now=now, wall_now=wall_now)

    def abandon(self, session_id: str) -> None:
        """Forget a handshake nobody waits for any more."""
        self._forget(session_id)

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
            self._fault(
                ErrorCode.NOT_ALLOWED, f"message of {size} bytes, limit {limit}"
            )
            self._events.append(CloseLink(1009, "message too big"))
            return
        try:
            message = parse_message(text, max_size=limit)
            self._route(message, size, now=now, wall_now=wall_now)
        except PeerError as exc:
            self._fault(exc.code, exc.detail)

    def send_frame(
        self, channel_id: str, frame: Frame, *, now: float, wall_now: datetime
    ) -> str:
        """Encrypt one frame for a channel and return the envelope's message id.

        Raises:
            LocalError: The channel is not open (any more).
            FrameTooLarge: The protocol data is over `max_payload`.
        """
        channel = self._channels.get(channel_id)
        if channel is None:
            raise LocalError(f"no channel {channel_id}")
        if len(frame.data) > self._config.max_payload:
            raise FrameTooLarge(
                f"too_large: {len(frame.data)} bytes of protocol data, "
                f"the peer takes {self._config.max_payload}"
            )
        opened = channel.opened
        message_id = self._random_bytes(16).hex()
        self._outgoing.append(
            seal(
                channel.keys,
                encode_frame(frame),
                source_did=opened.local_did,
                destination_did=opened.peer_did,
                message_id=message_id,
                iv=self._random_bytes(12),
                timestamp=wall_now,
            )
        )
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
        if EXTENSION_CLOSE in opened.own_meta.extensions and (
            EXTENSION_CLOSE in opened.peer_meta.extensions
        ):
            close = render_meta(ChannelClose(code=int(code), reason=reason))
            self.send_frame(
                channel_id, Frame(ProtocolType.META, close), now=now, wall_now=wall_now
            )
        else:
            self._respond(
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
        for session_id in [*self._dialing, *self._accepting]:
            self._forget(session_id)
            self._events.append(
                HandshakeRefused(session_id, ErrorCode.NOT_ALLOWED, reason, False)
            )
        for channel_id in list(self._channels):
            self._end(channel_id, reason, by_peer=False)

    def messages_to_send(self) -> list[str]:
        """Return the messages to send now, in order, and forget them."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def next_event(self) -> LinkEvent | None:
        """Return the oldest event not yet returned, or None."""
        return self._events.popleft() if self._events else None

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        due = [channel.opened.expires_at for channel in self._channels.values()]
        if not self._ever_open:
            due.append(self._must_open_by)
        for handshake in self._handshakes():
            timer = handshake.get_timer()
            if timer is not None:
                due.append(timer)
        return min(due, default=None)

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """Fail handshakes that took too long and end channels whose key expired."""
        for session_id in [*self._dialing, *self._accepting]:
            handshake = self._handshake(session_id)
            if handshake is not None:
                handshake.handle_timer(now=now)
                self._pump(session_id, now=now, wall_now=wall_now)
        for channel_id, channel in list(self._channels.items()):
            if now >= channel.opened.expires_at:
                self._end(channel_id, "the key expired", by_peer=False)
        if not self._ever_open and now >= self._must_open_by:
            self._must_open_by = float("inf")
            self._events.append(CloseLink(1008, "no channel was opened"))

    def _handshakes(self) -> list[Initiator | Responder]:
        return [
            *self._dialing.values(),
            *(a.responder for a in self._accepting.values()),
        ]

    def _handshake(self, session_id: str) -> Initiator | Responder | None:
        if session_id in self._dialing:
            return self._dialing[session_id]
        accepting = self._accepting.get(session_id)
        return accepting.responder if accepting else None

    def _forget(self, session_id: str) -> None:
        self._dialing.pop(session_id, None)
        self._accepting.pop(session_id, None)
        self._facts.pop(session_id, None)

    def _end(self, channel_id: str, reason: str, *, by_peer: bool) -> None:
        del self._channels[channel_id]
        self._events.append(ChannelEnded(channel_id, reason, by_peer))

    def _fault(self, code: ErrorCode, detail: str) -> None:
        self._faults += 1
        self._events.append(PeerFault(code, detail))
        if self._faults == self._config.max_faults:
            self._events.append(CloseLink(1008, "too many faults"))

    def _respond(
        self,
        code: ErrorCode,
        detail: str,
        *,
        source_did: str,
        destination_did: str,
        original_type: str,
        original_id: str,
        wall_now: datetime,
    ) -> None:
        self._outgoing.append(
            make_response(
                code,
                detail,
                source_did=source_did,
                destination_did=destination_did,
                original_type=original_type,
                original_message_id=original_id,
                message_id=self._random_bytes(16).hex(),
                timestamp=wall_now,
            )
        )

    def _route(
        self, message: Message, size: int, *, now: float, wall_now: datetime
    ) -> None:
        match message:
            case Heartbeat(message="ping"):
                self._outgoing.append(make_pong(message, timestamp=wall_now))
            case Heartbeat() | Register():
                # A pong we did not ask for and a router's registration change nothing
                # here (WIRE rows 31, 32).
                return
            case SourceHello():
                self._receive_hello(message, now=now, wall_now=wall_now)
            case DestinationHello() | Finished() | Response():
                self._receive_handshake(message, now=now, wall_now=wall_now)
            case Envelope():
                self._receive_envelope(message, size, now=now, wall_now=wall_now)

    def _receive_hello(
        self, hello: SourceHello, *, now: float, wall_now: datetime
    ) -> None:
        identity = self._identity_for(hello.destination_did)
        refusal: PeerError | None = None
        if identity is None:
            refusal = PeerError(
                ErrorCode.NOT_ALLOWED, f"hello to {hello.destination_did[:200]!r}"
            )
        elif hello.session_id in self._dialing or hello.session_id in self._accepting:
            refusal = PeerError(ErrorCode.NOT_ALLOWED, "session id is in use")
        elif (
            len(self._accepting) >= self._config.max_handshakes
            or len(self._channels) >= self._config.max_channels
        ):
            refusal = PeerError(ErrorCode.NOT_ALLOWED, "too many channels on this link")
        if refusal is not None or identity is None:
            assert refusal is not None
            self._respond(
                refusal.code,
                "this hello is refused",
                source_did=hello.destination_did,
                destination_did=hello.source_did,
                original_type="sourceHello",
                original_id=hello.message_id,
                wall_now=wall_now,
            )
            raise refusal
        responder = Responder(
            self._config.handshake,
            identity=identity,
            hello=hello,
            now=now,
            wall_now=wall_now,
            random_bytes=self._random_bytes,
        )
        self._accepting[hello.session_id] = _Accepting(responder, hello)
        self._facts[hello.session_id] = _Facts(MetaProtocol.from_json(None))
        self._pump(hello.session_id, now=now, wall_now=wall_now)

    def _receive_handshake(
        self,
        message: DestinationHello | Finished | Response,
        *,
        now: float,
        wall_now: datetime,
    ) -> None:
        if isinstance(message, Response):
            for session_id, initiator in self._dialing.items():
                if initiator.is_refused_by(message):
                    self._forget(session_id)
                    code = message.code
                    self._events.append(
                        HandshakeRefused(session_id, code, message.detail[:200], True)
                    )
                    return
            # Not authenticated: of an open channel it proves nothing.
            raise PeerError(
                ErrorCode.NOT_ALLOWED,
                f"response code={int(message.code)} {message.detail[:200]!r}",
            )
        handshake = self._handshake(message.session_id)
        if handshake is None:
            raise PeerError(ErrorCode.NOT_ALLOWED, "message of an unknown session")
        handshake.receive(message, now=now, wall_now=wall_now)
        self._pump(message.session_id, now=now, wall_now=wall_now)

    def _receive_envelope(
        self, envelope: Envelope, size: int, *, now: float, wall_now: datetime
    ) -> None:
        channel = self._channels.get(envelope.secret_key_id)
        if channel is None:
            if self._hold(envelope, size):
                return
            error = PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "unknown key id")
        elif now >= channel.opened.expires_at:
            error = PeerError(ErrorCode.DECRYPTION_KEY_EXPIRED, "the key expired")
            self._end(envelope.secret_key_id, "the key expired", by_peer=False)
        else:
            try:
                self._open(channel, envelope)
                return
            except PeerError as exc:
                error = exc
        self._respond(
            error.code,
            "this message is refused",
            source_did=envelope.destination_did,
            destination_did=envelope.source_did,
            original_type="message",
            original_id=envelope.message_id,
            wall_now=wall_now,
        )
        raise error

    def _open(self, channel: _Channel, envelope: Envelope) -> None:
        opened = channel.opened
        check_envelope_dids(
            envelope, source_did=opened.peer_did, destination_did=opened.local_did
        )
        plaintext = open_envelope(channel.keys, envelope)
        # Only what decrypts is remembered, or anybody could fill the memory.
        try:
            channel.seen_ivs.check(envelope.iv)
        except PeerError as exc:
            if exc.code == ErrorCode.ENCRYPTION_KEY_EXPIRED:
                self._end(opened.channel_id, exc.detail, by_peer=False)
            raise
        frame = decode_frame(plaintext)
        if frame.protocol_type is ProtocolType.META and self._closes(channel, frame):
            return
        self._events.append(
            FrameReceived(opened.channel_id, frame, envelope.message_id)
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

    def _hold(self, envelope: Envelope, size: int) -> bool:
        """Keep an envelope that came before the requester's `finished`."""
        for accepting in self._accepting.values():
            if accepting.responder.secret_key_id == envelope.secret_key_id:
                if (
                    len(accepting.held) >= self._config.max_held_frames
                    or accepting.held_bytes + size > self._config.max_held_bytes
                ):
                    return False
                accepting.held.append(envelope)
                accepting.held_bytes += size
                return True
        return False

    def _pump(self, session_id: str, *, now: float, wall_now: datetime) -> None:
        """Move what a handshake wants to say to our own queues."""
        handshake = self._handshake(session_id)
        if handshake is None:
            return
        self._outgoing += handshake.messages_to_send()
        while (event := handshake.next_event()) is not None:
            match event:
                case NeedKeyCheck(did, key_id, public_key):
                    self._facts[session_id].public_key = public_key
                    if self._refuse_repeated(session_id, now=now, wall_now=wall_now):
                        self._pump(session_id, now=now, wall_now=wall_now)
                        return
                    self._events.append(
                        NeedPeerKeyCheck(session_id, did, key_id, public_key)
                    )
                case NeedAnswer(peer_did, meta) if isinstance(handshake, Responder):
                    self._events.append(
                        NeedHelloAnswer(
                            session_id,
                            handshake.local_did,
                            peer_did,
                            self._facts[session_id].public_key,
                            meta,
                        )
                    )
                case HandshakeCompleted():
                    self._complete(session_id, event, now=now, wall_now=wall_now)
                    return
                case HandshakeFailed(code, detail, timed_out):
                    self._outgoing += handshake.messages_to_send()
                    self._forget(session_id)
                    self._events.append(
                        HandshakeRefused(
                            session_id, code, detail, False, timed_out=timed_out
                        )
                    )
                    if isinstance(handshake, Responder):
                        self._fault(code, detail)
                    return

    def _refuse_repeated(
        self, session_id: str, *, now: float, wall_now: datetime
    ) -> bool:
        """Refuse a hello that was seen before.

        Its signature is verified by now; otherwise anybody could fill the memory.
        """
        accepting = self._accepting.get(session_id)
        if accepting is None:
            return False
        try:
            self._hellos.check(accepting.hello, now=now)
        except PeerError as exc:
            accepting.responder.refuse(exc.code, exc.detail, now=now, wall_now=wall_now)
            return True
        return False

    def _complete(
        self,
        session_id: str,
        event: HandshakeCompleted,
        *,
        now: float,
        wall_now: datetime,
    ) -> None:
        facts = self._facts[session_id]
        accepting = self._accepting.get(session_id)
        self._forget(session_id)
        key_id = event.keys.secret_key_id
        if key_id in self._channels:
            raise PeerError(ErrorCode.NOT_ALLOWED, "the key id is in use on this link")
        opened = ChannelOpened(
            key_id,
            session_id,
            ChannelRole.PROVIDER if accepting else ChannelRole.REQUESTER,
            event.local_did,
            event.peer_did,
            facts.public_key,
            facts.meta,
            event.peer_meta,
            event.expires_at,
        )
        self._channels[key_id] = _Channel(
            opened, event.keys, IvMemory([event.finished_iv])
        )
        self._ever_open = True
        self._events.append(opened)
        for envelope in accepting.held if accepting else ():
            try:
                self._receive_envelope(envelope, 0, now=now, wall_now=wall_now)
            except PeerError as exc:
                self._fault(exc.code, exc.detail)
