"""What is known of agreed protocols, as JSON for people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.outcomes import TESTS_KEY, in_words
from anp.sidecar.bundles.export import CLAIMS
from anp.sidecar.library.state import Standing, revocation_for, standing_of, usage_json
from anp.sidecar.offer.exposure import Exposure
from cache.errors import HashPrefixError
from cache.records.protocols import RevocationRecord
from cache.records.records import AgreementRecord, HalfRecord, NegotiationRecord, Role
from cache.store import Store
from sandbox.pool.history import Runs
from sandbox.pool.pool import Sandbox

__all__ = ["MAX_PAGE", "PAGE", "agreement_of", "find_hash", "protocol", "protocols"]

PAGE = 100
"Entries of one page when nobody says how many."

MAX_PAGE = 1000
"Most entries of one page."


def find_hash(store: Store, prefix: str) -> str:
    """Return the only hash that begins with `prefix`, of a text or a revocation.

    What was revoked is found by its hash when its text is pruned.

    Raises:
        HashPrefixError: None or several do.
    """
    try:
        return store.find_hash(prefix)
    except HashPrefixError as exc:
        begins = prefix.strip().lower().removeprefix("sha256:")
        found = {one.hash for one in store.revocations() if one.hash.startswith(begins)}
        if len(found) != 1 or not begins:
            raise
        del exc
        return found.pop()


def protocols(
    store: Store,
    sandbox: Sandbox,
    exposure: Exposure | None = None,
    *,
    after: str = "",
    limit: int = PAGE,
    peer: str | None = None,
    role: str | None = None,
    state: str | None = None,
) -> dict[str, Any]:
    """Return a page of agreements and of halves for any peer, its newest ones first.

    Pages follow the order of the keys, so that a million agreements cost no more than
    a thousand. A page may hold less than `limit`, and still `next` not be None.

    Args:
        after: `next` of the page before.
        peer: Only those with this peer, in its canonical form.
        role: Only that half.
        state: Only those in this state, as it is shown.
    """

    def wanted(record: AgreementRecord) -> bool:
        return peer in {None, record.peer_did} and role in {None, record.role.value}

    page = store.page(after=after, limit=limit, wanted=wanted)
    revocations: dict[str, list[RevocationRecord]] = {}
    for one in store.revocations():
        revocations.setdefault(one.hash, []).append(one)
    found = []
    for record in page.agreements:
        half = store.half(record.hash, record.role, record.revision)
        revoked = revocation_for(revocations.get(record.hash, ()), record.peer_did)
        standing = _standing(record, half, revoked, sandbox, exposure)
        found.append(_agreement(record, half, standing, sandbox))
    if peer is None and role in {None, Role.PROVIDER.value}:
        for half in page.unbound:
            revoked = revocation_for(revocations.get(half.hash, ()), None)
            standing = _half_standing(half, revoked, sandbox, exposure)
            found.append(_unbound(half, standing, sandbox, store))
    found = [one for one in found if state in {None, one["state"]}]
    found.sort(key=lambda one: (one["created"], one["hash"]), reverse=True)
    return {"protocols": found, "next": page.after}


def protocol(
    store: Store, sandbox: Sandbox, prefix: str, exposure: Exposure | None = None
) -> dict[str, Any]:
    """Return everything known about one document.

    Raises:
        HashPrefixError: None or several hashes begin with `prefix`.
    """
    digest = find_hash(store, prefix)
    agreements = store.agreements_of(digest)
    halves = store.halves(digest)
    revocations = store.revocations(digest)
    if not agreements and not halves and not revocations:
        raise CallError(ErrorKind.USAGE, f"no protocol begins with {prefix}")
    by_revision = {(half.role, half.revision): half for half in halves}
    shown = []
    for record in agreements:
        half = by_revision.get((record.role, record.revision))
        revoked = revocation_for(revocations, record.peer_did)
        standing = _standing(record, half, revoked, sandbox, exposure)
        shown.append(_agreement(record, half, standing, sandbox))
    revoked = revocation_for(revocations, None)
    return {
        "hash": digest,
        "agreements": shown,
        "halves": [
            _half(half, agreements, _half_standing(half, revoked, sandbox, exposure))
            for half in halves
        ],
        "tests": [record.tests for record in agreements],
        "usage": usage_json(store.usage(digest)),
        "revocations": [
            {"peer": one.peer_did, "at": one.at, "reason": one.reason}
            for one in revocations
        ],
        "quarantined": sandbox.quarantined(digest),
        "runs": _runs(sandbox.runs(digest)),
        "trials": _runs(sandbox.runs(f"trial:{digest}")),
    }


def agreement_of(store: Store, record: NegotiationRecord) -> dict[str, Any] | None:
    """Return the agreement that came of a negotiation, with its tests, if it is kept.

    A later revision replaces the first one under the same hash, and says so here.
    """
    for agreement in store.agreements_of(record.hash or ""):
        if (agreement.peer_did, agreement.role) == (record.peer_did, record.role):
            half = store.half(agreement.hash, agreement.role, agreement.revision)
            revoked = revocation_for(
                store.revocations(agreement.hash), agreement.peer_did
            )
            standing = _standing(agreement, half, revoked, None, None)
            shown = _agreement(agreement, half, standing, None)
            return {**shown, "tests": agreement.tests}
    return None


def _standing(
    record: AgreementRecord,
    half: HalfRecord | None,
    revoked: RevocationRecord | None,
    sandbox: Sandbox | None,
    exposure: Exposure | None,
) -> Standing:
    quarantined = None
    if sandbox is not None and half is not None:
        quarantined = sandbox.quarantined(
            record.hash, source=half.source, peer=record.peer_did
        )
    return standing_of(
        record.state,
        half=half.state if half else None,
        revocation=revoked,
        quarantined=quarantined,
        unfit=exposure.fits(half.capabilities) if exposure and half else None,
        tests=record.tests,
    )


def _half_standing(
    half: HalfRecord,
    revoked: RevocationRecord | None,
    sandbox: Sandbox,
    exposure: Exposure | None,
) -> Standing:
    return standing_of(
        half.state,
        half=half.state,
        revocation=revoked,
        quarantined=sandbox.quarantined(half.hash, source=half.source),
        unfit=exposure.fits(half.capabilities) if exposure else None,
    )


def _agreement(
    record: AgreementRecord,
    half: HalfRecord | None,
    standing: Standing,
    sandbox: Sandbox | None,
) -> dict[str, Any]:
    return {
        "hash": record.hash,
        "role": record.role.value,
        "peer": record.peer_did,
        "task": record.task["requirement"] if record.task else None,
        "origin": half.origin if half else None,
        "model": half.model if half else "",
        "state": standing.state,
        "reason": standing.reason,
        "samples": record.samples,
        "uses": record.uses,
        "created": record.created,
        "last_used": record.last_used,
        "revision": record.revision,
        "negotiation_id": record.negotiation_id,
        "cases": in_words(record.tests),
        "last_run": last_run(record),
        "quarantined": sandbox.quarantined(record.hash, peer=record.peer_did)
        if sandbox
        else None,
    }


def last_run(record: AgreementRecord) -> dict[str, Any] | None:
    """Return when test cases last ran, how, and what came of it, or None.

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


