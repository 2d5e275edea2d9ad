"""The A2A face, reached by the client of the A2A SDK in both versions."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2
from a2a.utils.errors import TaskNotCancelableError
from google.protobuf.json_format import MessageToDict, ParseDict

from anp.sidecar.process.a2a_face import serve_a2a
from tests.e2e.house import house_in

STREAM = """
async def story(topic: str):
    for word in ("Once", " upon", " a time: ", topic):
        yield word
"""

ASK = """
from typing import Any, Protocol


class Context(Protocol):
    async def ask(self, text: str, schema: Any = None) -> Any: ...


async def order(item: str, context: Context) -> dict[str, Any]:
    reply = await context.ask("How many?")
    return {"item": item, "answer": str(reply)}
"""

SLOW = """
import asyncio


async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"
"""


@asynccontextmanager
async def face_in(folder: Path, **more: str) -> AsyncIterator[str]:
    async with (
        house_in(folder, more=more, a2a__listen="127.0.0.1:0", a2a__open=True) as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        yield url


def data(skill: str, **arguments: Any) -> dict[str, Any]:
    return {"data": {"skill": skill, "arguments": arguments}}


def message(*parts: dict[str, Any], **more: Any) -> Any:
    body = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        "parts": list(parts),
        **more,
    }
    return ParseDict({"message": body}, a2a_pb2.SendMessageRequest())


@asynccontextmanager
async def client_of(url: str, version: str, *, streaming: bool) -> AsyncIterator[Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        interfaces = [
            one for one in card.supported_interfaces if one.protocol_version == version
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(interfaces)
        config = ClientConfig(httpx_client=http, streaming=streaming)
        yield ClientFactory(config).create(card)


async def sent(client: Any, request: Any) -> list[dict[str, Any]]:
    return [MessageToDict(one) async for one in client.send_message(request)]


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_call(tmp_path: Path, version: str) -> None:
    async with (
        face_in(tmp_path) as url,
        client_of(url, version, streaming=False) as client,
    ):
        (answer,) = await sent(client, message(data("twice.twice", number=21)))
        task = answer["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert task["artifacts"][0]["parts"][0]["data"] == {"twice": 42}
        found = await client.get_task(a2a_pb2.GetTaskRequest(id=task["id"]))
        assert found.id == task["id"]


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_stream(tmp_path: Path, version: str) -> None:
    async with (
        face_in(tmp_path, story=STREAM) as url,
        client_of(url, version, streaming=True) as client,
    ):
        events = await sent(client, message(data("story.story", topic="wire")))
        assert "task" in events[0]
        words = [
            part["text"]
            for one in events
            for part in one.get("artifactUpdate", {})
            .get("artifact", {})
            .get("parts", [])
        ]
        assert "".join(words) == "Once upon a time: wire"
        last = events[-1]["statusUpdate"]["status"]
        assert last["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_it_asks_back(tmp_path: Path, version: str) -> None:
    async with (
        face_in(tmp_path, order=ASK) as url,
        client_of(url, version, streaming=False) as client,
    ):
        (asked,) = await sent(client, message(data("order.order", item="tea")))
        task = asked["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert task["status"]["message"]["parts"][0]["text"] == "How many?"
        more = {"taskId": task["id"], "contextId": task["contextId"]}
        (answer,) = await sent(client, message({"text": "two"}, **more))
        assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        found = answer["task"]["artifacts"][0]["parts"][0]["data"]
        assert found == {"item": "tea", "answer": "two"}


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_cancel(tmp_path: Path, version: str) -> None:
    async with (
        face_in(tmp_path, slow=SLOW) as url,
        client_of(url, version, streaming=True) as client,
    ):
        events = client.send_message(message(data("slow.slow", seconds=60)))
        first = await anext(events)
        task = first.task.id
        found = await client.cancel_task(a2a_pb2.CancelTaskRequest(id=task))
        assert found.status.state == a2a_pb2.TASK_STATE_CANCELED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(a2a_pb2.CancelTaskRequest(id=task))
