"""The allowed peers that publish a capability, the best first (A2A-26)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from anp.errors import AnpError, CallError
from anp.identity.dids import agent_name
from anp.sidecar.discovery.announced import Announced
from anp.sidecar.discovery.announcement import Announcement
from anp.sidecar.peers.directory import Directory, KnownPeer
from anp.sidecar.peers.figures import AWAY, Measures, Rated, by_rate
from cache.records.peers import PeerState
from negotiation.errors import NegotiationError
from negotiation.need import Capability
from negotiation.rules.names import of_name

logger = logging.getLogger(__name__)

MAX_ASKED: Final = 64
"Peers that are asked what they publish, for one search."

AT_A_TIME: Final = 8
"Peers that are asked at a time."

ASK_TIME: Final = 5.0
"Seconds for the answer of one peer; who is later is left out of this search."

MAX_KEPT: Final = 256
"Peers whose capabilities are remembered."

Ask = Callable[[str], Awaitable[Sequence[Capability] | None]]
"Asks the peer at an address for the capabilities that it publishes to us."


@dataclass(frozen=True, slots=True)
class Candidate:
    """A peer that may be given a call or a task."""

    did: str
    "In its canonical form."

    address: str
    "The address as calls take it."

    capability: str
    "Full name of the capability there."

    repeatable: bool = False
    "By the peer's word a second run does no more than the first."


@dataclass(frozen=True, slots=True)
class _Kept:
    """Everything that a peer published when it was asked last."""

    capabilities: Sequence[Capability]
    until: float


class Candidates:
    """Finds the allowed peers that publish a capability.

    A list is kept as long as those that peers publish to everybody. A peer that was not
    reached within the last minute is not asked.
    """

    def __init__(
        self,
        *,
        directory: Directory,
        measures: Measures,
        ask: Ask,
        announced: Announced,
        at_work: Callable[[str], int],
        lifetime: float,
    ) -> None:
        """Begin without any list.

        Args:
            at_work: Returns how many calls and tasks of ours a peer has not ended.
            lifetime: Seconds for which a list is kept.
        """
        self._directory = directory
        self._measures = measures
        self._ask = ask
        self.announced = announced
        self._at_work = at_work
        self._lifetime = lifetime
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def find(self, wanted: str) -> list[Candidate]:
        """Return the allowed peers that publish a capability, the best first.

        Args:
            wanted: Its name, full or short; a peer with several of a short name is left
                out.
        """
        await self.announced.ask(wanted)
        known = await asyncio.to_thread(self._directory.peers)
        listed = [
            one
            for one in known
            if one.state is PeerState.ALLOWED and not one.changed_keys
        ]
        announced = {agent_name(one.did) for one in self.announced.naming(wanted)}
        listed.sort(key=lambda one: announced.isdisjoint(_agents(one)))
        room = asyncio.Semaphore(AT_A_TIME)
        published = await asyncio.gather(
            *(self._published(one, room) for one in listed[:MAX_ASKED])
        )
        found: list[tuple[Candidate, KnownPeer]] = []
        for peer, capabilities in zip(listed, published, strict=False):
            named = of_name(wanted, capabilities)
            if len(named) == 1:
                offered = named[0]
                one = Candidate(
                    peer.did,
                    peer.address,
                    offered.name,
                    repeatable=offered.read_only or offered.idempotent,
                )
                found.append((one, peer))
        ordered = by_rate(found, self._rated, now=self._measures.clock())
        return [candidate for candidate, _ in ordered]

    def _rated(self, found: tuple[Candidate, KnownPeer]) -> Rated:
        candidate, peer = found
        dids = (peer.did, *peer.aliases)
        return Rated(
            figures=self._measures.figures(dids, candidate.capability),
            at_work=self._at_work(peer.did),
            away_at=None if peer.trouble is None else peer.trouble.at,
            chosen=self._measures.chosen(peer.did),
        )

    async def _published(
        self, peer: KnownPeer, room: asyncio.Semaphore
    ) -> Sequence[Capability]:
        now = self._measures.clock()
        kept = self._kept.get(peer.did)
        if kept is not None and now < kept.until:
            return kept.capabilities
        before = () if kept is None else kept.capabilities
        if peer.trouble is not None and now - peer.trouble.at < AWAY:
            return before
        try:
            async with room, asyncio.timeout(ASK_TIME):
                found = await self._ask(peer.address) or ()
        except (AnpError, NegotiationError, TimeoutError) as exc:
            reason = exc.detail if isinstance(exc, CallError) else type(exc).__name__
            logger.info("peer not asked did=%s reason=%s", peer.did, reason)
            return before
        self._kept[peer.did] = _Kept(found, now + self._lifetime)
        self._kept.move_to_end(peer.did)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return found

    def choose(self, one: Candidate) -> None:
        """Take note that a candidate is given something; equal ones take turns."""
        self._measures.choose(one.did)

    def latency(self, one: Candidate) -> float | None:
        """Return the mean of the milliseconds of a candidate's answers, or None."""
        found = self._measures.figures([one.did], one.capability).latency
        return None if found is None else round(found, 1)

    async def unlisted(self, wanted: str) -> list[Announcement]:
        """Return those that registries tell of and that the owner did not allow.

        Args:
            wanted: As for `find`.
        """
        await self.announced.ask(wanted)
        found = self.announced.naming(wanted)
        peers = await asyncio.to_thread(self._directory.peers) if found else []
        decided = {
            agent
            for peer in peers
            if peer.state in {PeerState.ALLOWED, PeerState.BLOCKED}
            for agent in _agents(peer)
        }
        return [one for one in found if agent_name(one.did) not in decided]


def _agents(peer: KnownPeer) -> set[str]:
    return {agent_name(did) for did in (peer.did, *peer.aliases)}
