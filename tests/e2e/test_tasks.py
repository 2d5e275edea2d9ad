"""Tasks between two daemons: they stream, ask back, fail, and are cancelled."""

from __future__ import annotations

from pathlib import Path

from anp.interaction.elements import Message
from jsonic.exact_numbers import write_json
from negotiation.strict_json import parse_json
from tests.clauses import clause
from tests.e2e.talks import talks_in
from tests.waiting import until


@clause("GBZ-57")
async def test_a_generator_streams_to_the_other_daemon(tmp_path: Path) -> None:
    async with talks_in(tmp_path) as talks:
        task = await talks.start("poem", lines=40)
        seen = await talks.follow(task)
        assert seen.results == [f"line {number}\n" for number in range(40)]
        assert seen.states == ["accepted", "working", "completed"]
        assert seen.numbers == list(range(1, len(seen.numbers) + 1))


async def test_a_task_of_one_turn_gives_its_result(tmp_path: Path) -> None:
    async with talks_in(tmp_path) as talks:
        seen = await talks.follow(await talks.start("double", number=21))
        assert seen.results == [{"number": 42}]
        seen = await talks.follow(await talks.start("fail", words="no"))
        assert seen.states[-1] == "failed"
        assert seen.end is not None
        assert seen.end.may_have_run
        seen = await talks.follow(await talks.start("nothing"))
        assert seen.states == ["rejected"]
        assert seen.end is not None
        assert "agent.double" in seen.end.reason


async def test_a_task_asks_back(tmp_path: Path) -> None:
    async with talks_in(tmp_path) as talks:
        task = await talks.start("book", seat="4A")
        seen = await talks.follow(task, answers=("yes",))
        assert seen.said == ["Is 4A right?"]
        assert seen.results == [{"result": "4A: yes"}]
        assert seen.states == [
            "accepted",
            "working",
            "x-input-required",
            "working",
            "completed",
        ]


async def test_a_cancelled_task_ends_the_function(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with talks_in(tmp_path) as talks:
        task = await talks.start("wait", file=str(mark))
        await until(mark.exists)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        await until(lambda: mark.read_text() == "began\nended\n")


async def test_several_tasks_of_one_session_and_one_that_needs_another(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path) as talks:
        first = await talks.start("ticks", number=3, pause=0.05)
        second = await talks.caller.tasks.start_task(
            talks.address,
            capability="agent.double",
            log=first.log,
            depends_on=[first.id],
        )
        assert second.task.state == "x-held"
        seen = await talks.follow(second)
        assert "x-requested" not in seen.states
        assert seen.states[-1] in {"failed", "rejected", "completed"}


async def test_a_number_keeps_its_digits_on_the_wire_and_in_the_log(
    tmp_path: Path,
) -> None:
    source = (
        "def same(value: float) -> dict[str, float]:\n    return {'value': value}\n"
    )
    exact = parse_json(b"12345678901234567.89", max_size=100)
    async with talks_in(tmp_path, source=source) as talks:
        task = await talks.start("same", value=exact)
        seen = await talks.follow(task)
        [result] = seen.results
        assert str(result["value"]) == "12345678901234567.89"
        # Read from the store, not from memory.
        events = await talks.caller.tasks.sessions.events(task.log)
        messages = [one.content for one in events if isinstance(one.content, Message)]
        assert write_json(messages[-1].parts[0].content) == (
            '{"value": 12345678901234567.89}'
        )
