"""`anpd tasks` and the Python client with real daemons, and at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anp.cli.commands.tasks.watch import save_file
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.talks import AGENT
from tests.e2e.test_run_and_clients import client

TIMEOUT = 60.0
"Seconds until something has to be on the screen; generous."


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd]]:
    """A caller, and a provider whose functions last."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "task_agent.py").write_text(AGENT)
    provider = Anpd(folder / "provider")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "task_agent")
    provider.ok(*attach, cwd=folder)
    with provider.up(), Anpd(folder / "caller").up() as caller:
        yield caller, provider


class Screen:
    """One `anpd` command whose input and output are a terminal."""

    def __init__(self, daemon: Anpd, *words: str) -> None:
        self._primary, secondary = pty.openpty()
        command = [sys.executable, "-m", "anp", "--home", str(daemon.home), *words]
        # The first terminal that a session opens is the one whose Ctrl-C it gets.
        self.process = subprocess.Popen(
            [
                *("sh", "-c", 'tty=$1; shift; exec "$@" <"$tty" >"$tty" 2>&1', "sh"),
                *(os.ttyname(secondary), *command),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._seen = bytearray()
        self._end = secondary
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str) -> None:
        """Wait until a text is on the screen."""
        limit = time.monotonic() + TIMEOUT
        while text not in self.text:
            assert time.monotonic() < limit, f"no {text!r} in\n{self.text}"
            time.sleep(0.01)

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._primary, text.encode())

    def ended(self) -> int:
        """Wait for the end of the command; return its exit code."""
        return self.process.wait(timeout=TIMEOUT)

    @property
    def text(self) -> str:
        """Everything on the screen so far."""
        return self._seen.decode(errors="replace").replace("\r\n", "\n")

    def close(self) -> None:
        """End the command and the terminal."""
        self.process.kill()
        self.process.wait()
        os.close(self._end)
        self._reader.join(timeout=10)
        os.close(self._primary)

    def _read(self) -> None:
        # Reading fails when nobody holds the other end any more.
        with contextlib.suppress(OSError):
            while data := os.read(self._primary, 65_536):
                self._seen += data


@contextlib.contextmanager
def screen(daemon: Anpd, *words: str) -> Iterator[Screen]:
    opened = Screen(daemon, *words)
    try:
        yield opened
    finally:
        opened.close()


def started(pair: tuple[Anpd, Anpd], name: str, **data: Any) -> str:
    """Start a task by a command; return its id."""
    caller, provider = pair
    words = ("tasks", "start", provider.address, f"agent.{name}")
    found = caller.ok(*words, "-d", json.dumps(data), "--json").json()
    return str(found["id"])


