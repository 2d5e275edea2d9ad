"""Every tool, prompt and resource of the reference server, by every face of a caller.

It needs the server itself: ANPD_EVERYTHING is the path of `dist/index.js` in the npm
package `@modelcontextprotocol/server-everything`, and `node` has to be on the PATH. It
prints a table of what works and of what cannot, and why; `make test-everything`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from anp.sidecar.attachments import AttachmentError, AttachmentSpec, open_attachment
from anp.sidecar.attachments.requester import Reply
from anp.sidecar.home.home import Home
from anp.sidecar.mcp.local_api import LocalApi
from tests.anp.sidecar.attachments.mcp.test_attachment import call
from tests.anp.sidecar.attachments.mcp.test_content import asked
from tests.e2e.daemons import Anpd
from tests.e2e.test_mcp_face import connected

SERVER = os.environ.get("ANPD_EVERYTHING", "")
NODE = shutil.which("node") or ""

pytestmark = pytest.mark.skipif(
    not (SERVER and NODE),
    reason="no ANPD_EVERYTHING, or no node: install the npm package "
    "@modelcontextprotocol/server-everything and give the path of its dist/index.js",
)

CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "echo": ({"message": "hello"}, "Echo: hello"),
    "get-annotated-message": (
        {"messageType": "success", "includeImage": True},
        "Operation completed successfully",
    ),
    "get-env": ({}, "PATH"),
    "get-resource-links": ({"count": 3}, "demo://resource/dynamic/text/2"),
    "get-resource-reference": (
        {"resourceType": "Blob", "resourceId": 3},
        "demo://resource/dynamic/blob/3",
    ),
    "get-structured-content": ({"location": "Chicago"}, "drizzle"),
    "get-sum": ({"a": 2, "b": 40}, "42"),
    "get-tiny-image": ({}, "image/png"),
    "gzip-file-as-resource": (
        {
            "name": "hello.txt.gz",
            "data": "data:text/plain,hello",
            "outputType": "resource",
        },
        "application/gzip",
    ),
    "toggle-simulated-logging": ({}, "simulated"),
    "toggle-subscriber-updates": ({}, "simulated"),
    "trigger-long-running-operation": ({"duration": 1, "steps": 4}, "completed"),
    "trigger-elicitation-request": ({}, "declined"),
    "trigger-url-elicitation": (
        {"url": "https://sign.example/1", "message": "Sign"},
        "declined",
    ),
    "simulate-research-query": ({"topic": "python", "ambiguous": True}, "declined"),
    "prompt_simple-prompt": ({}, "This is a simple prompt"),
    "prompt_args-prompt": ({"city": "Rome"}, "weather in Rome"),
    "prompt_completable-prompt": (
        {"department": "Sales", "name": "Eve"},
        "promote Eve",
    ),
    "prompt_resource-prompt": (
        {"resourceType": "Text", "resourceId": "1"},
        "demo://resource/dynamic/text/1",
    ),
    "list_resources": ({}, "demo://resource/dynamic/text/{resourceId}"),
    "read_resource": ({"uri": "demo://resource/dynamic/blob/7"}, '"data"'),
}
"Arguments for each capability of one turn, and a piece of the answer."

TASKS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "trigger-long-running-operation": ({"duration": 2, "steps": 4}, {}, "completed"),
    "trigger-elicitation-request": (
        {},
        {"value": {"name": "Ann", "check": True}},
        "Name: Ann",
    ),
    "trigger-url-elicitation": (
        {"url": "https://sign.example/2", "message": "Sign"},
        {"text": "done"},
        "completed the URL elicitation",
    ),
    "simulate-research-query": (
        {"topic": "python", "ambiguous": True},
        {"text": "snake"},
        "python (snake)",
    ),
    "get-tiny-image": ({}, {}, "image you requested"),
}
"Arguments for tasks, the answer to the question, and a piece of the result."

CANNOT = {
    "get-roots-list": "exists for clients with folders (roots); peers' calls have none",
    "trigger-sampling-request": "exists for clients with a model (sampling); no model "
    "of the owner's is lent to its tools",
    "trigger-sampling-request-async": "the same, as a task",
    "trigger-elicitation-request-async": "exists for clients that answer as tasks of "
    "their own; the plain question works",
    "subscriptions": "a change of a resource is not told; it is read again",
    "log messages": "stay with the daemon that attached the server",
    "completions": "proposals for arguments are not passed on",
}


@dataclass
class Ended:
    """How a task went."""

    state: str = ""
    text: str = ""
    "Texts of its result."

    data: list[bytes] = field(default_factory=list)
    "Contents of its result that are bytes."

    progress: list[tuple[float, float]] = field(default_factory=list)
    "Amounts done, and when each was heard: seconds before its end."

    question: dict[str, Any] | None = None

    def take(self, events: list[dict[str, Any]], own: str) -> None:
        """Take what happened."""
        for event in events:
            data = event.get("data", event)
            if event["type"] == "task.progress" and data["progress"] is not None:
                self.progress.append((data["progress"], time.monotonic()))
            message = data.get("message", data)
            if event["type"] == "task.message" and message["purpose"] == "result":
                self.text += "\n".join(
                    str(part.get("text", part.get("value", "")))
                    for part in message["parts"]
                )


class Face(Protocol):
    """One way of a caller."""

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[Any, bytes]:
        """Call a capability; return its output, and its first bytes."""

    async def task(
        self, name: str, arguments: dict[str, Any], answer: dict[str, Any]
    ) -> Ended:
        """Start a task, answer its question, and follow it to its end."""


@dataclass
class CommandLine:
    """`anpd call` and `anpd tasks`."""

    caller: Anpd
    peer: str
    folder: Path

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[Any, bytes]:
        given = json.dumps(arguments)
        words = ("call", self.peer, f"everything.{name}", "-d", given, "--json")
        ended = await asyncio.to_thread(self.caller.ok, *words)
        output = ended.json()["output"]
        return output, first_bytes(output)

    async def task(
        self, name: str, arguments: dict[str, Any], answer: dict[str, Any]
    ) -> Ended:
        return await asyncio.to_thread(self._task, name, arguments, answer)

    def _task(
        self, name: str, arguments: dict[str, Any], answer: dict[str, Any]
    ) -> Ended:
        given, found = json.dumps(arguments), Ended()
        begun = self.caller.ok(
            *("tasks", "start", self.peer, f"everything.{name}", "-d", given, "--json")
        ).json()
        if answer:
            while not (shown := self._show(begun["id"]))["question"]:
                assert not shown["ended"], shown
                time.sleep(0.1)
            found.question = shown["question"]
            words = (
                ["-d", json.dumps(answer["value"])]
                if "value" in answer
                else [answer["text"]]
            )
            self.caller.ok("tasks", "send", begun["id"], *words)
        save = self.folder / begun["id"]
        watched = self.caller.ok(
            *("tasks", "watch", begun["id"], "--json", "--save", str(save))
        )
        found.take([json.loads(one) for one in watched.stdout.splitlines()], "")
        found.state = self._show(begun["id"])["state"]
        if save.exists():
            found.data = [one.read_bytes() for one in save.iterdir()]
        return found

    def _show(self, task: str) -> Any:
        return self.caller.ok("tasks", "show", task, "--json").json()


@dataclass
class HttpApi:
    """`POST /v1/calls` and `/v1/tasks`."""

    api: LocalApi
    peer: str

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[Any, bytes]:
        async def ignore(event: dict[str, Any]) -> None:
            pass

        need = f"everything.{name}"
        body = {"peer": self.peer, "need": need, "input": arguments}
        output = (await self.api.call(body, ignore))["output"]
        return output, first_bytes(output)

    async def task(
        self, name: str, arguments: dict[str, Any], answer: dict[str, Any]
    ) -> Ended:
        found = Ended()
        begun = await self.api.post(
            "/v1/tasks",
            {
                "peer": self.peer,
                "capability": f"everything.{name}",
                "input": arguments,
            },
        )
        path = f"/v1/tasks/{begun['id']}"
        stream = self.api.events(f"{path}/events", after=0, wait=30, silence=30)
        async for event in stream:
            found.take([event], "")
            message = event["data"].get("message") or {}
            if message.get("purpose") == "communication" and answer:
                found.question = (await self.api.get(path))["question"]
                await self.api.post(f"{path}/messages", answer)
                answer = {}
            for part in message.get("parts", ()):
                if "artifact" in part and not part.get("continued"):
                    place = f"{path}/artifacts/{part['artifact']}"
                    data = await self.api.content(place, most=10**6)
                    found.data.append(data or b"")
        found.state = (await self.api.get(path))["state"]
        return found


@dataclass
class McpClient:
    """The tools of `anpd mcp`."""

    client: Client
    peer: str

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[Any, bytes]:
        need = f"everything.{name}"
        body = {"peer": self.peer, "need": need, "input": arguments}
        shown, blocks = await self._use("call", body)
        return [shown["output"], str(blocks)], block_bytes(blocks)

    async def task(
        self, name: str, arguments: dict[str, Any], answer: dict[str, Any]
    ) -> Ended:
        found, after = Ended(), 0
        body = {
            "peer": self.peer,
            "capability": f"everything.{name}",
            "input": arguments,
        }
        begun, _ = await self._use("start_task", body)
        while not found.state:
            wanted = {"task": begun["id"], "after": after, "wait": 20}
            shown, blocks = await self._use("get_task", wanted)
            after = shown["next"]
            found.take(shown["events"], "")
            if data := block_bytes(blocks):
                found.data.append(data)
            if shown["question"] and answer:
                found.question = shown["question"]
                await self._use("answer_task", {"task": begun["id"], **answer})
                answer = {}
            if shown["ended"]:
                found.state = shown["state"]
        return found

    async def _use(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, list[Any]]:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content, result.content[1:]


def first_bytes(output: Any) -> bytes:
    """Return the first bytes in the parts of an output."""
    parts = output.get("parts", []) if isinstance(output, dict) else []
    return next((base64.b64decode(one["data"]) for one in parts if "data" in one), b"")


def block_bytes(blocks: list[Any]) -> bytes:
    """Return the first bytes in blocks of content."""
    for block in blocks:
        if isinstance(block, types.ImageContent):
            return base64.b64decode(block.data)
        contents = getattr(block, "resource", None)
        if isinstance(contents, types.BlobResourceContents):
            return base64.b64decode(contents.blob)
    return b""


async def image_of_server() -> bytes:
    """Return the image as the server gives it to a client of its own."""
    server = StdioServerParameters(command=NODE, args=[SERVER])
    async with Client(server) as client:
        blocks = (await client.call_tool("get-tiny-image", {})).content
    return block_bytes(list(blocks))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    provider = Anpd(tmp_path / "provider")
    attached = provider.ok(
        *("attach", "mcp", "--name", "everything", "--expose", "*", "--"),
        *(NODE, SERVER),
    )
    assert "subscriptions to resources" in attached.stderr
    caller = Anpd(tmp_path / "caller", listen__api_port="0")
    with provider.up(), caller.up():
        yield caller, provider


async def test_everything_by_every_face(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    image = await image_of_server()
    assert image.startswith(b"\x89PNG")
    rows: list[list[str]] = []
    async with (
        asyncio.timeout(300),
        LocalApi(Path(Home(caller.home).read_api().socket)) as api,
        connected(caller, "http") as client,
    ):
        peer = provider.address
        faces: list[Face] = [
            CommandLine(caller, peer, tmp_path),
            HttpApi(api, peer),
            McpClient(client, peer),
        ]
        for name, (arguments, piece) in CALLS.items():
            row = [name, "call"]
            for face in faces:
                output, data = await face.call(name, arguments)
                shown = output if isinstance(output, str) else json.dumps(output)
                assert piece in shown or data, (name, face, shown[:500])
                if name == "get-tiny-image":
                    assert data == image, face
                if name == "gzip-file-as-resource":
                    assert gzip.decompress(data) == b"hello"
                told = "declined" if piece == "declined" else "yes"
                row.append(f"{len(data)} bytes" if data else told)
            rows.append(row)
        listed, _ = await faces[1].call("list_resources", {})
        uris = [one["uri"] for one in listed["resources"]]
        assert len(uris) >= 7
        for uri in (*uris, "demo://resource/dynamic/text/1"):
            row = [uri.removeprefix("demo://resource/"), "read"]
            for face in faces:
                output, _ = await face.call("read_resource", {"uri": uri})
                read = output if isinstance(output, dict) else output[0]
                assert read["text"] or read["parts"], (uri, face)
                many = len(read["text"])
                row.append(f"{many} characters" if many else "bytes")
            rows.append(row)
        for name, (arguments, answer, piece) in TASKS.items():
            row = [name, "task"]
            for face in faces:
                ended = await face.task(name, arguments, dict(answer))
                assert ended.state == "completed", (name, face, ended)
                assert piece in ended.text, (name, face, ended)
                assert bool(ended.question) is bool(answer)
                told = "asked, answered" if answer else "yes"
                if name == "get-tiny-image":
                    assert ended.data == [image], face
                    told = f"{len(image)} bytes"
                if name == "trigger-long-running-operation":
                    assert [done for done, _ in ended.progress] == [1, 2, 3, 4]
                    told = "4 steps seen"
                    if not isinstance(face, CommandLine):
                        assert ended.progress[-1][1] - ended.progress[0][1] > 0.7
                row.append(told)
            rows.append(row)
    print_table(rows)


async def test_a_long_operation_outlives_a_restart_of_the_callers_daemon(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    given = json.dumps({"duration": 6, "steps": 6})
    words = ["tasks", "start", provider.address]
    words += ["everything.trigger-long-running-operation", "-d", given, "--json"]
    task = caller.ok(*words).json()["id"]
    await asyncio.sleep(2)
    caller.stop()
    caller.start()
    watched = caller.ok("tasks", "watch", task, "--json")
    ended = Ended()
    ended.take([json.loads(one) for one in watched.stdout.splitlines()], "")
    assert [done for done, _ in ended.progress] == [1, 2, 3, 4, 5, 6]
    assert "completed. Duration: 6 seconds" in ended.text


async def test_over_http_each_question_finds_its_own_requester() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        *(NODE, SERVER, "streamableHttp"),
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    spec = AttachmentSpec(kind="mcp", name="my", url=f"http://127.0.0.1:{port}/mcp")
    my = open_attachment(spec)
    try:
        async with asyncio.timeout(60):
            while not my.healthy:
                with contextlib.suppress(AttachmentError):
                    await my.start()
                await asyncio.sleep(0.1)

            async def one(name: str) -> str:
                with asked(Reply(value={"name": name, "check": True})):
                    found = await call(my, "trigger-elicitation-request")
                return str(found["text"])

            names = [f"Ann {number}" for number in range(5)]
            for name, text in zip(
                names, await asyncio.gather(*map(one, names)), strict=True
            ):
                assert f"Name: {name}" in text
    finally:
        await my.close()
        server.kill()
        await server.wait()


def print_table(rows: list[list[str]]) -> None:
    """Print what was seen to work, and what cannot."""
    head = ["CAPABILITY", "AS", "anpd", "HTTP API", "MCP client"]
    print()
    for row in [head, *rows]:
        print(f"{row[0]:<34}{row[1]:<6}" + "".join(f"{one:<17}" for one in row[2:]))
    print("\nCANNOT")
    for name, reason in CANNOT.items():
        print(f"{name:<36}{reason}")
