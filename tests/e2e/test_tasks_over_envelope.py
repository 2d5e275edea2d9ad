"""Tasks between two daemons over the message envelope 1.1."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anp.protocols.envelope import ENVELOPE_TASKS_URI
from tests.clauses import clause
from tests.e2e.agents.rich_mcp_server import PICTURE
from tests.e2e.daemons import Anpd
from tests.e2e.talks import AGENT, Talks, talks_in
from tests.waiting import until

SERVER = Path(__file__).parent / "agents" / "rich_mcp_server.py"
ORDER: dict[str, Any] = {"interaction__order": (ENVELOPE_TASKS_URI,)}


def protocols(talks: Talks) -> set[str | None]:
    """Return the protocols of the channels on which the provider serves."""
    lines = talks.provider.tasks._exchange.lines
    found = [line for several in lines._lines.values() for line in several]
    return {line.channel.own_meta.selected_protocol for line in found}


@clause("ENV-1", "ENV-4", "ENV-Q5")
async def test_a_generator_streams_over_the_envelope(tmp_path: Path) -> None:
    async with talks_in(tmp_path, **ORDER) as talks:
        task = await talks.start("poem", lines=40)
        seen = await talks.follow(task)
        assert seen.results == [f"line {number}\n" for number in range(40)]
        assert seen.states == ["accepted", "working", "completed"]
        assert protocols(talks) == {ENVELOPE_TASKS_URI}

        task = await talks.start("book", seat="4A")
        seen = await talks.follow(task, answers=("yes",))
        assert seen.said == ["Is 4A right?"]
        assert seen.progress == ["looked at the plan"]
        assert seen.results == [{"result": "4A: yes"}]
        assert "x-input-required" in seen.states

        seen = await talks.follow(await talks.start("fail", words="no"))
        assert seen.end is not None
        assert (seen.states[-1], seen.end.may_have_run) == ("failed", True)
        seen = await talks.follow(await talks.start("nothing"))
        assert seen.states == ["rejected"]
        assert seen.end is not None
        assert "agent.double" in seen.end.reason


@clause("ENV-17", "ENV-18")
async def test_a_task_over_the_envelope_is_cancelled(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "mark"
    async with talks_in(tmp_path, **ORDER) as talks:
        task = await talks.start("wait", file=str(mark))
        await until(mark.exists)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        await until(lambda: mark.read_text() == "began\nended\n")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    """A caller that wants the envelope for its tasks, and a provider."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "task_agent.py").write_text(AGENT)
    provider = Anpd(folder / "provider")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "task_agent")
    provider.ok(*attach, cwd=folder)
    provider.ok(
        *("attach", "mcp", "--name", "rich", "--expose", "*", "--"),
        *(sys.executable, str(SERVER)),
    )
    caller = Anpd(folder / "caller")
    caller.home.mkdir()
    order = f'order = ["{ENVELOPE_TASKS_URI}"]'
    (caller.home / "anpd.toml").write_text(f"[interaction]\n{order}\n")
    with provider.up(), caller.up():
        yield caller, provider


def started(pair: tuple[Anpd, Anpd], name: str, **data: Any) -> str:
    caller, provider = pair
    words = ("tasks", "start", provider.address, f"agent.{name}")
    found = caller.ok(*words, "-d", json.dumps(data), "--json").json()
    return str(found["id"])


@clause("ENV-4", "ENV-17", "ENV-19")
def test_commands_drive_tasks_over_the_envelope(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    start = ("tasks", "start", provider.address)
    ended = caller.ok(*start, "agent.poem", "-d", '{"lines": 20}', "--watch")
    assert ended.stdout == "".join(f"line {number}\n" for number in range(20))

    asked = started(pair, "book", seat="4A")
    while "waits for" not in caller.ok("tasks", "show", asked).stdout:
        pass
    caller.ok("tasks", "send", asked, "yes")
    watched = caller.ok("tasks", "watch", asked)
    assert '{"result": "4A: yes"}' in watched.stdout

    mark = tmp_path / "mark"
    waiting = started(pair, "wait", file=str(mark))
    caller.ok("tasks", "cancel", waiting)
    assert caller.run("tasks", "watch", waiting).code == 130

    caller.ok(*start, "rich.draw", "--watch", "--save", str(tmp_path / "files"))
    saved = [file.read_bytes() for file in (tmp_path / "files").iterdir()]
    assert PICTURE in saved

    failed = caller.run(*start, "agent.fail", "-d", '{"words": "no"}', "--watch")
    assert failed.code == 10
    assert failed.stderr.rstrip().endswith("(it may have run)")
    assert f"uri={ENVELOPE_TASKS_URI}" in provider.log()


@clause("ENV-16", "ENV-Q8")
def test_a_call_of_one_turn_takes_version_1_1_when_it_is_named(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, provider = pair
    words = ("call", provider.address, "agent.double", "-d", '{"number": 21}')
    found = caller.ok(*words, "--protocol", ENVELOPE_TASKS_URI, "--json").json()
    assert found["output"] == {"number": 42}
    assert found["uri"] == ENVELOPE_TASKS_URI
    # Tasks go on beside it, over a channel of their own.
    start = ("tasks", "start", provider.address, "agent.poem", "-d")
    ended = caller.ok(*start, '{"lines": 2}', "--watch")
    assert ended.stdout == "line 0\nline 1\n"
