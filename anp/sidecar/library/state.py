"""The state of a protocol with a peer, with the reason if it is not used. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

from anp.sidecar.agreement.outcomes import TESTS_KEY, in_words
from cache.records.records import (
    AgreementRecord,
    AgreementState,
    HalfRecord,
    RevocationRecord,
)

V = TypeVar("V")

StateName = Literal["active", "testing", "failed", "stale", "revoked", "quarantined"]
"A state as people are shown it; only what is active is used."

STATES: Final[tuple[StateName, ...]] = get_args(StateName)
"Every state that people are shown."


@dataclass(frozen=True, slots=True)
class ProtocolStanding:
    """The state of an agreement or a half, as people are told."""

    state: StateName

    reason: str
    "The reason if it is not used, in one line; empty when it is."


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
    state: AgreementState,
    *,
    half: AgreementState | None,
    revocation: RevocationRecord | None = None,
    quarantined: str | None = None,
    unfit: str | None = None,
    tests: Mapping[str, Any] | None = None,
) -> ProtocolStanding:
    """Return the standing of an agreement, or of a half that serves anybody.

    Args:
        state: As it is stored.
        half: State of our half; None when the half is not there.
        revocation: The revocation that holds for it, if there is one.
        quarantined: Why its code may not run now.
        unfit: Why its capabilities cannot be called now.
        tests: The `tests` of the agreement.
    """
    if revocation is not None or AgreementState.REVOKED in {state, half}:
        whom = "for this peer" if revocation and revocation.peer_did else "for all"
        said = f": {revocation.reason}" if revocation and revocation.reason else ""
        return ProtocolStanding("revoked", f"revoked by you {whom}{said}")
    if quarantined is not None:
        return ProtocolStanding("quarantined", quarantined)
    if state is AgreementState.FAILED:
        words = in_words(tests or {}) or "a test case failed with this peer"
        return ProtocolStanding("failed", words)
    if state is AgreementState.TESTING:
        return ProtocolStanding("testing", "its test cases are not finished yet")
    if half is None:
        return ProtocolStanding("stale", "our code for it was deleted")
    if state is AgreementState.STALE:
        return ProtocolStanding("stale", "another one replaced it, or you released it")
    if half is not AgreementState.ACTIVE:
        return ProtocolStanding("stale", "an import replaced our code for it")
    if unfit is not None:
        return ProtocolStanding("stale", unfit)
    return ProtocolStanding("active", "")


def last_run(record: AgreementRecord) -> dict[str, Any] | None:
    """Return the last run of test cases: its time, mode and outcome; None without one.

    That is what `protocols test` kept, or what was found when it was agreed.
    """
    if record.last_run is not None:
        return record.last_run
    cases = record.tests.get(TESTS_KEY)
    if not isinstance(cases, dict) or not isinstance(cases.get("results"), list):
        return None
    results = [one for one in cases["results"] if isinstance(one, dict)]
    if not results:
        return None
    failed = sum(one.get("passed") is not True for one in results)
    return {
        "at": cases.get("at"),
        "mode": cases.get("mode"),
        "passed": not failed,
        "cases": len(results),
        "failed": failed,
        "outcome": in_words(record.tests),
        "revision": record.revision,
    }


def capabilities_of(
    half: HalfRecord | None, record: AgreementRecord | None = None
) -> str | None:
    """Return the capabilities that a protocol calls, or None if nobody said it.

    Args:
        half: Our code; a provider's names what it may call.
        record: The agreement, where a requester keeps what its peer said.
    """
    if half is not None and half.capabilities:
        return ", ".join(half.capabilities)
    said = None if record is None else record.tests.get("capability")
    return said if isinstance(said, str) else None


def view_of(cls: type[V], record: object, /, **more: Any) -> V:
    """Return a view: the fields of `record` that have its names, and `more`."""
    kind: Any = cls
    names = [name for name in kind.__dataclass_fields__ if name not in more]
    shared = {name: getattr(record, name) for name in names if hasattr(record, name)}
    view: V = kind(**shared, **more)
    return view
