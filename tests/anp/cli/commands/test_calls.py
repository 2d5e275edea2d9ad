"""`anpd calls list` and `anpd tap`, without a daemon."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from anp.sidecar.home.home import Home
from anp.sidecar.telemetry.call_entry import CallEntry
from tests.anp.cli.test_commands import FakeApi, anpd, api, home

__all__ = ["api", "home"]  # Fixtures, which pytest finds by name.

Output = pytest.CaptureFixture[str]

EVIL = "evil\x1b[2J\nwords\u202e"
CALL = CallEntry(
    id="a1",
    direction="served",
    at=1.0,
    ms=12.4,
    outcome="policy",
    reason=EVIL,
    peer="did:key:zPeer",
    capability=EVIL,
    source="agreement",
    protocol="ab" * 32,
    count=7,
)


def answer(api: FakeApi, query: str, *calls: CallEntry, after: str | None) -> None:
    found = {"calls": [one.to_json() for one in calls], "next": after}
    api.answers[f"/v1/calls?{query}"] = httpx.Response(200, json=found)


def clean(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_the_list_reads_pages_until_it_has_enough(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    answer(api, "limit=3", CALL, CALL, after="served.1.9")
    # A page may be empty, where nothing in many entries was asked for.
    answer(api, "limit=1&after=served.1.9", after="served.1.5")
    answer(api, "limit=1&after=served.1.5", CALL, after="served.1.2")
    assert anpd(home, "calls", "list", "--limit", "3") == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert out.count("policy x7") == 3
    assert out.count("\n") == 5
    assert "next page: the same command with --after served.1.2" in out


@pytest.mark.parametrize(
    ("words", "direction"),
    [
        (["--made"], "direction=made&"),
        (["--served"], "direction=served&"),
        (["--made", "--served"], ""),
    ],
)
def test_the_list_passes_its_filters_and_prints_json(
    words: list[str], direction: str, home: Home, api: FakeApi, capsys: Output
) -> None:
    query = f"{direction}peer=shop&capability=buy&protocol=ab&outcome=failed&limit=50"
    answer(api, query, CALL, after=None)
    more = ["--peer", "shop", "--capability", "buy", "--protocol", "ab"]
    found = anpd(home, "calls", "list", *words, *more, "--outcome", "failed", "--json")
    assert found == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert json.loads(out)["calls"] == [CALL.to_json()]


@pytest.mark.parametrize("since", ["5", "1y", "-3h", "x"])
def test_a_duration_that_is_none_is_said_so(
    since: str, home: Home, api: FakeApi, capsys: Output
) -> None:
    assert anpd(home, "calls", "list", f"--since={since}") == 2
    assert "is no age; write a number and s, m, h, d or w" in capsys.readouterr().err


def stream(api: FakeApi, *events: dict[str, Any]) -> None:
    frames = "".join(f"data: {json.dumps(one)}\n\n" for one in events)
    api.answers["/v1/events"] = httpx.Response(200, text=frames)


def event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"number": 1, "type": kind, "at": 1.0, "data": data}


def test_tap_prints_a_line_for_each_call(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    made = replace(CALL, direction="made", outcome="ok", count=1, reason="")
    calls = [event("call.served", {"call": "a1", **CALL.to_json()})]
    calls += [event("call.made", {"call": "a1", **made.to_json()})]
    stream(api, event("call.started", {"call": "a1"}), *calls)
    assert anpd(home, "tap") == 0
    out = capsys.readouterr().out
    assert clean(out)
    served_line, made_line = out.splitlines()
    assert "policy x7" in served_line
    assert "<-  did:key:zPeer  agreement abababababab" in served_line
    assert "->  did:key:zPeer" in made_line


def test_tap_prints_json_or_every_event(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    stream(
        api,
        event("negotiation.turn", {"id": "n", "summary": EVIL}),
        event("call.served", {"call": "a1", **CALL.to_json()}),
    )
    assert anpd(home, "tap", "--json") == 0
    assert json.loads(capsys.readouterr().out) == CALL.to_json()
    assert anpd(home, "tap", "--all") == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert [line.split()[2] for line in out.splitlines()] == [
        "negotiation.turn",
        "call.served",
    ]
