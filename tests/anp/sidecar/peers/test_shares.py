"""The share of our workers that a peer's work is counted for."""

from __future__ import annotations

from pathlib import Path

from anp.sidecar.peers.policy import PeerPolicy, PeerRules
from cache.records.peers import PeerState
from cache.store import Store
from sandbox.pool.shares import Rank, Share

FRIEND, KNOWN, STRANGER = "did:key:zFriend", "did:key:zKnown", "did:key:zStranger"


async def test_listed_peers_have_a_share_by_did_and_all_others_by_address(
    tmp_path: Path,
) -> None:
    with Store(tmp_path / "store") as store:
        policy = PeerPolicy(store, PeerRules("any", frozenset({KNOWN})))
        store.see_peer(FRIEND, shown_did=FRIEND, now=1.0, state=PeerState.ALLOWED)
        store.see_peer(STRANGER, shown_did=STRANGER, now=1.0)
        shares = [
            await policy.share_of(did, address=address)
            for did in (FRIEND, KNOWN, STRANGER, "did:key:zOther")
            for address in ("192.0.2.1", "2001:db8::1:2", "2001:db8::ff%eth0")
        ]
        network = Share(Rank.COMMON, "2001:db8::/64")
        common = [Share(Rank.COMMON, "192.0.2.1"), network, network]
        listed = [[Share(Rank.LISTED, did)] * 3 for did in (FRIEND, KNOWN)]
        assert shares == [*listed[0], *listed[1], *common, *common]
        assert await policy.share_of(STRANGER, address="") == Share(Rank.COMMON, "")
