"""The owner's policy for peers: who may open channels to us."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from anp.channel.core.shares import address_key
from anp.errors import ErrorCode, PeerError
from anp.identity.dids import agent_name
from anp.interaction.elements import LOCAL
from anp.sidecar.config.settings import Config
from cache.errors import StoreUnavailable
from cache.records.peers import PeerRecord, PeerState
from cache.store import Store
from sandbox.pool.shares import Rank, Share

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeerRules:
    """The configuration's rules on peers; those made at run time are in the store."""

    default: str
    "`any` or `listed`."

    allowed: frozenset[str] = frozenset()
    "DIDs that may use us; of each also the one that stands for all of its key."

    blocked: frozenset[str] = frozenset()
    "DIDs that may not, in the same way."

    @classmethod
    def of(cls, config: Config) -> PeerRules:
        """Return the rules of a configuration."""
        by_policy = {
            policy: frozenset(
                did
                for p in config.peer
                if p.did and p.policy == policy
                for did in (p.did, agent_name(p.did))
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
        self._held: frozenset[str] = frozenset()
        "DIDs blocked while the store took no change; they are forgotten at the end."

    async def check(self, did: str, *, shown_did: str) -> None:
        """Let a verified peer in, and remember that it was here.

        Args:
            did: The form of the DID under which records are stored.
            shown_did: The DID the peer used, for the log.

        Raises:
            PeerError: 403; the log line names the command that allows the peer.
        """
        state = await asyncio.to_thread(self.state, did, shown_did)
        problem = self.problem(state, shown_did)
        if problem is None:
            return
        if state is not PeerState.BLOCKED:
            await self.note_seen(did, shown_did=shown_did, state=PeerState.WAITING)
            logger.warning(
                "unknown peer refused did=%s allow_with=%r",
                shown_did,
                f"anpd peers allow {shown_did}",
            )
        raise PeerError(ErrorCode.NOT_ALLOWED, problem)

    def problem(self, state: PeerState, shown_did: str) -> str | None:
        """Return why a peer may not use us, or None.

        Args:
            state: The owner's decision about it; see `state`.
            shown_did: The DID the peer used.
        """
        if state is PeerState.BLOCKED:
            return f"{shown_did} is blocked"
        if state is PeerState.ALLOWED or self.rules.default == "any":
            return None
        return f"{shown_did} is not allowed"

    def is_listed(self, did: str) -> bool:
        """True if the owner allowed a peer, under any DID it is known by.

        Reads the store, and so may block.
        """
        return self.state(did) is PeerState.ALLOWED

    def is_blocked(self, did: str) -> bool:
        """True if the owner blocked a peer, under any DID it is known by.

        Reads the store, and so may block.
        """
        return self.state(did) is PeerState.BLOCKED

    async def share_of(self, did: str, *, address: str) -> Share:
        """Return the share of our workers that the work for a peer is counted for.

        Args:
            did: The peer in its canonical form.
            address: The address that it connected from.
        """
        if await asyncio.to_thread(self.is_listed, did):
            return Share(Rank.LISTED, did)
        # A DID costs nothing, so those that the owner did not list have none of it.
        return Share(Rank.COMMON, address_key(address))

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

    async def rule(self, did: str, state: PeerState) -> None:
        """Store the owner's decision about a peer, under every DID it is known by.

        Args:
            did: Any DID of the peer; it need not have been met.

        Raises:
            StoreUnavailable: It cannot be stored; see `hold`.
        """
        await asyncio.to_thread(self._rule, did, state)
        self._held -= {did, agent_name(did)}

    def hold(self, did: str) -> None:
        """Block a peer though the store does not take it.

        It holds until another decision about the peer is stored, or the daemon ends.
        """
        self._held |= {did, agent_name(did)}

    def forget(self, did: str) -> int:
        """Drop the records of a peer, and return how many these were; it blocks."""
        names = {did} | {peer.did for peer in self.known(did)}
        self._held -= names | {agent_name(did)}
        return sum(self._store.forget_peer(name) for name in names)

    def is_held(self, *dids: str) -> bool:
        """True if a peer is blocked though the store did not take it; reads no store.

        Args:
            dids: Its DIDs.
        """
        return not self._held.isdisjoint({*dids, *map(agent_name, dids)})

    def state(self, *dids: str) -> PeerState:
        """Return the owner's decision about a peer; a block is the stronger one.

        Reads the store, and so may block.

        Args:
            dids: Its DIDs, of which each may be known or not.

        Returns:
            `UNKNOWN` also for a peer that waits for a decision.
        """
        if self.is_held(*dids):
            # Before the store, which may not even be there to be read.
            return PeerState.BLOCKED
        known = self.known(*dids)
        names = {*dids, *(did for peer in known for did in (peer.did, *peer.aliases))}
        names |= {agent_name(did) for did in names}
        states = {peer.state for peer in known}
        if PeerState.BLOCKED in states or names & (self.rules.blocked | self._held):
            return PeerState.BLOCKED
        is_local = any(did.startswith(LOCAL) for did in dids)
        if PeerState.ALLOWED in states or names & self.rules.allowed or is_local:
            # Who has a token of ours was let in with it.
            return PeerState.ALLOWED
        return PeerState.UNKNOWN

    def known(self, *dids: str) -> list[PeerRecord]:
        """Return the records of a peer; see `PeerStore.peers_known_as`."""
        return self._store.peers_known_as(*{*dids, *map(agent_name, dids)})

    def _rule(self, did: str, state: PeerState) -> None:
        # One that was never met is kept under the name that all its DIDs lead to.
        known = {peer.did for peer in self.known(did)} or {_name(did)}
        for one in known:
            # Its other form is noted too, so that a later word about that meets it.
            self._store.see_peer(
                one, shown_did=agent_name(one), now=time.time(), state=state
            )

    def _remember(self, did: str, shown_did: str, state: PeerState | None) -> None:
        self._store.see_peer(did, shown_did=shown_did, now=time.time(), state=state)


def _name(did: str) -> str:
    """Return the DID under which a peer is kept that was never met."""
    return agent_name(did) if did.startswith("did:all:") else did
