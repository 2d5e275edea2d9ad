"""The owner exposes and hides single capabilities of a daemon that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client

SHOP = '''
import os


def pid() -> dict[str, int]:
    """Give the process."""
    return {"pid": os.getpid()}


def twice(number: int) -> dict[str, int]:
    """Double a number."""
    return {"twice": number * 2}


def thrice(number: int) -> dict[str, int]:
    """Multiply a number by three."""
    return {"thrice": number * 3}
'''


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anpd]:
    """Give a daemon with `shop`, which exposes `pid` and `twice`."""
    folder = tmp_path_factory.mktemp("expose")
    (folder / "shop.py").write_text(SHOP)
    found = Anpd(folder / "home")
    exposed = ("--expose", "pid", "--expose", "twice")
    found.ok(*("attach", "python", "shop", "--name", "shop", *exposed), cwd=folder)
    with found.up():
        yield found


@pytest.fixture
def owner(daemon: Anpd) -> Iterator[httpx.Client]:
    """Give the API as the owner uses it."""
    with owner_client(daemon.home, timeout=60) as client:
        yield client


def say(owner: httpx.Client, name: str, word: str) -> httpx.Response:
    return owner.post(f"/v1/capabilities/{name}/{word}", json={})


def exposed(owner: httpx.Client) -> set[str]:
    found = owner.get("/v1/capabilities").json()["capabilities"]
    return {one["name"] for one in found if one["exposed"]}


def pid(owner: httpx.Client) -> int:
    answer = owner.post("/v1/capabilities/pid/test", json={"input": {}})
    return int(answer.json()["output"]["pid"])


def test_one_is_exposed_and_hidden_and_its_program_runs_on(
    daemon: Anpd, owner: httpx.Client
) -> None:
    before = pid(owner)
    shown = say(owner, "thrice", "expose")
    assert shown.status_code == 200, shown.text
    assert (shown.json()["name"], shown.json()["exposed"]) == ("shop.thrice", True)
    assert exposed(owner) == {"shop.pid", "shop.twice", "shop.thrice"}
    assert say(owner, "shop.twice", "hide").json()["exposed"] is False
    assert exposed(owner) == {"shop.pid", "shop.thrice"}
    # The owner's file says the same, and so does a daemon that reads it again.
    file = daemon.home / "attachments" / "shop.json"
    assert json.loads(file.read_text())["expose"] == ["pid", "thrice"]
    daemon.ok("reload")
    assert exposed(owner) == {"shop.pid", "shop.thrice"}
    assert pid(owner) == before
    refused = owner.post("/v1/capabilities/twice/test", json={"input": {"number": 2}})
    assert refused.status_code == 403


def test_hiding_one_of_all_names_the_others(daemon: Anpd, owner: httpx.Client) -> None:
    file = daemon.home / "attachments" / "shop.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "expose": ["*"]}))
    daemon.ok("reload")
    before = pid(owner)
    assert say(owner, "twice", "expose").json()["exposed"] is True
    assert json.loads(file.read_text())["expose"] == ["*"]
    say(owner, "twice", "hide")
    assert sorted(json.loads(file.read_text())["expose"]) == ["pid", "thrice"]
    assert exposed(owner) == {"shop.pid", "shop.thrice"}
    assert pid(owner) == before


def test_what_the_owner_wrote_by_hand_is_left_to_the_owner(
    daemon: Anpd, owner: httpx.Client
) -> None:
    folder = daemon.home / "attachments"
    shop = json.loads((folder / "shop.json").read_text())
    written = folder / "hand.toml"
    lines = {"kind": "python", "target": "shop", "cwd": shop["cwd"]}
    lines |= {"python": shop["python"]} if "python" in shop else {}
    written.write_text("".join(f'{key} = "{text}"\n' for key, text in lines.items()))
    daemon.ok("reload")
    before = written.read_text()
    answer = say(owner, "hand.twice", "expose")
    assert answer.status_code == 422
    assert "attachment hand: its entry was written by hand" in answer.json()["detail"]
    assert written.read_text() == before
    unknown = say(owner, "hand.nothing", "hide")
    assert unknown.status_code == 404


def test_the_commands_say_what_they_did(daemon: Anpd, owner: httpx.Client) -> None:
    hidden = daemon.ok("hide", "shop.twice", "shop.thrice")
    assert hidden.stdout == "shop.twice is hidden\nshop.thrice is hidden\n"
    assert exposed(owner) == {"shop.pid"}
    shown = daemon.ok("expose", "shop.thrice", "--json").json()
    assert [one["name"] for one in shown["capabilities"]] == ["shop.thrice"]
    assert exposed(owner) == {"shop.pid", "shop.thrice"}
    wrong = daemon.run("expose", "shop.twise")
    assert wrong.code == 2
    assert "no capability is called shop.twise" in wrong.stderr


def test_a_peer_loses_a_capability_that_is_hidden_at_once(
    daemon: Anpd, tmp_path: Path
) -> None:
    daemon.ok("expose", "shop.twice")
    caller = Anpd(tmp_path / "caller", consensus__use="true")
    call = ("call", daemon.address, "shop.twice", "-d", '{"number": 2}', "--json")
    with caller.up():
        assert caller.ok(*call).json()["output"] == {"twice": 4}
        daemon.ok("hide", "shop.twice")
        refused = caller.run(*call)
        assert refused.code != 0
        daemon.ok("expose", "shop.twice")
        assert caller.ok(*call).json()["output"] == {"twice": 4}
