"""The part of the store for agreements, documents and halves, also imported ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cache.errors import HashPrefixError, RecordError
from cache.parts.bounds import trim_agreements
from cache.parts.shelf import StoreBase, key_of, read_transaction, write_transaction
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
)
from cache.rows import Rows

_HASH_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{1,64})", re.IGNORECASE)
_ACTIVE = frozenset({AgreementState.ACTIVE})


@dataclass(frozen=True, slots=True)
class ImportPart:
    """One half to import, and the peer that it will serve."""

    half: HalfRecord
    "The half; revision 0 lets the store give it the next number."

    samples: Literal["full", "partial", "none"]
    "Share of the schemas for which messages could be made; see `AgreementRecord`."

    tests: Mapping[str, Any]
    "Findings of the half's tests on this side."

    peer_did: str | None = None
    "Canonical DID of the only peer it serves; None serves all."

    agreement: AgreementRecord | None = None
    "Stored unless an agreement with its key exists."


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing one half."""

    half: HalfRecord
    "The half as it is stored, with its revision."

    agreements: tuple[AgreementRecord, ...]
    "The agreements that use it now."

    replaced: tuple[int, ...]
    "Revisions that serve nobody any more."


class AgreementStore(StoreBase):
    """Stores documents, halves and agreements durably (ANP-84, ANP-85)."""

    @write_transaction
    def save_agreement(
        self,
        cache: Rows,
        document: DocumentRecord,
        half: HalfRecord,
        agreement: AgreementRecord,
        *,
        spare: Collection[str] = (),
    ) -> AgreementRecord:
        """Store the three in one transaction (ANP-84) and return the agreement.

        With `half.revision` 0 the half gets the next number, or that of an active
        revision with the same text, capabilities and origin. Over the bound of the peer
        its longest unused agreements go.

        Args:
            spare: Hashes of texts that stay with their code in any case.

        Raises:
            RecordError: they do not belong together, the revision holds another text,
                or the owner revoked the document.
        """
        if not (document.hash == half.hash == agreement.hash):
            raise RecordError("document, half and agreement have different hashes")
        if half.role != agreement.role:
            raise RecordError("half and agreement have different roles")
        halves = self._halves(cache, half.hash)
        if self._is_revoked(cache, half.hash, agreement.peer_did, halves):
            raise RecordError(f"document {half.hash[:12]} was revoked by the owner")
        numbered = self._number(cache, half, halves)
        stored = replace(agreement, revision=numbered.revision)
        before = self._shelf.get(cache, AgreementRecord, key_of(agreement))
        if before is not None and before.created == agreement.created:
            # The same one with new code: it was used while that was written.
            stored = replace(
                stored,
                uses=max(before.uses, stored.uses),
                last_used=max(before.last_used or 0, stored.last_used or 0) or None,
            )
        self._shelf.put(cache, document)
        self._shelf.put(cache, numbered)
        self._shelf.put(cache, stored)
        if stored.role is AgreementRole.PROVIDER:
            most = self._limits.max_provided
            trim_agreements(self._shelf, cache, stored, most=most, spare=spare)
        return stored

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
        found = self._scan(AgreementRecord, prefix)
        return self._newest_first(found, states)

    def all_agreements(
        self, *, states: Collection[AgreementState] = frozenset(AgreementState)
    ) -> list[AgreementRecord]:
        """Return all agreements of both roles, newest first; reads every one."""
        found = self._scan(AgreementRecord, "agreement/")
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
        found = self._scan(AgreementRecord, prefix)
        return next(iter(self._newest_first(found, frozenset(AgreementState))), None)

    @read_transaction
    def provider_half(
        self, cache: Rows, hash_: str, peer_did: str
    ) -> HalfRecord | None:
        """Return the half that answers `peer_did` when it offers `hash_`, or None.

        That is the revision agreed with this peer, if there is one, and otherwise the
        first active one that did not fail its test cases with the peer it was agreed
        with. None means that the offer is declined and the peers negotiate.
        """
        hash_ = hash_.lower()
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

    @write_transaction
    def save_import(
        self, cache: Rows, document: DocumentRecord, parts: Sequence[ImportPart]
    ) -> tuple[Imported, ...]:
        """Store the halves of one document in one transaction, and put them to use.

        The active agreements on the document move to the imported revision: those of
        `peer_did`, or all. Without `peer_did` the half replaces all others: older
        provider revisions go stale, because `provider_half` serves a peer that has no
        revision of its own with the first active one, and the owner chose this one.
        With `peer_did` other peers keep the revisions they have.

        Raises:
            RecordError: the parts do not belong to the document, the owner revoked the
                document or the agreement, or a requester's half would serve nobody.
        """
        if any(part.half.hash != document.hash for part in parts):
            raise RecordError("a half is of another document")
        for part in parts:
            made = part.agreement
            if made is not None and (
                (made.hash, made.role) != (document.hash, part.half.role)
                or made.peer_did != part.peer_did
            ):
                raise RecordError("half and agreement do not belong together")
        halves = self._halves(cache, document.hash)
        if self._is_revoked(cache, document.hash, None, halves):
            raise RecordError(f"document {document.hash[:12]} was revoked by the owner")
        for part in parts:
            if self._is_revoked(cache, document.hash, part.peer_did, ()):
                raise RecordError("the owner revoked it for this peer")
        self._shelf.put(cache, document)
        return tuple(self._take_in(cache, part, halves) for part in parts)

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
        return self._get(DocumentRecord, f"document/{matches[0]}")

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
        return self._get(HalfRecord, key)

    @write_transaction
    def release_failed(self, cache: Rows, hash_: str) -> int:
        """Mark agreements on a document as stale where its test cases failed.

        The document can then be agreed again.

        Returns:
            Number of agreements that changed.
        """
        hash_ = hash_.lower()
        failed = [
            agreement
            for agreement in self._agreements_of(cache, hash_)
            if agreement.state is AgreementState.FAILED
        ]
        for agreement in failed:
            self._shelf.put(cache, replace(agreement, state=AgreementState.STALE))
        return len(failed)

    @write_transaction
    def set_tests(
        self,
        cache: Rows,
        agreement: AgreementRecord,
        tests: Mapping[str, Any],
        *,
        state: AgreementState | None = None,
    ) -> AgreementRecord:
        """Add test outcomes to one agreement and return it as it is now.

        Args:
            tests: Those that are new; others stay, as another channel may have added
                them.
            state: The new state of the agreement; None keeps the present one.
        """
        stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
        known = stored or agreement
        changed = replace(known, tests={**known.tests, **tests})
        # A revocation by the owner in the meantime must not be undone.
        if state is not None and changed.state is not AgreementState.REVOKED:
            changed = replace(changed, state=state)
        if stored is not None:
            self._shelf.put(cache, changed)
        return changed

    @read_transaction
    def is_revoked(self, cache: Rows, hash_: str, peer_did: str | None = None) -> bool:
        """Return whether the owner revoked the document.

        Args:
            peer_did: A peer's canonical DID; a revocation for it alone counts too.
        """
        hash_ = hash_.lower()
        halves = self._halves(cache, hash_)
        return self._is_revoked(cache, hash_, peer_did, halves)

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

    def _take_in(
        self, cache: Rows, part: ImportPart, halves: list[HalfRecord]
    ) -> Imported:
        half = self._number(cache, part.half, halves)
        self._shelf.put(cache, half)
        agreements = tuple(
            replace(
                known,
                revision=half.revision,
                samples=part.samples,
                tests=dict(part.tests),
                # A call takes the newest agreement, and the owner chose this half now.
                created=part.half.created,
                state=AgreementState.ACTIVE,
            )
            for known in self._served(cache, part)
        )
        if half.role is AgreementRole.REQUESTER and not agreements:
            raise RecordError("no agreement would use the requester half")
        for agreement in agreements:
            self._shelf.put(cache, agreement)
        replaced: list[int] = []
        if half.role is AgreementRole.PROVIDER and part.peer_did is None:
            for other in halves:
                if (
                    other.role is half.role
                    and other.state is AgreementState.ACTIVE
                    and other.revision != half.revision
                ):
                    self._shelf.put(cache, replace(other, state=AgreementState.STALE))
                    replaced.append(other.revision)
        return Imported(half, agreements, tuple(replaced))

    def _served(self, cache: Rows, part: ImportPart) -> list[AgreementRecord]:
        """Return the agreements that will use the half, the new one among them."""
        known = {
            key_of(agreement): agreement
            for agreement in self._agreements_of(cache, part.half.hash)
            if agreement.role is part.half.role
            and part.peer_did in {None, agreement.peer_did}
        }
        served = {
            key: agreement
            for key, agreement in known.items()
            if agreement.state is AgreementState.ACTIVE
        }
        if part.agreement is not None:
            key = key_of(part.agreement)
            named = known.get(key, part.agreement)
            if named.state is AgreementState.REVOKED:
                raise RecordError("the owner revoked the agreement with this peer")
            # The import brings a stale agreement back into use.
            served[key] = named
        return list(served.values())


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
