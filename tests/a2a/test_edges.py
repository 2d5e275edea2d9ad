"""Requests that no client should send, and too many of them, at the A2A face."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.tokens import token_book
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.process import a2a_face
from anp.sidecar.process.a2a_face import serve_a2a
from anp.sidecar.tasks.sessions import Sessions
from cache.parts.logs import LogEvent
from tests.clauses import clause
from tests.e2e.house import house_in
from tests.e2e.test_a2a_face import SLOW, face_in

V10 = {"A2A-Version": "1.0"}
LARGE = 10 * 1024 * 1024
OURS = ("Traceback", "anp.", "anp/", "cache", "negotiation", ".py", "Error(", "session")
"Words of ours that no answer has."


def message(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    own = {"data": {"skill": "twice.twice", "arguments": {"number": 4}}}
    return {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        "parts": list(parts) or [own],
        **more,
    }


def old_message(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    own = {"kind": "data", "data": {"skill": "twice.twice", "arguments": {"number": 4}}}
    parts = parts or (own,)
    return {"kind": "message", **message(*parts, role="user"), **more}


def body(method: str | None = "SendMessage", params: Any = None, **more: Any) -> Any:
    params = {"message": message()} if params is None else params
    return {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params, **more}


def sent(found: dict[str, Any]) -> Any:
    """Return the request that sends a message, in its version."""
    method = "message/send" if "kind" in found else "SendMessage"
    return body(method, {"message": found})


class Face:
    """The face of one daemon, and a client of it."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url = url
        self.http = http

    async def post(self, content: Any, path: str = "", **head: str) -> httpx.Response:
        heads = {name.replace("_", "-"): value for name, value in head.items()}
        raw = isinstance(content, bytes) or hasattr(content, "__aiter__")
        data = content if raw else json.dumps(content)
        answer = await self.http.post(self.url + path, content=data, headers=heads)
        if answer.status_code != 200 or "error" in answer.json():
            assert not [word for word in OURS if word in answer.text], answer.text
        return answer

    async def error(self, content: Any, **head: str) -> dict[str, Any]:
        answer = await self.post(content, **head)
        found: dict[str, Any] = answer.json()
        assert "error" in found, found
        return found


@contextlib.asynccontextmanager
async def served(folder: Path, **flags: Any) -> AsyncIterator[Face]:
    async with (
        face_in(folder, **flags) as url,
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        yield Face(url, http)


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 65_536):
        yield data[at : at + 65_536]


NO_JSON = {
    "deep": b'{"jsonrpc":"2.0","id":1,"params":' + b"[" * 9000 + b"]" * 9000 + b"}",
    "no UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "a key twice": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}',
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":NaN}}',
    "large": b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":1e999}}',
    "half a pair": b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":"\\ud800"}',
    "nothing": b"",
    "cut off": b'{"jsonrpc":',
}

REFUSED: dict[str, tuple[Any, dict[str, str], int]] = {
    "batch": ([body()], V10, -32600),
    "no object": (5, V10, -32600),
    "no version": ({"id": "r1", "method": "GetTask"}, V10, -32600),
    "id an object": (body(id={}), V10, -32600),
    "id true": (body(id=True), V10, -32600),
    "id too long": (body(id="x" * 1000), V10, -32600),
    "no method": (body(method=None), V10, -32600),
    "unknown": (body("Other"), V10, -32601),
    "unknown in 0.3": (body("other/thing"), {}, -32601),
    "a list in 0.3": (body("tasks/list", {}), {}, -32601),
    "a list of parameters": (body(params=[1]), V10, -32602),
    "version 1.7": (body(), {"A2A-Version": "1.7"}, -32009),
    "version 2.0": (body(), {"A2A-Version": "2.0"}, -32009),
    "version 10": (body(), {"A2A-Version": "10.0"}, -32009),
    "no word of a version": (body(), {"A2A-Version": "banana"}, -32009),
    "no header": (body(), {}, -32009),
    "0.3 as 1.0": (sent(old_message()), V10, -32009),
    "role agent": (sent(message(role="ROLE_AGENT")), V10, -32602),
    "role agent in 0.3": (sent(old_message(role="agent")), {}, -32602),
    "role of 0.3 in 1.0": (sent(message(role="user")), V10, -32602),
    "no base64": (sent(message({"raw": "!!!"})), V10, -32602),
    "no base64 in 0.3": (
        sent(old_message({"kind": "file", "file": {"bytes": "base64编码内容..."}})),
        {},
        -32602,
    ),
    "an empty part": (sent(message({})), V10, -32602),
    "no parts": (sent(message() | {"parts": []}), V10, -32602),
    "another's task": (sent(message(taskId="t")), V10, -32001),
    "another's task in 0.3": (sent(old_message(taskId="t")), {}, -32001),
    "get": (body("GetTask", {"id": "a\0b"}), V10, -32001),
    "cancel": (body("tasks/cancel", {"id": "t"}), {}, -32001),
    "subscribe": (body("SubscribeToTask", {"id": "t"}), V10, -32001),
    "resubscribe": (body("tasks/resubscribe", {"id": "t"}), {}, -32001),
    "history": (body("GetTask", {"id": "t", "historyLength": -1}), V10, -32602),
    "page": (body("ListTasks", {"pageSize": 0}), V10, -32602),
    "state": (body("ListTasks", {"status": "done"}), V10, -32602),
    "intents": (sent(message(metadata={"intentInfos": 1})), V10, -32602),
}


