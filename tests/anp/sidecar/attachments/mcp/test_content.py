"""Content of all kinds, prompts, resources, questions and tasks of MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Message, Part, PartKind
from anp.sidecar.attachments import Attachment, ToolError
from anp.sidecar.attachments.attachment import Progress, report_progress
from anp.sidecar.attachments.requester import (
    GivenFile,
    Question,
    Reply,
    ReplyAction,
    current_requester,
)
from tests.anp.sidecar.attachments.mcp.test_attachment import call, names, scripted
from tests.waiting import until


class Asked:
    """A requester with its answers ready."""

    key = "k"
    said: Sequence[Part] = ()

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.questions: list[Question] = []
        self.parts: list[Part] = []

    folder = ""

    async def send_file(self, file: GivenFile) -> None:
        raise AssertionError("nothing here gives files")

    @property
    def was_told(self) -> bool:
        return bool(self.parts)

    async def begin(self) -> bool:
        return False

    async def say(self, parts: Sequence[Part]) -> None:
        self.parts += parts

    async def update(self, parts: Sequence[Part]) -> None:
        self.parts += parts

    async def listen(self, hear: Callable[[Message], None]) -> None:
        pass

    async def lay(self, files: Sequence[Part]) -> list[str]:
        raise AssertionError("no answer here has files")

    async def ask(self, question: Question) -> Reply:
        self.questions.append(question)
        if not self.replies:
            await asyncio.Event().wait()
        return self.replies.pop(0)


@contextmanager
def asked(*replies: Reply) -> Any:
    """Make the calls of a block those of a task with these answers."""
    requester = Asked(*replies)
    token = current_requester.set(requester)
    try:
        yield requester
    finally:
        current_requester.reset(token)


async def text(my: Attachment, tool: str, **arguments: Any) -> str:
    """Return the text of a tool's answer."""
    return str((await call(my, tool, **arguments))["text"])


# -- content


async def test_blocks_that_are_no_text_go_as_parts(tmp_path: Path) -> None:
    async with scripted(tmp_path, "image", "blocks") as my:
        assert await call(my, "image") == {
            "text": "one",
            "parts": [{"mediaType": "image/png", "data": "AAAA"}],
        }
        binary = "application/octet-stream"
        assert (await call(my, "blocks"))["parts"] == [
            {"mediaType": "image/png", "data": "AAAA"},
            {"mediaType": "audio/wav", "data": "AQID"},
            {"mediaType": binary, "name": "b", "uri": "x://a/b"},
            {
                "mediaType": "text/plain",
                "name": "c.txt",
                "uri": "x://a/c.txt",
                "text": "see",
            },
            {"mediaType": binary, "name": "d", "uri": "x://a/d", "data": "AA=="},
        ]
        schema: Any = my.capabilities()[0].output_schema
        assert "parts" in schema["properties"]
        assert schema["required"] == ["text"]


async def test_a_task_gets_each_block_as_a_part(tmp_path: Path) -> None:
    async with scripted(tmp_path, "blocks") as my:
        with asked() as requester:
            await call(my, "blocks")
        kinds = [part.kind for part in requester.parts]
        data, link = PartKind.BYTES, PartKind.URI
        assert kinds == [PartKind.TEXT, data, data, link, PartKind.TEXT, data]
        image = requester.parts[1]
        assert (image.content, image.media_type) == (bytes(3), "image/png")
        assert requester.parts[3].size == 3


async def test_a_structured_result_keeps_its_picture_in_a_task(tmp_path: Path) -> None:
    schema = {"type": "object"}
    async with scripted(tmp_path, {"name": "both", "outputSchema": schema}) as my:
        assert await call(my, "both") == {"n": 1}
        with asked() as requester:
            await call(my, "both")
        assert [part.content for part in requester.parts] == [{"n": 1}, bytes(3)]


async def test_an_empty_text_before_a_picture_is_left_out(tmp_path: Path) -> None:
    picture = {"mediaType": "image/png", "data": "AAAA"}
    async with scripted(tmp_path, "empty_text") as my:
        assert await call(my, "empty_text") == {"text": "", "parts": [picture]}
        with asked() as requester:
            await call(my, "empty_text")
        assert [part.content for part in requester.parts] == [bytes(3)]


async def test_annotations_and_the_order_of_blocks_are_kept(tmp_path: Path) -> None:
    told = {"audience": ["user"], "priority": 0.5}
    picture = {"mediaType": "image/png", "data": "AAAA", "annotations": told}
    words = {"mediaType": "text/plain", "text": "one"}
    async with scripted(tmp_path, "between", "noted") as my:
        assert await call(my, "between") == {"text": "one", "parts": [picture, words]}
        noted = {**words, "annotations": {"priority": 1.0}}
        assert await call(my, "noted") == {"text": "one", "parts": [noted]}
        with asked() as requester:
            await call(my, "between")
        assert requester.parts[0].metadata["annotations"] == told


async def test_a_task_gets_a_picture_once_and_as_bytes(tmp_path: Path) -> None:
    schema = {"type": "object"}
    async with scripted(tmp_path, {"name": "media", "outputSchema": schema}) as my:
        (item,) = (await call(my, "media"))["content"]
        assert item["data"] == "AAAA"
        with asked() as requester:
            await call(my, "media")
        assert [part.content for part in requester.parts] == [bytes(3)]


