"""Agreed protocols as people and programs see them: one class for each answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.outcomes import in_words
from anp.sidecar.agreement.stored import notes_of
from anp.sidecar.bundles.export import CLAIMS
from anp.sidecar.library.state import (
    StateName,
    capabilities_of,
    last_run,
    revocation_for,
    standing_of,
    view_of,
)
from anp.sidecar.offer.exposure import Exposure, misfit
from cache.errors import HashPrefixError
from cache.records.negotiations import NegotiationRecord
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    Count,
    HalfRecord,
    Hash,
    RevocationRecord,
    UsageRecord,
)
from cache.store import Store
from sandbox.pool.history import Runs
from sandbox.pool.pool import Sandbox

PAGE = 100
"Entries of one page when nobody says how many."

MAX_PAGE = 1000
"Most entries of one page."

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A protocol as agreed with one peer, or our code for it that serves any peer."""

    hash: Hash
    "SHA-256 of the protocol text."

    role: AgreementRole
    "Our role."

    peer: str | None
    "DID of the peer, in its canonical form; null when the code serves any peer."

    need: str | None
    "The requirement that it was agreed for, in the words of our caller."

    capability: str | None = None
    "The capability it calls, several with commas; null where nobody said it."

    uris: Sequence[str] = ()
    "The URIs under which we know the protocol."

    origin: Literal["rules", "model", "imported", "hand-written"] | None
    "The writer of our code; null when the code was deleted."

    model: str
    "Name of the model that wrote our code; empty for other origins."

    state: StateName
    reason: str
    "Reason why it is not used, in words; empty when it is used."

    samples: Literal["full", "partial", "none"] | None
    "The share of its schemas for which example messages could be made."

    uses: Count
    "Calls that went through it."

    created: float
    "Seconds since 1970."

    last_used: float | None
    "Seconds since 1970."

    revision: Count
    "Revision of our code."

    negotiation_id: str | None
    cases: str
    "The outcome of its test cases, in words; empty when none are kept."

    notes: Sequence[str] = ()
    "Doubts that the caller is told with each call, one sentence each."

    last_run: dict[str, Any] | None
    "The last run of its test cases: when, in which mode, with which outcome."

    quarantined: str | None
    "Reason why its code may not run now, in words."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementWithTests(Agreement):
    """An agreement with its kept tests."""

    tests: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One revision of our code for one role of a protocol."""

    hash: Hash
    "SHA-256 of the protocol text."

    role: AgreementRole
    revision: Count
    source: str
    "Python source text."

    origin: Literal["rules", "model", "imported", "hand-written"]
    capabilities: dict[str, Hash]
    "The capabilities that it may call, each with the hash of its schemas."

    created: float
    "Seconds since 1970."

    state: StateName
    model: str
    "Name of the model that wrote it; empty for other origins."

    bundle: Hash | None
    "SHA-256 of the bundle that it was imported from."

    negotiation_id: str | None
    reason: str
    "Reason why it is not used, in words; empty when it is used."

    agreements: Count
    "Agreements that use it."

    claims: dict[str, Any] | None
    "Origin, date and exporter as its bundle states them; nobody checked that."


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCounts:
    """Counts of calls."""

    calls: Count
    "Calls of ours that went through protocols."

    agreement: Count
    "Calls through an earlier agreement."

    consensus: Count
    "Calls through a protocol that is known by its URI."

    published: Count
    "First calls through a text that the peer publishes."

    negotiated: Count
    "Calls that negotiated first."

    hit_rate: float | None
    "Share of `calls` that needed no negotiation; null without calls."

    natural_language: Count
    "Calls of ours in words."

    failed: Count
    "Calls of ours without an answer."

    served: Count
    "Calls of peers that were answered."

    first_used: float | None
    "Seconds since 1970."

    last_used: float | None
    "Seconds since 1970."

    @classmethod
    def of(cls, usage: UsageRecord) -> UsageCounts:
        """Return the counts of a record."""
        rate = usage.hit_rate
        rounded = None if rate is None else round(rate, 4)
        return view_of(cls, usage, hit_rate=rounded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """A revocation by the owner."""

    peer: str | None
    "The only peer that it holds for; null when it holds for all."

    at: float
    "Seconds since 1970."

    reason: str
    "The owner's reason; never sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Runs of the code of one protocol since the daemon started."""

    outcomes: dict[str, int]
    "The number of runs with each outcome; `ok` for a value."

    failures: list[dict[str, Any]]
    "The latest reports, oldest first."

    log: str
    "The end of what its code printed and logged."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolDetails:
    """The facts about one protocol text."""

    hash: Hash
    "SHA-256 of the protocol text."

    agreements: Sequence[Agreement]
    code: Sequence[Code]
    "Our code for it, every revision."
    tests: Sequence[dict[str, Any]]
    "The tests that are kept with each of `agreements`, in the same order."

    usage: UsageCounts
    revocations: Sequence[Revocation]
    uris: Sequence[str] = ()
    "The URIs under which it is known."

    quarantined: str | None
    "Reason why its code may not run now, in words."

    runs: RunCounts
    trials: RunCounts
    "Runs of code before it was used."


