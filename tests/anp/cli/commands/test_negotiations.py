"""`anpd negotiations`: what it prints, asks and sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.cli.app import run
from anp.cli.commands.negotiations import MAX_DIFF_LINES, changes, next_steps
from anp.sidecar.home.home import ApiAddress, Home
from tests.anp.cli.test_commands import FakeApi
from tests.clauses import clause

Output = pytest.CaptureFixture[str]
HASH = "ab" * 32
VIEW: dict[str, Any] = {
    "id": "n1",
    "own_did": "did:key:zOwn",
    "peer": "did:key:zPeer",
    "role": "provider",
    "need": None,
    "outcome": "rejected",
    "running": False,
    "waiting": False,
    "reason": "\x1b[31mno",
    "hash": None,
    "started": 0.0,
    "ended": 2.5,
    "proposals": 2,
    "model_calls": 3,
    "tests": None,
    "decision": None,
    "hints": ["they mean the shop"],
    "pending": None,
    "decisions": [],
    "turns": [
        {
            "direction": direction,
            "sequence_id": number,
            "status": "negotiating",
            "candidate": text,
            "summary": "",
            "seconds": 0.1 * number,
        }
        for number, (direction, text) in enumerate(
            [("received", "one\ntwo"), ("sent", "one\n\x1b[2Jthree")]
        )
    ],
    "verdicts": [
        {
            "seconds": 0.05,
            "turn": 1,
            "by": "mind",
            "verdict": "counter",
            "hash": HASH,
            "reason": "other terms",
        }
    ],
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Give a home that looks as if a daemon ran in it."""
    home = Home(tmp_path / "home")
    home.create()
    with home.lock():
        home.write_api(ApiAddress("unused", 1, "ws://127.0.0.1:1/", "did:key:z"))
        yield home


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()
    fake.answers["/v1/negotiations/n1"] = httpx.Response(200, json=VIEW)
    fake.stand_in(monkeypatch)
    return fake


def anpd(home: Home, *words: str) -> int:
    return run(["--home", str(home.path), "negotiations", *words])


@clause("ANP-34")
def test_show_tells_it_in_order_with_what_changed_and_what_can_be_done(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    assert anpd(home, "show", "n1") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    for text in ("they mean the shop", "-two", "+<1b>[2Jthree", "<1b>[31mno"):
        assert text in out
    first, verdict, second = (
        out.index(text) for text in ("the peer: negot", "our side: counter", "we: nego")
    )
    assert first < verdict < second
    assert f"anpd --home {home.path} negotiations decide n1 accept" in out


def test_show_as_json_has_a_diff_in_each_turn(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    assert anpd(home, "show", "n1", "--json") == 0
    turns = json.loads(capsys.readouterr().out)["turns"]
    assert turns[0]["diff"] == ["  one", "  two"]
    assert "-two" in turns[1]["diff"]


def test_the_last_text_is_printed_to_be_edited(
    home: Home, api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert anpd(home, "show", "n1", "--text") == 0
    assert capfdbinary.readouterr().out == b"one\n\x1b[2Jthree"


def test_a_decision_sends_what_was_typed_and_the_file_as_it_is(
    home: Home, api: FakeApi, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "edited.md"
    file.write_text("ä\n")
    word = {
        "verdict": "edit",
        "role": "provider",
        "peer_did": "did:key:zPeer",
        "expires": 1.0,
    }
    answer = {"applied": "next negotiation", "decision": word}
    api.answers["/v1/negotiations/n1/decision"] = httpx.Response(200, json=answer)
    assert anpd(home, "decide", "n1", "edit", "--file", str(file), "--note", "so") == 0
    assert api.body() == {"verdict": "edit", "note": "so", "document": "ä\n"}
    assert "edit is used once" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [("edit",), ("accept", "--file", "x")], ids=["no file", "a file"]
)
def test_edit_and_only_edit_takes_a_file(
    home: Home, api: FakeApi, words: tuple[str, ...]
) -> None:
    assert anpd(home, "decide", "n1", *words) == 2
    assert api.asked == []


def test_list_asks_for_the_open_ones_only_when_told(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    answer = httpx.Response(200, json={"negotiations": [VIEW]})
    api.answers["/v1/negotiations"] = answer
    api.answers["/v1/negotiations?open=1"] = answer
    assert anpd(home, "list") == 0
    assert anpd(home, "list", "--open") == 0
    assert [str(r.url.query, "ascii") for r in api.asked] == ["", "open=1"]
    assert "rejected" in capsys.readouterr().out


APPROVAL: dict[str, Any] = {
    "id": "invitation-g1",
    "kind": "invitation",
    "group": "g1",
    "name": "\x1b[31mBuild",
    "peer": "did:key:zPeer",
    "hub": "did:key:zHub",
    "text": "join us",
    "stranger": True,
    "sealed": False,
    "expires": 0.0,
}


def test_approvals_of_groups_are_listed_shown_and_decided(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    def approvals(*words: str) -> int:
        return run(["--home", str(home.path), "approvals", *words])

    for negotiations in ([], [VIEW]):
        page = {"negotiations": negotiations, "next": None, "groups": [APPROVAL]}
        api.answers["/v1/approvals"] = httpx.Response(200, json=page)
        assert approvals("list") == 0
        printed = capsys.readouterr().out
        assert "<1b>[31mBuild" in printed
        assert "join us" in printed
        assert ("n1" in printed) == bool(negotiations)
    assert approvals("show", "invitation-g1") == 0
    shown = capsys.readouterr().out
    assert "no, a stranger" in shown
    assert "approvals accept invitation-g1" in shown
    assert approvals("show", "application-x") == 2
    assert "nothing of this id waits" in capsys.readouterr().err
    done = httpx.Response(200, json={"applied": "now", "decision": None})
    api.answers["/v1/approvals/invitation-g1/reject"] = done
    assert approvals("reject", "invitation-g1", "--note", "no") == 0
    assert api.body() == {"note": "no"}
    assert capsys.readouterr().out == "done: the group was told\n"


def test_texts_that_are_too_long_are_not_compared() -> None:
    before = "\n".join(["x"] * MAX_DIFF_LINES)
    assert changes(before, "y") == ["  y"]
    assert changes("x\n", "y\n") == ["@@ -1 +1 @@", "-x", "+y"]


@pytest.mark.parametrize(
    ("changed", "step"),
    [
        ({"waiting": True, "running": True}, "waits for your decision"),
        ({"running": True}, "negotiations cancel n1"),
        ({"outcome": "agreed", "hash": HASH}, "protocols show abababababab"),
        ({"role": "requester"}, "call PEER NEED"),
    ],
)
def test_the_next_steps_are_those_that_are_possible(
    changed: dict[str, Any], step: str
) -> None:
    steps = next_steps({**VIEW, **changed}, "anpd")
    assert any(step in line for line in steps)
    assert all(line.startswith("anpd ") for line in steps)


def test_nothing_can_be_decided_about_a_peer_that_said_nothing() -> None:
    assert next_steps({**VIEW, "turns": []}, "anpd") == []
