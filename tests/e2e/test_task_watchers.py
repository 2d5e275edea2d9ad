"""Watchers of tasks that are slow, or whose daemon is killed under them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client
from tests.e2e.test_task_commands import screen

AGENT = """
import time
from collections.abc import Iterator


def pages(number: int, size: int) -> Iterator[str]:
    for one in range(number):
        yield f"{one}:".ljust(size, "x")


def slowly(number: int, pause: float) -> Iterator[str]:
    for one in range(number):
        time.sleep(pause)
        yield f"line {one}\\n"
"""

pytestmark = pytest.mark.slow

MIB = 1024 * 1024


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    """A caller, and a provider whose functions stream."""
    (tmp_path / "stream_agent.py").write_text(AGENT)
    provider = Anpd(tmp_path / "provider")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "stream_agent")
    provider.ok(*attach, cwd=tmp_path)
    caller = Anpd(tmp_path / "caller")
    with provider.up(), caller.up():
        yield caller, provider


def started(pair: tuple[Anpd, Anpd], name: str, **data: Any) -> str:
    caller, provider = pair
    words = ("tasks", "start", provider.address, f"agent.{name}")
    return caller.ok(*words, "-d", json.dumps(data)).stdout.strip()


def resident(daemon: Anpd) -> int:
    """Return the memory of a daemon in bytes."""
    assert daemon.process is not None
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    (line,) = (one for one in status.splitlines() if one.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def events_of(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_a_watcher_that_reads_nothing_costs_no_memory(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, _ = pair
    # The first of its kind, which loads what a daemon needs for tasks.
    caller.ok("tasks", "watch", started(pair, "pages", number=50, size=20_000))
    before = resident(caller)
    task = started(pair, "pages", number=1500, size=20_000)
    path = f"/v1/tasks/{task}/events"
    with owner_client(caller.home, timeout=60) as slow:
        with slow.stream("GET", path) as answer:
            # It reads the beginning, and no more until the task is over.
            seen = events_of(answer)
            first = next(seen)
            caller.ok("tasks", "watch", task, "--after", str(first["number"]))
            grown = resident(caller) - before
            numbers = [first["number"], *(event["number"] for event in seen)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len(numbers) > 1500
    # 30 MB went by; a queue of them for the slow watcher would be on top.
    print(f"grown by {grown / MIB:.1f} MiB")
    assert grown < 24 * MIB


def test_a_watcher_goes_on_after_its_daemon_was_killed(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, _ = pair
    task = started(pair, "slowly", number=40, pause=0.1)
    with screen(caller, "tasks", "watch", task) as shown:
        shown.wait_for("line 5\n")
        caller.kill()
        shown.wait_for("the daemon is away; waiting for it")
        caller.start()
        assert shown.ended() == 0
        shown.wait_for("[completed]")
        lines = [line for line in shown.text.splitlines() if line.startswith("line")]
    assert lines == [f"line {number}" for number in range(40)]


def test_without_its_daemon_a_watcher_gives_up(pair: tuple[Anpd, Anpd]) -> None:
    caller, _ = pair
    task = started(pair, "slowly", number=2, pause=0.1)
    caller.stop()
    began = time.monotonic()
    ended = caller.run("tasks", "watch", task)
    assert ended.code == 4
    assert time.monotonic() - began < 20
    caller.start()
