"""A task on the screen, without a daemon: hostile text, forms, bars, exit codes."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from anp.cli.client import Client
from anp.cli.commands.tasks import watch as watching
from anp.cli.commands.tasks.watch import TaskWatch, end_of
from anp.errors import CallError, ErrorKind

OWN, PEER = "did:key:us", "did:key:them"


class Stream(io.StringIO):
    """A stream that says to be a terminal."""

    def isatty(self) -> bool:
        return True


class Api:
    """A daemon that tells the given events of one task."""

    def __init__(self, events: list[dict[str, Any]], **task: Any) -> None:
        self.events_left = events
        self.posted: list[tuple[str, Any]] = []
        self.task: dict[str, Any] = {
            "made_by": "owner",
            "requester": OWN,
            "executor": PEER,
            "state": "completed",
            "ended": True,
            "question": None,
            **task,
        }

    def get(self, path: str) -> Any:
        return self.task

    def get_bytes(self, path: str) -> bytes:
        return path.encode()

    def download(self, path: str) -> Iterator[bytes]:
        yield from (path[:4].encode(), path[4:].encode())

    def post(self, path: str, body: Any = None) -> Any:
        self.posted.append((path, body))
        self.task["question"] = None
        return self.task

    def events(self, path: str, *, after: int = 0) -> Any:
        yield {}
        yield from self.events_left


def message(*parts: dict[str, Any], purpose: str = "result", number: int = 1) -> Any:
    told = {"number": number, "by": PEER, "purpose": purpose, "parts": parts}
    return {"number": number, "type": "task.message", "data": {"message": told}}


def text(words: str) -> dict[str, Any]:
    return {"kind": "text", "text": words, "media_type": "text/plain"}


def watched(api: Api, *, save: Path | None = None, as_json: bool = False) -> Any:
    watch = TaskWatch(lambda: cast(Client, api), "t", as_json=as_json, save=save)
    return watch.run()


def test_nothing_of_a_peer_steers_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = "a\x1b[2Jb\r\u202ec\u2028d\n\te"
    value = {"kind": "json", "value": {evil: evil}, "media_type": "application/json"}
    uri = {"kind": "uri", "uri": evil, "media_type": evil}
    data = {"progress": None, "total": None, "text": evil}
    bytes_part = {
        "kind": "bytes",
        "media_type": evil,
        "name": evil,
        "artifact": "1.0",
        "size": 1,
    }
    events = [
        message(text(evil), value, uri, bytes_part),
        message(text(evil), uri, value, purpose="communication", number=2),
        {"number": 3, "type": "task.progress", "data": data},
        {"number": 4, "type": "task.state", "data": {"state": f"x-{evil}"}},
    ]
    for as_json in (False, True):
        watched(Api(events), as_json=as_json)
        shown = "".join(capsys.readouterr())
        assert shown
        hidden = {c for c in shown if not c.isprintable()} - {"\n", "\t"}
        assert hidden == set()


def test_a_form_is_asked_field_by_field(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    screen = Stream()
    monkeypatch.setattr(sys, "stdin", Stream("Ann\n3\nyes\n\n"))
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "seats": {"type": "integer"},
            "window": {"type": "boolean"},
            "note": {"type": "string"},
        },
        "required": ["name"],
    }
    question = {"number": 1, "text": "Who?", "schema": schema, "url": None}
    api = Api([message(text("Who?"), purpose="communication")], question=question)
    watched(api)
    value = {"name": "Ann", "seats": 3, "window": True}
    assert api.posted == [("/v1/tasks/t/messages", {"value": value})]
    assert "seats (optional)> " in screen.getvalue()


def test_a_page_is_shown_with_who_wants_it_and_not_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Stream()
    monkeypatch.setattr(sys, "stdin", Stream("n\n"))
    monkeypatch.setattr(sys, "stderr", screen)
    url = "https://login.example.org.evil.example/x"
    question = {"number": 1, "text": "Log in", "schema": None, "url": url}
    api = Api([message(text("Log in"), purpose="communication")], question=question)
    watched(api)
    assert url in screen.getvalue()
    assert PEER in screen.getvalue()
    assert api.posted == [("/v1/tasks/t/messages", {"action": "decline"})]


def test_an_old_question_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stream("no\n"))
    monkeypatch.setattr(sys, "stderr", Stream())
    question = {"number": 9, "text": "Now?", "schema": None, "url": None}
    asked = [
        message(text("Before?"), purpose="communication", number=4),
        message(text("Now?"), purpose="communication", number=9),
    ]
    api = Api(asked, question=question)
    watched(api)
    assert api.posted == [("/v1/tasks/t/messages", {"text": "no"})]


def test_bytes_in_pieces_are_saved_once_they_are_whole(tmp_path: Path) -> None:
    piece = {"kind": "bytes", "media_type": "image/png", "artifact": "1.0", "size": 3}
    events = [
        message({**piece, "continued": True}),
        message({**piece, "begun": True}, number=2),
    ]
    watched(Api(events), save=tmp_path / "saved")
    (saved,) = (tmp_path / "saved").iterdir()
    assert saved.name == "content-1.0.png"
    assert saved.read_bytes() == b"/v1/tasks/t/artifacts/1.0"


@pytest.mark.parametrize(
    ("state", "code", "kind"),
    [
        ("failed", "500", ErrorKind.APPLICATION_ERROR),
        ("rejected", "unknown_action", ErrorKind.NEGOTIATION_REJECTED),
        ("canceled", "", ErrorKind.INTERRUPTED),
        ("canceled", "no_answer", ErrorKind.PEER_UNREACHABLE),
        ("canceled", "dependency_failed", ErrorKind.APPLICATION_ERROR),
    ],
)
def test_each_end_has_its_exit_code(state: str, code: str, kind: ErrorKind) -> None:
    task = {"state": state, "code": code, "reason": "why", "may_have_run": True}
    with pytest.raises(CallError, match="why") as caught:
        end_of(task)
    assert (caught.value.kind, caught.value.may_have_run) == (kind, True)
    end_of({**task, "state": "completed"})


def test_a_bar_leaves_a_line_of_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Stream()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    shown = watching._Screen()
    shown.bar(1, 4, "reads")
    shown.text("half a ")
    shown.bar(2, 4, "writes")
    shown.text("line\n")
    shown.bar(5, 4, "done")
    shown.end()
    first, rest = screen.getvalue().split("half a ")
    assert " 25% 1/4 reads" in first
    assert rest.startswith("line\n")
    assert "100% 5/4 done" in rest
