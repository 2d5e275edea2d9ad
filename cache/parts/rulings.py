"""The part of the store for documents that the owner revoked or restored."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of
from cache.records.records import (
    AgreementRecord,
    AgreementState,
    HalfRecord,
    RevocationRecord,
)
from cache.rows import Rows

__all__ = ["Ruled", "RulingStore"]


@dataclass(frozen=True, slots=True)
class Ruled:
    """The result of revoking a document, or of ending a revocation."""

    revocations: tuple[RevocationRecord, ...]
    "The revocations made or ended; empty when there was nothing to do."

    records: int
    "Number of halves and agreements whose state changed."


class RulingStore(AgreementStore):
    """Revokes documents for one peer or all, durably; see `AgreementStore`.

    Halves and agreements are marked as well, so that look-ups for active ones skip
    them. The record of the revocation still counts when they have been pruned.
    """

    def revoke(
        self, hash_: str, *, peer_did: str | None = None, reason: str = "", at: float
    ) -> Ruled:
        """Revoke a document, even if nothing of it is stored.

        Args:
            peer_did: Canonical DID of the only peer concerned; None concerns all.
            at: Seconds since 1970.
        """
        hash_ = hash_.lower()

        def work(cache: Rows) -> Ruled:
            keys = [key for key, _ in cache.sizes(f"revocation/{hash_}/")]
            made = RevocationRecord(hash_, peer_did, at, reason)
            if key_of(made) in keys or f"revocation/{hash_}/-" in keys:
                return Ruled((), 0)
            kept: dict[str, AgreementState] = {}
            if peer_did is None:
                # A revocation for all peers replaces those for single peers.
                for one in self._revocations(cache, hash_):
                    kept.update(one.kept)
                for key in keys:
                    cache.delete(key)
            changed = 0
            for record in self._ruled(cache, hash_, peer_did):
                if record.state is AgreementState.REVOKED:
                    continue
                if record.state is not AgreementState.ACTIVE:
                    kept[key_of(record)] = record.state
                self._shelf.put(cache, replace(record, state=AgreementState.REVOKED))
                changed += 1
            made = replace(made, kept=kept)
            self._shelf.put(cache, made)
            return Ruled((made,), changed)

        return self._database.write(work)

    def give_back(self, hash_: str, *, peer_did: str | None = None) -> Ruled:
        """End a document's revocations and restore the states of its records.

        Args:
            peer_did: Ends only the revocation for this peer; None ends all of them.
        """
        hash_ = hash_.lower()

        def work(cache: Rows) -> Ruled:
            prefix = f"revocation/{hash_}/{peer_did or ''}"
            keys = [key for key, _ in cache.sizes(prefix)]
            ended = [
                one
                for one in self._revocations(cache, hash_)
                if key_of(one) in keys and peer_did in {None, one.peer_did}
            ]
            kept: dict[str, AgreementState] = {}
            for one in ended:
                kept.update(one.kept)
            # A damaged revocation has lost the old states: records then become stale,
            # so that nothing comes into use by itself.
            default = (
                AgreementState.ACTIVE
                if len(ended) == len(keys)
                else AgreementState.STALE
            )
            for key in keys:
                cache.delete(key)
            changed = 0
            for record in self._ruled(cache, hash_, peer_did) if keys else ():
                if record.state is not AgreementState.REVOKED:
                    continue
                before = kept.get(key_of(record), default)
                self._shelf.put(cache, replace(record, state=before))
                changed += 1
            return Ruled(tuple(ended), changed)

        return self._database.write(work)

    def revocations(self, hash_: str | None = None) -> list[RevocationRecord]:
        """Return the revocations of a document, or all of them, newest first."""
        found = self._database.read(
            lambda cache: self._revocations(cache, (hash_ or "").lower())
        )
        return sorted(found, key=lambda one: (one.at, one.hash), reverse=True)

    # Internal; these run in the database's thread.

    def _revocations(self, cache: Rows, hash_: str) -> list[RevocationRecord]:
        prefix = f"revocation/{hash_}/" if hash_ else "revocation/"
        return self._shelf.scan(cache, RevocationRecord, prefix)

    def _ruled(
        self, cache: Rows, hash_: str, peer_did: str | None
    ) -> list[HalfRecord | AgreementRecord]:
        agreements = [
            one
            for one in self._agreements_of(cache, hash_)
            if peer_did in {None, one.peer_did}
        ]
        # A half may serve other peers too, so only a general revocation marks it.
        halves = self._halves(cache, hash_) if peer_did is None else []
        return [*halves, *agreements]
