"""The part of the store for peers: who they are, where, and under which keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from cache.parts.bounds import is_stranger
from cache.parts.shelf import StoreBase, key_of, read_transaction, write_transaction
from cache.records.negotiations import NegotiationRecord
from cache.records.peers import (
    AddressRecord,
    AliasRecord,
    DidKeysRecord,
    NameRecord,
    PeerRecord,
    PeerState,
    PinRecord,
    RulingRecord,
)
from cache.rows import Rows

MAX_DIDS = 20_000
"""DIDs whose keys are remembered. Above it the longest unchanged ones are dropped,
except those of peers that the owner allowed or blocked."""


PASSING_AT_ONCE = 100
"Passing peers that are dropped in one transaction."


class PeerStore(StoreBase):
    """Peers under every DID they are known by.

    A call looks up single rows here: no method on its way reads all peers or pins.
    """

    # Peers

    @write_transaction
    def save_peer(self, cache: Rows, peer: PeerRecord) -> None:
        """Store or replace a peer; over the limit the longest unseen strangers go."""
        is_new = key_of(peer) not in cache
        before = self._shelf.get(cache, PeerRecord, key_of(peer))
        self._put_peer(cache, peer, before=before)
        if is_new and is_stranger(peer):
            self._prune_strangers(cache)

    @write_transaction
    def see_peer(
        self,
        cache: Rows,
        did: str,
        *,
        shown_did: str,
        now: float,
        state: PeerState | None = None,
    ) -> None:
        """Note in one transaction that a peer was seen, so that no decision is lost.

        Args:
            shown_did: The DID it used; kept as an alias, of which there are at most 8.
            state: The owner's new decision about it; None keeps the present one.
                `WAITING` is none: it never takes the place of a decision.
        """
        found = self._shelf.get(cache, PeerRecord, f"peer/{did}")
        known = found or PeerRecord(
            did=did, state=PeerState.UNKNOWN, first_seen=now, last_seen=now
        )
        if state is PeerState.WAITING and known.state is not PeerState.UNKNOWN:
            # The owner may have decided since the peer was looked up.
            state = None
        aliases = set(known.aliases) | ({shown_did} - {did})
        peer = replace(
            known,
            last_seen=now,
            state=state or known.state,
            aliases=tuple(sorted(aliases)[:8]),
        )
        self._put_peer(cache, peer, before=found)
        if state in {PeerState.ALLOWED, PeerState.BLOCKED}:
            self._note_ruling(cache, now)
        if found is None and is_stranger(peer):
            self._prune_strangers(cache)

    def peers(self) -> list[PeerRecord]:
        """Return all peers, the last seen one first."""
        found = self._scan(PeerRecord, "peer/")
        return sorted(found, key=lambda peer: (peer.last_seen, peer.did), reverse=True)

    def peer(self, did: str) -> PeerRecord | None:
        """Return the record of the peer with the canonical `did`, or None."""
        return self._get(PeerRecord, f"peer/{did}")

    @read_transaction
    def peers_known_as(self, cache: Rows, *dids: str) -> list[PeerRecord]:
        """Return the peers that have one of `dids` as their own DID or as another one.

        There may be several: the owner can name a DID before its peer is met under its
        canonical one.
        """
        names = set(dids)
        for did in dids:
            alias = self._shelf.get(cache, AliasRecord, f"alias/{did}")
            if alias is not None:
                names.add(alias.did)
        found = [
            self._shelf.get(cache, PeerRecord, f"peer/{name}") for name in sorted(names)
        ]
        return [peer for peer in found if peer is not None]

    def canonical_did(self, did: str) -> str:
        """Return the DID under which the peer with this alias is kept, or `did`."""
        alias = self._get(AliasRecord, f"alias/{did}")
        return did if alias is None else alias.did

    @write_transaction
    def forget_peer(self, cache: Rows, did: str) -> int:
        """Drop a peer and every pin of it or its aliases; agreements stay.

        Returns:
            Number of records dropped.
        """
        peer = self._shelf.get(cache, PeerRecord, f"peer/{did}")
        dids = {did, *(peer.aliases if peer else ())}
        dropped = [
            self._drop_pin(cache, pin)
            for pin in self._shelf.scan(cache, PinRecord, "pin/")
            if pin.did in dids
        ]
        if peer is not None:
            self._drop_aliases(cache, peer, peer.aliases)
            self._note_ruling(cache, peer.last_seen)
        return sum([*dropped, bool(cache.delete(f"peer/{did}"))])

    def forget_passing(
        self, *, unseen_since: float, keep: Collection[str] = ()
    ) -> list[str]:
        """Drop peers without agreement or decision that were not seen for long.

        With each go its aliases, its pins, the keys of its DIDs and the negotiations
        with it. Each step is a short transaction, so calls go on meanwhile.

        Args:
            unseen_since: Peers seen at or after this time stay; seconds since 1970.
            keep: DIDs that stay, such as those of the configuration.

        Returns:
            The DIDs of the peers that were dropped.
        """
        agreed = {
            # Peer is the fourth part of the keys of both roles; see `key_of`.
            key.split("/")[3]
            for key in self._database.read(lambda cache: cache.keys("agreement/"))
        }
        spared = agreed.union(keep)

        def passing(peer: PeerRecord) -> bool:
            named = spared.isdisjoint({peer.did, *peer.aliases})
            return is_stranger(peer) and named and peer.last_seen < unseen_since

        gone = [peer.did for peer in self._scan(PeerRecord, "peer/") if passing(peer)]
        dropped: dict[str, str] = {}
        for start in range(0, len(gone), PASSING_AT_ONCE):
            part = gone[start : start + PASSING_AT_ONCE]
            for peer in self._drop_passing(part, passing):
                dropped |= dict.fromkeys((peer.did, *peer.aliases), peer.did)
        if dropped:
            self._drop_negotiations(dropped)
        return sorted(set(dropped.values()))

    # Pins

    @write_transaction
    def save_pin(self, cache: Rows, pin: PinRecord) -> None:
        """Store or replace the pin of a URL."""
        before = self._shelf.get(cache, PinRecord, key_of(pin))
        if before is not None and before != pin:
            self._drop_pin(cache, before)
        self._shelf.put(cache, pin)
        self._shelf.put(cache, _address(pin))

    def pin(self, url: str) -> PinRecord | None:
        """Return the pin of the normalised `url`, or None."""
        return self._get(PinRecord, f"pin/{url}")

    def pins(self) -> list[PinRecord]:
        """Return all pins, newest first."""
        found = self._scan(PinRecord, "pin/")
        return sorted(found, key=lambda pin: (pin.created, pin.url), reverse=True)

    def pinned_url(self, agent: str) -> str | None:
        """Return the URL that was pinned last for an agent, or None."""
        found = self._scan(AddressRecord, f"address/{agent}/")
        newest = max(found, key=lambda one: (one.created, one.url), default=None)
        return None if newest is None else newest.url

    # Names in the address book

    @write_transaction
    def save_name(self, cache: Rows, record: NameRecord) -> None:
        """Store or replace a name of the address book."""
        self._shelf.put(cache, record)

    def name(self, name: str) -> NameRecord | None:
        """Return the record of a name, or None."""
        return self._get(NameRecord, f"name/{name}")

    def names(self) -> list[NameRecord]:
        """Return all names of the address book, in alphabetical order."""
        return self._scan(NameRecord, "name/")

    def forget_name(self, name: str) -> bool:
        """Drop a name; return whether there was one."""
        return self._database.write(lambda cache: bool(cache.delete(f"name/{name}")))

    # Keys of DIDs on the web

    @write_transaction
    def save_did_keys(self, cache: Rows, record: DidKeysRecord) -> None:
        """Store or replace the record of a DID's keys.

        Those of peers that the owner allowed or blocked are never dropped to make room.
        """
        is_new = key_of(record) not in cache
        self._shelf.put(cache, record)
        if not is_new or len(cache.keys("did_keys/")) <= MAX_DIDS:
            return
        listed = {PeerState.ALLOWED, PeerState.BLOCKED}
        peers = self._shelf.scan(cache, PeerRecord, "peer/")
        keep = {
            did
            for peer in peers
            if peer.state in listed
            for did in (peer.did, *peer.aliases)
        }
        known = self._shelf.scan(cache, DidKeysRecord, "did_keys/")
        loose = [entry for entry in known if entry.did not in keep]
        loose.sort(key=lambda entry: entry.seen)
        # Drops a tenth at once, so that a flood of strangers rarely pays for this.
        for entry in loose[: MAX_DIDS // 10]:
            cache.delete(key_of(entry))

    def did_keys(self, did: str) -> DidKeysRecord | None:
        """Return the record of a DID's keys, or None."""
        return self._get(DidKeysRecord, f"did_keys/{did}")

    def changed_dids(self) -> list[DidKeysRecord]:
        """Return the DIDs with new keys that wait for the owner's decision."""
        found = self._scan(DidKeysRecord, "did_keys/")
        return [record for record in found if record.waiting]

    def forget_did_keys(self, did: str) -> bool:
        """Drop the record of a DID's keys; return whether there was one."""
        return self._database.write(lambda cache: bool(cache.delete(f"did_keys/{did}")))

    def _drop_negotiations(self, dids: Collection[str]) -> None:
        """Drop the negotiations with peers, one transaction each."""
        for key in self._database.read(lambda cache: cache.keys("negotiation/")):
            record = self._get(NegotiationRecord, key)
            if record is not None and record.peer_did in dids:
                self._database.write(partial(_delete, key=key))

    # Internal; these run in the database's thread.

    def _note_ruling(self, cache: Rows, now: float) -> None:
        """Change the row by which other daemons notice a decision about a peer."""
        self._shelf.put(cache, RulingRecord(now))

    @write_transaction
    def _drop_passing(
        self, cache: Rows, dids: Sequence[str], passing: Callable[[PeerRecord], bool]
    ) -> list[PeerRecord]:
        found = [self._shelf.get(cache, PeerRecord, f"peer/{did}") for did in dids]
        # One that was seen meanwhile stays.
        gone = [peer for peer in found if peer is not None and passing(peer)]
        names = {did for peer in gone for did in (peer.did, *peer.aliases)}
        if names:
            for pin in self._shelf.scan(cache, PinRecord, "pin/"):
                if pin.did in names:
                    self._drop_pin(cache, pin)
        for did in names:
            cache.delete(f"did_keys/{did}")
        for peer in gone:
            self._drop_aliases(cache, peer, peer.aliases)
            cache.delete(key_of(peer))
        return gone

    def _prune_strangers(self, cache: Rows) -> None:
        limit = self._limits.max_strangers
        if len(cache.keys("peer/")) <= limit:
            return
        peers = self._shelf.scan(cache, PeerRecord, "peer/")
        strangers = sorted(filter(is_stranger, peers), key=lambda peer: peer.last_seen)
        # A tenth more than needed, so that a flood of strangers rarely pays for this.
        surplus = len(strangers) - limit
        if surplus > 0:
            for peer in strangers[: surplus + limit // 10]:
                self._drop_aliases(cache, peer, peer.aliases)
                cache.delete(key_of(peer))

    def _put_peer(
        self, cache: Rows, peer: PeerRecord, *, before: PeerRecord | None
    ) -> None:
        for alias in peer.aliases:
            link = AliasRecord(alias, peer.did)
            # One that is damaged, or was never written, is put right here.
            if self._shelf.get(cache, AliasRecord, key_of(link)) != link:
                self._shelf.put(cache, link)
        if before is not None:
            self._drop_aliases(cache, peer, set(before.aliases) - set(peer.aliases))
        self._shelf.put(cache, peer)

    def _drop_aliases(
        self, cache: Rows, peer: PeerRecord, aliases: Iterable[str]
    ) -> None:
        for alias in aliases:
            known = self._shelf.get(cache, AliasRecord, f"alias/{alias}")
            # Not one that leads to another peer by now.
            if known is None or known.did == peer.did:
                cache.delete(f"alias/{alias}")

    def _drop_pin(self, cache: Rows, pin: PinRecord) -> bool:
        cache.delete(key_of(_address(pin)))
        return bool(cache.delete(key_of(pin)))


def _delete(cache: Rows, *, key: str) -> bool:
    return cache.delete(key)


def _address(pin: PinRecord) -> AddressRecord:
    return AddressRecord(pin.agent, pin.url, pin.created)
