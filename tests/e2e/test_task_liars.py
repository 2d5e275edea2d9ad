"""A requester that says whatever it likes about sessions and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from anp.interaction.elements import (
    Chunk,
    Message,
    MessagePurpose,
    Part,
    Party,
    SenderRole,
    Session,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    Operation,
    RefusedOperation,
    SessionOpen,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.protocols.gbz.reader import read_frame
from anp.protocols.gbz.words import GBZ_URI
from anp.protocols.gbz.writer import write_frame
from anp.protocols.line import OperationFrame
from anp.sidecar.daemon import Daemon
from anp.sidecar.tasks.chronicle import Chronicle
from anp.wire.frames import ProtocolType
from tests.e2e.neighbours import address, neighbours_in
from tests.e2e.raw_peer import RawPeer, raw_peer
from tests.e2e.talks import talks_in
from tests.e2e.test_task_faults import AGENT
from tests.waiting import until

MAX = 4 * 1024 * 1024


class Liar:
    """A requester of which nothing is made by our own code for requesters."""

    def __init__(self, raw: RawPeer, session: str) -> None:
        self.raw = raw
        self.session = session
        self._ref = 0
        self.told: list[OperationFrame] = []

    @property
    def did(self) -> str:
        return self.raw.identity.did

    async def put(self, operation: Operation) -> int:
        """Send an operation; return its number."""
        self._ref += 1
        frame = write_frame(operation, self._ref, max_size=MAX)
        await self.raw.send_frame(ProtocolType.APPLICATION, frame)
        return self._ref

    async def hear(self, *, acknowledge: bool = True) -> OperationFrame:
        """Return the next frame; acknowledge it if it tells something."""
        frame, _ = await self.raw.hear_frame()
        read = read_frame(frame.data, max_size=MAX)
        if not isinstance(read.operation, Acknowledgement | RefusedOperation):
            self.told.append(read)
            if acknowledge:
                ack = Acknowledgement(session=self.session, ref=read.ref)
                await self.raw.send_frame(
                    ProtocolType.APPLICATION, write_frame(ack, 0, max_size=MAX)
                )
        return read

    async def do(self, operation: Operation) -> str:
        """Send an operation; return the code of its refusal, or nothing."""
        number = await self.put(operation)
        while True:
            read = await self.hear()
            answer = read.operation
            if isinstance(answer, Acknowledgement) and answer.ref == number:
                return ""
            if isinstance(answer, RefusedOperation) and answer.ref == number:
                return answer.code

    async def until(self, state: str) -> None:
        """Read until a task is in a state."""
        while not any(
            isinstance(one.operation, TaskUpdate)
            and isinstance(one.operation.content, TaskChange)
            and one.operation.content.state == state
            for one in self.told
        ):
            await self.hear()

    async def open(self, daemon: Daemon) -> None:
        session = Session(
            id=self.session,
            requester=Party(id=self.did),
            participants=(Party(id=daemon.did),),
        )
        assert await self.do(SessionOpen(session=session)) == ""

    def task(self, daemon: Daemon, name: str, id: str = "t", **data: Any) -> TaskCreate:
        message = self.message(id, Part.value(data), id=f"m-{id}")
        return TaskCreate(
            task=Task(
                id=id,
                session=self.session,
                requester=self.did,
                executor=daemon.did,
                capability=f"agent.{name}",
                messages=(message,),
            )
        )

    def message(self, task: str, part: Part, *, id: str, **more: Any) -> Message:
        return Message(
            id=id,
            session=self.session,
            task=task,
            sender=self.did,
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=(part,),
            **more,
        )

    def results(self) -> list[str]:
        return [
            str(part.content)
            for one in self.told
            if isinstance(one.operation, MessageSend)
            and one.operation.message.purpose is MessagePurpose.RESULT
            for part in one.operation.message.parts
        ]


@asynccontextmanager
async def liar_at(daemon: Daemon, session: str = "s") -> AsyncIterator[Liar]:
    async with raw_peer(daemon.url, daemon.did) as raw:
        await raw.open(candidates=(GBZ_URI,))
        yield Liar(raw, session)


async def test_nobody_reads_or_changes_the_sessions_of_another(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider, mark = talks.provider, tmp_path / "asked"
        async with liar_at(provider) as one, liar_at(provider) as other:
            await one.open(provider)
            assert await one.do(one.task(provider, "ask", file=str(mark))) == ""
            await one.until("x-input-required")
            said = other.message("t", Part.text("mine"), id="x")
            for operation in (
                TaskGet(session="s", task="t"),
                TaskCancel(session="s", task="t"),
                MessageSend(message=said),
                MessageSend(message=replace(said, sender=one.did)),
                other.task(provider, "ask", "u", file=str(mark)),
            ):
                assert await other.do(operation) == "unknown_session", operation
            answer = one.message("t", Part.text("yes"), id="y")
            assert await one.do(MessageSend(message=answer)) == ""
            await one.until("completed")
            assert "yes" in one.results()[-1]


async def test_a_requester_reports_nothing_and_its_states_do_not_count(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider, mark = talks.provider, tmp_path / "asked"
        async with liar_at(provider) as liar:
            await liar.open(provider)
            assert await liar.do(liar.task(provider, "ask", file=str(mark))) == ""
            await liar.until("x-input-required")
            for content in (
                TaskChange(task="t", state="completed"),
                TaskChange(task="t", state="canceled"),
                TaskProgress(task="t", progress=1.0),
            ):
                update = TaskUpdate(session="s", content=content)
                assert await liar.do(update) == "not_allowed", content
            known = await provider.tasks.sessions.tasks()
            assert [one.task.state for one in known] == ["x-input-required"]
            assert mark.read_text() == "asked\n"


async def test_chunks_come_twice_and_in_any_order(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider = talks.provider
        async with liar_at(provider) as liar:
            await liar.open(provider)
            ask = liar.task(provider, "ask", file=str(tmp_path / "asked"))
            assert await liar.do(ask) == ""
            await liar.until("x-input-required")
            chunks = [
                liar.message(
                    "t",
                    replace(Part.text(text), continued=index < 2),
                    id="cut",
                    chunk=Chunk(index=index, last=index == 2),
                )
                for index, text in enumerate(("one ", "two ", "three"))
            ]
            assert await liar.do(MessageSend(message=chunks[2])) == ""
            assert await liar.do(MessageSend(message=chunks[0])) == ""
            assert await liar.do(MessageSend(message=chunks[0])) == ""
            false = replace(chunks[0], parts=(Part.text("else"),))
            assert await liar.do(MessageSend(message=false)) == "conflict"
            known = await provider.tasks.sessions.tasks()
            assert known[0].task.state == "x-input-required"
            assert await liar.do(MessageSend(message=chunks[1])) == ""
            await liar.until("completed")
            assert "one two three" in liar.results()[-1]


async def test_a_missing_chunk_is_given_up_and_held_no_longer(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider = talks.provider
        async with liar_at(provider) as liar:
            await liar.open(provider)
            ask = liar.task(provider, "ask", file=str(tmp_path / "asked"))
            assert await liar.do(ask) == ""
            await liar.until("x-input-required")
            half = liar.message(
                "t",
                replace(Part.text("x" * 10_000), continued=True),
                id="half",
                chunk=Chunk(index=0, last=False),
            )
            assert await liar.do(MessageSend(message=half)) == ""
            sessions = provider.tasks.sessions
            assert sessions.held >= 10_000
            sessions.expire(later=400.0)
            assert sessions.held == 0


async def test_a_repeated_task_starts_once_and_another_of_its_id_is_refused(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider, mark = talks.provider, tmp_path / "ran"
        async with liar_at(provider) as liar:
            await liar.open(provider)
            touch = liar.task(provider, "touch", file=str(mark))
            assert await liar.do(touch) == ""
            assert await liar.do(touch) == ""
            await liar.until("completed")
            assert await liar.do(touch) == ""
            other = liar.task(provider, "touch", file=str(tmp_path / "else"))
            assert await liar.do(other) == "conflict"
            assert mark.read_text() == "ran\n"


async def test_a_cancel_that_crosses_the_result_changes_nothing(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider, mark = talks.provider, tmp_path / "ran"
        async with liar_at(provider) as liar:
            await liar.open(provider)
            await liar.put(liar.task(provider, "touch", file=str(mark)))
            await until(mark.exists)
            await until(lambda: provider.tasks.working == 0)
            assert await liar.do(TaskCancel(session="s", task="t")) == ""
            await liar.until("completed")
            known = await provider.tasks.sessions.tasks()
            assert [one.task.state for one in known] == ["completed"]
            assert not known[0].task.cancel_requested


async def test_strangers_have_so_many_tasks_and_no_more(tmp_path: Path) -> None:
    async with talks_in(
        tmp_path, source=AGENT, interaction__max_tasks_unlisted=2
    ) as talks:
        provider = talks.provider
        async with liar_at(provider, "s") as one, liar_at(provider, "r") as other:
            for liar in (one, other):
                await liar.open(provider)
                ask = liar.task(provider, "ask", file=str(tmp_path / "asked"))
                assert await liar.do(ask) == ""
            # Another DID of the same address has no room of its own.
            more = other.task(provider, "ask", "u", file=str(tmp_path / "asked"))
            assert await other.do(more) == "too_many"
            assert await one.do(TaskCancel(session="s", task="t")) == ""
            await one.until("canceled")
            await until(lambda: provider.tasks.working == 1)
            assert await other.do(more) == ""
            # Nor may it open sessions without end.
            refused = ""
            for number in range(4):
                session = Session(
                    id=f"more-{number}",
                    requester=Party(id=other.did),
                    participants=(Party(id=provider.did),),
                )
                refused = await other.do(SessionOpen(session=session))
            assert refused == "too_many"


async def test_who_reads_nothing_holds_up_the_work_and_fills_no_memory(
    tmp_path: Path,
) -> None:
    taken = tmp_path / "taken"
    async with talks_in(tmp_path, source=AGENT) as talks:
        provider = talks.provider
        async with liar_at(provider) as liar:
            await liar.open(provider)
            await liar.put(liar.task(provider, "stream", lines=3_000, file=str(taken)))
            await until(taken.exists)
            before = -1
            while before != (now := int(taken.read_text() or 0)):
                before = now
                await asyncio.sleep(1)
            assert now < 1_000, f"{now} updates were taken of who reads nothing"
            await liar.until("completed")
            assert liar.results() == [str(number) for number in range(3_000)]


async def test_many_tasks_at_a_stranger_end_and_their_sender_waits(
    tmp_path: Path,
) -> None:
    few = {"interaction.max_tasks_unlisted": 2}
    async with neighbours_in(tmp_path, "one", settings={"one": few}) as all_of:
        caller, one = all_of.values()
        started = [
            await caller.tasks.start_task(
                address(one),
                capability="weather.now",
                parts=[Part.value({"city": "Oslo"})],
                trust_first_use=True,
            )
            for _ in range(12)
        ]
        names = [known.id for known in started]
        done, found = await Chronicle(caller.tasks.sessions).wait(names, timeout=60)
        assert done
        ends = {(known.task.state, known.task.code) for known in found}
        assert ends == {("completed", ""), ("rejected", "too_many")}
        said = [one.task.reason for one in found if one.task.code]
        assert all("come again in" in reason for reason in said)
