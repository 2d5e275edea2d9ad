"""The part of the store for short-term keys that outlive their link.

Every change of a counter is one transaction, on disk before the method returns. So
only one sender can reserve a counter and only one receiver can claim it, also when the
process is killed in between or several daemons share the store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from cache.parts.bounds import STRANGERS, user_of
from cache.parts.shelf import Shelf, StoreBase, aside_transaction, key_of
from cache.records.peers import MAX_KEY_COUNTER, KeyRecord
from cache.records.records import AgreementRole
from cache.rows import Rows

MAX_KEYS = 8192
"Keys kept in all; a key above it is not kept, and its channel ends with its link."

MAX_PEER_KEYS = 128
"Keys kept for one peer and role."

PRUNE_EVERY = 60.0
"Seconds from one look through all keys to the next, however many peers ask for room."

KEEP_ENDED = 3600.0
"""Seconds for which an expired key is remembered, so that a peer with a slow clock
still gets a true answer when it asks whether one of its frames was accepted."""

T = TypeVar("T")


class KeyStore(StoreBase):
    """Stores keys for resumption. `now` is seconds since 1970.

    A key is identified by our role, the peer's DID as on the wire, and its id.
    """

    _pruned = -PRUNE_EVERY
    "When all keys were looked through last."

    @aside_transaction
    def save_key(self, cache: Rows, record: KeyRecord, *, now: float) -> bool:
        """Drop expired keys and store a new one; return whether there was room.

        Peers about whom the owner decided nothing get none of the last half.
        """
        area = f"key/{record.role}/{record.peer_did}/"
        in_all = MAX_KEYS
        if user_of(self._shelf, cache, record.peer_did) == STRANGERS:
            in_all = MAX_KEYS // 2
        for prefix, most in ((area, MAX_PEER_KEYS), ("key/", in_all)):
            is_full = len(cache.keys(prefix)) >= most
            if is_full and (prefix == area or abs(now - self._pruned) >= PRUNE_EVERY):
                self._prune(cache, prefix, now)
            if len(cache.keys(prefix)) >= most:
                return False
        if key_of(record) in cache:
            return False
        keep = max(0.0, record.expires - now) + KEEP_ENDED
        self._shelf.put(cache, record, keep=keep)
        return True

    def key(self, role: AgreementRole, peer_did: str, key_id: str) -> KeyRecord | None:
        """Return a key, or None if it is absent or damaged."""
        where = _where(role, peer_did, key_id)
        return self._get(KeyRecord, where)

    def keys_with(
        self, role: AgreementRole, peer_did: str, binding: str
    ) -> list[KeyRecord]:
        """Return the keys with a peer that are bound to a protocol, newest first."""
        found = self._scan(KeyRecord, f"key/{role}/{peer_did}/")
        fitting = [key for key in found if key.binding == binding and not key.ended]
        return sorted(fitting, key=lambda key: (key.created, key.id), reverse=True)

    def reserve_key(
        self, role: AgreementRole, peer_did: str, key_id: str, *, size: int, now: float
    ) -> int | None:
        """Reserve `size` counters for sending and return the first; None if ended.

        The block is aligned, so that a receiver can claim the same block.
        """

        def change(known: KeyRecord) -> tuple[KeyRecord, int]:
            first = -(-known.reserved // size) * size
            return replace(known, reserved=first + size), first

        return self._change(_where(role, peer_did, key_id), change, now)

    def claim_key(
        self,
        role: AgreementRole,
        peer_did: str,
        key_id: str,
        *,
        first: int,
        last: int,
        now: float,
    ) -> bool:
        """Claim the received counters `first` to `last`; False if they are taken."""

        def change(known: KeyRecord) -> tuple[KeyRecord, bool]:
            if first <= known.mark:
                return known, False
            return replace(known, mark=last), True

        return self._change(_where(role, peer_did, key_id), change, now) or False

    @aside_transaction
    def end_key(
        self,
        cache: Rows,
        role: AgreementRole,
        peer_did: str,
        key_id: str,
        *,
        unless_claimed: int = -1,
    ) -> bool:
        """End a key, so that nothing is sent or accepted under it any more.

        Args:
            unless_claimed: A counter; if it is claimed, the key does not end. Without
                it the key ends in any case.

        Returns:
            True when neither that counter nor a later one was or will be accepted.
        """
        where = _where(role, peer_did, key_id)
        if where not in cache:
            return True
        known = self._shelf.get(cache, KeyRecord, where)
        if known is None:
            # The record is damaged, so it is unknown what was accepted under the
            # key.
            return False
        if 0 <= unless_claimed <= known.mark:
            return False
        if not known.ended:
            self._shelf.put(cache, replace(known, sealed=""))
        return True

    def drop_key(self, role: AgreementRole, peer_did: str, key_id: str) -> None:
        """Forget a key that no peer will ask about any more."""
        where = _where(role, peer_did, key_id)
        self._database.write(lambda cache: cache.delete(where), aside=True)

    # Internal; these run in the database's thread.

    @aside_transaction
    def _change(
        self,
        cache: Rows,
        where: str,
        change: Callable[[KeyRecord], tuple[KeyRecord, T]],
        now: float,
    ) -> T | None:
        """Apply `change` to a key that has not ended, in one transaction."""
        known = self._shelf.get(cache, KeyRecord, where)
        if known is None or known.ended or known.expires <= now:
            return None
        changed, answer = change(known)
        if changed != known:
            self._shelf.put(cache, changed)
        return answer

    def _prune(self, cache: Rows, prefix: str, now: float) -> None:
        if prefix == "key/":
            self._pruned = now
        for record in self._shelf.scan(cache, KeyRecord, prefix):
            if record.expires + KEEP_ENDED <= now:
                cache.delete(key_of(record))


def end_all_keys(cache: Rows) -> None:
    """End every key of a store that may have lost its last seconds.

    The counters that were reserved or claimed in those seconds are unknown. So the
    store no longer says of any counter that nothing was accepted from there on.
    """
    shelf = Shelf()
    for record in shelf.scan(cache, KeyRecord, "key/"):
        shelf.put(cache, replace(record, sealed="", mark=MAX_KEY_COUNTER))


def _where(role: AgreementRole, peer_did: str, key_id: str) -> str:
    return f"key/{role}/{peer_did}/{key_id}"
