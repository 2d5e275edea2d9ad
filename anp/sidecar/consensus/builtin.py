"""The consensus protocols whose code is part of the daemon."""

from __future__ import annotations

from typing import Final

from anp.protocols.envelope import (
    ENVELOPE_URI,
    ENVELOPE_VERSION,
    EnvelopeCode,
    envelope_document,
)
from anp.sidecar.consensus.registry import WrittenEntry
from negotiation.consensus.registry import CodeKind, ConsensusProtocol

__all__ = ["written_protocols"]

ENVELOPE_SUMMARY: Final = (
    "Messages with an action: any published capability by its name."
)


def written_protocols(*, envelope: bool) -> list[WrittenEntry]:
    """Return the protocols whose code is part of the daemon.

    Args:
        envelope: True when the owner wants the message envelope.
    """
    if not envelope:
        return []
    protocol = ConsensusProtocol(
        ENVELOPE_URI,
        ENVELOPE_VERSION,
        envelope_document(),
        CodeKind.WRITTEN,
        ENVELOPE_SUMMARY,
        published=True,
        generic=True,
    )
    return [WrittenEntry(protocol, EnvelopeCode())]
