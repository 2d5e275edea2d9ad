"""status, decide, logs and stop: the daemon that runs, and what waits for its owner."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.cli.commands.running.background import followed
from anp.sidecar.home.home import Home
from tests.anp.cli.test_commands import FakeApi, Output, anpd, api, home

__all__ = ["api", "home"]  # Fixtures, which pytest finds by name.

BOB, EVE = "did:key:zDnaeBob0000000001", "did:key:zDnaeEve0000000002"


def peer(did: str, **more: Any) -> dict[str, Any]:
    plain = {"names": [], "state": "unknown", "changed_keys": [], "last_seen": 1.0}
    return {"did": did, "connected": False, **plain, **more}


def answer(api: FakeApi, path: str, content: Any) -> None:
    api.answers[path] = httpx.Response(200, json=content)


@pytest.fixture
def waiting(api: FakeApi) -> FakeApi:
    """A daemon with one thing of each kind that waits."""
    negotiation = {
        "id": "abc123",
        "started": 1.0,
        "peer": BOB,
        "outcome": "approval-pending",
        "reason": "its first use",
    }
    task = {
        "id": "t1",
        "state": "x-input-required",
        "made_by": "owner",
        "capability": "bake",
        "changed": 2.0,
        "created": 1.0,
        "executor": BOB,
    }
    group = {
        "id": "invitation-1",
        "kind": "invitation",
        "peer": BOB,
        "group": "g1",
        "name": "chess",
        "text": "",
    }
    approvals = {"negotiations": [negotiation], "groups": [group]}
    answer(api, "/v1/approvals", approvals)
    answer(
        api,
        "/v1/peers?limit=1000",
        {
            "peers": [
                peer(BOB, names=["bob"], connected=True, changed_keys=["zNew"]),
                peer(EVE, state="waiting"),
            ]
        },
    )
    answer(api, "/v1/tasks/t1", {**task, "question": {"text": "Which flour?"}})
    answer(api, "/v1/tasks?open=1", {"tasks": [task, {**task, "made_by": "peer"}]})
    return api


def test_decide_alone_lists_all_that_waits(
    home: Home, waiting: FakeApi, capsys: Output
) -> None:
    assert anpd(home, "decide", "--json") == 0
    found = json.loads(capsys.readouterr().out)["waiting"]
    kinds = [(one["kind"], one["id"]) for one in found]
    assert kinds == [
        *[("negotiation", "abc123"), ("invitation", "invitation-1")],
        *[("changed key", BOB), ("peer", EVE), ("question", "t1")],
    ]
    assert found[-1]["text"] == "bake asks: Which flour?"
    assert anpd(home, "decide") == 0
    *_, decide, send = capsys.readouterr().out.splitlines()
    assert decide == "decide with: anpd decide ID accept|reject"
    assert send.startswith("answer a question with: anpd tasks send ID TEXT")


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        ((EVE, "accept"), "/v1/peers/allow", {"peer": EVE}),
        ((f"{EVE[:12]}…{EVE[-4:]}", "reject"), "/v1/peers/block", {"peer": EVE}),
        ((BOB, "accept"), "/v1/peers/trust", {"peer": BOB}),
        (
            ("invitation-1", "reject"),
            "/v1/approvals/invitation-1/reject",
            {"note": ""},
        ),
        (
            ("abc", "accept", "--note", "fine"),
            "/v1/negotiations/abc123/decision",
            {"verdict": "accept", "note": "fine"},
        ),
    ],
    ids=["allow", "block", "trust", "decline", "negotiation"],
)
def test_decide_carries_the_decision_out_where_it_belongs(
    home: Home, waiting: FakeApi, words: tuple[str, ...], path: str, body: object
) -> None:
    answer(waiting, path, {"decision": None})
    assert anpd(home, "decide", *words) == 0
    assert waiting.asked[-1].url.path == path
    assert waiting.body() == body


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("abc123",), "say accept or reject: anpd decide abc123 accept"),
        (("abc123", "perhaps"), "say accept or reject"),
        (("nobody", "accept"), "nothing waits under nobody"),
        (("did:", "accept"), "several wait under did:"),
        (("t1", "accept"), "a question wants an answer: anpd tasks watch t1"),
        ((EVE, "edit"), "only a negotiation can be edited"),
    ],
)
def test_a_decision_that_means_nothing_is_refused(
    home: Home, waiting: FakeApi, capsys: Output, words: tuple[str, ...], said: str
) -> None:
    assert anpd(home, "decide", *words) == 2
    assert said in capsys.readouterr().err


def test_status_tells_what_runs_and_what_waits(
    home: Home, waiting: FakeApi, capsys: Output
) -> None:
    info = {
        "version": "1",
        "started": 1.0,
        "address": "ws://x/#did:key:z",
        "attachments": [{"name": "oven", "healthy": False, "problem": "no fire"}],
    }
    answer(waiting, "/v1/info", info)
    offered = [
        {"name": "oven.bake", "exposed": True},
        {"name": "oven.grill", "exposed": False, "exposed_to": ["bob"]},
        {"name": "oven.burn", "exposed": False},
    ]
    answer(waiting, "/v1/capabilities", {"capabilities": offered})
    assert anpd(home, "status", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exposed"] == ["oven.bake", "oven.grill"]
    assert found["connected"] == [{"did": BOB, "names": ["bob"]}]
    assert len(found["waiting"]) == 5
    assert anpd(home, "status") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["connected", "bob"] for line in lines)
    assert any("oven is DOWN: no fire" in line for line in lines)
    assert any("negotiation abc123" in line for line in lines)


def test_without_a_daemon_each_says_how_to_start_one(
    tmp_path: Path, capsys: Output
) -> None:
    away = Home(tmp_path / "away")
    for word in ("status", "stop", "decide"):
        assert anpd(away, word) == 4
        assert f"anpd --home {away.path} up" in capsys.readouterr().err
    assert anpd(away, "logs") == 2
    assert "up --background" in capsys.readouterr().err


def test_stop_ends_no_process_but_the_one_that_holds_the_home(
    home: Home, capsys: Output
) -> None:
    # api.json names process 1, as a daemon in a container might have it.
    assert anpd(home, "stop") == 4
    assert "runs in a container or as another user" in capsys.readouterr().err


def test_logs_prints_the_last_lines(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    home = Home(tmp_path)
    home.log_file.write_text("one\ntwo\nthree\n")
    for number, wanted in (("2", b"two\nthree\n"), ("9", b"one\ntwo\nthree\n")):
        assert anpd(home, "logs", "-n", number) == 0
        assert capfdbinary.readouterr().out == wanted
    assert anpd(home, "logs", "-n", "0") == 0
    assert capfdbinary.readouterr().out == b""


def test_a_log_is_followed_into_the_file_that_takes_its_place(tmp_path: Path) -> None:
    log, looks = tmp_path / "anpd.log", 0
    log.write_bytes(b"before\n")

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        match looks:
            case 1:
                with log.open("ab") as file:
                    file.write(b"more\n")
            case 2:
                os.replace(log, tmp_path / "anpd.log.1")
            case 3:
                log.write_bytes(b"new\n")
            case _:
                raise KeyboardInterrupt

    pieces: list[bytes] = []

    def take() -> None:
        for piece in followed(log, sleep):
            pieces.append(piece)  # noqa: PERF402 - what came before the end counts.

    with pytest.raises(KeyboardInterrupt):
        take()
    assert pieces == [b"more\n", b"new\n"]
