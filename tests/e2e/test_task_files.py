"""Files that reach the agent by another way than with its task's arguments."""

from __future__ import annotations

import asyncio
from pathlib import Path

from anp.interaction.elements import Part
from tests.e2e.talks import talks_in

AGENT = '''
from pathlib import Path
from typing import Protocol


class Context(Protocol):
    """What this agent uses of a call's context."""


def wanted(context: Context) -> list[str]:
    """Ask for files, and say what they are."""
    words = context.ask("Which?")
    files = [f"{one.name}: {one.read_bytes()!r}" for one in context.files]
    assert all(one.parent == context.folder for one in context.files)
    return [words, *files]


def made(context: Context) -> Path:
    """Give a file."""
    path = context.folder / "book.txt"
    path.write_text("a book")
    return path


def length(book: Path, factor: int = 1) -> int:
    """Count the bytes of a book."""
    return len(book.read_bytes()) * factor
'''


async def test_files_of_an_answer_reach_the_function_that_asked(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("wanted")

        async with asyncio.timeout(20):
            async for event in talks.caller.tasks.watch(task.log):
                if getattr(event.content, "state", "") == "x-input-required":
                    break
        files = [Part.data(b"one", name="a.txt"), Part.data(b"two", name="../a.txt")]
        await talks.caller.tasks.send(
            task.id, [Part.text("these"), *files], metadata={}
        )
        seen = await talks.follow(task)
        assert seen.states[-1] == "completed", seen.end
        [result] = seen.results
        assert result["result"][0] == "these"
        assert result["result"][1] == "a.txt: b'one'"
        assert "b'two'" in result["result"][2]


async def test_the_file_of_a_task_reaches_the_one_that_depends_on_it(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        first = await talks.start("made")
        second = await talks.caller.tasks.start_task(
            talks.address,
            capability="agent.length",
            parts=[Part.value({"factor": 2})],
            log=first.log,
            depends_on=[first.id],
        )
        seen = await talks.follow(second)
        assert seen.states[-1] == "completed", seen.end
        assert seen.results == [{"result": 12}]


async def test_a_task_without_a_capability_keeps_its_files(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        named = Part.value({"skill": "agent.length", "arguments": {"factor": 3}})
        task = await talks.caller.tasks.start_task(
            talks.address, parts=[named, Part.data(b"1234", name="book")]
        )
        seen = await talks.follow(task)
        assert seen.results == [{"result": 12}], seen.end
