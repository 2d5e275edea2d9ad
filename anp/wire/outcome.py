"""The limits of a handshake, and the events that it hands to its shell.

Events are named tuples: a frozen dataclass takes five times as long to be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from anp.errors import ConfigError, ErrorCode
from anp.wire.frames import FORMATS, FrameFormat
from anp.wire.keys import SessionKeys
from anp.wire.meta_protocol import META_PROTOCOL_VERSIONS, MetaProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeConfig:
    """Limits of one handshake, and the versions we speak."""

    timeout: float = 10.0
    "Seconds from the first message to `HandshakeCompleted` (WIRE §1)."

    key_lifetime: int = 864_000
    "Seconds a key is offered for; the shorter offer counts (WIRE row 16)."

    max_message_size: int = 64 * 1024
    "Largest handshake message accepted, in bytes (WIRE row 34)."

    versions: tuple[str, ...] = META_PROTOCOL_VERSIONS
    "Versions of the meta-protocol; the highest is offered (ANP-80, ANP-Q15)."

    formats: tuple[FrameFormat, ...] = FORMATS
    "Versions of the message format, each with its header (ANP-15)."

    def __post_init__(self) -> None:
        """Refuse limits that no handshake could meet."""
        for name in ("timeout", "key_lifetime", "max_message_size"):
            value = getattr(self, name)
            if value <= 0:
                raise ConfigError(f"handshake.{name} must be > 0, got {value}")
        for name in ("versions", "formats"):
            if not getattr(self, name):
                raise ConfigError(f"handshake.{name} must name at least one version")


class NeedKeyCheck(NamedTuple):
    """The hello fits the key inside it; ask a resolver if the DID owns that key.

    Answer with `key_checked`.
    """

    did: str
    "The peer's DID."

    key_id: str
    "`verificationMethod.id`: the DID, `#` and a name."

    public_key: bytes
    "65 bytes, uncompressed."


class NeedHelloReply(NamedTuple):
    """Responder only: `answer` with what to confirm, or `refuse` (ANP-86, ANP-87)."""

    peer_did: str
    "The requester, verified."

    meta: MetaProtocol
    "Its offers."


class HandshakeCompleted(NamedTuple):
    """Both sides proved that they hold the keys (WIRE row 21)."""

    keys: SessionKeys
    "The keys of the channel."

    local_did: str
    "Our DID on it."

    peer_did: str
    "The DID whose key signed the peer's hello."

    own_meta: MetaProtocol
    "Our offers or our answer, as sent."

    peer_meta: MetaProtocol
    "The peer's offers or its answer."

    version: str
    "Version of the meta-protocol that is used: the highest common one (ANP-80)."

    frame_format: FrameFormat
    "Format of its frames: that of the common message version (ANP-15)."

    expires_at: float
    "When the keys stop being valid, in seconds on the `now` clock."

    finished_iv: bytes
    """Iv of the peer's `finished`. Start the channel's `IvMemory` with it: the same
    bytes sent again as a `message` would decrypt."""

    sent_iv: bytes
    "Iv of our own `finished`, which this key may not have again."


class HandshakeFailed(NamedTuple):
    """The handshake is over and gave no channel."""

    code: ErrorCode
    "Code of the wire (WIRE row 25)."

    detail: str
    "The reason, for our log."

    timed_out: bool = False
    "The peer said nothing in time."


Event = NeedKeyCheck | NeedHelloReply | HandshakeCompleted | HandshakeFailed
