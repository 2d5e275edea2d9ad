"""Events of a link's core for its shell, and the queues of events and messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from anp.errors import ErrorCode
from anp.wire.frames import Frame, FrameFormat
from anp.wire.messages import make_response
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment


class ChannelRole(StrEnum):
    """Our side of a channel; calls go from requester to provider."""

    REQUESTER = "requester"
    PROVIDER = "provider"


class NeedPeerKeyCheck(NamedTuple):
    """A hello is signed with `public_key`; does `did` own that key?"""

    session_id: str
    "The handshake that waits."

    did: str
    "The DID the peer claims."

    key_id: str
    "Id of the verification method in its hello."

    public_key: bytes
    "Uncompressed point, 65 bytes."


class NeedHelloAnswer(NamedTuple):
    """A verified peer asks for a channel; which hash or URI do we confirm?"""

    session_id: str
    "The handshake that waits."

    local_did: str
    "Under which of our DIDs it addressed us."

    peer_did: str
    "DID whose key signed the hello."

    public_key: bytes
    "The peer's key, 65 bytes."

    meta: MetaProtocol
    "Its offers."


class ChannelOpened(NamedTuple):
    """A handshake is complete on both sides."""

    channel_id: str
    "The `secretKeyId`."

    session_id: str
    "The handshake it came from."

    role: ChannelRole
    "Our side."

    local_did: str
    "Our DID on this channel."

    peer_did: str
    "The peer's DID, verified."

    public_key: bytes
    "The peer's key, 65 bytes."

    own_meta: MetaProtocol
    "Our offers, or our answer to them."

    peer_meta: MetaProtocol
    "The peer's offers, or its answer to ours."

    version: str
    "Version of the meta-protocol that is used: the highest common one (ANP-80)."

    frame_format: FrameFormat
    "Format of its frames (ANP-15)."

    expires_at: float
    "When the key stops being valid, in seconds on the `now` clock."

    key_id: str = ""
    "Id of the peer's verification method, as in its hello."

    began: float | None = None
    "When the key was made, if that is not now; seconds on the `now` clock."

    @property
    def max_message(self) -> int | None:
        """Plaintext bytes of a frame that both sides agreed on, or None."""
        return self.own_meta.common_max_message(self.peer_meta)

    @property
    def capabilities(self) -> frozenset[str]:
        """Optional capabilities that both sides listed (ANP-81)."""
        return self.own_meta.common_capabilities(self.peer_meta)

    @property
    def extensions(self) -> frozenset[str]:
        """Extensions that both sides listed."""
        return self.own_meta.common_extensions(self.peer_meta)

    def shares(self, extension: str) -> bool:
        """Say if both sides listed an extension."""
        return self.own_meta.shares(extension, self.peer_meta)


@dataclass(frozen=True, slots=True)
class HandshakeRefused:
    """A handshake ended without a channel."""

    session_id: str
    "The handshake."

    code: ErrorCode
    "Code of the wire."

    detail: str
    "For our log and our owner."

    by_peer: bool
    "The peer refused us; otherwise we refused it."

    timed_out: bool = False
    "It did not answer in time."


class FrameReceived(NamedTuple):
    """A frame came in on a channel."""

    channel_id: str

    frame: Frame
    "The decrypted frame."

    message_id: str
    "Id of the envelope it came in."


frame_received: Final = partial(tuple.__new__, FrameReceived)
"Returns the event of all fields as a tuple, in half the time of `FrameReceived`."


@dataclass(frozen=True, slots=True)
class FrameIgnored:
    """A frame came in whose capability not both sides listed (ANP-81, ANP-Q17)."""

    channel_id: str

    capability: str

    count: int
    "Number of such frames on this channel so far, with this one."


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """A channel is gone; nothing more is sent or decoded on it."""

    channel_id: str

    reason: str
    "In words; a peer's text is cut and quoted."

    by_peer: bool
    "The peer closed it."

    kept: bool = False
    "Its key was kept and may be taken up again on another link."

    unprocessed: bool = False
    "The peer proved that it acted on nothing that we sent on this link."


@dataclass(frozen=True, slots=True)
class RenewalDue:
    """Most of a key's life or messages is used; its requester is to get a new one."""

    channel_id: str


