"""The part of the store for negotiations, and for the owner's decisions about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cache.parts.bounds import STRANGERS, Sized, surplus, user_of
from cache.parts.shelf import (
    StoreBase,
    aside_transaction,
    key_of,
    read_transaction,
    write_transaction,
)
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.records.records import AgreementRole
from cache.rows import Rows

MAX_STANDING = 1000
"Decisions of the owner for later negotiations that are kept, the newest ones."

OWN_CALLS = "owner"
"Stands for our own calls where the records of negotiations are counted."


class NegotiationStore(StoreBase):
    """Stores negotiations, and decisions of the owner for later ones."""

    # Negotiations

    @aside_transaction
    def save_negotiation(self, cache: Rows, negotiation: NegotiationRecord) -> None:
        """Store or replace a negotiation; over a bound the oldest go.

        They are those of whoever has most; see `surplus`.
        """
        agreed = replace(negotiation, outcome="agreed")
        other = replace(negotiation, outcome="")
        for key in {key_of(agreed), key_of(other)} - {key_of(negotiation)}:
            cache.delete(key)
        self._shelf.put(cache, negotiation)
        self._prune_negotiations(cache, agreed=negotiation.agreed)

    @write_transaction
    def change_negotiation(
        self,
        cache: Rows,
        negotiation_id: str,
        change: Callable[[NegotiationRecord], NegotiationRecord],
    ) -> None:
        """Change a stored negotiation, if it is still there.

        Args:
            change: Makes the new record of the stored one, so that what others changed
                meanwhile stays; may be called several times.
        """
        for key in cache.keys("negotiation/"):
            if key.rpartition("/")[2] == negotiation_id:
                stored = self._shelf.get(cache, NegotiationRecord, key)
                if stored is not None:
                    self._shelf.put(cache, change(stored))

    @read_transaction
    def negotiations(self, cache: Rows, *, limit: int = 100) -> list[NegotiationRecord]:
        """Return the newest `limit` negotiations, newest first."""
        kind, found = NegotiationRecord, []
        for area in ("negotiation/agreed/", "negotiation/other/"):
            found += self._shelf.scan(cache, kind, area, limit=limit, descending=True)
        return sorted(found, key=lambda n: (n.started, n.id), reverse=True)[:limit]

    @read_transaction
    def negotiation(self, cache: Rows, id_prefix: str) -> NegotiationRecord | None:
        """Return the newest negotiation whose id begins with `id_prefix`, or None."""
        keys = [
            key
            for key in cache.keys("negotiation/")
            if key.rpartition("/")[2].startswith(id_prefix)
        ]
        if not keys or not id_prefix:
            return None
        newest = max(keys, key=lambda key: key.split("/")[2:])
        return self._shelf.get(cache, NegotiationRecord, newest)

    @read_transaction
    def negotiation_ids(
        self, cache: Rows, id_prefix: str, *, limit: int = 2
    ) -> list[str]:
        """Return at most `limit` ids of stored negotiations with this prefix."""
        ids = (key.rpartition("/")[2] for key in cache.keys("negotiation/"))
        found = {name for name in ids if id_prefix and name.startswith(id_prefix)}
        return sorted(found)[:limit]

    # Standing decisions

    @write_transaction
    def save_standing(
        self, cache: Rows, standing: StandingRecord, *, now: float
    ) -> None:
        """Store a decision for later; lapsed ones go, and the oldest over a limit."""
        self._shelf.put(cache, standing)
        kept = self._shelf.scan(cache, StandingRecord, "standing/")
        kept.sort(key=lambda record: (record.expires > now, record.created))
        lapsed = sum(record.expires <= now for record in kept)
        for record in kept[: max(lapsed, len(kept) - MAX_STANDING)]:
            cache.delete(key_of(record))

    def standing(self, peer_did: str | None = None) -> list[StandingRecord]:
        """Return all decisions about a peer, or about all peers, newest first."""
        prefix = "standing/" if peer_did is None else f"standing/{peer_did}/"
        found = self._scan(StandingRecord, prefix)
        return sorted(found, key=lambda word: (word.created, word.id), reverse=True)

    @write_transaction
    def take_standing(
        self, cache: Rows, standing: StandingRecord, *, by: str, now: float
    ) -> StandingRecord | None:
        """Mark a decision as used by the negotiation `by`; None if already used."""
        known = self._shelf.get(cache, StandingRecord, key_of(standing))
        if known is None or known.used is not None or known.expires <= now:
            return None
        taken = replace(known, used=now, used_by=by)
        self._shelf.put(cache, taken)
        return taken

    @write_transaction
    def give_back_standing(self, cache: Rows, standing: StandingRecord) -> None:
        """Make a decision available again after a negotiation that did not need it."""
        known = self._shelf.get(cache, StandingRecord, key_of(standing))
        if known is not None and known.used_by == standing.used_by:
            self._shelf.put(cache, replace(known, used=None, used_by=None))

    # Internal; these run in the database's thread.

    def _prune_negotiations(self, cache: Rows, *, agreed: bool) -> None:
        limits = self._limits
        area, count, size = (
            ("agreed", limits.max_agreed_negotiations, limits.max_agreed_bytes)
            if agreed
            else ("other", limits.max_failed_negotiations, limits.max_failed_bytes)
        )
        rows = cache.sizes(f"negotiation/{area}/")
        if len(rows) <= count and sum(size for _, size in rows) <= size:
            return
        sized = [Sized(key, one, self._caller(cache, key)) for key, one in rows]
        for key in surplus(sized, count=count, size=size):
            cache.delete(key)

    def _caller(self, cache: Rows, key: str) -> str:
        """Return the user whose call the negotiation was for."""
        record = self._shelf.get(cache, NegotiationRecord, key)
        if record is None:
            return STRANGERS
        if record.role is AgreementRole.REQUESTER:
            return OWN_CALLS
        return user_of(self._shelf, cache, record.peer_did)
