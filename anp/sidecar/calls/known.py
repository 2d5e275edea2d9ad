"""The stored agreements that a call may go through."""

from __future__ import annotations

from collections.abc import Collection

from cache.records.records import AgreementRecord, AgreementRole, AgreementState
from cache.store import Store

__all__ = ["KnownAgreements"]

_ACTIVE = frozenset({AgreementState.ACTIVE})

MAX_SHARED_PEERS = 32
"Peers, the last seen ones, whose agreements are looked at for another peer."


class KnownAgreements:
    """Finds agreements for a need; its methods block."""

    def __init__(self, store: Store, own_did: str) -> None:
        self._store = store
        self._own_did = own_did

    def with_peer(
        self, peer_did: str, key: str, states: Collection[AgreementState] = _ACTIVE
    ) -> list[AgreementRecord]:
        """Return the agreements with a peer for a need, the newest first.

        Only active ones are offered: stale and revoked ones never are (ANP-86).
        """
        return [
            agreement
            for peer in self._forms(peer_did)
            for agreement in self._store.agreements(
                self._own_did, peer, AgreementRole.REQUESTER, key, states=states
            )
        ]

    def with_others(self, peer_did: str, key: str) -> list[AgreementRecord]:
        """Return what was agreed with the peers seen last, for another one.

        All peers are read, so this is asked only when no agreement of its own fits.
        """
        own = self._forms(peer_did)
        others = [peer.did for peer in self._store.peers() if peer.did not in own]
        return [
            agreement
            for peer in others[:MAX_SHARED_PEERS]
            for agreement in self._store.agreements(
                self._own_did, peer, AgreementRole.REQUESTER, key
            )
            # A text revoked for this peer is not borrowed from another one.
            if not any(self._store.is_revoked(agreement.hash, one) for one in own)
        ]

    def _forms(self, peer_did: str) -> list[str]:
        """Return the DIDs under which agreements with a peer may be stored."""
        return [*dict.fromkeys([peer_did, self._store.canonical_did(peer_did)])]
