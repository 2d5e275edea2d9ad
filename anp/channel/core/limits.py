"""Limits of links, of the life of their keys, and the waits between tries. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from anp.errors import ConfigError
from anp.wire.meta_protocol import MAX_PAYLOAD, OTHERS_MAX_TEXT
from anp.wire.outcome import HandshakeConfig

KEY_EXPIRED = "the key expired"
"The reason with which a channel ends at the end of its key's life."


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalLimits:
    """The share of a key's life and messages after which its requester renews it."""

    life: float = 0.8
    "Part of its life, from 0 to 1."

    longest_call: float = 0.0
    """Seconds that a call may be in flight. A key is renewed that long before its end,
    but not before half of its life."""

    messages: int = 2**20
    "Messages in one direction, with the extension `counter`."

    plain_messages: int = 2**16 - 2**12
    """Messages in one direction without it: the receiver remembers every iv, 2^16 at
    most (WIRE), and what is between is for calls in flight."""

    def __post_init__(self) -> None:
        """Refuse limits that would never renew, or without end."""
        if not 0 < self.life < 1:
            raise ConfigError(f"renewal.life must be within 0 and 1, got {self.life}")
        for name in ("messages", "plain_messages"):
            if getattr(self, name) < 1:
                raise ConfigError(f"renewal.{name} must be > 0")

    def due_at(self, opened_at: float, expires_at: float) -> float:
        """Return when a key is to be renewed, in seconds on the clock of both."""
        whole = expires_at - opened_at
        return opened_at + min(
            self.life * whole, max(whole / 2, whole - self.longest_call)
        )


def next_wait(tries: int, *, least: float, most: float, draw: float) -> float:
    """Return the seconds to wait before the next try.

    They double from try to try, and a random half of them keeps the daemons that lost
    the same peer at the same moment from coming back at the same moment.

    Args:
        tries: Tries so far that failed, from 0.
        least: Longest first wait, in seconds.
        most: Longest wait of all, in seconds.
        draw: A random number from 0 to 1.
    """
    longest = min(most, least * 2.0 ** min(tries, 64))
    return longest * (0.5 + 0.5 * draw)


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
    "Take up a kept key again when a peer uses it."

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

    first_channel_timeout: float = 20.0
    "Seconds after which a link on which no channel was ever opened is closed."

    max_faults: int = 32
    "Faults of the peer after which the link is closed."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksConfig:
    """Limits of all links together."""

    link: LinkConfig = field(default_factory=LinkConfig)
    "Limits of each link."

    connect_timeout: float = 5.0
    "Seconds to connect to a peer."

    handshake_timeout: float = 12.0
    "Seconds for a whole handshake as seen by a caller."

    ping_interval: float = 20.0
    "Seconds between WebSocket pings; a peer silent for as long again is lost."

    max_links: int = 256
    "Connections that peers may have open; see `Admission` for their shares."

    idle_timeout: float = 600.0
    "Seconds without a call after which a channel of ours is closed."

    min_backoff: float = 1.0
    "Seconds before a kept link is dialled again for the first time."

    max_backoff: float = 60.0
    "Longest wait between two such tries, in seconds."
