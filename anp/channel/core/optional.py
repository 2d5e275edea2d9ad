"""Which protocol types of frames need a capability of both sides (ANP-81)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from anp.errors import LocalError
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import Capability

__all__ = ["NEEDED", "UnagreedFrames", "check_agreed", "missing_capability"]

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


class UnagreedFrames:
    """Counts the frames of one channel that came without their capability (ANP-Q17).

    One of them is the mistake of a healthy peer; a channel full of them is not.

    Args:
        limit: How many end the channel.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0

    def add(self) -> bool:
        """Count one more and return whether the channel has to end."""
        self.count += 1
        return self.count >= self._limit
