"""What an attached MCP server gives, at another daemon: by every face there is."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.e2e.agents.rich_mcp_server import PICTURE, SOUND
from tests.e2e.daemons import Anpd
from tests.e2e.test_mcp_face import connected

SERVER = Path(__file__).parent / "agents" / "rich_mcp_server.py"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    folder = tmp_path_factory.mktemp("rich")
    provider = Anpd(folder / "provider")
    provider.ok(
        *("attach", "mcp", "--name", "rich", "--expose", "*", "--"),
        *(sys.executable, str(SERVER)),
    )
    caller = Anpd(folder / "caller", listen__api_port="0")
    with provider.up(), caller.up():
        yield caller, provider


def called(pair: tuple[Anpd, Anpd], name: str, **arguments: Any) -> Any:
    """Call a capability on the command line, and return its output."""
    caller, provider = pair
    words = ["call", provider.address, f"rich.{name}", "--json"]
    return json.loads(caller.ok(*words, "--data", json.dumps(arguments)).stdout)


def test_the_command_line_gives_bytes_in_base64(pair: tuple[Anpd, Anpd]) -> None:
    output = called(pair, "draw")["output"]
    assert output["text"] == "a picture"
    picture, sound, link, note = output["parts"]
    assert base64.b64decode(picture["data"]) == PICTURE
    assert base64.b64decode(sound["data"]) == SOUND
    assert link == {"mediaType": "text/csv", "name": "more", "uri": "rich://more"}
    assert note["text"] == "# A note"


def test_a_watched_task_saves_what_it_gives(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    folder = tmp_path / "saved"
    words = ("tasks", "start", provider.address, "rich.draw", "--watch")
    ended = caller.ok(*words, "--save", str(folder))
    saved = {path.suffix: path.read_bytes() for path in folder.iterdir()}
    assert saved[".png"] == PICTURE
    assert SOUND in saved.values()
    assert "a picture" in ended.stdout


def test_prompts_and_resources_are_called_like_tools(pair: tuple[Anpd, Anpd]) -> None:
    said = called(pair, "prompt_greet", who="Ann")["output"]["messages"]
    assert said[0]["text"] == "Greet Ann."
    listed = called(pair, "list_resources")["output"]["resources"]
    read = called(pair, "read_resource", uri=listed[0]["uri"])["output"]
    assert base64.b64decode(read["parts"][0]["data"]) == PICTURE


def test_a_call_of_one_turn_declines_questions_and_gets_no_model(
    pair: tuple[Anpd, Anpd],
) -> None:
    assert called(pair, "order")["output"]["text"] == "decline None half done"
    caller, provider = pair
    done = caller.run("call", provider.address, "rich.dream", "--data", "{}")
    assert done.code != 0
    assert "wants a model" in done.stderr


async def test_an_mcp_client_gets_each_block_as_such(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    body = {"peer": provider.address, "need": "rich.draw", "input": {}}
    async with asyncio.timeout(60), connected(caller, "http") as client:
        result = await client.call_tool("call", body)
    words, picture, sound, link, note = result.content
    assert isinstance(words, types.TextContent)
    assert PICTURE.hex()[:40] not in words.text
    assert json.loads(words.text)["parts"][0] == {
        "mediaType": "image/png",
        "size": len(PICTURE),
    }
    assert isinstance(picture, types.ImageContent)
    assert base64.b64decode(picture.data) == PICTURE
    assert isinstance(sound, types.AudioContent)
    assert isinstance(link, types.ResourceLink)
    assert isinstance(note, types.EmbeddedResource)


class Followed:
    """A task that an MCP client follows to its end."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.events: list[Any] = []
        self.blocks: list[Any] = []
        self.progress: list[str] = []

    async def tool(self, tool: str, /, **arguments: Any) -> Any:
        async def heard(done: float, total: float | None, words: str | None) -> None:
            self.progress.append(words or "")

        result = await self.client.call_tool(tool, arguments, progress_callback=heard)
        assert not result.is_error, result.content
        self.blocks += result.content[1:]
        return result.structured_content

    async def run(self, peer: str, name: str, answer: dict[str, Any]) -> str:
        """Start it, answer its question, and return its last state."""
        begun = await self.tool(
            "start_task", peer=peer, capability=f"rich.{name}", input={}
        )
        task, after = begun["id"], 0
        while True:
            found = await self.tool("get_task", task=task, after=after, wait=20)
            after = found["next"]
            self.events += found["events"]
            if found["ended"]:
                return str(found["state"])
            if found["question"]:
                self.question = found["question"]
                await self.tool("answer_task", task=task, **answer)

    @property
    def results(self) -> list[Any]:
        """The parts of its result."""
        return [
            part
            for event in self.events
            if event["type"] == "task.message" and event["purpose"] == "result"
            for part in event["parts"]
        ]


async def test_an_mcp_client_follows_tasks_and_answers(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    async with asyncio.timeout(90), connected(caller, "http") as client:
        one = Followed(client)
        assert await one.run(provider.address, "draw", {}) == "completed"
        kinds = [part["kind"] for part in one.results]
        assert kinds == ["text", "bytes", "bytes", "uri", "text"]
        picture, sound = one.blocks
        assert isinstance(picture, types.ImageContent)
        assert base64.b64decode(picture.data) == PICTURE
        assert isinstance(sound, types.AudioContent)

        one = Followed(client)
        assert await one.run(provider.address, "steps", {}) == "completed"
        assert "2/3 step 2" in one.progress

        one = Followed(client)
        answer: dict[str, Any] = {"value": {"size": "large"}}
        assert await one.run(provider.address, "order", answer) == "completed"
        assert one.question["text"] == "How large?"
        assert one.question["asked_by"] == provider.address.partition("#")[2]
        assert one.results[0]["text"] == "accept {'size': 'large'} half done"

        one = Followed(client)
        answer = {"action": "decline"}
        assert await one.run(provider.address, "sign", answer) == "completed"
        assert one.question["url"] == "https://sign.example/1"
        assert one.question["host"] == "sign.example"
        assert one.results[0]["text"] == "decline None half done"


async def test_an_mcp_client_cancels_a_task(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    async with asyncio.timeout(60), connected(caller, "stdio") as client:
        one = Followed(client)
        begun = await one.tool(
            "start_task", peer=provider.address, capability="rich.order", input={}
        )
        task, after = begun["id"], 0
        while not (found := await one.tool("get_task", task=task, wait=20))["question"]:
            assert not found["ended"]
        await one.tool("cancel_task", task=task)
        while not found["ended"]:
            found = await one.tool("get_task", task=task, after=after, wait=20)
            after = found["next"]
        assert found["state"] == "canceled"
        wrong = await client.call_tool("get_task", {"task": "../x"})
        assert wrong.is_error
