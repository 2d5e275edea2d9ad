"""The A2A face, reached by the client of the A2A SDK in both versions."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.compat.v0_3 import types as old
from a2a.types import a2a_pb2
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import MessageToDict, ParseDict

from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.tokens import token_book
from anp.sidecar.process.a2a_face import serve_a2a
from tests.clauses import clause
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

CALCULATE = """
def ai_calculate(num1: int, num2: int) -> dict[str, int]:
    return {"sum": num1 + num2}
"""

SEED_REQUEST = """{
"jsonrpc": "2.0",
"id": "request-1",
"method": "message/send",
"params": {
"message": {
"messageId": "msg-1",
"kind": "message",
"role": "user",
"parts": [
{
"kind": "text",
"text": "101加102等于几?"
}
],
"metadata": {
"intentInfos": [
{
"intent": "ai_calculate",
"slots": [
{
"name": "num1",
"value": "101",
"normValue": "101"
},
{
"name": "num2",
"value": "102",
"normValue": "102"
}
]
}
]
}
}
}
}"""

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
async def client_of(
    url: str,
    version: str,
    *,
    streaming: bool,
    binding: str = "JSONRPC",
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=30, headers=headers) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        interfaces = [
            one
            for one in card.supported_interfaces
            if (one.protocol_version, one.protocol_binding) == (version, binding)
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(interfaces)
        config = ClientConfig(
            httpx_client=http,
            streaming=streaming,
            supported_protocol_bindings=[binding],
        )
        yield ClientFactory(config).create(card)


async def sent(client: Any, request: Any) -> list[dict[str, Any]]:
    return [MessageToDict(one) async for one in client.send_message(request)]


@clause("A2A-2", "A2A-22", "A2A-23")
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


@clause("A2A-2", "A2A-4", "A2A-14", "A2A-18", "A2A-22")
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


@clause("A2A-4", "A2A-12", "A2A-24")
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


@clause("A2A-16")
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


def anpd(*words: str) -> str:
    line = [sys.executable, "-m", "anp", *words]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


async def rpc(url: str, body: Any, **headers: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        answer = await http.post(url, content=content, headers=headers)
    found: dict[str, Any] = answer.json()
    return found


@clause("INT-12", "INT-13", "INT-6", "A2A-Q4")
async def test_the_request_of_the_intent_extension(tmp_path: Path) -> None:
    async with face_in(tmp_path, ai_calculate=CALCULATE) as url:
        answer = await rpc(url, SEED_REQUEST)
        assert answer["id"] == "request-1"
        task = answer["result"]
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        assert task["artifacts"][0]["parts"][0]["data"] == {"sum": 203}
        # Sent again it is the same task.
        assert (await rpc(url, SEED_REQUEST))["result"]["id"] == task["id"]


@clause("INT-Q5")
async def test_missing_slots_are_asked_for(tmp_path: Path) -> None:
    half = json.loads(SEED_REQUEST)
    del half["params"]["message"]["metadata"]["intentInfos"][0]["slots"][1]
    async with face_in(tmp_path, ai_calculate=CALCULATE) as url:
        task = (await rpc(url, half))["result"]
        assert task["status"]["state"] == "input-required"
        assert "num2" in task["status"]["message"]["parts"][0]["text"]
        rest = json.loads(SEED_REQUEST)
        sent = rest["params"]["message"]
        sent |= {"messageId": "msg-2", "taskId": task["id"]}
        del sent["metadata"]["intentInfos"][0]["slots"][0]
        task = (await rpc(url, rest))["result"]
        assert task["status"]["state"] == "completed", task["status"]
        assert task["artifacts"][0]["parts"][0]["data"] == {"sum": 203}


@clause("A2A-6")
async def test_words_without_a_skill_get_the_list(tmp_path: Path) -> None:
    said = json.loads(SEED_REQUEST)
    said["params"]["message"]["metadata"] = {}
    async with face_in(tmp_path, ai_calculate=CALCULATE) as url:
        task = (await rpc(url, said))["result"]
        assert task["status"]["state"] == "input-required"
        words = task["status"]["message"]["parts"][0]["text"]
        assert "ai_calculate.ai_calculate" in words
        assert "twice.twice" in words


ECHO = """
def echo(text: str) -> str:
    return f"echo: {text}"
