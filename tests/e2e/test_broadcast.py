"""An event of the message envelope that reaches every peer that listens."""

from __future__ import annotations

from pathlib import Path

import httpx

from anp.sidecar.api.app import make_app
from anp.sidecar.api.guard import Door
from anp.sidecar.daemon import Daemon
from cache.records.peers import PeerState
from tests.clauses import clause
from tests.e2e.neighbours import introduce, neighbours_in
from tests.waiting import until


def heard(daemon: Daemon) -> list[tuple[str, str, object]]:
    entries = daemon.heard.entries()
    return [(one.peer_did, one.name, one.data) for one in entries]


@clause("ENV-12", "ENV-20")
async def test_an_event_to_all_reaches_every_peer_that_listens(tmp_path: Path) -> None:
    deaf = {"deaf": {"consensus.envelope": False}}
    names = "one", "two", "deaf"
    async with neighbours_in(tmp_path, *names, settings=deaf) as all_of:
        caller = all_of.pop("caller")
        await introduce(caller, **all_of)
        transport = httpx.ASGITransport(make_app(caller, door=Door()))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://anpd", timeout=60
        ) as api:

            async def tell(name: str, **more: object) -> dict[str, object]:
                event = {"name": name, "data": {"sku": "A-1"}, **more}
                answer = await api.post("/v1/peers/tell", json=event)
                assert answer.status_code == 200, answer.text
                return {
                    one["peer"]: one["reason"] or one["sent"]
                    for one in answer.json()["peers"]
                }

            assert await tell("first", peers=["two"]) == {"two": True}
            assert await tell("restocked") == {
                "one": True,
                "two": True,
                "deaf": "the peer declines the protocol now",
            }
            await caller.policy.rule(all_of["deaf"].did, PeerState.BLOCKED)
            await all_of["two"].links.close()
            found = await tell("last")
            assert found.keys() == {"one", "two"}
            assert found["one"] is True
            assert found["two"] is not True
        one, two = all_of["one"], all_of["two"]
        await until(lambda: len(heard(one)) == len(heard(two)) == 2)
        said = [(caller.did, name, {"sku": "A-1"}) for name in ("first", "restocked")]
        assert heard(two) == said
        assert heard(one) == [said[1], (caller.did, "last", {"sku": "A-1"})]
        assert heard(all_of["deaf"]) == []