@clause("GBZ-57")
def test_text_streams_to_standard_output(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    words = ("tasks", "start", provider.address, "agent.poem", "-d", '{"lines": 20}')
    ended = caller.ok(*words, "--watch")
    assert ended.stdout == "".join(f"line {number}\n" for number in range(20))
    assert "[working]" in ended.stderr
    assert ended.stderr.endswith("[completed]\n")


def test_events_are_printed_one_a_line(pair: tuple[Anpd, Anpd]) -> None:
    caller, _ = pair
    task = started(pair, "poem", lines=3)
    lines = caller.ok("tasks", "watch", task, "--json").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert events[0]["type"] == "task.created"
    assert events[-1]["data"]["state"] == "completed"
    numbers = [event["number"] for event in events]
    after = ("--after", str(numbers[2]))
    again = caller.ok("tasks", "watch", task, "--json", *after).stdout.splitlines()
    assert [json.loads(line)["number"] for line in again] == numbers[3:]
    shown = caller.ok("tasks", "show", task).stdout
    assert "completed" in shown
    assert task in caller.ok("tasks", "list").stdout
    assert task not in caller.ok("tasks", "list", "--open").stdout


def test_the_exit_code_tells_how_it_ended(pair: tuple[Anpd, Anpd]) -> None:
    caller, provider = pair
    start = ("tasks", "start", provider.address)
    failed = caller.run(*start, "agent.fail", "-d", '{"words": "no"}', "--watch")
    assert failed.code == 10
    assert failed.stderr.rstrip().endswith("(it may have run)")
    rejected = caller.run(*start, "agent.nothing", "--watch")
    assert rejected.code == 6
    assert "agent.double" in rejected.stderr
    unknown = caller.run("tasks", "show", "nothing")
    assert (unknown.code, unknown.stdout) == (2, "")


def test_text_is_on_the_screen_while_the_task_is_at_work(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, provider = pair
    data = json.dumps({"number": 4, "pause": 0.5})
    words = ("tasks", "start", provider.address, "agent.ticks", "-d", data, "--watch")
    with screen(caller, *words) as shown:
        shown.wait_for("\n0\n")
        assert "[completed]" not in shown.text
        assert shown.ended() == 0
        shown.wait_for("[completed]")
        assert "\n2\n3\n" in shown.text


def test_a_question_is_asked_at_the_terminal_and_answered(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, provider = pair
    data = json.dumps({"seat": "4A"})
    words = ("tasks", "start", provider.address, "agent.book", "-d", data, "--watch")
    with screen(caller, *words) as shown:
        shown.wait_for("the peer: Is 4A right?")
        shown.wait_for("> ")
        assert "[###############" in shown.text
        assert "50% 1/2 looked at the plan" in shown.text
        shown.type("yes\n")
        assert shown.ended() == 0
        shown.wait_for('{"result": "4A: yes"}')


def test_a_question_without_a_terminal_is_answered_by_a_command(
    pair: tuple[Anpd, Anpd],
) -> None:
    caller, _ = pair
    task = started(pair, "book", seat="5B")
    limit = time.monotonic() + TIMEOUT
    while "Is 5B right?" not in caller.ok("tasks", "show", task).stdout:
        assert time.monotonic() < limit
    caller.ok("tasks", "send", task, "surely")
    ended = caller.ok("tasks", "watch", task)
    assert ended.stdout == '{"result": "5B: surely"}\n'
    assert "you: surely" in ended.stderr


def test_ctrl_c_asks_and_cancels(pair: tuple[Anpd, Anpd], tmp_path: Path) -> None:
    caller, provider = pair
    mark = tmp_path / "mark"
    data = json.dumps({"file": str(mark)})
    words = ("tasks", "start", provider.address, "agent.wait", "-d", data, "--watch")
    with screen(caller, *words) as shown:
        shown.wait_for("[working]")
        shown.type("\x03")
        shown.wait_for("leave it at work, or cancel it?")
        shown.type("c\n")
        assert shown.ended() == 130
        shown.wait_for("[canceled]")
    limit = time.monotonic() + TIMEOUT
    while not mark.read_text().endswith("ended\n"):
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_ctrl_c_leaves_it_and_a_command_cancels_it(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    mark = tmp_path / "mark"
    data = json.dumps({"file": str(mark)})
    words = ("tasks", "start", provider.address, "agent.wait", "-d", data, "--watch")
    with screen(caller, *words) as shown:
        shown.wait_for("[working]")
        shown.type("\x03")
        shown.wait_for("leave it at work, or cancel it?")
        shown.type("l\n")
        assert shown.ended() == 130
        shown.wait_for("go on with: anpd tasks watch ")
    (task,) = caller.ok("tasks", "list", "--open", "--json").json()["tasks"]
    assert task["state"] == "working"
    caller.ok("tasks", "cancel", task["id"])
    ended = caller.run("tasks", "watch", task["id"])
    assert ended.code == 130
    assert "[canceled]" in ended.stderr


def test_sessions_are_listed_exported_and_deleted(pair: tuple[Anpd, Anpd]) -> None:
    caller, _ = pair
    task = started(pair, "double", number=2)
    caller.ok("tasks", "watch", task)
    session = caller.ok("tasks", "show", task, "--json").json()["session"]
    assert session in caller.ok("sessions", "list").stdout
    assert task in caller.ok("sessions", "show", session).stdout
    second = caller.ok(
        *("tasks", "start", "--after", task, "agent.double"),
        *("-d", '{"number": 3}', "--watch"),
    )
    assert second.stdout == '{"number": 6}\n'
    exported = caller.ok("sessions", "export", session).stdout.splitlines()
    assert json.loads(exported[0])["number"] == 1
    caller.ok("sessions", "close", session)
    caller.ok("sessions", "delete", session)
    assert caller.run("sessions", "show", session).code == 2


def test_the_python_client_follows_answers_and_cancels(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    anpd = client.Anpd(caller.home)
    # Known since the commands above, or met by the owner before its agent calls.
    caller.ok("tasks", "watch", started(pair, "double", number=1))
    task = anpd.start_task(provider.address, "agent.book", {"seat": "7C"})
    results: list[Any] = []
    for event in anpd.task_events(task.id):
        last = event["number"]
        if event["type"] != "task.message":
            continue
        message = event["data"]["message"]
        if message["purpose"] == "result":
            results += [part["value"] for part in message["parts"]]
        elif message["role"] == "service":
            assert anpd.task(task.id).question["text"] == "Is 7C right?"
            anpd.answer(task.id, "yes")
    assert results == [{"result": "7C: yes"}]
    assert list(anpd.task_events(task.id, after=last)) == []
    assert anpd.task(task.id).state == "completed"
    mark = tmp_path / "mark"
    second = anpd.start_task(
        None, "agent.wait", {"file": str(mark)}, session=task.session
    )
    assert [one.id for one in anpd.tasks(only_open=True)] == [second.id]
    anpd.cancel_task(second.id)
    ended = [event["data"] for event in anpd.task_events(second.id)][-1]
    assert ended["state"] == "canceled"
    with pytest.raises(client.AnpdError, match="the task is completed"):
        anpd.answer(task.id, "again")
    with pytest.raises(client.AnpdError, match="there is no content"):
        anpd.artifact(task.id, "1.0")


def test_a_peers_name_for_a_file_is_data(tmp_path: Path) -> None:
    folder, outside = tmp_path / "saved", tmp_path / "outside"
    names = {
        "../../outside": "outside",
        "..\\a.png": "a.png",
        "/etc/passwd": "passwd",
        ".bashrc": "bashrc",
        "..": "content",
        "": "content-1",
        "a.png": "a-1.png",
        "a\x1b[2J.txt": "a[2J.txt",
        "x" * 500 + ".txt": "x" * 116 + ".txt",
    }
    for name, wanted in names.items():
        assert save_file(folder, name, [b"new"]).name == wanted
    (folder / "link.txt").symlink_to(outside)
    assert save_file(folder, "link.txt", [b"new"]).name == "link-1.txt"
    assert not outside.exists()
    assert {path.parent for path in folder.iterdir()} == {folder}
