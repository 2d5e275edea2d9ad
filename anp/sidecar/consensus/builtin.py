"""What the daemon knows of itself by URI, and how its mind writes the rest."""

from __future__ import annotations

import secrets
from typing import Final

from anp.protocols.envelope import (
    ENVELOPE_URI,
    ENVELOPE_VERSION,
    EnvelopeCode,
    envelope_document,
)
from anp.sidecar.consensus.registry import MakeHalf, WrittenEntry
from anp.sidecar.halves.workshop import check_in_worker
from anp.sidecar.minds.minds import Think
from negotiation.consensus import CodeKind, ConsensusProtocol
from negotiation.exchange.preparation import prepare_half
from negotiation.mind import HalfSource, Offer
from negotiation.trial.acceptance import Validator
from sandbox.pool.pool import Sandbox

__all__ = ["half_maker", "written_protocols"]

ENVELOPE_SUMMARY: Final = (
    "Messages with an action: any published capability by its name."
)


def written_protocols(*, envelope: bool) -> list[WrittenEntry]:
    """Return the protocols whose code is part of the daemon.

    Args:
        envelope: Whether the owner wants the message envelope.
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


def half_maker(
    *,
    sandbox: Sandbox,
    validator: Validator,
    think: Think,
    own_did: str,
    deadline: float,
) -> MakeHalf:
    """Return what writes and tries a provider half for a document known by URI.

    Args:
        own_did: Who pays if a model is asked: the owner put the document here.
        deadline: Seconds of its own time that a half may take for one call.
    """

    async def make(text: str, offer: Offer) -> tuple[HalfSource, str]:
        samples = "none"

        async def check(half: HalfSource, text: str) -> tuple[str, ...]:
            nonlocal samples
            findings = await check_in_worker(
                half,
                text,
                offer,
                sandbox=sandbox,
                validator=validator,
                name=f"consensus:{secrets.token_hex(4)}",
                deadline=deadline,
            )
            samples = findings.samples
            return findings.problems

        mind = think(own_did, ours=True).mind
        return await prepare_half(text, offer, mind=mind, check=check), samples

    return make