def _unbound(
    half: HalfRecord, standing: Standing, sandbox: Sandbox, store: Store
) -> dict[str, Any]:
    """Return a half that serves any peer, in the fields of an agreement."""
    usage = store.usage(half.hash)
    return {
        "hash": half.hash,
        "role": half.role.value,
        "peer": None,
        "task": None,
        "origin": half.origin,
        "model": half.model,
        "state": standing.state,
        "reason": standing.reason,
        "samples": None,
        "uses": usage.served,
        "created": half.created,
        "last_used": usage.last_used,
        "revision": half.revision,
        "negotiation_id": half.negotiation_id,
        "cases": "",
        "last_run": None,
        "quarantined": sandbox.quarantined(half.hash),
    }


def _half(
    half: HalfRecord, agreements: list[AgreementRecord], standing: Standing
) -> dict[str, Any]:
    """Return a half with where it came from."""
    on_it = [
        one
        for one in agreements
        if (one.role, one.revision) == (half.role, half.revision)
    ]
    claims = next((one.tests[CLAIMS] for one in on_it if CLAIMS in one.tests), None)
    return {
        **asdict(half),
        "state": standing.state,
        "reason": standing.reason,
        "agreements": len(on_it),
        # Said by the bundle, and not believed.
        "claims": {name: claims.get(name) for name in ("origin", "created", "did")}
        if isinstance(claims, dict)
        else None,
    }


def _runs(runs: Runs) -> dict[str, Any]:
    """Return what runs came to since the daemon started."""
    return {
        "outcomes": dict(runs.outcomes),
        "failures": list(runs.failures),
        "log": runs.log,
    }