@clause("A2A-2", "A2A-Q3")
async def test_each_fault_has_its_error(tmp_path: Path) -> None:
    async with served(tmp_path) as face:
        for name, raw in NO_JSON.items():
            for head in (V10, {}):
                found = await face.error(raw, **head)
                assert (found["error"]["code"], found["id"]) == (-32700, None), name
                assert "data" not in found["error"]
            # Without a body all parameters are missing.
            answer = await face.post(raw, path="/message:send", **V10)
            assert answer.status_code == answer.json()["error"]["code"] == 400, name
        for name, (content, head, code) in REFUSED.items():
            found = await face.error(content, **head)
            error = found["error"]
            assert error["code"] == code, (name, error)
            has_id = isinstance(content, dict) and content["id"] == "r1"
            assert found["id"] == ("r1" if has_id else None), (name, found)
            # Only 1.0 has more for programs in errors that are its own.
            is_old = head.get("A2A-Version", "0.3").startswith("0.")
            assert ("data" in error) == (not is_old and -32099 <= code <= -32000), name


@clause("A2A-2", "A2A-Q3")
async def test_each_fault_has_its_error_in_http_and_json_as_well(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as face:
        for found, status, name in (
            (message(role="ROLE_AGENT"), 400, "INVALID_ARGUMENT"),
            (message(role="user"), 400, "INVALID_ARGUMENT"),
            (message({"raw": "!!!"}), 400, "INVALID_ARGUMENT"),
            (message({}), 400, "INVALID_ARGUMENT"),
            (message(taskId="t"), 404, "NOT_FOUND"),
            (message(metadata={"intentInfos": 1}), 400, "INVALID_ARGUMENT"),
        ):
            answer = await face.post({"message": found}, path="/message:send", **V10)
            error = answer.json()["error"]
            assert (answer.status_code, error["status"]) == (status, name), error
        for path in ("/tasks/t:cancel", "/tasks/t:subscribe"):
            assert (await face.post({}, path=path, **V10)).status_code == 404
        answer = await face.http.get(f"{face.url}/tasks/t", headers=V10)
        assert answer.json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"


@clause("A2A-2")
async def test_the_body_of_a_request(tmp_path: Path) -> None:
    large = json.dumps(sent(message({"text": "x" * LARGE}))).encode()
    larger = json.dumps(sent(message({"text": "x" * LARGE * 2}))).encode()
    async with served(tmp_path) as face:
        text = {"kind": "text", "text": "x" * LARGE}
        old = json.dumps(sent(old_message(text))).encode()
        for content, head in (
            (large, V10),
            (pieces(large), V10),
            (old, {}),
            (pieces(old), {}),
        ):
            found = await face.error(content, **head)
            assert found["error"]["code"] == -32602
            assert "8388544 bytes" in found["error"]["message"]
        for content in (larger, pieces(larger)):
            answer = await face.post(content, **V10)
            assert answer.status_code == 413
            assert answer.json()["error"]["code"] == -32600
        answer = await face.post(larger, path="/message:send", **V10)
        assert answer.status_code == answer.json()["error"]["code"] == 413
        fits = json.dumps(sent(message({"text": "x" * 7_000_000}))).encode()
        task = (await face.post(fits, **V10)).json()["result"]["task"]
        assert len(task["history"][0]["parts"][0]["text"]) == 7_000_000
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            answer = await face.post(body(), content_type=kind, **V10)
            assert answer.status_code == 415
            assert answer.json()["error"]["code"] == -32005
        for kind in ("application/json; charset=utf-8", "application/a2a+json"):
            answer = await face.post(body(), content_type=kind, **V10)
            assert "result" in answer.json()


async def test_a_version_in_the_query(tmp_path: Path) -> None:
    async with served(tmp_path) as face:
        answer = await face.post(body(), path="/?A2A-Version=1.0")
        assert "task" in answer.json()["result"]
        answer = await face.post(body(), A2A_Version="1.0.3")
        assert "task" in answer.json()["result"]
        answer = await face.post({}, path="/message:send?A2A-Version=2.0")
        assert answer.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@clause("A2A-Q4")
async def test_one_id_for_two_messages(tmp_path: Path) -> None:
    async with served(tmp_path) as face:
        await face.post(sent(message(messageId="m")), **V10)
        other = sent(message({"text": "other"}, messageId="m"))
        error = (await face.error(other, **V10))["error"]
        assert error["code"] == -32602
        assert "messageId" in error["message"]


async def test_a_result_that_is_too_large(tmp_path: Path) -> None:
    skill = {"skill": "huge.huge", "arguments": {"size": LARGE}}
    async with served(tmp_path) as face:
        answer = await face.post(sent(message({"data": skill})), **V10)
        task = answer.json()["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_FAILED", task
        assert "artifacts" not in task
        assert "result" in (await face.post(body(), **V10)).json()


async def test_pages_of_others_cannot_use_an_open_face(tmp_path: Path) -> None:
    """A name of theirs may lead to this machine."""
    async with served(tmp_path) as face:
        port = face.url.rpartition(":")[2]
        for head, status in (
            ({"Host": f"evil.example:{port}"}, 421),
            ({"Host": "127.0.0.1:1"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
        ):
            answer = await face.post(body(), **V10, **head)
            assert answer.status_code == status, head
            card = f"{face.url}/.well-known/agent-card.json"
            assert (await face.http.get(card, headers=head)).status_code == status
        for head in ({"Host": f"localhost:{port}"}, {"Origin": face.url}):
            assert "result" in (await face.post(body(), **V10, **head)).json()
        asked = await face.http.options(face.url, headers={"Origin": face.url})
        assert "access-control-allow-origin" not in asked.headers


@contextlib.asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[Face]:
    """Serve a face with a token, which the client has."""
    async with (
        house_in(folder, more={"slow": SLOW}, a2a__listen="127.0.0.1:0") as house,
        serve_a2a(house.provider) as url,
    ):
        assert url is not None
        book = token_book(house.provider.home)
        book.add(A2aCaller(name="ann"), "secret")
        book.add(A2aCaller(name="bob"), "secret of bob")
        head = {"Authorization": "Bearer secret", **V10}
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            trust_env=False, timeout=60, headers=head, limits=limits
        ) as http:
            yield Face(url, http)


@clause("A2A-21")
async def test_many_without_a_token(tmp_path: Path) -> None:
    async with guarded(tmp_path) as face:
        answer = await face.post(body(), Authorization="Bearer wrong")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        port = int(face.url.rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(400)]

        async def knock() -> None:
            async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
                for _ in range(60):
                    with contextlib.suppress(httpx.HTTPError):
                        assert (await http.post(face.url)).status_code == 401

        flood = [asyncio.create_task(knock()) for _ in range(20)]
        for _ in range(5):
            assert "result" in (await face.post(body())).json()
        done = sum(task.done() for task in flood)
        assert done < len(flood)
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        for _, writer in idle:
            writer.close()


async def test_slow_requests_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = ConnectionLimits(header_seconds=0.5, body_seconds=0.5, look_seconds=0.1)
    monkeypatch.setattr(a2a_face, "LIMITS", fast)
    begun = b"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
    async with guarded(tmp_path) as face:
        port = int(face.url.rpartition(":")[2])
        for first, drop in (
            (begun, b"X"),
            (begun + b"Content-Length: 9\r\n\r\n", b" "),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            with contextlib.suppress(ConnectionError):
                for _ in range(8):
                    writer.write(drop)
                    await asyncio.sleep(0.1)
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(5):
                    assert await reader.read() == b""
            writer.close()
        assert "result" in (await face.post(body())).json()


async def test_callers_with_a_token_are_no_strangers(tmp_path: Path) -> None:
    """More of them wait for answers than strangers may be here at all."""
    skill = {"skill": "slow.slow", "arguments": {"seconds": 3}}
    async with guarded(tmp_path) as face:
        answers = await asyncio.gather(
            *(face.post(sent(message({"data": skill}))) for _ in range(80))
        )
        # More of them than may run at once are turned away later, each with words.
        states = {one.json()["result"]["task"]["status"]["state"] for one in answers}
        assert states <= {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"}


@pytest.mark.slow
async def test_a_thousand_tasks_of_one_caller(tmp_path: Path) -> None:
    async with served(tmp_path) as face:
        for _ in range(50):
            found = await asyncio.gather(*(face.post(body(), **V10) for _ in range(20)))
            assert all("result" in one.json() for one in found)
        seen: list[str] = []
        token = ""
        while True:
            wanted = {"pageSize": 100, "pageToken": token, "historyLength": 0}
            answer = await face.post(body("ListTasks", wanted), **V10)
            page = answer.json()["result"]
            assert page["totalSize"] == 1000
            assert len(page["tasks"]) <= 100
            assert not [one for one in page["tasks"] if "history" in one]
            seen += [one["id"] for one in page["tasks"]]
            token = page["nextPageToken"]
            if not token:
                break
        assert len(seen) == len(set(seen)) == 1000
        assert seen == sorted(seen, reverse=True)


async def test_a_long_context_is_not_read_for_each_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    stored = Sessions.stored

    async def counted(self: Sessions, log: str, **more: Any) -> list[LogEvent]:
        found = await stored(self, log, **more)
        read.append(len(found))
        return found

    monkeypatch.setattr(Sessions, "stored", counted)
    async with served(tmp_path) as face:
        for _ in range(30):
            read.clear()
            await face.post(sent(message(contextId="one")), **V10)
            # Each task has about half a dozen events.
            assert sum(read) < 40
        wanted = body("ListTasks", {"pageSize": 100})
        read.clear()
        page = (await face.post(wanted, **V10)).json()["result"]
        assert len(page["tasks"]) == 30
        assert sum(read) < 400


@clause("A2A-6", "A2A-12")
async def test_callers_learn_nothing_of_each_other(tmp_path: Path) -> None:
    async with guarded(tmp_path) as face, asyncio.timeout(60):
        skill = {"skill": "slow.slow", "arguments": {"seconds": 30}}
        wanted = sent(message({"data": skill}, contextId="one"))
        wanted["params"]["configuration"] = {"returnImmediately": True}
        task = (await face.post(wanted)).json()["result"]["task"]
        bob = {"Authorization": "Bearer secret of bob"}
        for method, params in (
            ("GetTask", {"id": task["id"]}),
            ("CancelTask", {"id": task["id"]}),
            ("SubscribeToTask", {"id": task["id"]}),
            ("SendMessage", {"message": message(taskId=task["id"])}),
        ):
            error = (await face.error(body(method, params), **bob))["error"]
            assert error["code"] == -32001, method
        # The same name for a context is another context.
        own = (await face.post(sent(message(contextId="one")), **bob)).json()
        assert own["result"]["task"]["contextId"] == "one"
        page = (await face.post(body("ListTasks", {}), **bob)).json()["result"]
        assert [one["id"] for one in page["tasks"]] == [own["result"]["task"]["id"]]
        ended = await face.post(body("CancelTask", {"id": task["id"]}))
        state = ended.json()["result"]["status"]["state"]
        assert state == "TASK_STATE_CANCELED"
