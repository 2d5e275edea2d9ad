"""A gate over a store in memory, for tests of what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.offer.gate import ApprovalPending, Gate
from anp.sidecar.peers.policy import PeerPolicy, PeerRules
from cache.records.records import HalfRecord
from cache.store import Store
from negotiation.need import Capability


class NoWords:
    """An owner who has said nothing so far."""

    async def take(
        self,
        way: str,
        peer: str,
        capability: Capability,
        *,
        words: str = "",
        named: bool = True,
        withdrawn: bool = False,
    ) -> str | None:
        """Ask the owner."""
        raise ApprovalPending(capability.name)

    def look_again(self) -> None:
        """Forget nothing: nothing was looked up."""

    async def confirmed(self, peer: str, words: str, capability: str) -> bool:
        """Say that nothing was confirmed."""
        return False

    async def lacks_name(
        self, half: HalfRecord, peer: str, offered: Sequence[Capability]
    ) -> bool:
        """Say that each half was agreed under the name of what it calls."""
        return False

    async def changed_meaning(
        self, half: HalfRecord, capabilities: Sequence[Capability]
    ) -> str | None:
        """Say that everything means what it meant."""
        return None

    async def give_back(self, way: str, peer: str, capability: Capability) -> None:
        """Give nothing back: nothing was taken."""


class _Anybody:
    """A store that knows nobody."""

    def peers_known_as(self, *dids: str) -> list[Any]:
        """Return no record."""
        return []

    def withdrawn(self, role: object, peer: str, names: list[str]) -> list[str]:
        """Return nothing: nothing was withdrawn."""
        return []

    def agreements_of(self, digest: str) -> list[Any]:
        """Return no agreement."""
        return []


def gate_over(exposure: Exposure, *, approve: str = "never") -> Gate:
    """Return a gate that lets every peer in."""
    store = cast(Store, _Anybody())
    return Gate(
        exposure,
        policy=PeerPolicy(store, PeerRules("any")),
        store=store,
        approve=approve,
        words=NoWords(),
        quarantined=lambda half, peer: None,
    )
