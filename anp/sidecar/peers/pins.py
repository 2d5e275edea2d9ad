"""Names and pins of peers in the store: the DID behind a URL, and the keys of a DID."""

from __future__ import annotations

import time
from collections.abc import Callable

from anp.errors import CallError, ErrorKind
from anp.identity.address import PeerAddress
from anp.identity.dids import agent_of
from anp.identity.web.key_pins import Pinned
from cache.records.peers import DidKeysRecord, NameRecord, PinRecord
from cache.store import Store


class StoredBook:
    """Gives the address book the names and the pins of URLs that are in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_pin(self, url: str) -> str | None:
        """See `anp.identity.book.BookStore`."""
        pin = self._store.pin(url)
        return pin.did if pin else None

    def put_pin(self, url: str, did: str) -> None:
        """See `anp.identity.book.BookStore`."""
        self._store.save_pin(
            PinRecord(url=url, did=did, created=time.time(), agent=agent_of(did))
        )

    def url_of(self, agent: str) -> str | None:
        """See `anp.identity.book.BookStore`."""
        return self._store.pinned_url(agent)

    def get_name(self, name: str) -> PeerAddress | None:
        """See `anp.identity.book.BookStore`."""
        found = self._store.name(name)
        return None if found is None else _address_of(found)

    def names(self) -> list[PeerAddress]:
        """See `anp.identity.book.BookStore`."""
        return [_address_of(one) for one in self._store.names()]

    def put_name(self, entry: PeerAddress) -> None:
        """See `anp.identity.book.BookStore`."""
        assert entry.name is not None
        self._store.save_name(
            NameRecord(entry.name, time.time(), did=entry.did, url=entry.url)
        )

    def drop_name(self, name: str) -> bool:
        """See `anp.identity.book.BookStore`."""
        return self._store.forget_name(name)


def _address_of(record: NameRecord) -> PeerAddress:
    return PeerAddress(record.name, record.did, record.url)


class DidKeys:
    """Gives the resolver the stored keys of DIDs; takes the owner's word on them."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def get_keys(self, did: str) -> Pinned | None:
        """See `anp.identity.web.key_pins.KeyPins`."""
        found = self._store.did_keys(did)
        return None if found is None else Pinned(found.trusted, found.waiting)

    def put_keys(self, did: str, pinned: Pinned) -> None:
        """See `anp.identity.web.key_pins.KeyPins`."""
        now = self._clock()
        before = self._store.did_keys(did)
        same = before is not None and before.trusted == pinned.trusted
        changed = before.changed if before is not None and before.waiting else now
        self._store.save_did_keys(
            DidKeysRecord(
                did=did,
                trusted=pinned.trusted,
                seen=before.seen if same and before is not None else now,
                waiting=pinned.waiting,
                changed=changed if pinned.waiting else None,
            )
        )

    def changed(self) -> dict[str, DidKeysRecord]:
        """Return, by DID, whose new keys wait for the owner's word."""
        return {record.did: record for record in self._store.changed_dids()}

    def trust(self, did: str) -> tuple[str, ...]:
        """Take the keys that wait as the DID's own, in place of those it had.

        Returns:
            The keys that are trusted now, as multibase.

        Raises:
            CallError: USAGE, none wait.
        """
        found = self._store.did_keys(did)
        if found is None or not found.waiting:
            raise CallError(
                ErrorKind.USAGE,
                f"no changed key of {did} waits; it shows one when it connects next",
            )
        self.put_keys(did, Pinned(found.waiting))
        return found.waiting

    def forget(self, did: str) -> bool:
        """Drop what is known of a DID's keys; the next ones are taken as the first."""
        return self._store.forget_did_keys(did)
