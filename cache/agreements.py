"""The part of the store for what was agreed: documents, halves and agreements."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cache.database import LOCK_TIMEOUT, Database
from cache.disk import PlainCache
from cache.errors import HashPrefixError, RecordError
from cache.records import AgreementRecord, DocumentRecord, HalfRecord, Role, State
from cache.shelf import Damage, Shelf, key_of

__all__ = ["AgreementStore", "StoreLimits"]

_HASH_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{1,64})", re.IGNORECASE)
_ACTIVE = frozenset({State.ACTIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """What others can make grow, and how far."""

    lock_timeout: float = LOCK_TIMEOUT
    "Seconds to wait for another process that holds the database."

    max_failed_negotiations: int = 1000
    "Negotiations without agreement that are kept, the newest ones."

    max_failed_bytes: int = 64 * 1024 * 1024
    "Bytes that those may have together; one transcript can have megabytes."

    max_strangers: int = 1000
    "Peers kept about whom the owner said nothing, the last seen ones."

    flush_interval: float = 5.0
    "Seconds that use counts stay in memory, so that a call costs no disk write."


class AgreementStore:
    """What was agreed, on disk (ANP-84, ANP-85).

    Methods block for a disk access; call them in a thread, from as many as you like.
    Each either did all it says, durable, or raises:

    StoreUnavailable: the disk is full, the file damaged, held by another process.
    RecordError: what should be stored is not what the record says it is.
    """

    def __init__(self, folder: Path, limits: StoreLimits | None = None) -> None:
        """Open the store in `folder`, or make it."""
        self._limits = limits or StoreLimits()
        self._shelf = Shelf()
        self._uses: dict[str, tuple[int, float]] = {}
        self._flushed_at = 0.0
        self._database = Database(folder, lock_timeout=self._limits.lock_timeout)

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
        """Write what is pending and close the files; a second time does nothing."""
        if self._database.is_open:
            try:
                self.flush()
            finally:
                self._database.close()

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Rows found damaged so far; they count as absent, the rest is unharmed."""
        return self._shelf.damaged

    def check(self) -> tuple[list[str], tuple[Damage, ...]]:
        """Read everything; return what SQLite finds wrong, and all damaged rows."""

        def work(cache: PlainCache) -> list[str]:
            self._shelf.check(cache)
            return cache.check_integrity()

        return self._database.read(work), self.damaged

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

        def work(cache: PlainCache) -> AgreementRecord:
            halves = self._halves(cache, half.hash)
            if any(known.state is State.REVOKED for known in halves):
                raise RecordError(f"document {half.hash[:12]} was revoked by the owner")
            numbered = self._number(cache, half, halves)
            stored = replace(agreement, revision=numbered.revision)
            self._shelf.put(cache, document)
            self._shelf.put(cache, numbered)
            self._shelf.put(cache, stored)
            self._uses.pop(key_of(stored), None)
            return stored

        return self._database.write(work)

    def agreements(
        self,
        own_did: str,
        peer_did: str,
        role: Role,
        task_key: str,
        *,
        states: Collection[State] = _ACTIVE,
    ) -> list[AgreementRecord]:
        """Return the requester's agreements for a task, newest first.

        DIDs are canonical. A provider, which never learns the task, has none here:
        see `provider_half`.
        """
        if role is Role.PROVIDER:
            return []
        prefix = f"agreement/requester/{own_did}/{peer_did}/{task_key}/"
        found = self._database.read(
            lambda cache: self._shelf.scan(cache, AgreementRecord, prefix)
        )
        return self._newest_first(found, states)

    def all_agreements(
        self, *, states: Collection[State] = frozenset(State)
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
        return self._newest_first(found, frozenset(State))

    def provider_half(self, hash_: str, peer_did: str) -> HalfRecord | None:
        """Return the half to answer `peer_did` with when it offers `hash_`, or None.

        That is the revision agreed with this peer, if there is one, and else the first
        active one that did not fail its test cases with whom it was agreed. None means:
        decline, and negotiate.
        """
        hash_ = hash_.lower()

        def work(cache: PlainCache) -> HalfRecord | None:
            halves = [
                half
                for half in self._halves(cache, hash_)
                if half.role is Role.PROVIDER
            ]
            if any(half.state is State.REVOKED for half in halves):
                return None
            own = self._shelf.scan(
                cache, AgreementRecord, f"agreement/provider/{hash_}/{peer_did}/"
            )
            active = [half for half in halves if half.state is State.ACTIVE]
            for agreement in self._newest_first(own, frozenset(State)):
                # One that was revoked or went stale for this peer is not replaced
                # behind its back by another peer's revision.
                if agreement.state is not State.ACTIVE:
                    return None
                active = [h for h in active if h.revision == agreement.revision]
            if not own:
                flawed = self._failed_revisions(cache, hash_)
                active = [h for h in active if h.revision not in flawed]
            return active[0] if active else None

        return self._database.read(work)

    def mark_used(self, agreement: AgreementRecord, *, at: float) -> None:
        """Count one call through `agreement` at `at`, in seconds since 1970.

        Counts are written together some seconds later; a crash loses only those.
        """

        def work(_: PlainCache) -> bool:
            count, last = self._uses.get(key_of(agreement), (0, 0.0))
            self._uses[key_of(agreement)] = count + 1, max(last, at)
            elapsed = at - self._flushed_at
            if 0 <= elapsed < self._limits.flush_interval:
                return False
            self._flushed_at = at
            return True

        if self._database.read(work):
            self.flush()

    def flush(self) -> None:
        """Write the use counts that are still in memory."""

        def work(cache: PlainCache) -> None:
            for key in self._uses:
                record = self._shelf.get(cache, AgreementRecord, key)
                if record is not None:
                    self._shelf.put(cache, self._with_uses(record))
            self._uses.clear()

        if self._uses:
            self._database.write(work)

    # Documents and halves

    def document(self, hash_prefix: str) -> DocumentRecord | None:
        """Return the document with this hash, or the only one whose hash begins so.

        Raises:
            HashPrefixError: no hash prefix, or several fit.
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
            HashPrefixError: none fits, or several do.
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

    def half(self, hash_: str, role: Role, revision: int) -> HalfRecord | None:
        """Return one revision of a half, or None."""
        key = f"half/{hash_.lower()}/{role}/{revision:08d}"
        return self._database.read(
            lambda cache: self._shelf.get(cache, HalfRecord, key)
        )

    def set_state(
        self,
        hash_: str,
        state: State,
        *,
        role: Role | None = None,
        revision: int | None = None,
    ) -> int:
        """Set the state of the document's halves and of the agreements on them.

        Args:
            role: Only that role; None is both.
            revision: Only that revision; None is all.

        Returns:
            How many records changed.
        """
        hash_ = hash_.lower()

        def work(cache: PlainCache) -> int:
            records: list[HalfRecord | AgreementRecord] = [
                *self._halves(cache, hash_),
                *self._agreements_of(cache, hash_),
            ]
            changed = [
                replace(record, state=state)
                for record in records
                if role in {None, record.role}
                and revision in {None, record.revision}
                and record.state is not state
            ]
            for record in changed:
                self._shelf.put(cache, record)
            return len(changed)

        return self._database.write(work)

    def set_agreement_state(self, agreement: AgreementRecord, state: State) -> None:
        """Set the state of one agreement; its half stays for other peers."""

        def work(cache: PlainCache) -> None:
            stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
            if stored is not None:
                self._shelf.put(cache, replace(stored, state=state))

        self._database.write(work)

    def release_failed(self, hash_: str) -> int:
        """Let the document be agreed anew where its test cases failed.

        Returns:
            How many agreements changed; they are stale from now on.
        """
        hash_ = hash_.lower()

        def work(cache: PlainCache) -> int:
            failed = [
                agreement
                for agreement in self._agreements_of(cache, hash_)
                if agreement.state is State.FAILED
            ]
            for agreement in failed:
                self._shelf.put(cache, replace(agreement, state=State.STALE))
            return len(failed)

        return self._database.write(work)

    def set_tests(
        self,
        agreement: AgreementRecord,
        tests: Mapping[str, Any],
        *,
        state: State | None = None,
    ) -> AgreementRecord:
        """Replace the test outcomes of one agreement and return it as it is now.

        Args:
            state: What it is from now on; None leaves that.
        """

        def work(cache: PlainCache) -> AgreementRecord:
            stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
            changed = replace(stored or agreement, tests=dict(tests))
            # What the owner took back meanwhile stays so.
            if state is not None and changed.state is not State.REVOKED:
                changed = replace(changed, state=state)
            if stored is not None:
                self._shelf.put(cache, changed)
            return changed

        return self._database.write(work)

    def is_revoked(self, hash_: str) -> bool:
        """Say whether the owner took the document back."""
        return any(half.state is State.REVOKED for half in self.halves(hash_))

    # Inside; all of these run in the database's thread.

    def _halves(self, cache: PlainCache, hash_: str) -> list[HalfRecord]:
        return self._shelf.scan(cache, HalfRecord, f"half/{hash_}/")

    def _failed_revisions(self, cache: PlainCache, hash_: str) -> set[int]:
        """Return the provider revisions that failed, and passed with nobody."""
        known = self._shelf.scan(cache, AgreementRecord, f"agreement/provider/{hash_}/")
        good = {one.revision for one in known if one.state is State.ACTIVE}
        return {one.revision for one in known if one.state is State.FAILED} - good

    def _number(
        self, cache: PlainCache, half: HalfRecord, halves: list[HalfRecord]
    ) -> HalfRecord:
        """Return the half as it is to be stored, with its revision."""
        halves = [known for known in halves if known.role is half.role]
        if half.revision:
            for known in halves:
                if known.revision == half.revision and known.source != half.source:
                    raise RecordError(f"revision {half.revision} holds another text")
            return half
        for known in halves:
            if known.state is State.ACTIVE and _same_code(known, half):
                return known
        # From the keys, so that the number of a damaged revision is not used again.
        taken = [
            int(key.rpartition("/")[2])
            for key, _ in cache.sizes(f"half/{half.hash}/{half.role}/")
            if key.rpartition("/")[2].isdecimal()
        ]
        return replace(half, revision=max(taken, default=0) + 1)

    def _agreements_of(self, cache: PlainCache, hash_: str) -> list[AgreementRecord]:
        # Revoking is rare: one pass over the keys instead of an index to keep true.
        keys = [
            key
            for key, _ in cache.sizes("agreement/requester/")
            if key.endswith(f"/{hash_}")
        ]
        records = [self._shelf.get(cache, AgreementRecord, key) for key in keys]
        provided = self._shelf.scan(
            cache, AgreementRecord, f"agreement/provider/{hash_}/"
        )
        return [record for record in records if record is not None] + provided

    def _newest_first(
        self, records: list[AgreementRecord], states: Collection[State]
    ) -> list[AgreementRecord]:
        chosen = [self._with_uses(r) for r in records if r.state in states]
        return sorted(chosen, key=lambda r: (r.created, r.hash), reverse=True)

    def _with_uses(self, record: AgreementRecord) -> AgreementRecord:
        count, last = self._uses.get(key_of(record), (0, 0.0))
        if not count:
            return record
        last = max(last, record.last_used or 0.0)
        return replace(record, uses=record.uses + count, last_used=last)

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
