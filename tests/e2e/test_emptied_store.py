"""Stores that lost what they held: said, never taken for new ones."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.e2e.daemons import Anpd

TOOL = """
def find_song(title: str) -> dict[str, str]:
    return {"title": title}
"""
SONG = '{"title": "Help"}'
BLOCKED = "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169"


@pytest.mark.parametrize("when", ["while it runs", "while it does not"])
def test_an_emptied_store_is_told_and_its_refusals_hold(
    tmp_path: Path, when: str
) -> None:
    (tmp_path / "songs.py").write_text(TOOL)
    provider, caller = Anpd(tmp_path / "provider"), Anpd(tmp_path / "caller")
    provider.ok(
        *("attach", "python", str(tmp_path / "songs.py"), "--expose", "*"),
        *("--read-only", "*"),
    )
    with provider.up(), caller.up():
        caller.ok("call", provider.address, "find_song", "--data", SONG)
        caller.ok("peers", "block", BLOCKED)
        if when == "while it runs":
            emptied_while_it_runs(caller)
            return
    for one in (caller.home / "store").iterdir():
        one.unlink()
    (caller.home / "store" / "cache.db").touch()
    doctor = caller.run("doctor")
    assert doctor.code != 0
    assert "lost what it held" in doctor.stdout
    refused = caller.run("up", "--port", "0")
    assert refused.code != 0
    assert "anpd up --new-store" in refused.stderr
    with caller.up("--new-store"):
        assert "blocked" in caller.ok("peers", "list").stdout
        assert caller.ok("status", "--json").json()["store"]["state"] == "ok"


def emptied_while_it_runs(caller: Anpd) -> None:
    """Delete every row behind the back of a daemon that has an open channel."""
    with sqlite3.connect(caller.home / "store" / "cache.db") as rows:
        rows.execute("DELETE FROM Cache")
    rows.close()
    doctor = caller.run("doctor")
    assert doctor.code != 0
    assert "lost what it held" in doctor.stdout
    (peer,) = caller.ok("peers", "list", "--json").json()["peers"]
    assert (peer["did"], peer["state"]) == (BLOCKED, "blocked")
    (listed,) = caller.ok("protocols", "list", "--json").json()["protocols"]
    digest = listed["hash"]
    ended = caller.ok("protocols", "revoke", digest[:12], "--json").json()
    assert ended["channels_closed"] == 1
    kept = json.loads((caller.home / "safeguard.json").read_text())["rows"]
    assert {key.partition("/")[0] for key in kept} == {"peer", "revocation"}
