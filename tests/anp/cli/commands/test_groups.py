"""The commands of groups: names of known peers stand in place of their DIDs."""

from __future__ import annotations

from typing import Any

import httpx

from anp.sidecar.home.home import Home
from tests.anp.cli.test_commands import FakeApi, Output, anpd, api, home

__all__ = ["api", "home"]  # Fixtures, which pytest finds by name.

OWN, BOB, EVE = "did:key:zOwn", "did:key:zBob", "did:key:zEve"


def test_a_group_is_shown_with_the_names_of_known_peers(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    group: dict[str, Any] = {
        "id": "g1",
        "name": "chess",
        "state": "member",
        "epoch": 1,
        "last": 3,
        "is_hub": False,
        "hub": BOB,
        "owner": OWN,
        "policy": {"join": "both"},
        "members": [{"id": OWN}, {"id": BOB}, {"id": EVE}],
        "waiting": [{"kind": "application", "ticket": "t1", "peer": BOB, "text": ""}],
        "preset": None,
        "sealing": None,
        "invitation": None,
    }
    peers = [{"did": BOB, "names": ["bob"]}, {"did": EVE, "names": []}]
    api.answers["/v1/groups/g1"] = httpx.Response(200, json=group)
    api.answers["/v1/peers"] = httpx.Response(200, json={"peers": peers})
    assert anpd(home, "groups", "show", "g1") == 0
    out = capsys.readouterr().out
    assert "hub        bob\n" in out
    assert f"members    {OWN}, bob, {EVE}\n" in out
    assert "application t1 of bob" in out
    assert anpd(home, "groups", "show", "g1", "--json") == 0
    assert "bob" not in capsys.readouterr().out