"""


@clause("A2A-6")
async def test_words_go_to_the_one_skill_that_a_token_names(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path, more={"echo": ECHO}, a2a__listen="127.0.0.1:0") as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        found = {}
        for name, expose in (
            ("ann", ("echo.echo",)),
            ("bob", ("twice.twice",)),
            ("eve", ("*",)),
        ):
            caller = A2aCaller(name=name, expose=expose)
            token_book(house.provider.home).add(caller, name)
            head = {"Authorization": f"Bearer {name}"}
            async with client_of(url, "1.0", streaming=False, headers=head) as client:
                (answer,) = await sent(client, message({"text": "hi"}))
            found[name] = answer["task"]
    (part,) = found["ann"]["artifacts"][0]["parts"]
    assert part["text"] == "echo: hi"
    # What was not named is not run: all may be meant, or no words are taken.
    for name, wanted in (
        ("bob", '{"skill": "twice.twice", "arguments": {number}}'),
        ("eve", '{"skill": …, "arguments": {…}}'),
    ):
        assert found[name]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert wanted in found[name]["status"]["message"]["parts"][0]["text"]


@clause("A2A-13")
async def test_numbers_come_through_exactly(tmp_path: Path) -> None:
    body = """{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":
        {"messageId":"m","role":"ROLE_USER","parts":[{"data":
        {"skill":"twice.twice","arguments":{"number":9007199254740993}}}]}}}"""
    async with face_in(tmp_path) as url:
        answer = await rpc(url, body, **{"A2A-Version": "1.0"})
        part = answer["result"]["task"]["artifacts"][0]["parts"][0]
        assert part["data"] == {"twice": 18014398509481986}


async def test_the_binding_without_json_rpc(tmp_path: Path) -> None:
    async with (
        face_in(tmp_path, story=STREAM) as url,
        client_of(url, "1.0", streaming=True, binding="HTTP+JSON") as client,
    ):
        events = await sent(client, message(data("story.story", topic="wire")))
        task = events[0]["task"]["id"]
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        found = await client.get_task(a2a_pb2.GetTaskRequest(id=task))
        assert len(found.artifacts[0].parts) == 4
        with pytest.raises(TaskNotFoundError):
            await client.get_task(a2a_pb2.GetTaskRequest(id="none"))


async def test_a_list_of_tasks_in_pages(tmp_path: Path) -> None:
    async with (
        face_in(tmp_path) as url,
        client_of(url, "1.0", streaming=False) as client,
    ):
        made = [
            (await sent(client, message(data("twice.twice", number=number))))[0]["task"]
            for number in range(5)
        ]
        page = await client.list_tasks(a2a_pb2.ListTasksRequest(page_size=3))
        rest = await client.list_tasks(
            a2a_pb2.ListTasksRequest(page_size=3, page_token=page.next_page_token)
        )
        assert page.total_size == 5
        assert not rest.next_page_token
        listed = [one.id for one in (*page.tasks, *rest.tasks)]
        assert listed == [one["id"] for one in reversed(made)]
        one = a2a_pb2.ListTasksRequest(context_id=made[2]["contextId"])
        assert [t.id for t in (await client.list_tasks(one)).tasks] == [made[2]["id"]]


@clause("A2A-6", "A2A-21")
async def test_tokens_name_callers_that_see_nothing_of_each_other(
    tmp_path: Path,
) -> None:
    async with (
        house_in(tmp_path, a2a__listen="127.0.0.1:0") as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        home = house.provider.home
        tokens = {}
        for name, more in (("ann", []), ("bob", ["--expose", "odd.odd"])):
            line = ["--home", str(home.path), "a2a", "tokens", "add", name, *more]
            tokens[name] = json.loads(anpd(*line, "--json"))["token"]
        assert tokens["ann"] not in (home.path / "a2a-tokens.json").read_text()
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {
                "message": {
                    "messageId": "m",
                    "role": "ROLE_USER",
                    "parts": [data("twice.twice", number=4)],
                }
            },
        }
        heads = {
            name: {"A2A-Version": "1.0", "Authorization": f"Bearer {token}"}
            for name, token in tokens.items()
        }
        task = (await rpc(url, call, **heads["ann"]))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        refused = (await rpc(url, call, **heads["bob"]))["result"]["task"]
        assert refused["status"]["state"] == "TASK_STATE_REJECTED"
        get = {**call, "method": "GetTask", "params": {"id": task["id"]}}
        assert (await rpc(url, get, **heads["bob"]))["error"]["code"] == -32001
        assert (await rpc(url, get, **heads["ann"]))["result"]["id"] == task["id"]
        anpd("--home", str(home.path), "a2a", "tokens", "revoke", "ann")
        assert "bearer" in (await rpc(url, get, **heads["ann"]))["error"]
        assert "bearer" in (await rpc(url, get))["error"]


@clause(
    "A2A-1", "A2A-8", "A2A-10", "A2A-19", "INT-1", "INT-2", "INT-3", "INT-4", "INT-5"
)
async def test_the_card_is_one_for_both_versions(tmp_path: Path) -> None:
    async with face_in(tmp_path, ai_calculate=CALCULATE) as url:
        async with httpx.AsyncClient(trust_env=False) as http:
            card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
        ParseDict(card, a2a_pb2.AgentCard(), ignore_unknown_fields=True)
        found = old.AgentCard.model_validate(card)
        assert found.capabilities.streaming is True
        assert found.url == url
        skills = {one.id: one for one in found.skills}
        assert skills["ai_calculate.ai_calculate"].tags == ["ai_calculate"]
        (extension,) = card["capabilities"]["extensions"]
        assert extension["uri"] == (
            "https://help.aliyun.com/zh/model-studio/multimodal-integration-a2a-intent"
        )
        assert list(extension["params"]) == ["skills"]
        schemas = {
            one["id"]: one["inputSchema"] for one in extension["params"]["skills"]
        }
        assert schemas.keys() == skills.keys()
        numbers = schemas["ai_calculate.ai_calculate"]["properties"]
        assert numbers["num1"]["type"] == "integer"


PICTURE = """
def picture(size: int) -> bytes:
    return b"\\x89PNG\\r\\n\\x1a\\n" + bytes(size)
