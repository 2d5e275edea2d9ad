"""What the core of a link tells its shell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from anp.errors import ErrorCode
from anp.wire.frames import Frame, FrameFormat
from anp.wire.messages import MetaProtocol

__all__ = [
    "ChannelEnded",
    "ChannelOpened",
    "ChannelRole",
    "CloseLink",
    "FrameIgnored",
    "FrameReceived",
    "HandshakeRefused",
    "LinkEvent",
    "NeedHelloAnswer",
    "NeedPeerKeyCheck",
    "PeerFault",
]


class ChannelRole(StrEnum):
    """Which side of a channel we are; calls go from requester to provider."""

    REQUESTER = "requester"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class NeedPeerKeyCheck:
    """A hello is signed with `public_key`; does `did` own that key?"""

    session_id: str
    "The handshake that waits."

    did: str
    "The DID the peer claims."

    key_id: str
    "Id of the verification method in its hello."

    public_key: bytes
    "Uncompressed point, 65 bytes."


@dataclass(frozen=True, slots=True)
class NeedHelloAnswer:
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
    "What it offers."


@dataclass(frozen=True, slots=True)
class ChannelOpened:
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
    "What we offered or answered."

    peer_meta: MetaProtocol
    "What the peer offered or answered."

    version: str
    "Version of the meta-protocol that is used: the highest common one (ANP-80)."

    frame_format: FrameFormat
    "How its frames look (ANP-15)."

    expires_at: float
    "When the key stops being valid, in seconds on the `now` clock."

    @property
    def capabilities(self) -> frozenset[str]:
        """Optional capabilities that both sides listed (ANP-81)."""
        return self.own_meta.common_capabilities(self.peer_meta)

    @property
    def extensions(self) -> frozenset[str]:
        """Extensions that both sides listed."""
        return self.own_meta.common_extensions(self.peer_meta)


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


@dataclass(frozen=True, slots=True)
class FrameReceived:
    """A frame came in on a channel."""

    channel_id: str
    "Which channel."

    frame: Frame
    "The decrypted frame."

    message_id: str
    "Id of the envelope it came in."


@dataclass(frozen=True, slots=True)
class FrameIgnored:
    """A frame came in whose capability not both sides listed (ANP-81, ANP-Q17)."""

    channel_id: str
    "Which channel."

    capability: str
    "What it would have needed."

    count: int
    "How many there were on this channel by now, with this one."


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """A channel is gone; nothing more is sent or decoded on it."""

    channel_id: str
    "Which channel."

    reason: str
    "In words; a peer's text is cut and quoted."

    by_peer: bool
    "The peer closed it."


@dataclass(frozen=True, slots=True)
class PeerFault:
    """The peer did something wrong; count it and write one line."""

    code: ErrorCode
    "Code of the wire."

    detail: str
    "What was wrong."


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
    | PeerFault
    | CloseLink
)
