"""The part of the store for what the owner took back, and gave back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of
from cache.records.protocols import RevocationRecord
from cache.records.records import AgreementRecord, HalfRecord, State
from cache.rows import Rows

__all__ = ["Ruled", "RulingStore"]


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a revocation, or its end, changed."""

    revocations: tuple[RevocationRecord, ...]
    "Those made or ended; empty when there was nothing to do."

    records: int
    "Halves and agreements whose state changed."


class RulingStore(AgreementStore):
    """Takes documents back for one peer or all, durably; see `AgreementStore`.

    Halves and agreements are marked as well, so that every look-up that wants active
    ones passes them over; the record of the revocation decides when they are gone.
    """

    def revoke(
        self, hash_: str, *, peer_did: str | None = None, reason: str = "", at: float
    ) -> Ruled:
        """Take a document back, whether anything of it is stored or not.

        Args:
            peer_did: For this peer alone, in its canonical form; None is for all.
            at: Seconds since 1970.
        """
        hash_ = hash_.lower()

        def work(cache: Rows) -> Ruled:
            keys = [key for key, _ in cache.sizes(f"revocation/{hash_}/")]
            made = RevocationRecord(hash_, peer_did, at, reason)
            if key_of(made) in keys or f"revocation/{hash_}/-" in keys:
                return Ruled((), 0)
            kept: dict[str, State] = {}
            if peer_did is None:
                # One for all takes the place of those for single peers.
                for one in self._revocations(cache, hash_):
                    kept.update(one.kept)
                for key in keys:
                    cache.delete(key)
            changed = 0
            for record in self._ruled(cache, hash_, peer_did):
                if record.state is State.REVOKED:
                    continue
                if record.state is not State.ACTIVE:
                    kept[key_of(record)] = record.state
                self._shelf.put(cache, replace(record, state=State.REVOKED))
                changed += 1
            made = replace(made, kept=kept)
            self._shelf.put(cache, made)
            return Ruled((made,), changed)

        return self._database.write(work)

    def give_back(self, hash_: str, *, peer_did: str | None = None) -> Ruled:
        """End a document's revocations, and make its records what they were before.

        Args:
            peer_did: Only the one for this peer; None ends all of them.
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
            kept: dict[str, State] = {}
            for one in ended:
                kept.update(one.kept)
            # Where a damaged one does not tell, nothing comes into use by itself.
            default = State.ACTIVE if len(ended) == len(keys) else State.STALE
            for key in keys:
                cache.delete(key)
            changed = 0
            for record in self._ruled(cache, hash_, peer_did) if keys else ():
                if record.state is not State.REVOKED:
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

    # Inside; these run in the database's thread.

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
        # A half may serve other peers too.
        halves = self._halves(cache, hash_) if peer_did is None else []
        return [*halves, *agreements]
