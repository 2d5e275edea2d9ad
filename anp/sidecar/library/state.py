"""Whether a protocol is used with a peer, and why not, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from anp.sidecar.agreement.outcomes import in_words
from cache.records.protocols import RevocationRecord, UsageRecord
from cache.records.records import State

__all__ = [
    "QUARANTINED",
    "STATES",
    "Standing",
    "revocation_for",
    "standing_of",
    "usage_json",
]

QUARANTINED: Final = "quarantined"
"State of a protocol whose code cost too many workers."

STATES: Final = (*(state.value for state in State), QUARANTINED)
"Every state that people are shown."


@dataclass(frozen=True, slots=True)
class Standing:
    """What people are told about an agreement or a half."""

    state: str
    "One of `STATES`; only an `active` one is used."

    reason: str
    "Why it is not used, in one line; empty when it is."


def revocation_for(
    revocations: Iterable[RevocationRecord], peer_did: str | None
) -> RevocationRecord | None:
    """Return the revocation that holds for a peer, or for all when none is given.

    Args:
        revocations: Those of one document.
    """
    known = {one.peer_did: one for one in revocations}
    return known.get(None) or known.get(peer_did)


def standing_of(
    state: State,
    *,
    half: State | None,
    revocation: RevocationRecord | None = None,
    quarantined: str | None = None,
    unfit: str | None = None,
    tests: Mapping[str, Any] | None = None,
) -> Standing:
    """Return what an agreement, or a half that serves anybody, is now.

    Args:
        state: As it is stored.
        half: State of our half; None when the half is not there.
        revocation: What the owner took back, if it holds for it.
        quarantined: Why its code may not run now.
        unfit: Why its capabilities cannot be called now.
        tests: The `tests` of the agreement.
    """
    if revocation is not None or State.REVOKED in {state, half}:
        whom = "for this peer" if revocation and revocation.peer_did else "for all"
        said = f": {revocation.reason}" if revocation and revocation.reason else ""
        return Standing(State.REVOKED.value, f"taken back by you {whom}{said}")
    if quarantined is not None:
        return Standing(QUARANTINED, quarantined)
    if state is State.FAILED:
        words = in_words(tests or {}) or "its test cases fail with this peer"
        return Standing(state.value, words)
    if state is State.TESTING:
        return Standing(state.value, "its test cases came to no end yet")
    if half is None:
        return Standing(State.STALE.value, "our half is not there any more")
    if state is State.STALE:
        return Standing(state.value, "another one took its place, or you released it")
    if half is not State.ACTIVE:
        return Standing(State.STALE.value, "an import took the place of our half")
    if unfit is not None:
        return Standing(State.STALE.value, unfit)
    return Standing(State.ACTIVE.value, "")


def usage_json(usage: UsageRecord) -> dict[str, Any]:
    """Return counts of calls as JSON, with the share that needed no negotiation."""
    ours = usage.agreement + usage.consensus + usage.negotiated
    return {
        "calls": ours,
        "agreement": usage.agreement,
        "consensus": usage.consensus,
        "negotiated": usage.negotiated,
        "hit_rate": None if usage.hit_rate is None else round(usage.hit_rate, 4),
        "natural_language": usage.natural_language,
        "failed": usage.failed,
        "served": usage.served,
        "first_used": usage.first_used,
        "last_used": usage.last_used,
    }
