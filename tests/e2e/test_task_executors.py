"""An executor that says whatever it likes about the tasks that it was given."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anp.errors import UnknownError
from anp.interaction.elements import (
    Chunk,
    Message,
    MessagePurpose,
    Part,
    SenderRole,
    TaskChange,
)
from anp.interaction.operations import (
    MessageSend,
    SessionClose,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.protocols.gbz.words import GBZ_URI
from anp.sidecar.tasks.chronicle import Chronicle, ContentPlace
from anp.sidecar.tasks.known import KnownTask
from tests.e2e.raw_peer import raw_peer
from tests.e2e.talks import Followed, Talks, talks_in
from tests.e2e.test_task_liars import Liar


@dataclass
class Given:
    """A task of our daemon's, at work at an executor of which nothing is our code."""

    talks: Talks
    liar: Liar
    task: KnownTask

    async def report(self, state: str, **more: Any) -> str:
        """Report a state; return the code of its refusal, or nothing."""
        change = TaskChange(task=self.task.task.id, state=state, **more)
        return await self.liar.do(TaskUpdate(session=self.liar.session, content=change))

    async def say(self, *parts: Part, task: str = "", **more: Any) -> str:
        """Send a result; return the code of its refusal, or nothing."""
        message = Message(
            session=self.liar.session,
            task=task or self.task.task.id,
            sender=self.liar.did,
            role=SenderRole.SERVICE,
            purpose=MessagePurpose.RESULT,
            parts=parts,
            **more,
        )
        return await self.liar.do(MessageSend(message=message))

    @property
    def chronicle(self) -> Chronicle:
        """The events as the local API gives them."""
        return Chronicle(self.talks.caller.tasks.sessions)

    async def told(self, *, after: int = 0) -> list[Any]:
        """Return the results in the events that there are now."""
        last = (await self.talks.caller.tasks.sessions.conversation(self.task.log)).last
        found: list[Any] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                events = self.chronicle.watch(self.task.log, self.task, after=after)
                async for one in events:
                    content = one.event.content
                    if getattr(content, "purpose", None) is MessagePurpose.RESULT:
                        found.append(one)
                    if one.event.number >= last:
                        break
        return found

    async def seen(self) -> Followed:
        """Return everything that the requester's watcher saw."""
        return await self.talks.follow(self.task)


@asynccontextmanager
async def given_in(folder: Path) -> AsyncIterator[Given]:
    """Give a task to a raw peer; it has heard of it."""
    async with (
        talks_in(folder) as two,
        raw_peer(two.provider.url, two.provider.did) as raw,
    ):
        # The one with capabilities takes a line of the peer's, which is then the way to
        # it: nobody listens at the address.
        talks = Talks(two.provider, two.caller)
        await raw.open(candidates=(GBZ_URI,))
        liar = Liar(raw, "")
        nowhere = f"ws://127.0.0.1:1/#{liar.did}"
        asked = await liar.do(TaskGet(session="none", task="none"))
        assert asked == "unknown_session"
        task = await talks.caller.tasks.start_task(
            nowhere, capability="a.b", parts=[Part.value({})]
        )
        liar.session = task.task.session
        while not any(isinstance(one.operation, TaskCreate) for one in liar.told):
            await liar.hear()
        yield Given(talks, liar, task)


async def test_states_out_of_order_are_refused_and_nobody_sees_them(
    tmp_path: Path,
) -> None:
    async with given_in(tmp_path) as given:
        # Nobody asked for its end.
        assert await given.report("canceled") == "not_allowed"
        assert await given.report("accepted") == ""
        assert await given.report("working") == ""
        assert await given.report("accepted") == "state"
        assert await given.report("dancing") != ""
        assert await given.report("x-dancing") == ""
        assert await given.report("working") == ""
        assert await given.report("completed") == ""
        for late in ("working", "failed", "x-dancing"):
            assert await given.report(late) == "state"
        # A repeat of the end is the same end.
        assert await given.report("completed") in ("", "state")
        seen = await given.seen()
        assert seen.states == [
            *("accepted", "working", "x-dancing", "working", "completed")
        ]


async def test_an_executor_has_no_say_in_what_is_the_requesters(
    tmp_path: Path,
) -> None:
    async with given_in(tmp_path) as given:
        liar = given.liar
        name = given.task.task.id
        assert await liar.do(TaskCancel(session=liar.session, task=name)) != ""
        assert await liar.do(SessionClose(session=liar.session)) != ""
        assert await given.say(Part.text("x"), id="m", task="another") != ""
        other = TaskChange(task="another", state="completed")
        update = TaskUpdate(session=liar.session, content=other)
        assert await liar.do(update) != ""
        assert await given.report("completed") == ""
        seen = await given.seen()
        assert (seen.results, seen.states[-1]) == ([], "completed")


async def test_chunks_of_a_result_come_twice_and_in_any_order(tmp_path: Path) -> None:
    async with given_in(tmp_path) as given:
        pieces = [
            Part.data(bytes([number]) * 10, name="a", continued=number < 3)
            for number in range(4)
        ]

        async def piece(number: int, part: Part | None = None) -> str:
            chunk = Chunk(index=number, last=number == 3)
            return await given.say(part or pieces[number], id="m", chunk=chunk)

        assert await given.report("working") == ""
        for number in (2, 0, 0, 3, 2):
            assert await piece(number) == ""
        # A watcher sees no piece before its turn, wherever it begins.
        assert [len(one.event.content.parts) for one in await given.told()] == [1]
        assert await piece(2, Part.data(b"other", name="a", continued=True)) != ""
        assert await piece(1) == ""
        assert await given.report("completed") == ""
        whole = b"".join(bytes([number]) * 10 for number in range(4))
        first, rest = await given.told()
        assert rest.begun == ContentPlace(first.event.number, 0)
        came: list[Any] = [first.event.content.parts[0], rest.event.content.parts[0]]
        assert [one.continued for one in came] == [True, False]
        assert b"".join(one.content for one in came) == whole
        (again,) = await given.told(after=first.event.number)
        assert again == rest
        part = await given.chronicle.content(given.task, rest.begun)
        assert part.content == whole


async def test_a_file_that_ends_early_is_no_file(tmp_path: Path) -> None:
    async with given_in(tmp_path) as given:
        assert await given.report("working") == ""
        part = Part.data(b"half", name="a.bin", continued=True)
        first = Chunk(index=0, last=False)
        assert await given.say(part, id="m", chunk=first) == ""
        assert await given.report("completed") == ""
        seen = await given.seen()
        assert seen.states[-1] == "completed"
        for number in seen.numbers:
            place = ContentPlace(event=number, part=0)
            with pytest.raises(UnknownError):
                await given.chronicle.content(given.task, place)


async def test_a_cancel_that_crosses_the_result_leaves_the_result(
    tmp_path: Path,
) -> None:
    async with given_in(tmp_path) as given:
        liar, tasks = given.liar, given.talks.caller.tasks
        assert await given.report("working") == ""
        await tasks.cancel(given.task.id)
        assert await given.say(Part.text("done"), id="m", final=True) == ""
        assert await given.report("completed") == ""
        async with asyncio.timeout(10):
            while not any(isinstance(one.operation, TaskCancel) for one in liar.told):
                await liar.hear()
        # Now it was asked, and yet the first end counts.
        assert await given.report("canceled") == "state"
        seen = await given.seen()
        assert (seen.results, seen.states[-1]) == (["done"], "completed")
