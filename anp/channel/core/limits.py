"""Limits of one link."""

from __future__ import annotations

from dataclasses import dataclass, field

from anp.channel.core.renewal import RenewalLimits
from anp.wire.handshake import HandshakeConfig
from anp.wire.sizes import MAX_PAYLOAD, OTHERS_MAX_TEXT

__all__ = ["LinkConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """Limits of one link."""

    handshake: HandshakeConfig = field(default_factory=HandshakeConfig)
    "Limits of each handshake."

    max_first_message: int = 64 * 1024
    "Largest message before the first channel is open, in bytes (WIRE row 34)."

    max_message: int = OTHERS_MAX_TEXT
    "Largest message afterwards, in bytes."

    max_payload: int = MAX_PAYLOAD
    "Largest protocol data we send in one frame, in bytes (WIRE row 34)."

    renewal: RenewalLimits = field(default_factory=RenewalLimits)
    "When the keys of channels that we opened are renewed."

    resumption: bool = False
    "Whether keys that were kept are taken up again when a peer uses one."

    max_lookups: int = 8
    "Kept keys looked for at a time for one link."

    max_held_frames: int = 16
    "Envelopes held until the requester's `finished` arrives."

    max_held_bytes: int = 1024 * 1024
    "Bytes held in the same way."

    max_handshakes: int = 8
    "Handshakes under way at once that the peer began."

    max_channels: int = 64
    "Channels on one link."

    max_unagreed_frames: int = 16
    "Frames without a common capability after which their channel ends (ANP-Q17)."

    first_channel_timeout: float = 60.0
    "Seconds after which a link on which no channel was ever opened is closed."

    max_faults: int = 32
    "Faults of the peer after which the link is closed."