# -- questions


async def test_a_question_in_fields_is_put_to_the_requester(tmp_path: Path) -> None:
    async with scripted(tmp_path, "ask") as my:
        with asked(Reply(value={"one": "this"})) as requester:
            found = await text(my, "ask")
        assert found == '{"action": "accept", "content": {"one": "this"}}'
        assert requester.questions[0].text == "Which one?"
        schema: Any = requester.questions[0].schema
        assert schema["required"] == ["one"]
        with asked(Reply(parts=[Part.text("that")])):
            assert '"that"' in await text(my, "ask")
        with asked(Reply(action=ReplyAction.DECLINE)):
            assert await text(my, "ask") == '{"action": "decline"}'


async def test_an_answer_that_is_none_is_asked_for_again(tmp_path: Path) -> None:
    wrong = Reply(value={"one": {"deep": 1}})
    async with scripted(tmp_path, "ask") as my:
        with asked(wrong, Reply(value={"one": "x"})) as requester:
            assert '"x"' in await text(my, "ask")
        assert requester.questions[1].text.endswith("an object with: one")
        with asked(wrong, wrong, wrong):
            assert await text(my, "ask") == '{"action": "cancel"}'


async def test_a_question_without_a_requester_is_declined(tmp_path: Path) -> None:
    async with scripted(tmp_path, "ask", "ask_page") as my:
        assert await text(my, "ask") == '{"action": "decline"}'
        assert await text(my, "ask_page") == '{"action": "decline"}'


async def test_a_question_that_may_be_of_another_call_is_declined(
    tmp_path: Path,
) -> None:
    async with scripted(tmp_path, "ask", "was_cancelled") as my:
        other = asyncio.create_task(call(my, "was_cancelled"))
        await asyncio.sleep(0)
        with asked(Reply(value={"one": "x"})) as requester:
            assert await text(my, "ask") == '{"action": "decline"}'
        assert requester.questions == []
        other.cancel()


async def test_a_page_is_shown_and_never_opened(tmp_path: Path) -> None:
    async with scripted(tmp_path, "ask_page", "behind_page") as my:
        with asked(Reply()) as requester:
            assert await text(my, "ask_page") == '{"action": "accept"}'
        assert requester.questions == [
            Question(text="Sign in", url="https://a.example/in")
        ]
        with asked(Reply()) as requester:
            assert await text(my, "behind_page") == "one"
        assert requester.questions[0].url == "https://a.example/in"


async def test_a_page_that_nobody_visits_ends_the_call(tmp_path: Path) -> None:
    async with scripted(tmp_path, "behind_page") as my:
        with pytest.raises(ToolError, match="not done: Sign in") as caught:
            await call(my, "behind_page")
        assert caught.value.code == 403


async def test_a_server_gets_no_model(tmp_path: Path) -> None:
    async with scripted(tmp_path, "think") as my:
        assert "not supported" in await text(my, "think")


async def test_a_call_that_ends_ends_its_question(tmp_path: Path) -> None:
    async with scripted(tmp_path, "ask", "texts") as my:
        with asked(), pytest.raises(ToolError, match="no answer within"):
            await call(my, "ask", 0.5)
        assert await text(my, "texts") == "one\ntwo"


# -- tasks, prompts, resources


async def test_a_tool_that_works_as_a_task_is_followed(tmp_path: Path) -> None:
    tool = {"name": "research", "execution": {"taskSupport": "required"}}
    told: list[Progress] = []
    async with scripted(tmp_path, tool) as my:
        report_progress.set(told.append)
        with asked(Reply(value={"one": "x"})) as requester:
            assert '"x"' in await text(my, "research")
        assert len(requester.questions) == 1
        assert [one.message for one in told] == ["I am working"]
        with asked(), pytest.raises(ToolError, match="no answer"):
            await call(my, "research", 1.0)
        await until((tmp_path / "state.cancelled").exists)


async def test_prompts_and_resources_are_capabilities(tmp_path: Path) -> None:
    able = {"prompts": {}, "resources": {"subscribe": True}, "completions": {}}
    async with scripted(tmp_path, "texts", able=able) as my:
        assert names(my) == ["texts", "prompt_greet", "list_resources", "read_resource"]
        assert all(one.read_only for one in my.capabilities()[1:])
        assert await call(my, "prompt_greet", who="Ann") == {
            "messages": [
                {"role": "user", "mediaType": "text/plain", "text": "Greet Ann."},
                {"role": "assistant", "mediaType": "image/png", "data": "AAAA"},
            ]
        }
        assert await call(my, "list_resources") == {
            "resources": [{"uri": "x://a", "name": "a", "mediaType": "text/plain"}],
            "templates": [{"uriTemplate": "x://{one}", "name": "any"}],
        }
        found = await call(my, "read_resource", uri="x://a")
        assert found["text"] == "text of x://a"
        assert found["parts"][0]["data"] == "AAEC"
        skipped = " ".join(my.skipped)
        assert "subscriptions" in skipped
        assert "proposals" in skipped
