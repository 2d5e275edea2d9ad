"""The part of the store for agreements with their documents and halves."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cache.disk import LOCK_TIMEOUT, Database
from cache.errors import HashPrefixError, RecordError
from cache.parts.shelf import Damage, Shelf, key_of
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
)
from cache.rows import Rows, StoreBackend

__all__ = ["AgreementStore", "StoreLimits"]

_HASH_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{1,64})", re.IGNORECASE)
_ACTIVE = frozenset({AgreementState.ACTIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits on data whose amount others determine."""

    lock_timeout: float = LOCK_TIMEOUT
    "Seconds to wait for another process that holds the database."

    max_failed_negotiations: int = 1000
    "Negotiations without agreement that are kept; the oldest are dropped first."

    max_failed_bytes: int = 64 * 1024 * 1024
    """Bytes of all kept negotiations without agreement; one transcript can have
    megabytes."""

    max_strangers: int = 1000
    "Peers kept about which the owner decided nothing; the longest unseen go first."


class AgreementStore:
    """Stores documents, halves and agreements durably (ANP-84, ANP-85).

    Methods block for a disk access: call them in a thread. Any number of threads may
    call them at once. A method that returns has stored its changes durably; otherwise
    it raises one of these:

    StoreUnavailable: the disk is full, the file damaged, or held by another process.
    RecordError: the record to store is invalid.
    """

    def __init__(
        self, place: Path | StoreBackend, limits: StoreLimits | None = None
    ) -> None:
        """Open or make the store in a folder, or use a back end; `close` closes it."""
        self._limits = limits or StoreLimits()
        self._shelf = Shelf()
        self._database: StoreBackend = (
            Database(place, lock_timeout=self._limits.lock_timeout)
            if isinstance(place, Path)
            else place
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; a second call does nothing."""
        if self._database.is_open:
            self._database.close()

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Rows found damaged so far; each counts as absent, all others are usable."""
        return self._shelf.damaged

    @property
    def is_shared(self) -> bool:
        """True when other daemons may use the same store."""
        return self._database.is_shared

    @property
    def writes(self) -> int | None:
        """Number of write transactions so far; see `Backend.writes`."""
        return self._database.writes

    def changes(self, area: str) -> int:
        """Return a number that grows when another daemon changes records of a kind.

        Args:
            area: `agreement`, `half`, `peer`… Without other daemons the number stays.
        """
        return self._database.changes(area)

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """Remember `names` for `keep` seconds, unless one of them is remembered.

        Returns:
            True when none of them was; all daemons of one store share one memory.
        """
        return self._database.first_time(names, keep=keep)

    def check(self) -> tuple[list[str], tuple[Damage, ...]]:
        """Read everything; return the faults of the whole store, and damaged rows."""
        self._database.read(self._shelf.check)
        return self._database.check(), self.damaged

    def save_agreement(
        self, document: DocumentRecord, half: HalfRecord, agreement: AgreementRecord
    ) -> AgreementRecord:
        """Store the three in one transaction (ANP-84) and return the agreement.

        With `half.revision` 0 the half gets the next number, or that of an active
        revision with the same text, capabilities and origin.

        Raises:
            RecordError: they do not belong together, the revision holds another text,
                or the owner revoked the document.
        """
        if not (document.hash == half.hash == agreement.hash):
            raise RecordError("document, half and agreement have different hashes")
        if half.role != agreement.role:
            raise RecordError("half and agreement have different roles")

        def work(cache: Rows) -> AgreementRecord:
            halves = self._halves(cache, half.hash)
            if self._is_revoked(cache, half.hash, agreement.peer_did, halves):
                raise RecordError(f"document {half.hash[:12]} was revoked by the owner")
            numbered = self._number(cache, half, halves)
            stored = replace(agreement, revision=numbered.revision)
            self._shelf.put(cache, document)
            self._shelf.put(cache, numbered)
            self._shelf.put(cache, stored)
            return stored

        return self._database.write(work)

    def agreements(
        self,
        own_did: str,
        peer_did: str,
        role: AgreementRole,
        need_key: str,
        *,
        states: Collection[AgreementState] = _ACTIVE,
    ) -> list[AgreementRecord]:
        """Return the requester's agreements for a need, newest first.

        DIDs are canonical. A provider never learns the need, so its agreements are
        found by document: see `provider_half`.
        """
        if role is AgreementRole.PROVIDER:
            return []
        prefix = f"agreement/requester/{own_did}/{peer_did}/{need_key}/"
        found = self._database.read(
            lambda cache: self._shelf.scan(cache, AgreementRecord, prefix)
        )
        return self._newest_first(found, states)

    def all_agreements(
        self, *, states: Collection[AgreementState] = frozenset(AgreementState)
    ) -> list[AgreementRecord]:
        """Return all agreements of both roles, newest first; reads every one."""
        found = self._database.read(
            lambda cache: self._shelf.scan(cache, AgreementRecord, "agreement/")
        )
        return self._newest_first(found, states)

    def agreements_of(self, hash_: str) -> list[AgreementRecord]:
        """Return all agreements on the document `hash_`, newest first."""
        found = self._database.read(
            lambda cache: self._agreements_of(cache, hash_.lower())
        )
        return self._newest_first(found, frozenset(AgreementState))

    def provider_agreement(self, hash_: str, peer_did: str) -> AgreementRecord | None:
        """Return what was agreed with `peer_did` on `hash_` as provider, or None."""
        prefix = f"agreement/provider/{hash_.lower()}/{peer_did}/"
        found = self._database.read(
            lambda cache: self._shelf.scan(cache, AgreementRecord, prefix)
        )
        return next(iter(self._newest_first(found, frozenset(AgreementState))), None)

    def provider_half(self, hash_: str, peer_did: str) -> HalfRecord | None:
        """Return the half that answers `peer_did` when it offers `hash_`, or None.

        That is the revision agreed with this peer, if there is one, and otherwise the
        first active one that did not fail its test cases with the peer it was agreed
        with. None means that the offer is declined and the peers negotiate.
        """
        hash_ = hash_.lower()

        def work(cache: Rows) -> HalfRecord | None:
            known = self._halves(cache, hash_)
            halves = [half for half in known if half.role is AgreementRole.PROVIDER]
            if self._is_revoked(cache, hash_, peer_did, halves):
                return None
            own = self._shelf.scan(
                cache, AgreementRecord, f"agreement/provider/{hash_}/{peer_did}/"
            )
            active = [half for half in halves if half.state is AgreementState.ACTIVE]
            for agreement in self._newest_first(own, frozenset(AgreementState)):
                # A revision that was revoked or went stale for this peer must not be
                # replaced by another peer's revision without a negotiation.
                if agreement.state is not AgreementState.ACTIVE:
                    return None
                active = [h for h in active if h.revision == agreement.revision]
            if not own:
                flawed = self._failed_revisions(cache, hash_)
                active = [h for h in active if h.revision not in flawed]
            return active[0] if active else None

        return self._database.read(work)

    # Documents and halves

    def document(self, hash_prefix: str) -> DocumentRecord | None:
        """Return the document with this hash, or the only one whose hash begins so.

        Raises:
            HashPrefixError: this is no hash prefix, or several documents match.
        """
        matches = self._matching(hash_prefix)
        if len(matches) > 1:
            raise _ambiguous(hash_prefix, matches)
        if not matches:
            return None
        return self._database.read(
            lambda cache: self._shelf.get(
                cache, DocumentRecord, f"document/{matches[0]}"
            )
        )

    def find_hash(self, prefix: str) -> str:
        """Return the only document hash that begins with `prefix`.

        Raises:
            HashPrefixError: no document matches, or several do.
        """
        matches = self._matching(prefix)
        if not matches:
            raise HashPrefixError(
                f"no protocol has a hash that begins with {prefix[:80]!r}; "
                "`anpd protocols list` shows them"
            )
        if len(matches) > 1:
            raise _ambiguous(prefix, matches)
        return matches[0]

    def halves(self, hash_: str) -> list[HalfRecord]:
        """Return all halves of the document: by role, oldest revision first."""
        return self._database.read(lambda cache: self._halves(cache, hash_.lower()))

    def half(self, hash_: str, role: AgreementRole, revision: int) -> HalfRecord | None:
        """Return one revision of a half, or None."""
        key = f"half/{hash_.lower()}/{role}/{revision:08d}"
        return self._database.read(
            lambda cache: self._shelf.get(cache, HalfRecord, key)
        )

    def release_failed(self, hash_: str) -> int:
        """Mark agreements on a document as stale where its test cases failed.

        The document can then be agreed again.

        Returns:
            Number of agreements that changed.
        """
        hash_ = hash_.lower()

        def work(cache: Rows) -> int:
            failed = [
                agreement
                for agreement in self._agreements_of(cache, hash_)
                if agreement.state is AgreementState.FAILED
            ]
            for agreement in failed:
                self._shelf.put(cache, replace(agreement, state=AgreementState.STALE))
            return len(failed)

        return self._database.write(work)

    def set_tests(
        self,
        agreement: AgreementRecord,
        tests: Mapping[str, Any],
        *,
        state: AgreementState | None = None,
    ) -> AgreementRecord:
        """Replace the test outcomes of one agreement and return it as it is now.

        Args:
            state: The new state of the agreement; None keeps the present one.
        """

        def work(cache: Rows) -> AgreementRecord:
            stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
            changed = replace(stored or agreement, tests=dict(tests))
            # A revocation by the owner in the meantime must not be undone.
            if state is not None and changed.state is not AgreementState.REVOKED:
                changed = replace(changed, state=state)
            if stored is not None:
                self._shelf.put(cache, changed)
            return changed

        return self._database.write(work)

    def is_revoked(self, hash_: str, peer_did: str | None = None) -> bool:
        """Return whether the owner revoked the document.

        Args:
            peer_did: A peer's canonical DID; a revocation for it alone counts too.
        """
        hash_ = hash_.lower()

        def work(cache: Rows) -> bool:
            halves = self._halves(cache, hash_)
            return self._is_revoked(cache, hash_, peer_did, halves)

        return self._database.read(work)

    # Internal; all of these run in the database's thread.

    def _is_revoked(
        self,
        cache: Rows,
        hash_: str,
        peer_did: str | None,
        halves: Iterable[HalfRecord],
    ) -> bool:
        # Only the key is looked at, so a damaged record still counts as a revocation.
        names = ["-"] if peer_did is None else ["-", peer_did]
        return any(f"revocation/{hash_}/{name}" in cache for name in names) or any(
            half.state is AgreementState.REVOKED for half in halves
        )

    def _halves(self, cache: Rows, hash_: str) -> list[HalfRecord]:
        return self._shelf.scan(cache, HalfRecord, f"half/{hash_}/")

    def _failed_revisions(self, cache: Rows, hash_: str) -> set[int]:
        """Return the provider revisions whose tests failed and passed with no peer."""
        known = self._shelf.scan(cache, AgreementRecord, f"agreement/provider/{hash_}/")
        good = {one.revision for one in known if one.state is AgreementState.ACTIVE}
        return {
            one.revision for one in known if one.state is AgreementState.FAILED
        } - good

    def _number(
        self, cache: Rows, half: HalfRecord, halves: list[HalfRecord]
    ) -> HalfRecord:
        """Return the half as it will be stored, with its revision."""
        halves = [known for known in halves if known.role is half.role]
        if half.revision:
            for known in halves:
                if known.revision == half.revision and known.source != half.source:
                    raise RecordError(f"revision {half.revision} holds another text")
            return half
        for known in halves:
            if known.state is AgreementState.ACTIVE and _same_code(known, half):
                return known
        # Taken from the keys, so that a damaged revision's number is not used again.
        taken = [
            int(key.rpartition("/")[2])
            for key in cache.keys(f"half/{half.hash}/{half.role}/")
            if key.rpartition("/")[2].isdecimal()
        ]
        return replace(half, revision=max(taken, default=0) + 1)

    def _agreements_of(self, cache: Rows, hash_: str) -> list[AgreementRecord]:
        # Revocations are rare: one pass over the keys is simpler than another index.
        keys = [
            key
            for key in cache.keys("agreement/requester/")
            if key.endswith(f"/{hash_}")
        ]
        records = [self._shelf.get(cache, AgreementRecord, key) for key in keys]
        provided = self._shelf.scan(
            cache, AgreementRecord, f"agreement/provider/{hash_}/"
        )
        return [record for record in records if record is not None] + provided

    def _newest_first(
        self, records: list[AgreementRecord], states: Collection[AgreementState]
    ) -> list[AgreementRecord]:
        chosen = [record for record in records if record.state in states]
        return sorted(chosen, key=lambda r: (r.created, r.hash), reverse=True)

    def _matching(self, prefix: str) -> list[str]:
        match = _HASH_PREFIX.fullmatch(prefix.strip())
        if match is None:
            raise HashPrefixError(
                f"{prefix[:80]!r} is not the beginning of a hash: up to 64 characters "
                "of 0-9 and a-f"
            )
        found = self._database.read(
            lambda cache: cache.sizes(f"document/{match[1].lower()}")
        )
        return [key.removeprefix("document/") for key, _ in found]


def _same_code(one: HalfRecord, other: HalfRecord) -> bool:
    return (one.source, one.origin, one.capabilities) == (
        other.source,
        other.origin,
        other.capabilities,
    )


def _ambiguous(prefix: str, matches: list[str]) -> HashPrefixError:
    shown = ", ".join(hash_[:12] for hash_ in matches[:5])
    return HashPrefixError(
        f"{len(matches)} protocols have a hash that begins with {prefix[:80]!r}: "
        f"{shown}{', …' if len(matches) > 5 else ''}; give more of it",
        tuple(matches),
    )
