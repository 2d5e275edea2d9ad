"""Agents by the book of a2a-sdk, driven by commands from another daemon to the end.

The agents were written from the library's own documents; nothing of them knows anpd.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clauses import clause
from tests.e2e.agents.running import running
from tests.e2e.daemons import Anpd, Ended
from tests.environments import side_python
from tests.waiting import PATIENCE

AGENTS = Path(__file__).parent / "agents"
NAMES = ("writer", "clerk", "painter", "oracle")
VERSIONS = {"1.3": ("a2a", "current.py"), "0.3": ("a2a-0.3", "old.py")}
"Environment and program of each version of the library."

REPORT = "".join(f"{number}. 关于 bees: ünï 🐝\n" for number in range(40))
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9


@dataclass(frozen=True, slots=True)
class Pair:
    """A caller, and the daemon that has the agents."""

    caller: Anpd
    provider: Anpd

    def start(self, agent: str, *more: str) -> Ended:
        """Start a task of an agent; the command has to succeed."""
        words = ("tasks", "start", self.provider.address, f"{agent}.work")
        return self.caller.ok(*words, *more)

    def task(self, agent: str, *more: str) -> str:
        """Start a task of an agent; return its id."""
        return str(self.start(agent, *more, "--json").json()["id"])

    def waits_for(self, task: str, words: str) -> Any:
        """Wait until a task asks something; return the task."""
        limit = time.monotonic() + PATIENCE
        while words not in (shown := self.caller.ok("tasks", "show", task).stdout):
            assert time.monotonic() < limit, shown
            time.sleep(0.05)
        return self.caller.ok("tasks", "show", task, "--json").json()


@pytest.fixture(scope="module", params=VERSIONS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    environment, program = VERSIONS[request.param]
    python = side_python(environment)
    folder = tmp_path_factory.mktemp("agents")
    provider = Anpd(folder / "provider", consensus__use="true")
    with running(str(AGENTS / program), python=python) as agent:
        for name in NAMES:
            card = f"{agent.url}/{name}/.well-known/agent-card.json"
            provider.ok("attach", "a2a", card, "--name", name, "--expose", "*")
        caller = Anpd(folder / "caller", consensus__use="true")
        with provider.up(), caller.up():
            yield Pair(caller, provider)


def events_of(ended: Ended) -> list[dict[str, Any]]:
    """Return the events that a command printed one a line."""
    return [json.loads(line) for line in ended.stdout.splitlines()]


def states_of(events: list[dict[str, Any]]) -> list[str]:
    """Return the states that a task went through."""
    return [e["data"]["state"] for e in events if e["type"] == "task.state"]


@clause("INT-2")
def test_an_agent_streams_its_report(pair: Pair) -> None:
    ended = pair.start("writer", "--text", "bees", "--watch")
    text, _, rest = ended.stdout.partition("{")
    assert text == REPORT
    assert hashlib.sha256(text.encode()).digest() == (
        hashlib.sha256(REPORT.encode()).digest()
    )
    figures = json.loads("{" + rest.partition("\n")[0])
    assert figures == {"lines": 40, "topic": "bees", "nested": {"ok": [True, None]}}
    assert "the report is written" in rest
    assert "reading" in ended.stderr
    assert "half" in ended.stderr
    assert ended.stderr.endswith("[completed]\n")


def test_each_line_of_the_report_comes_by_itself(pair: Pair) -> None:
    task = pair.task("writer", "--text", "bees")
    events = events_of(pair.caller.ok("tasks", "watch", task, "--json"))
    assert states_of(events) == ["accepted", "working", "completed"]
    texts = [
        part["text"]
        for event in events
        if event["type"] == "task.message"
        for part in event["data"]["message"]["parts"]
        if "text" in part
    ]
    assert texts == [*REPORT.splitlines(keepends=True), "the report is written"]


def test_an_agent_asks_twice_and_is_answered(pair: Pair) -> None:
    task = pair.task("clerk", "--text", "to Berlin")
    shown = pair.waits_for(task, "From which city?")
    assert shown["state"] == "x-input-required"
    pair.caller.ok("tasks", "send", task, "from Paris")
    shown = pair.waits_for(task, "Sign in at")
    assert shown["state"] == "x-auth-required"
    assert "https://rail.example/login" in shown["question"]["url"]
    pair.caller.ok("tasks", "send", task, "I did")
    ended = pair.caller.ok("tasks", "watch", task)
    assert ended.stdout == "to Berlin / from Paris / I did\n"
    assert ended.stderr.endswith("[completed]\n")


def test_files_come_byte_for_byte_and_go_there(pair: Pair, tmp_path: Path) -> None:
    given = tmp_path / "given.bin"
    given.write_bytes(bytes(range(255, -1, -1)) * 64)
    saved = tmp_path / "saved"
    more = ("--text", "seed", "--file", f"mine.bin={given}", "--save", str(saved))
    ended = pair.start("painter", *more, "--watch")
    noise = b"".join(
        hashlib.sha256(b"seed" + number.to_bytes(4)).digest() for number in range(9600)
    )
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == {
        "bee.png": PICTURE,
        "noise.bin": noise,
        "mine.bin": given.read_bytes(),
    }
    assert "https://example.org/bee" in ended.stdout + ended.stderr


def test_an_agent_may_begin_at_completed(pair: Pair) -> None:
    task = pair.task("oracle", "--text", "everything")
    ended = pair.caller.ok("tasks", "watch", task)
    assert ended.stdout.rstrip("\n") == "The answer to everything is 42."
    events = events_of(pair.caller.ok("tasks", "watch", task, "--json"))
    assert states_of(events) == ["accepted", "working", "completed"]


def test_a_task_that_is_cancelled_ends_the_agents_work(pair: Pair) -> None:
    task = pair.task("clerk", "--text", "to Rome")
    pair.waits_for(task, "From which city?")
    pair.caller.ok("tasks", "cancel", task)
    ended = pair.caller.run("tasks", "watch", task)
    assert (ended.code, ended.stdout) == (130, "")
    assert "[canceled]\n" in ended.stderr


def test_a_call_of_one_turn_has_all_of_it(pair: Pair) -> None:
    words = (pair.provider.address, "writer.work", "-d", '{"text": "bees"}')
    ended = pair.caller.ok("call", *words, "--json")
    output = ended.json()["output"]
    assert output["text"] == REPORT
    assert output["status"] == "the report is written"