def find_hash(store: Store, prefix: str) -> str:
    """Return the only hash that begins with `prefix`, of a text or a revocation.

    A document that was taken back is found by its hash when its text is pruned.

    Raises:
        HashPrefixError: None or several do.
    """
    try:
        return store.find_hash(prefix)
    except HashPrefixError:
        begins = prefix.strip().lower().removeprefix("sha256:")
        found = {one.hash for one in store.revocations() if one.hash.startswith(begins)}
        if len(found) != 1 or not begins:
            raise
        return found.pop()


class Library:
    """Shows what the store has of agreed protocols, and whether it is used."""

    def __init__(
        self,
        store: Store,
        sandbox: Sandbox | None = None,
        exposure: Exposure | None = None,
    ) -> None:
        """Make the views.

        Args:
            sandbox: Knows what is in quarantine; without it nothing is.
            exposure: Knows which capabilities can be called; without it all can.
        """
        self._store = store
        self._sandbox = sandbox
        self._exposure = exposure

    def page(
        self,
        *,
        after: str = "",
        limit: int = PAGE,
        peer: str | None = None,
        role: str | None = None,
        state: str | None = None,
    ) -> tuple[list[Agreement], str | None]:
        """Return agreements and halves for any peer, and where the next page begins.

        Pages follow the order of the keys, so that a million agreements cost no more
        than a thousand; each has its newest entries first. A page may hold less than
        `limit`, and still be followed by another.

        Args:
            after: The beginning of this page, as given by the page before.
            peer: Only those with this peer, in its canonical form.
            role: Only that half.
            state: Only those in this state, as it is shown.
        """

        def wanted(record: AgreementRecord) -> bool:
            return peer in {None, record.peer_did} and role in {None, record.role.value}

        page = self._store.page(after=after, limit=limit, wanted=wanted)
        revocations: dict[str, list[RevocationRecord]] = {}
        for one in self._store.revocations():
            revocations.setdefault(one.hash, []).append(one)
        found = []
        for record in page.agreements:
            half = self._store.half(record.hash, record.role, record.revision)
            known = revocations.get(record.hash, ())
            found.append(self._agreement(Agreement, record, half, known))
        if peer is None and role in {None, AgreementRole.PROVIDER.value}:
            found += [
                self._unbound(half, revocations.get(half.hash, ()))
                for half in page.unbound
            ]
        found = [one for one in found if state in {None, one.state}]
        found.sort(key=lambda one: (one.created, one.hash), reverse=True)
        return found, page.after

    def details(self, prefix: str) -> ProtocolDetails:
        """Return everything known about one document, but its URIs.

        Raises:
            HashPrefixError: None or several hashes begin with `prefix`.
        """
        store = self._store
        digest = find_hash(store, prefix)
        agreements = store.agreements_of(digest)
        halves = store.halves(digest)
        revocations = store.revocations(digest)
        if not agreements and not halves and not revocations:
            raise CallError(ErrorKind.USAGE, f"no protocol begins with {prefix}")
        by_revision = {(half.role, half.revision): half for half in halves}
        return ProtocolDetails(
            hash=digest,
            agreements=[
                self._agreement(
                    Agreement,
                    record,
                    by_revision.get((record.role, record.revision)),
                    revocations,
                )
                for record in agreements
            ],
            code=[self._half(half, agreements, revocations) for half in halves],
            tests=[record.tests for record in agreements],
            usage=UsageCounts.of(store.usage(digest)),
            revocations=[
                view_of(Revocation, one, peer=one.peer_did) for one in revocations
            ],
            quarantined=self._quarantined(digest),
            runs=self._runs(digest),
            trials=self._runs(f"trial:{digest}"),
        )

    def of_negotiation(self, record: NegotiationRecord) -> AgreementWithTests | None:
        """Return the agreement that came of a negotiation, if it is kept.

        A later revision replaces the first one under the same hash, and says so here.
        """
        for agreement in self._store.agreements_of(record.hash or ""):
            if (agreement.peer_did, agreement.role) == (record.peer_did, record.role):
                known = (agreement.hash, agreement.role, agreement.revision)
                return self._agreement(
                    AgreementWithTests,
                    agreement,
                    self._store.half(*known),
                    self._store.revocations(agreement.hash),
                    tests=agreement.tests,
                )
        return None

    def _agreement(
        self,
        cls: type[V],
        record: AgreementRecord,
        half: HalfRecord | None,
        revocations: Sequence[RevocationRecord],
        **more: Any,
    ) -> V:
        peer = record.peer_did
        standing = standing_of(
            record.state,
            half=half.state if half else None,
            revocation=revocation_for(revocations, peer),
            quarantined=None
            if half is None
            else self._quarantined(record.hash, source=half.source, peer=peer),
            unfit=self._unfit(half),
            tests=record.tests,
        )
        return view_of(
            cls,
            record,
            peer=peer,
            need=record.need["requirement"] if record.need else None,
            capability=capabilities_of(half, record),
            origin=half.origin if half else None,
            model=half.model if half else "",
            state=standing.state,
            reason=standing.reason,
            cases=in_words(record.tests),
            notes=notes_of(record),
            last_run=last_run(record),
            quarantined=self._quarantined(record.hash, peer=peer),
            **more,
        )

    def _unbound(
        self, half: HalfRecord, revocations: Sequence[RevocationRecord]
    ) -> Agreement:
        """Return a half that serves any peer, in the fields of an agreement."""
        usage = self._store.usage(half.hash)
        state, reason = self._half_state(half, revocations)
        return view_of(
            Agreement,
            half,
            peer=None,
            need=None,
            capability=capabilities_of(half),
            state=state,
            reason=reason,
            samples=None,
            uses=usage.served,
            last_used=usage.last_used,
            cases="",
            last_run=None,
            quarantined=self._quarantined(half.hash),
        )

    def _half(
        self,
        half: HalfRecord,
        agreements: Sequence[AgreementRecord],
        revocations: Sequence[RevocationRecord],
    ) -> Code:
        """Return a half with where it came from."""
        on_it = [
            one
            for one in agreements
            if (one.role, one.revision) == (half.role, half.revision)
        ]
        claims = next((one.tests[CLAIMS] for one in on_it if CLAIMS in one.tests), None)
        if isinstance(claims, dict):
            claims = {name: claims.get(name) for name in ("origin", "created", "did")}
        else:
            claims = None
        state, reason = self._half_state(half, revocations)
        count = len(on_it)
        return view_of(
            Code, half, state=state, reason=reason, agreements=count, claims=claims
        )

    def _half_state(
        self, half: HalfRecord, revocations: Sequence[RevocationRecord]
    ) -> tuple[StateName, str]:
        standing = standing_of(
            half.state,
            half=half.state,
            revocation=revocation_for(revocations, None),
            quarantined=self._quarantined(half.hash, source=half.source),
            unfit=self._unfit(half),
        )
        return standing.state, standing.reason

    def _unfit(self, half: HalfRecord | None) -> str | None:
        if self._exposure is None or half is None:
            return None
        return misfit(half.capabilities, self._exposure.offered_to_some())

    def _quarantined(self, digest: str, **of: str | None) -> str | None:
        if self._sandbox is None:
            return None
        return self._sandbox.quarantined(digest, **of)

    def _runs(self, name: str) -> RunCounts:
        runs = Runs() if self._sandbox is None else self._sandbox.runs(name)
        return RunCounts(
            outcomes=dict(runs.outcomes), failures=list(runs.failures), log=runs.log
        )