"""


@clause("A2A-5", "A2A-6", "A2A-13")
async def test_a_large_file_is_fetched_from_the_face_by_its_caller_alone(
    tmp_path: Path,
) -> None:
    content = b"\x89PNG\r\n\x1a\n" + bytes(2_000_000)
    more = {"picture": PICTURE}
    async with (
        house_in(tmp_path, more=more, a2a__listen="127.0.0.1:0") as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        for name in ("ann", "bob"):
            token_book(house.provider.home).add(A2aCaller(name=name), name)
        ann = {"Authorization": "Bearer ann"}
        links = []
        for version in ("1.0", "0.3"):
            async with client_of(url, version, streaming=False, headers=ann) as client:
                request = message(data("picture.picture", size=2_000_000))
                (answer,) = await sent(client, request)
            (part,) = answer["task"]["artifacts"][0]["parts"]
            assert part["metadata"]["size"] == len(content)
            assert part["metadata"]["sha256"] == hashlib.sha256(content).hexdigest()
            links.append(part["url"])
        async with httpx.AsyncClient(trust_env=False) as http:
            for link in links:
                assert link.startswith(f"{url}/tasks/")
                found = await http.get(link, headers=ann)
                assert found.content == content
                assert found.headers["content-disposition"] == "attachment"
                other = await http.get(link, headers={"Authorization": "Bearer bob"})
                assert (other.status_code, await gone(http, link, ann)) == (404, 404)
                assert (await http.get(link)).status_code == 401


async def gone(http: httpx.AsyncClient, link: str, headers: dict[str, str]) -> int:
    """Return the status for a file that the task has not."""
    return (await http.get(f"{link}0", headers=headers)).status_code
