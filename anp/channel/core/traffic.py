"""One open channel: its key, the frames under it, and its end. Pure.

Frames of the optional protocol types need a capability of both sides (ANP-81). The
extension `close`, which is ours, ends a channel with a last meta message (DESIGN.md).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from anp.channel.core.events import ChannelOpened, ChannelRole
from anp.channel.core.limits import LinkConfig
from anp.errors import AnpError, ErrorCode, LocalError, PeerError
from anp.wire.encrypted import IV_SIZE, Envelope, EnvelopeHead, OpenData
from anp.wire.envelopes import (
    EXTENSION_BINARY,
    LONG,
    EnvelopeWriter,
    binary_key_id,
    is_binary,
)
from anp.wire.frames import (
    Frame,
    ProtocolType,
    check_envelope_dids,
    check_envelope_version,
    decode_frame,
    encode_frame,
    frame_header,
    open_long,
    open_sealed,
)
from anp.wire.keys import SessionKeys
from anp.wire.meta_protocol import Capability, MetaProtocol, plaintext_size, text_size
from anp.wire.moment import Moment
from anp.wire.replay import (
    EXTENSION_COUNTER,
    SALT_SIZE,
    IvMemory,
    ReplayWindow,
    SendCounter,
    block_end,
    counter_of,
)
from negotiation.errors import MessageError
from negotiation.messages import ChannelClose, parse_meta, render_meta

NEEDED: Mapping[ProtocolType, Capability] = MappingProxyType(
    {
        ProtocolType.NATURAL_LANGUAGE: "naturalLanguageProtocol",
        ProtocolType.VERIFICATION: "verificationProtocol",
    }
)
"The capability of each optional protocol type; the others are basic (ANP-77)."


def missing_capability(
    protocol_type: ProtocolType, common: frozenset[str]
) -> Capability | None:
    """Return the capability that a frame needs and `common` lacks, or None.

    Args:
        common: The capabilities both sides of the channel listed.
    """
    needed = NEEDED.get(protocol_type)
    return None if needed in common else needed


def check_agreed(protocol_type: ProtocolType, common: frozenset[str]) -> None:
    """Check that we may send a frame of this type (ANP-81).

    Raises:
        LocalError: One side did not list the capability; look at
            `Channel.capabilities` first.
    """
    missing = missing_capability(protocol_type, common)
    if missing is not None:
        raise LocalError(
            f"a {protocol_type.name} frame on a channel without {missing}: both sides "
            "have to list that capability in their hellos"
        )


class Before(Enum):
    """A step that has to come before a frame can be sent."""

    BLOCK = auto()
    "Counters have to be reserved on disk; see `KeptKeys.reserved`."

    PROOF = auto()
    "The peer has to take up the key first: until then it reads short messages only."


EXTENSION_CLOSE = "close"
"Name of the extension."

IDLE = "idle"
"""Reason of a channel that is closed because nothing is under way on it.

All requests that came before were answered, and none that comes later is looked at:
what its requester still waits for was not acted on and may be sent anew.
"""

MAX_REASON = 200
"Characters of a peer's reason that are taken."


def close_frame(code: int, reason: str) -> Frame:
    """Return the last frame of a channel that we end."""
    return Frame(ProtocolType.META, render_meta(ChannelClose(code=code, reason=reason)))


def reason_of_close(frame: Frame, own_meta: MetaProtocol) -> str | None:
    """Return why the peer ends the channel with a frame, or None: it does not.

    Args:
        own_meta: What we said in the handshake; without the extension it means nothing.
    """
    if frame.protocol_type is not ProtocolType.META:
        return None
    if EXTENSION_CLOSE not in own_meta.extensions:
        return None
    try:
        message = parse_meta(frame.data)
    except MessageError:
        return None
    if not isinstance(message, ChannelClose):
        return None
    return message.reason[:MAX_REASON]


MAX_CHANNELS: Final = 64
"Channels that are remembered; the one closed longest ago goes first."

MAX_FRAMES: Final = 16
"Frames of one channel that are let go; more is no crossing."


class FrameTooLarge(AnpError):
    """A payload is larger than the peer takes; nothing was sent (WIRE row 34)."""


class FrameOverLimit(PeerError):
    """A message is larger than its channel takes, so that the channel ends."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.NOT_ALLOWED, detail)


_KEY_ID: Final = re.compile(r'"secretKeyId"\s*:\s*"([^"\\]{1,200})"')

LOOK_AT: Final = 8192
"Characters at either end of a message that is too large to be parsed."


def key_id_in(text: str | bytes) -> str | None:
    """Return the key id that a message too large to be parsed seems to name, or None.

    It is not authenticated, and good for ending that channel of the same link alone.
    """
    if isinstance(text, bytes) and is_binary(text):
        return binary_key_id(text)
    ends = text[:LOOK_AT], text[-LOOK_AT:]
    for end in ends:
        shown = end.decode(errors="replace") if isinstance(end, bytes) else end
        if (found := _KEY_ID.search(shown)) is not None:
            return found[1]
    return None


