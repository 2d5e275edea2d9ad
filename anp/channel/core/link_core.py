"""The pure core of one link: its channels, their frames and what they may be."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import replace

from anp.channel.core.events import (
    ChannelProved,
    ChannelRole,
    CloseLink,
    FrameIgnored,
    FrameReceived,
    HandshakeRefused,
    LinkOutput,
    NeedClaim,
    RenewalDue,
    frame_received,
)
from anp.channel.core.handshakes import Handshakes
from anp.channel.core.kept_keys import KeptKeys
from anp.channel.core.limits import KEY_EXPIRED, LinkConfig
from anp.channel.core.traffic import (
    EXTENSION_CLOSE,
    IDLE,
    Before,
    Crossed,
    FrameOverLimit,
    OpenChannel,
    close_frame,
    key_id_in,
    missing_capability,
    reason_of_close,
)
from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import Envelope
from anp.wire.envelopes import read_envelope
from anp.wire.frames import Frame, ProtocolType
from anp.wire.hellos import read_handshake
from anp.wire.messages import (
    DestinationHello,
    Finished,
    Heartbeat,
    Message,
    Register,
    Response,
    SourceHello,
    UnreadableMessage,
    make_pong,
    parse_message,
)
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.proof import Identity
from anp.wire.replay import HelloMemory, counter_of
from anp.wire.side import MakeKey


class LinkCore:
    """Everything a link decides, for channels of both directions (WIRE).

    After each call send what `messages_to_send` returns, act on every `next_event`,
    and re-arm `get_timer`. The shell reads `now` anew for each call.

    Args:
        identity_for: Our identity for a DID a peer addressed, or None.
        hellos: Memory of hellos, shared by all links of the daemon.
        make_key: Makes the key of a handshake; None makes it of random bytes.
    """

    def __init__(
        self,
        config: LinkConfig,
        *,
        identity_for: Callable[[str], Identity | None],
        hellos: HelloMemory,
        random_bytes: Callable[[int], bytes],
        now: float,
        make_key: MakeKey | None = None,
    ) -> None:
        self._config = config
        self._must_open_by = now + config.first_channel_timeout
        self._random_bytes = random_bytes
        self._output = LinkOutput(config.max_faults, random_bytes)
        # All three are asked for with every message.
        self.messages_to_send = self._output.messages_to_send
        self.next_event = self._output.next_event
        self.told: Sized = self._output.told
        "Empty when `next_event` has nothing to return."
        self._handshakes = Handshakes(
            config,
            self._output,
            identity_for=identity_for,
            hellos=hellos,
            random_bytes=random_bytes,
            make_key=make_key,
        )
        self._channels: dict[str, OpenChannel] = {}
        self.keys = KeptKeys(config, self._output, self._channels)
        self._crossed = Crossed()
        self._ever_open = False
        self._lost = False

    @property
    def channels(self) -> frozenset[str]:
        """Ids of the open channels."""
        return frozenset(self._channels)

    @property
    def busy(self) -> bool:
        """True while a channel is open or a handshake is under way."""
        return bool(self._channels) or self._handshakes.under_way

    def open_channel(
        self, identity: Identity, peer_did: str, meta: MetaProtocol, *, now: Moment
    ) -> str:
        """Start a handshake as requester and return its session id."""
        return self._handshakes.dial(identity, peer_did, meta, now=now)

    def key_checked(
        self, session_id: str, error: PeerError | None, *, now: Moment
    ) -> None:
        """Say whether the peer's DID owns its key; see `NeedPeerKeyCheck`."""
        self._handshakes.key_checked(session_id, error, now=now)
        self._take_completed(now=now)

    def answer_hello(self, session_id: str, meta: MetaProtocol, *, now: Moment) -> None:
        """Accept a hello; see `NeedHelloAnswer`."""
        self._handshakes.answer(session_id, meta, now=now)
        self._take_completed(now=now)

    def refuse_hello(
        self, session_id: str, code: ErrorCode, detail: str, *, now: Moment
    ) -> None:
        """Refuse a hello with `code`."""
        self._handshakes.refuse(session_id, code, detail, now=now)

    def abandon(self, session_id: str) -> None:
        """Forget a handshake nobody waits for any more."""
        self._handshakes.abandon(session_id)

    def receive_envelope(self, data: bytes, *, now: Moment) -> bool:
        """Handle one WebSocket message if it is an envelope in its usual form.

        Returns:
            False: It is not, or too large; give it to `receive_text`.
        """
        size = len(data)
        is_usual = self._ever_open and size <= self._config.max_message
        if not is_usual and size > self.max_text:
            return False
        try:
            envelope = read_envelope(data)
            if envelope is None:
                return False
            self._receive_envelope(envelope, size, now=now)
        except PeerError as exc:
            self._fault(exc, now=now)
        return True

    def receive_text(self, text: str | bytes, *, now: Moment) -> None:
        """Handle one WebSocket message. What is wrong with it becomes `PeerFault`."""
        data = text.encode(errors="replace") if isinstance(text, str) else text
        size, limit = len(data), self._config.max_message
        if not self._ever_open or size > limit:
            limit = self.max_text
        if size > limit:
            self._too_large(text, f"message of {size} bytes, limit {limit}", now=now)
        elif not self.receive_envelope(data, now=now):
            try:
                message = read_handshake(text) or parse_message(text, max_size=limit)
                self._route(message, size, now=now)
            except PeerError as exc:
                self._fault(exc, now=now)

    def _fault(self, error: PeerError, *, now: Moment) -> None:
        if isinstance(error, UnreadableMessage):
            self._handshakes.answer_unreadable(error, now=now)
        self._output.fault(error.code, error.detail)

    def _too_large(self, text: str | bytes, detail: str, *, now: Moment) -> None:
        """End the channel of a message that is too large, or a link without any."""
        self._output.fault(ErrorCode.NOT_ALLOWED, detail)
        if not self._ever_open:
            self._output.tell(CloseLink(1009, "message too big"))
            return
        key_id = key_id_in(text)
        if key_id is not None:
            self.close_channel(key_id, ErrorCode.NOT_ALLOWED, detail, now=now)

    @property
    def waits(self) -> bool:
        """True while something that was received waits for the shell's answer."""
        return bool(self.keys.lookups) or any(c.held for c in self._channels.values())

    def may_send(self, channel_id: str, frame: Frame) -> Before | None:
        """Return what has to happen before `send_frame`, or None."""
        channel = self._channels.get(channel_id)
        return None if channel is None else channel.may_send(frame)

    def send_frame(
        self,
        channel_id: str,
        frame: Frame,
        *,
        now: Moment,
        message_id: str | None = None,
    ) -> str:
        """Encrypt one frame for a channel and return the envelope's message id.

        Args:
            message_id: Id that the envelope is to have, never used before; None makes
                one.

        Raises:
            LocalError: The channel is not open (any more); see also `OpenChannel.seal`.
        """
        channel = self._channels.get(channel_id)
        if channel is None:
            raise LocalError(f"no channel {channel_id}")
        message_id = message_id or self._random_bytes(16).hex()
        self._output.say((channel.seal(frame, message_id=message_id, now=now),))
        if channel.renewal_due:
            self._renew(channel)
        return message_id

    def close_channel(
        self, channel_id: str, code: ErrorCode, reason: str, *, now: Moment
    ) -> None:
        """End a channel and tell the peer, in our extension or with a `response`."""
        channel = self._channels.get(channel_id)
        if channel is None:
            return
        opened = channel.opened
        # A counter that is not reserved is not used, not even for the last frame.
        if EXTENSION_CLOSE in opened.extensions and not channel.needs_block:
            close = close_frame(int(code), reason)
            self.send_frame(channel_id, close, now=now)
            self._crossed.closed(channel_id)
        else:
            self._output.respond(
                ErrorCode.ENCRYPTION_KEY_EXPIRED,
                reason,
                source_did=opened.local_did,
                destination_did=opened.peer_did,
                original_type="message",
                original_id="",
                now=now,
            )
        self._end(channel_id, reason, by_peer=False)

    def limit_channels(self, most: int) -> None:
        """Take another limit of channels; those that are open stay."""
        self._config = replace(self._config, max_channels=most)
        self._handshakes.limits = self.keys.limits = self._config

    def link_lost(self, reason: str) -> None:
        """End everything: a channel ends with its link."""
        self._lost = True
        self._handshakes.link_lost(reason)
        self.keys.lookups.clear()
        for channel_id in list(self._channels):
            self.leave_channel(channel_id, reason)

    # Keys that are kept; see `kept_keys`.

    def claimed(self, channel_id: str, last: int | None, *, now: Moment) -> None:
        """Answer `NeedClaim`: counters up to `last` are ours; None: they are not."""
        channel = self._channels.get(channel_id)
        if channel is None:
            return
        if last is None:
            reason = "its key was taken up elsewhere, or cannot be kept safe"
            self.leave_channel(channel_id, reason)
            return
        channel.claimed = last
        self._receive_held(channel.held, now=now)

    def resume(self, channel: OpenChannel, *, now: Moment) -> bool:
        """Take a key up again, ours or the one of `NeedKey`.

        False: it is in use here, or the link was lost meanwhile.

        As provider the first message has been claimed by now.
        """
        key_id = channel.opened.channel_id
        if self._lost or key_id in self._channels:
            return False
        self._channels[key_id] = channel
        self._ever_open = True
        self._output.tell(channel.opened)
        self._receive_held(self.keys.lookups.pop(key_id, []), now=now)
        return True

    def refuse_key(self, channel_id: str, error: PeerError, *, now: Moment) -> None:
        """Answer `NeedKey`: the key is not taken up."""
        for envelope in self.keys.lookups.pop(channel_id, []):
            self._refuse(envelope, error, now=now)
            self._output.fault(error.code, error.detail)

    def leave_channel(
        self, channel_id: str, reason: str, *, unprocessed: bool = False
    ) -> None:
        """End a channel here without telling the peer; a kept key stays kept.

        Args:
            unprocessed: The peer proved that it acted on nothing we sent here.
        """
        channel = self._channels.pop(channel_id, None)
        if channel is not None:
            self._output.ended(
                channel_id,
                reason,
                by_peer=False,
                kept=channel.kept and not unprocessed,
                unprocessed=unprocessed,
            )

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        due = [channel.due for channel in self._channels.values()]
        if not self._ever_open:
            due.append(self._must_open_by)
        return min([*due, *self._handshakes.deadlines.values()], default=None)

    def handle_timer(self, *, now: Moment) -> None:
        """Fail handshakes that took too long and end channels whose key expired."""
        self._handshakes.handle_timer(now=now)
        for channel_id, channel in list(self._channels.items()):
            if now.monotonic >= channel.opened.expires_at:
                self._end(channel_id, KEY_EXPIRED, by_peer=False)
            elif channel.renew_at is not None and now.monotonic >= channel.renew_at:
                self._renew(channel)
        if not self._ever_open and now.monotonic >= self._must_open_by:
            self._must_open_by = float("inf")
            self._output.tell(CloseLink(1008, "no channel was opened"))

    def max_payload(self, channel_id: str) -> int:
        """Return how much protocol data one frame of a channel may have."""
        channel = self._channels.get(channel_id)
        return self._config.max_payload if channel is None else channel.max_payload

    @property
    def hard_limit(self) -> int:
        """Bytes over which a message ends the link, and not its channel alone."""
        return 2 * self.max_text if self._ever_open else self.max_text

    @property
    def max_text(self) -> int:
        """Bytes that the next text frame of the peer may have (WIRE row 34)."""
        if not self._ever_open:
            return self._config.max_first_message
        agreed = (channel.max_text for channel in self._channels.values())
        return max([self._config.max_message, *agreed])

    def _end(
        self, channel_id: str, reason: str, *, by_peer: bool, unprocessed: bool = False
    ) -> None:
        del self._channels[channel_id]
        self._output.ended(channel_id, reason, by_peer=by_peer, unprocessed=unprocessed)

    def _route(self, message: Message, size: int, *, now: Moment) -> None:
        match message:
            case Envelope():
                self._receive_envelope(message, size, now=now)
            case Heartbeat(message="ping"):
                self._output.say([make_pong(message, timestamp=now.utc)])
            case Heartbeat() | Register():
                # A pong we did not ask for and a router's registration change nothing
                # here (WIRE rows 31, 32).
                return
            case SourceHello():
                self._handshakes.receive_hello(
                    message, channels=len(self._channels), now=now
                )
            case Response() if self.keys.is_refusal(message):
                return
            case DestinationHello() | Finished() | Response():
                self._handshakes.receive(message, now=now)
                self._take_completed(now=now)

    def _take_completed(self, *, now: Moment) -> None:
        while (channel := self._handshakes.next_completed()) is not None:
            self._open_channel(channel, now=now)

    def _open_channel(self, channel: OpenChannel, *, now: Moment) -> None:
        key_id, session_id = channel.opened.channel_id, channel.opened.session_id
        if key_id in self._channels:
            reason = "the key id is in use on this link"
            self._output.tell(
                HandshakeRefused(session_id, ErrorCode.NOT_ALLOWED, reason, False)
            )
            self._output.fault(ErrorCode.NOT_ALLOWED, reason)
            return
        self._channels[key_id] = channel
        self._ever_open = True
        self._output.tell(channel.opened)
        self._receive_held(channel.held, now=now)

    def _receive_held(self, held: list[Envelope], *, now: Moment) -> None:
        waiting, held[:] = list(held), []
        for envelope in waiting:
            try:
                self._receive_envelope(envelope, 0, now=now)
            except PeerError as exc:
                self._output.fault(exc.code, exc.detail)

    def _receive_envelope(self, envelope: Envelope, size: int, *, now: Moment) -> None:
        key_id = envelope.head.secret_key_id
        channel = self._channels.get(key_id)
        if channel is None:
            if self._handshakes.hold(envelope, size) or self._crossed.take(key_id):
                return
            if self.keys.look_up(envelope):
                return
            error = PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "unknown key id")
        elif now.monotonic >= channel.opened.expires_at:
            error = PeerError(ErrorCode.DECRYPTION_KEY_EXPIRED, KEY_EXPIRED)
            self._end(key_id, KEY_EXPIRED, by_peer=False)
        else:
            try:
                self._open(channel, envelope, now=now)
                return
            except PeerError as exc:
                error = exc
        self._refuse(envelope, error, now=now)
        raise error

    def _refuse(self, envelope: Envelope, error: PeerError, *, now: Moment) -> None:
        self._output.respond(
            error.code,
            "this message is refused",
            source_did=envelope.destination_did,
            destination_did=envelope.source_did,
            original_type="message",
            original_id=envelope.message_id,
            now=now,
        )

    def _renew(self, channel: OpenChannel) -> None:
        channel.renew_at = None
        self._output.tell(RenewalDue(channel.opened.channel_id))

    def _open(self, channel: OpenChannel, envelope: Envelope, *, now: Moment) -> None:
        opened = channel.opened
        if channel.held:
            # Behind one that waits for its claim; the shell reads nothing meanwhile.
            channel.held.append(envelope)
            return
        try:
            frame = channel.open(envelope)
        except FrameOverLimit as exc:
            self._output.fault(exc.code, exc.detail)
            self.close_channel(opened.channel_id, exc.code, exc.detail, now=now)
            return
        except PeerError as exc:
            if exc.code == ErrorCode.ENCRYPTION_KEY_EXPIRED:
                self._end(opened.channel_id, exc.detail, by_peer=False)
            raise
        if frame is None:
            channel.held.append(envelope)
            self._output.tell(NeedClaim(opened.channel_id, counter_of(envelope.iv)))
            return
        if not channel.proved:
            channel.proved = True
            channel.sent_ids.clear()
            self._output.tell(ChannelProved(opened.channel_id))
        if channel.renewal_due:
            self._renew(channel)
        if frame.protocol_type is ProtocolType.APPLICATION:
            # Neither an optional type nor a word about the channel itself.
            self._output.tell(
                frame_received((opened.channel_id, frame, envelope.message_id))
            )
        else:
            self._heard(channel, frame, envelope.message_id, now=now)

    def _heard(
        self, channel: OpenChannel, frame: Frame, message_id: str, *, now: Moment
    ) -> None:
        opened = channel.opened
        missing = missing_capability(frame.protocol_type, channel.capabilities)
        if missing is not None:
            self._ignore(channel, missing, now=now)
            return
        reason = reason_of_close(frame, channel.opened.own_meta)
        if reason is not None:
            # A provider that was idle has not acted on a request that crossed this.
            unprocessed = reason == IDLE and opened.role is ChannelRole.REQUESTER
            self._end(opened.channel_id, reason, by_peer=True, unprocessed=unprocessed)
            return
        self._output.tell(FrameReceived(opened.channel_id, frame, message_id))

    def _ignore(self, channel: OpenChannel, missing: str, *, now: Moment) -> None:
        """Drop a frame that needs a capability of both sides; too many end it all."""
        channel_id = channel.opened.channel_id
        channel.unagreed += 1
        self._output.tell(FrameIgnored(channel_id, missing, channel.unagreed))
        if channel.unagreed >= self._config.max_unagreed_frames:
            self.close_channel(
                channel_id,
                ErrorCode.NOT_ALLOWED,
                f"{channel.unagreed} frames that need {missing}, which not both "
                "sides listed",
                now=now,
            )
