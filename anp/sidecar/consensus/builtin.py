"""The consensus protocols whose code is part of the daemon."""

from __future__ import annotations

from typing import Final

from anp.protocols.a2a import A2aCode, a2a_document
from anp.protocols.a2a.words import A2A_URIS
from anp.protocols.envelope import (
    ENVELOPE_TASKS_URI,
    ENVELOPE_TASKS_VERSION,
    ENVELOPE_URI,
    ENVELOPE_VERSION,
    EnvelopeCode,
    envelope_document,
)
from anp.protocols.gbz import (
    GBZ_GROUPS_URI,
    GBZ_GROUPS_VERSION,
    GBZ_URI,
    GBZ_VERSION,
    GbzCode,
    gbz_document,
)
from anp.sidecar.consensus.registry import WrittenEntry
from negotiation.consensus.registry import CodeKind, ConsensusProtocol

ENVELOPE_SUMMARY: Final = (
    "Messages with an action: any published capability by its name."
)

ENVELOPE_TASKS_SUMMARY: Final = (
    "The same messages, which also carry sessions and tasks that last."
)

A2A_SUMMARY: Final = "A2A between agents whose channel proves who they are."

GBZ_SUMMARY: Final = "Sessions, tasks and messages of GB/Z 185.6, point to point."

GBZ_GROUPS_SUMMARY: Final = (
    "Sessions, tasks and messages of GB/Z 185.6, with groups and subscriptions."
)


def written_protocols(*, envelope: bool) -> list[WrittenEntry]:
    """Return the protocols whose code is part of the daemon.

    Args:
        envelope: True when the owner wants the message envelope.
    """
    found = [
        WrittenEntry(
            ConsensusProtocol(
                uri,
                version,
                gbz_document(version),
                CodeKind.WRITTEN,
                summary,
                published=True,
                generic=True,
            ),
            GbzCode(),
            only_named=True,
        )
        for uri, version, summary in (
            (GBZ_URI, GBZ_VERSION, GBZ_SUMMARY),
            (GBZ_GROUPS_URI, GBZ_GROUPS_VERSION, GBZ_GROUPS_SUMMARY),
        )
    ]
    for uri, spoken in A2A_URIS.items():
        protocol = ConsensusProtocol(
            uri,
            uri.rpartition(":")[2],
            a2a_document(uri),
            CodeKind.WRITTEN,
            A2A_SUMMARY,
            published=True,
            generic=True,
        )
        found.append(WrittenEntry(protocol, A2aCode(spoken), only_named=True))
    if envelope:
        protocol = ConsensusProtocol(
            ENVELOPE_URI,
            ENVELOPE_VERSION,
            envelope_document(),
            CodeKind.WRITTEN,
            ENVELOPE_SUMMARY,
            published=True,
            generic=True,
        )
        found.append(WrittenEntry(protocol, EnvelopeCode()))
        version = ENVELOPE_TASKS_VERSION
        protocol = ConsensusProtocol(
            ENVELOPE_TASKS_URI,
            version,
            envelope_document(version),
            CodeKind.WRITTEN,
            ENVELOPE_TASKS_SUMMARY,
            published=True,
            generic=True,
        )
        code = EnvelopeCode(version=version)
        found.append(WrittenEntry(protocol, code, only_named=True))
    return found
