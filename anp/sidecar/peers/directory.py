"""Everybody the daemon knows: who was met, who has a name, and who was refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from anp.identity.address import PeerAddress
from anp.identity.book import AddressBook
from anp.identity.dids import agent_name
from anp.sidecar.peers.contacts import Contacts, Trouble
from anp.sidecar.peers.figures import Health, Measures, PeerFigures, health_of
from anp.sidecar.peers.pins import DidKeys
from anp.sidecar.peers.policy import PeerPolicy
from cache.records.peers import PeerRecord, PeerState
from cache.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPeer:
    """One peer, with all that the daemon knows of it."""

    did: str
    "In its canonical form."

    state: PeerState
    first_seen: float | None = None
    "Seconds since 1970; None before it was met."

    last_seen: float | None = None
    "As above."

    names: tuple[str, ...] = ()
    "Its names in the address book."

    urls: tuple[str, ...] = ()
    "Where it can be dialled: the owner's addresses first, then the newest pin."

    aliases: tuple[str, ...] = ()
    "Its other DIDs of the same key."

    changed_keys: tuple[str, ...] = ()
    "New keys of its DID document that the owner has not trusted yet."

    connected: bool = False
    trouble: Trouble | None = None
    "Why it could not be reached at the last try."

    figures: PeerFigures = field(default_factory=PeerFigures)
    "Measures of calls and tasks that it was given."

    health: Health = "unknown"

    version: str | None = None
    "Version of its daemon, as it told last."

    at_work: int = 0
    "Our calls and tasks that it has not ended."

    @property
    def address(self) -> str:
        """The way calls name it: by the owner's name, its address, or its DID."""
        for name in self.names:
            return name
        return f"{self.urls[0]}#{self.did}" if self.urls else self.did


class Directory:
    """Puts records, names, pins and troubles together; every method may block."""

    def __init__(
        self,
        *,
        store: Store,
        book: AddressBook,
        policy: PeerPolicy,
        did_keys: DidKeys,
        contacts: Contacts,
        measures: Measures,
        connected: Callable[[], Collection[str]],
        at_work: Callable[[str], int] = lambda did: 0,
    ) -> None:
        """Look things up when asked.

        Args:
            connected: Returns the DIDs that were proved on open connections.
            at_work: Returns how many calls and tasks of ours a peer has not ended.
        """
        self._store = store
        self._book = book
        self._policy = policy
        self._did_keys = did_keys
        self._contacts = contacts
        self._measures = measures
        self._connected = connected
        self.at_work = at_work

    def peers(self) -> list[KnownPeer]:
        """Return every peer with a known DID, the last seen one first."""
        names, urls = self._addresses()
        changed = self._did_keys.changed()
        connected = {agent_name(did) for did in self._connected()}
        known = {peer.did: peer for peer in self._store.peers()}
        met = {
            agent_name(did)
            for peer in known.values()
            for did in (peer.did, *peer.aliases)
        }
        for did, seen in changed.items():
            last = seen.changed or seen.seen
            known.setdefault(did, _unmet(did, seen.seen, last))
        for entry in self._book.entries():
            named = entry.did or self._pinned(entry)
            if named is not None and agent_name(named) not in met:
                known.setdefault(named, _unmet(named))
        found = []
        for peer in known.values():
            dids = {agent_name(did) for did in (peer.did, *peer.aliases)}
            where = _merged(urls[did] for did in dids)
            keys = changed.get(peer.did)
            trouble = self._contacts.trouble(*dids, *where)
            figures = self._measures.figures(dids)
            found.append(
                KnownPeer(
                    did=peer.did,
                    state=self._state(peer, dids),
                    first_seen=peer.first_seen or None,
                    last_seen=peer.last_seen or None,
                    names=_merged(names[did] for did in dids),
                    urls=where,
                    aliases=peer.aliases,
                    changed_keys=() if keys is None else keys.waiting,
                    connected=not dids.isdisjoint(connected),
                    trouble=trouble,
                    figures=figures,
                    health=health_of(
                        figures, away=trouble is not None, now=self._measures.clock()
                    ),
                    version=self._measures.version(dids),
                    at_work=self.at_work(peer.did),
                )
            )
        return found

    def find(self, did: str) -> KnownPeer | None:
        """Return the peer with a DID, which may be any of its own, or None."""
        agent = agent_name(did)
        for peer in self.peers():
            if agent in {agent_name(one) for one in (peer.did, *peer.aliases)}:
                return peer
        return None

    def unmet(self) -> list[tuple[PeerAddress, Trouble | None]]:
        """Return the names that stand for a URL at which nobody was met yet."""
        return [
            (entry, self._contacts.trouble(entry.url))
            for entry in self._book.entries()
            if entry.did is None and entry.url and self._pinned(entry) is None
        ]

    def _pinned(self, entry: PeerAddress) -> str | None:
        pin = self._store.pin(entry.url) if entry.url else None
        return None if pin is None else pin.did

    def _addresses(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return names and URLs by the DID that stands for all of a key."""
        names: dict[str, list[str]] = defaultdict(list)
        urls: dict[str, list[str]] = defaultdict(list)
        for entry in self._book.entries():
            did = entry.did or self._pinned(entry)
            if did is None:
                continue
            names[agent_name(did)].append(str(entry.name))
            if entry.url is not None:
                urls[agent_name(did)].append(entry.url)
        for pin in self._store.pins():
            urls[agent_name(pin.did)].append(pin.url)
        return names, urls

    def _state(self, peer: PeerRecord, dids: set[str]) -> PeerState:
        """Return the owner's decision, which may stand in the configuration."""
        rules = self._policy.rules
        if peer.state is PeerState.BLOCKED or dids & rules.blocked:
            return PeerState.BLOCKED
        if peer.state is PeerState.ALLOWED or dids & rules.allowed:
            return PeerState.ALLOWED
        return peer.state


def _unmet(did: str, first: float = 0.0, last: float = 0.0) -> PeerRecord:
    return PeerRecord(
        did=did, state=PeerState.UNKNOWN, first_seen=first, last_seen=last
    )


def _merged(parts: Iterable[list[str]]) -> tuple[str, ...]:
    """Return all texts once, in their order."""
    return tuple(dict.fromkeys(text for part in parts for text in part))
