"""A peer's list, asked over its verified connection (extension `list`)."""

from __future__ import annotations

from pathlib import Path

from anp.sidecar.calls.question import ask_list
from anp.wire.frames import ProtocolType
from negotiation.consensus.listing import LIST_REQUEST
from tests.e2e.house import house_in


async def test_a_peer_tells_us_what_it_tells_nobody_else(tmp_path: Path) -> None:
    async with house_in(tmp_path, documents=True) as house:
        house.provider.consensus.publishes = False
        caller, peer = house.caller, f"{house.provider.url}#{house.provider.did}"
        target = await caller.finder.find(peer, trust_first_use=False)
        assert await caller.peer_lists.listing(target) is None
        listing = await ask_list(caller.binder.requesters, caller.peer_lists, target)
        assert listing is not None
        names = {one.name.partition(".")[2] for one in listing.capabilities}
        assert names == {"twice", "odd", "huge", "count", "chat"}
        assert set(listing.documents) == {one.name for one in listing.capabilities}
        await house.others_are_served()


async def test_the_list_is_sent_once_on_a_channel(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        caller, peer = house.caller, f"{house.provider.url}#{house.provider.did}"
        target = await caller.finder.find(peer, trust_first_use=False)
        channel = await caller.binder.requesters.open(target, None)
        await channel.send(ProtocolType.META, LIST_REQUEST)
        answer = (await channel.receive()).frame
        assert answer.data.startswith(b'{"action": "list"')
        # A second one is no message of a negotiation, so the peer goes on without it.
        await channel.send(ProtocolType.META, LIST_REQUEST)
        await channel.close("enough")
        await house.others_are_served()
