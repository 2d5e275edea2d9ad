"""The gateway: a named peer is an A2A agent for the agents of this machine."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2

from anp.identity.address import parse_peer
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.tokens import token_book
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.home.home import Home
from anp.sidecar.process.a2a_face import serve_gateway
from tests.clauses import clause
from tests.e2e.agents.running import running
from tests.e2e.house import House, house_in
from tests.e2e.test_a2a_face import (
    ASK,
    CALCULATE,
    PICTURE,
    SEED_REQUEST,
    SLOW,
    STREAM,
    client_of,
    data,
    message,
    sent,
)
from tests.waiting import until


@dataclass
class Gate:
    """The gateway of a caller, with the token of one agent."""

    house: House
    url: str
    http: httpx.AsyncClient

    async def rpc(self, body: Any, **headers: str) -> Any:
        """Post a request of JSON-RPC to the peer; return what is answered."""
        answer = await self.http.post(self.url, json=body, headers=headers)
        return answer.json()


@asynccontextmanager
async def gate_in(
    folder: Path, order: tuple[str, ...] = (), /, **more: str
) -> AsyncIterator[Gate]:
    flags: dict[str, Any] = {"a2a__gateway": "127.0.0.1:0", "consensus__use": True}
    if order:
        flags["interaction__order"] = order
    async with (
        house_in(folder, more=more, **flags) as house,
        serve_gateway(house.caller) as url,
    ):
        assert url is not None
        address = parse_peer(f"{house.provider.url}#{house.provider.did}")
        house.caller.book.add("bob", address)
        book = token_book(house.caller.home, gateway=True)
        for name in ("ann", "zoe"):
            book.add(A2aCaller(name=name), f"token of {name}")
        headers = {"Authorization": "Bearer token of ann"}
        async with httpx.AsyncClient(
            trust_env=False, timeout=30, headers=headers
        ) as http:
            yield Gate(house, f"{url}bob", http)


def send(*parts: dict[str, Any], name: str = "m", **more: Any) -> dict[str, Any]:
    said = {"messageId": name, "role": "ROLE_USER", "parts": list(parts), **more}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": said},
    }


@clause("A2A-2", "A2A-8", "A2A-10")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_peer_is_an_agent_with_its_skills(tmp_path: Path, binding: str) -> None:
    async with gate_in(tmp_path, story=STREAM) as gate:
        headers = {"Authorization": gate.http.headers["Authorization"]}
        async with client_of(
            gate.url, "1.0", streaming=True, binding=binding, headers=headers
        ) as client:
            events = await sent(client, message(data("story.story", topic="wire")))
            words = [
                part["text"]
                for one in events
                for part in one.get("artifactUpdate", {})
                .get("artifact", {})
                .get("parts", [])
            ]
            assert "".join(words) == "Once upon a time: wire"
            task = events[0]["task"]
            found = await client.get_task(a2a_pb2.GetTaskRequest(id=task["id"]))
            assert found.context_id == task["contextId"]
        card = (await gate.http.get(f"{gate.url}/.well-known/agent-card.json")).json()
        assert card["name"] == "bob"
        assert "story.story" in {one["id"] for one in card["skills"]}


@clause("A2A-5")
@pytest.mark.parametrize("order", [(), ("urn:anpd:a2a:1.0",)])
async def test_the_end_of_an_artifact_of_the_peers_agent_is_told(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    home = Home(tmp_path / "provider")
    home.create()
    with running("a2a_agent.py", "stream") as agent:
        spec = AttachmentSpec(kind="a2a", name="bard", url=agent.url, expose=("*",))
        save_attachment(home.attachments, spec)
        async with gate_in(tmp_path, order) as gate:
            headers = {"Authorization": gate.http.headers["Authorization"]}
            async with client_of(
                gate.url, "1.0", streaming=True, headers=headers
            ) as client:
                said = message(data("bard.shout", text="poem 3"))
                events = await sent(client, said)
    poem = [
        one["artifactUpdate"]
        for one in events
        if "line" in str(one.get("artifactUpdate", {}).get("artifact", {}))
    ]
    assert [one.get("lastChunk", False) for one in poem] == [False, False, True]


@clause("A2A-5", "A2A-13")
async def test_a_large_file_of_the_peer_is_fetched_from_the_gateway(
    tmp_path: Path,
) -> None:
    async with gate_in(tmp_path, picture=PICTURE) as gate:
        call = send(data("picture.picture", size=2_000_000))
        task = (await gate.rpc(call, **{"A2A-Version": "1.0"}))["result"]["task"]
        (part,) = task["artifacts"][0]["parts"]
        assert part["url"].startswith(f"{gate.url}/tasks/")
        found = await gate.http.get(part["url"])
        digest = hashlib.sha256(found.content).hexdigest()
        assert (digest, len(found.content)) == (
            part["metadata"]["sha256"],
            part["metadata"]["size"],
        )
        zoe = {"Authorization": "Bearer token of zoe"}
        assert (await gate.http.get(part["url"], headers=zoe)).status_code == 404


@clause("INT-6", "INT-7", "INT-12")
async def test_an_intent_goes_through(tmp_path: Path) -> None:
    async with gate_in(tmp_path, ai_calculate=CALCULATE) as gate:
        task = (await gate.rpc(json.loads(SEED_REQUEST)))["result"]
        assert task["status"]["state"] == "completed", task["status"]
        assert task["artifacts"][0]["parts"][0]["data"] == {"sum": 203}


@clause("A2A-4", "A2A-12", "A2A-24")
async def test_the_peer_asks_back_and_words_without_a_skill_get_the_list(
    tmp_path: Path,
) -> None:
    async with gate_in(tmp_path, order=ASK) as gate:
        call = send(data("order", item="tea"), contextId="mine")
        task = (await gate.rpc(call, **{"A2A-Version": "1.0"}))["result"]["task"]
        assert task["contextId"] == "mine"
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert task["status"]["message"]["parts"][0]["text"] == "How many?"
        more = {"taskId": task["id"], "contextId": "mine"}
        again = send({"text": "two"}, name="m2", **more)
        task = (await gate.rpc(again, **{"A2A-Version": "1.0"}))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        words = send({"text": "do something"}, name="m3", contextId="mine")
        task = (await gate.rpc(words, **{"A2A-Version": "1.0"}))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "order.order" in task["status"]["message"]["parts"][0]["text"]


@clause("A2A-Q4")
async def test_a_repeat_is_the_same_task_and_another_message_is_refused(
    tmp_path: Path,
) -> None:
    async with gate_in(tmp_path) as gate:
        new = {"A2A-Version": "1.0"}
        first = await gate.rpc(send(data("count.count", step=1)), **new)
        again = await gate.rpc(send(data("count.count", step=1)), **new)
        assert first["result"]["task"]["id"] == again["result"]["task"]["id"]
        found = again["result"]["task"]["artifacts"][0]["parts"][0]["data"]
        assert found == {"calls": 1, "step": 1}
        other = await gate.rpc(send(data("count.count", step=2)), **new)
        assert other["error"]["code"] == -32602


async def test_a_cancel_reaches_the_peer(tmp_path: Path) -> None:
    async with gate_in(tmp_path, slow=SLOW) as gate:
        new = {"A2A-Version": "1.0"}
        call = send(data("slow.slow", seconds=60))
        call["params"]["configuration"] = {"returnImmediately": True}
        task = (await gate.rpc(call, **new))["result"]["task"]
        desk = gate.house.provider.tasks
        await until(lambda: desk.working == 1)
        end = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "CancelTask",
            "params": {"id": task["id"]},
        }
        ended = (await gate.rpc(end, **new))["result"]
        assert ended["status"]["state"] == "TASK_STATE_CANCELED"
        await until(lambda: desk.working == 0)


@clause("A2A-6", "A2A-21")
async def test_only_agents_with_a_token_come_in_and_see_their_own_tasks(
    tmp_path: Path,
) -> None:
    async with gate_in(tmp_path) as gate:
        new = {"A2A-Version": "1.0"}
        task = (await gate.rpc(send(data("twice.twice", number=2)), **new))["result"][
            "task"
        ]
        get = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "GetTask",
            "params": {"id": task["id"]},
        }
        assert (await gate.rpc(get, **new))["result"]["id"] == task["id"]
        zoe = {"Authorization": "Bearer token of zoe", **new}
        assert (await gate.rpc(get, **zoe))["error"]["code"] == -32001
        asked = {"jsonrpc": "2.0", "id": 3, "method": "ListTasks", "params": {}}
        assert (await gate.rpc(asked, **new))["result"]["totalSize"] == 1
        assert (await gate.rpc(asked, **zoe))["result"]["totalSize"] == 0
        for status, headers in (
            (401, {"Authorization": "Bearer guessed"}),
            (403, {"Origin": "https://evil.example"}),
            (403, {"Host": "evil.example"}),
        ):
            answer = await gate.http.post(gate.url, json=get, headers=headers)
            assert answer.status_code == status
        nobody = gate.url.replace("/bob", "/nobody")
        assert (await gate.http.post(nobody, json=get)).status_code == 404


WEIGH = """
def weigh(text: str, file: bytes = b"") -> dict[str, int | str]:
    import hashlib
    return {"size": len(file), "sha256": hashlib.sha256(file).hexdigest()}
"""


async def test_a_large_file_goes_beside_the_log_and_may_be_repeated(
    tmp_path: Path,
) -> None:
    content = bytes(range(256)) * 6_000
    raw = {"raw": base64.b64encode(content).decode(), "filename": "file.bin"}
    async with gate_in(tmp_path, weigh=WEIGH) as gate:
        new = {"A2A-Version": "1.0"}
        call = send(data("weigh", text="this"), raw)
        task = (await gate.rpc(call, **new))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task["status"]
        assert task["artifacts"][0]["parts"][0]["data"] == {
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        again = (await gate.rpc(call, **new))["result"]["task"]
        assert again["id"] == task["id"]
        raw["raw"] = base64.b64encode(content[1:]).decode()
        assert (await gate.rpc(call, **new))["error"]["code"] == -32602