class Crossed:
    """Channels that we closed lately: what still comes on them is no fault."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, int] = OrderedDict()

    def closed(self, channel_id: str) -> None:
        """Remember a channel whose peer was told that it is closed."""
        self._left[channel_id] = MAX_FRAMES
        while len(self._left) > MAX_CHANNELS:
            self._left.popitem(last=False)

    def take(self, channel_id: str) -> bool:
        """Count a frame on a channel; return True if it may be let go."""
        left = self._left.get(channel_id, 0)
        if left:
            self._left[channel_id] = left - 1
        return left > 0


MAX_PLAIN_SENT = 2**20
"Messages sent under a key with random ivs; the receiver ends it far earlier."

MAX_UNPROVED = 1024
"Ids of messages kept until the peer proved that it still has the key."


class OpenChannel:
    """One open channel of a link: its key, and what was sent and received under it.

    Args:
        counter: Where the counters for sending go on, with the extension `counter`.
        window: What was received so far, with the same.
        seen_ivs: What was received so far, without it.
        proved: The peer has shown on this link that it holds the key.
        now: When the channel was opened or taken up.
    """

    def __init__(
        self,
        opened: ChannelOpened,
        keys: SessionKeys,
        config: LinkConfig,
        *,
        counter: SendCounter | None,
        window: ReplayWindow | None,
        seen_ivs: IvMemory | None,
        proved: bool,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> None:
        self.opened = opened
        # What both hellos agreed on is looked up once, not for each frame.
        self.capabilities = opened.capabilities
        self._max_message = opened.max_message
        self.max_text = text_size(self._max_message or 0)
        self.max_payload = (
            config.max_payload
            if self._max_message is None
            else self._max_message - opened.frame_format.header_size
        )
        self.keys = keys
        self._takes_binary = opened.shares(EXTENSION_BINARY)
        # The head of each message of a peer that names the version, as ours does.
        self._head = EnvelopeHead(
            opened.frame_format.version,
            keys.secret_key_id,
            opened.peer_did,
            opened.local_did,
        )
        self._writer = EnvelopeWriter(
            keys,
            source_did=opened.local_did,
            destination_did=opened.peer_did,
            version=opened.frame_format.version,
            binary=self._takes_binary,
        )
        # Frames that came without their capability (ANP-Q17). One is the mistake of a
        # healthy peer; a channel full of them is not.
        self.unagreed = 0
        self.proved = proved
        self.hinted = False
        self.sent_ids: set[str] = set()
        self.held: list[Envelope] = []
        self.kept = False
        self.claimed = -1
        self.first_counter = counter.next if counter else 0
        self._config = config
        self._most_messages = config.renewal.messages
        self._max_first_payload = plaintext_size(config.max_first_message)
        self._counter = counter
        self._window = window
        self._seen_ivs = seen_ivs
        self._random_bytes = random_bytes
        self._sent = 0
        self.renew_at: float | None = None
        if opened.role is ChannelRole.REQUESTER:
            began = now if opened.began is None else opened.began
            self.renew_at = config.renewal.due_at(began, opened.expires_at)

    @classmethod
    def fresh(
        cls,
        opened: ChannelOpened,
        keys: SessionKeys,
        config: LinkConfig,
        *,
        sent_iv: bytes,
        finished_iv: bytes,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> OpenChannel:
        """Return the channel of a handshake that has just succeeded.

        Args:
            sent_iv: Iv of our `finished`; it counts as used.
            finished_iv: Iv of the peer's, which must not come back.
        """
        counted = opened.shares(EXTENSION_COUNTER)
        return cls(
            opened,
            keys,
            config,
            counter=SendCounter(sent_iv[:SALT_SIZE], first=1) if counted else None,
            window=ReplayWindow(highest=0) if counted else None,
            seen_ivs=None if counted else IvMemory([finished_iv]),
            proved=True,
            random_bytes=random_bytes,
            now=now,
        )

    @classmethod
    def resumed(
        cls,
        opened: ChannelOpened,
        keys: SessionKeys,
        config: LinkConfig,
        *,
        first: int,
        end: int,
        mark: int,
        claimed: int,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> OpenChannel:
        """Return a channel whose key was kept.

        Args:
            first: First counter that is reserved for us.
            end: The one behind the last of them.
            mark: Highest counter that somebody may have accepted before.
            claimed: Highest counter that we may accept without a new claim.
        """
        channel = cls(
            opened,
            keys,
            config,
            counter=SendCounter(random_bytes(SALT_SIZE), first=first, end=end),
            window=ReplayWindow(highest=mark),
            seen_ivs=None,
            proved=opened.role is ChannelRole.PROVIDER,
            random_bytes=random_bytes,
            now=now,
        )
        channel.kept, channel.claimed = True, claimed
        return channel

    @property
    def needs_block(self) -> bool:
        """True if counters have to be reserved before anything is sent."""
        return self._counter is not None and self._counter.needs_block

    def may_send(self, frame: Frame) -> Before | None:
        """Return what has to happen before a frame is sealed, or None."""
        counter = self._counter
        if counter is not None and counter.needs_block:
            return Before.BLOCK
        if self.proved or len(frame.data) <= self._max_first_payload:
            return None
        return Before.PROOF

    @property
    def due(self) -> float:
        """When the key expires or has to be renewed, on the clock of `now`."""
        expires_at = self.opened.expires_at
        return expires_at if self.renew_at is None else min(self.renew_at, expires_at)

    @property
    def renewal_due(self) -> bool:
        """True if we are the requester and the key carried as much as it may."""
        if self.renew_at is None:
            return False
        if self._counter is not None and self._window is not None:
            most = self._most_messages
            return self._counter.next >= most or self._window.highest >= most
        most = self._config.renewal.plain_messages
        return max(self._sent, len(self._seen_ivs or ())) >= most

    def keep(self) -> tuple[int, int]:
        """Go on with reserved counters and claimed blocks only, as a kept key has to.

        Returns:
            What to store: the first counter that is not reserved, and the highest one
            received that is claimed.
        """
        if self._counter is None or self._window is None:
            raise LocalError("a key without the extension `counter` is never kept")
        self.kept = True
        self.claimed = block_end(self._window.highest)
        return self._counter.hold_to_block(), self.claimed

    def unkeep(self) -> None:
        """Go on freely: the key is in no store."""
        assert self._counter is not None
        self.kept = False
        self._counter.free()

    def reserve(self, first: int, end: int) -> None:
        """Take the counters from `first` to before `end`, which are reserved for us."""
        assert self._counter is not None
        self._counter.reserve(first, end)

    def seal(self, frame: Frame, *, message_id: str, now: Moment) -> bytes:
        """Return one frame as a `message`, binary if both listed that extension.

        Raises:
            LocalError: Not both sides listed the capability that the frame needs
                (ANP-81), or the key is used up.
            FrameTooLarge: The protocol data is over what the peer takes.
        """
        if frame.protocol_type is not ProtocolType.APPLICATION:
            check_agreed(frame.protocol_type, self.capabilities)
        if len(frame.data) > self.max_payload:
            raise FrameTooLarge(
                f"too_large: {len(frame.data)} bytes of protocol data, "
                f"the peer takes {self.max_payload}"
            )
        if self._counter is not None:
            iv = self._counter.take()
        elif self._sent >= MAX_PLAIN_SENT:
            raise LocalError("the key is used up")
        else:
            iv = self._random_bytes(IV_SIZE)
        self._sent += 1
        if not self.proved and len(self.sent_ids) < MAX_UNPROVED:
            self.sent_ids.add(message_id)
        if len(frame.data) > LONG:
            return self._writer.write_long(
                frame_header(frame, self.opened.frame_format),
                frame.data,
                message_id=message_id,
                iv=iv,
                unix_ns=now.unix_ns,
            )
        return self._writer.write(
            encode_frame(frame, self.opened.frame_format),
            message_id=message_id,
            iv=iv,
            unix_ns=now.unix_ns,
        )

    def open(self, envelope: Envelope) -> Frame | None:
        """Return the frame in an envelope, and remember that it came.

        Returns:
            None: it is good, but its counter has to be claimed first; see `claimed`.

        Raises:
            PeerError: It is not a new message under this key; `ENCRYPTION_KEY_EXPIRED`
                when the key is used up.
            FrameOverLimit: It has more bytes than both sides agreed on.
        """
        head = self._head
        if envelope.head is not head and envelope.head != head:
            check_envelope_dids(
                envelope,
                source_did=head.source_did,
                destination_did=head.destination_did,
            )
            check_envelope_version(envelope, self.opened.frame_format.version)
        data = envelope.encrypted_data
        if not isinstance(data, OpenData):
            data = data.sealed()
        if data.covered is not None and not self._takes_binary:
            raise PeerError(
                ErrorCode.NOT_ALLOWED, "a binary message, which was not agreed on"
            )
        frame, plaintext = None, b""
        if len(data.content) > LONG:
            frame, size = open_long(self.keys, data, self.opened.frame_format)
        else:
            plaintext = open_sealed(self.keys.receive_cipher, data)
            size = len(plaintext)
        # Only what decrypts is remembered, or anybody could fill the memory.
        if self._window is not None:
            counter = counter_of(data.nonce)
            if self.kept and counter > self.claimed:
                self._window.check(counter)
                return None
            self._window.add(counter)
        elif self._seen_ivs is not None:
            self._seen_ivs.check(data.nonce)
        agreed = self._max_message
        if agreed is not None and size > agreed:
            raise FrameOverLimit(f"a frame of {size} bytes, agreed were {agreed}")
        return frame or decode_frame(plaintext, self.opened.frame_format)
