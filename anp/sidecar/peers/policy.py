"""The owner's policy for peers: who may open channels to us."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from dataclasses import dataclass

from anp.errors import ErrorCode, PeerError
from anp.sidecar.config.settings import Config
from cache.errors import StoreUnavailable
from cache.records.peers import PeerState
from cache.store import Store
from sandbox.pool.shares import Rank, Share

__all__ = ["PeerPolicy", "PeerRules"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeerRules:
    """The configuration's rules on peers; those made at run time are in the store."""

    default: str
    "`any` or `listed`."

    allowed: frozenset[str] = frozenset()
    "DIDs that may use us."

    blocked: frozenset[str] = frozenset()
    "DIDs that may not."

    @classmethod
    def of(cls, config: Config) -> PeerRules:
        """Return the rules of a configuration."""
        by_policy = {
            policy: frozenset(
                p.did for p in config.peer if p.did and p.policy == policy
            )
            for policy in ("allow", "block")
        }
        return cls(config.peers_policy, by_policy["allow"], by_policy["block"])


class PeerPolicy:
    """Decides which peers may open channels: any verified DID, or only listed ones."""

    def __init__(self, store: Store, rules: PeerRules) -> None:
        self._store = store
        self.rules = rules
        "The rules of the owner's configuration; may be replaced at any time."

    async def check(self, did: str, *, shown_did: str) -> None:
        """Let a verified peer in, and remember that it was here.

        Args:
            did: The form of the DID under which records are stored.
            shown_did: The DID the peer used, for the log.

        Raises:
            PeerError: 403; the log line names the command that allows the peer.
        """
        known = await asyncio.to_thread(self._store.peer, did)
        state = known.state if known else PeerState.UNKNOWN
        if state is PeerState.BLOCKED or {did, shown_did} & self.rules.blocked:
            raise PeerError(ErrorCode.NOT_ALLOWED, f"{shown_did} is blocked")
        listed = state is PeerState.ALLOWED or bool(
            {did, shown_did} & self.rules.allowed
        )
        if not listed and self.rules.default != "any":
            await self.note_seen(did, shown_did=shown_did, state=PeerState.WAITING)
            logger.warning(
                "unknown peer refused did=%s allow_with=%r",
                shown_did,
                f"anpd peers allow {shown_did}",
            )
            raise PeerError(ErrorCode.NOT_ALLOWED, f"{shown_did} is not allowed")

    def is_listed(self, did: str) -> bool:
        """True if the owner allowed a peer, under any DID it is known by.

        Reads the store, and so may block.
        """
        allowed = self.rules.allowed
        return did in allowed or any(
            peer.state is PeerState.ALLOWED or bool(allowed & {peer.did, *peer.aliases})
            for peer in self._store.peers_known_as(did)
        )

    async def share_of(self, did: str, *, address: str) -> Share:
        """Return the share of our workers that the work for a peer is counted for.

        Args:
            did: The peer in its canonical form.
            address: The address that it connected from.
        """
        if await asyncio.to_thread(self.is_listed, did):
            return Share(Rank.LISTED, did)
        # A DID costs nothing, so those that the owner did not list have none of it.
        return Share(Rank.COMMON, _network(address))

    async def remember(
        self, did: str, *, shown_did: str, state: PeerState | None = None
    ) -> None:
        """Store that a peer was seen, under which other DID, and its state if given."""
        await asyncio.to_thread(self._remember, did, shown_did, state)

    async def note_seen(
        self, did: str, *, shown_did: str, state: PeerState | None = None
    ) -> None:
        """Store the same as `remember`, if the store takes it.

        A full disk keeps no peer out: the peer is noted when it comes next.
        """
        try:
            await self.remember(did, shown_did=shown_did, state=state)
        except StoreUnavailable as exc:
            logger.warning("peer not noted did=%s reason=%s", shown_did, exc)

    def is_blocked(self, did: str) -> bool:
        """True if the owner blocked a peer, under any DID it is known by.

        Reads the store, and so may block.
        """
        return did in self.rules.blocked or any(
            peer.state is PeerState.BLOCKED for peer in self._store.peers_known_as(did)
        )

    def _remember(self, did: str, shown_did: str, state: PeerState | None) -> None:
        self._store.see_peer(did, shown_did=shown_did, now=time.time(), state=state)


def _network(address: str) -> str:
    """Return an address, or the /64 network of an IPv6 address: one host has all."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if known.version == 4:
        return address
    return str(ipaddress.ip_network((int(known), 64), strict=False))