@dataclass(frozen=True, slots=True)
class NeedKey:
    """A message came under a key this link does not know; was it kept?

    Answer with `LinkCore.resume` or `refuse_key`. Until then nothing more is read.
    """

    channel_id: str
    "The `secretKeyId`."

    local_did: str
    "Whom the message is addressed to; not authenticated."

    peer_did: str
    "The sender as the message names it; not authenticated."


@dataclass(frozen=True, slots=True)
class NeedClaim:
    """A message came that may be acted on only once its counter is claimed for good.

    Answer with `LinkCore.claimed`. Until then nothing more is read.
    """

    channel_id: str

    counter: int
    "Its counter."


@dataclass(frozen=True, slots=True)
class ChannelProved:
    """The peer has shown that it holds a key we took up again."""

    channel_id: str


@dataclass(frozen=True, slots=True)
class ResumptionRefused:
    """Somebody, probably the peer, says that it does not take a key up again.

    It is not authenticated: a hint that is worth one handshake, once (WIRE row 25).
    """

    channel_id: str

    code: ErrorCode
    "Code of its refusal."


@dataclass(frozen=True, slots=True)
class LinkFault:
    """The peer did something wrong; count it and write one line."""

    code: ErrorCode
    "Code of the wire."

    detail: str
    "For our log."


@dataclass(frozen=True, slots=True)
class CloseLink:
    """The link has to be closed."""

    code: int
    "WebSocket close code."

    reason: str
    "In words."


LinkEvent = (
    NeedPeerKeyCheck
    | NeedHelloAnswer
    | ChannelOpened
    | HandshakeRefused
    | FrameReceived
    | FrameIgnored
    | ChannelEnded
    | RenewalDue
    | NeedKey
    | NeedClaim
    | ChannelProved
    | ResumptionRefused
    | LinkFault
    | CloseLink
)


class LinkOutput:
    """The messages and events of one link, and the count of the peer's faults.

    Args:
        max_faults: Faults after which the link is to be closed.
    """

    def __init__(self, max_faults: int, random_bytes: Callable[[int], bytes]) -> None:
        self._max_faults = max_faults
        self._random_bytes = random_bytes
        self._faults = 0
        self._messages: list[str | bytes] = []
        self.told: deque[LinkEvent] = deque()
        "Events not yet returned by `next_event`."
        self.tell: Callable[[LinkEvent], None] = self.told.append
        "Tells the shell."

    def say(self, messages: Iterable[str | bytes]) -> None:
        """Send messages, as they are."""
        self._messages += messages

    def ended(
        self,
        channel_id: str,
        reason: str,
        *,
        by_peer: bool,
        kept: bool = False,
        unprocessed: bool = False,
    ) -> None:
        """Tell the end of a channel."""
        self.tell(ChannelEnded(channel_id, reason, by_peer, kept, unprocessed))

    def fault(self, code: ErrorCode, detail: str) -> None:
        """Count and tell a fault of the peer; too many close the link."""
        self._faults += 1
        self.tell(LinkFault(code, detail))
        if self._faults == self._max_faults:
            self.tell(CloseLink(1008, "too many faults"))

    @property
    def closing(self) -> bool:
        """True after so many faults of the peer that the link is being closed."""
        return self._faults >= self._max_faults

    def respond(
        self,
        code: ErrorCode,
        detail: str,
        *,
        source_did: str,
        destination_did: str,
        original_type: str,
        original_id: str,
        now: Moment,
    ) -> None:
        """Send a `response` about a message (WIRE row 25)."""
        self._messages.append(
            make_response(
                code,
                detail,
                source_did=source_did,
                destination_did=destination_did,
                original_type=original_type,
                original_message_id=original_id,
                message_id=self._random_bytes(16).hex(),
                timestamp=now.utc,
            )
        )

    def messages_to_send(self) -> list[str | bytes]:
        """Return the messages to send now, in order, and forget them."""
        messages, self._messages = self._messages, []
        return messages

    def next_event(self) -> LinkEvent | None:
        """Return the oldest event not yet returned, or None."""
        return self.told.popleft() if self.told else None
