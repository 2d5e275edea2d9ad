"""`anpd protocols list|show|revoke|approve|test|diff|prune|usage`, without a daemon."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.cli.commands.protocol_actions import MAX_DIFF_LINES, changes, seconds_of
from anp.errors import CallError
from anp.sidecar.home.home import Home
from anp.sidecar.library.views import UsageCounts
from anp.sidecar.telemetry.call_entry import CallEntry
from cache.records.records import UsageRecord
from tests.anp.cli.test_commands import HASH, FakeApi, Output, anpd, api, home

__all__ = ["api", "home"]  # Fixtures, which pytest finds by name.

EVIL = "\x1b[2J\u202eevil\r\x07"
RUN = {
    "at": 2.0,
    "mode": "offline",
    "passed": False,
    "cases": 1,
    "failed": 1,
    "outcome": EVIL,
    "problems": [EVIL],
    "results": [{"title": EVIL, "passed": False, "detail": EVIL}],
    "revision": 1,
}
AGREEMENT = {
    "hash": HASH,
    "role": "requester",
    "peer": "did:key:zPeer",
    "need": EVIL,
    "capability": EVIL,
    "uris": [EVIL],
    "origin": "model",
    "model": EVIL,
    "state": "failed",
    "reason": EVIL,
    "samples": "full",
    "uses": 3,
    "created": 1.0,
    "last_used": None,
    "revision": 1,
    "negotiation_id": "n1",
    "cases": EVIL,
    "notes": ["/depth is in metres", EVIL],
    "last_run": RUN,
    "quarantined": None,
}
HALF = {
    "hash": HASH,
    "role": "requester",
    "revision": 1,
    "source": f"# {EVIL}\n",
    "origin": "imported",
    "model": EVIL,
    "capabilities": {EVIL: "a" * 64},
    "created": 1.0,
    "state": "active",
    "reason": EVIL,
    "agreements": 1,
    "negotiation_id": "n1",
    "bundle": "b" * 64,
    "claims": {"origin": EVIL, "created": 1.0, "did": None},
}
USAGE = asdict(UsageCounts.of(UsageRecord(None, agreement=3, negotiated=1, served=2)))
CALL = asdict(
    CallEntry(
        id=EVIL,
        direction="served",
        at=1.0,
        ms=2.0,
        outcome="ok",
        reason=EVIL,
        peer=EVIL,
        capability=EVIL,
    )
)
RUNS = {
    "outcomes": {"error": 1},
    "failures": [{"outcome": "error", "stage": "call", "reason": EVIL}],
    "log": EVIL,
}
SHOWN: dict[str, Any] = {
    "hash": HASH,
    "agreements": [AGREEMENT],
    "code": [HALF],
    "tests": [{}],
    "usage": USAGE,
    "uris": [EVIL],
    "revocations": [{"peer": None, "at": 1.0, "reason": EVIL}],
    "quarantined": None,
    "runs": RUNS,
    "trials": RUNS,
}


def answer(api: FakeApi, path: str, value: Any) -> None:
    """Have the daemon answer `path` below `/v1/protocols`."""
    api.answers[f"/v1/protocols{path}"] = httpx.Response(200, json=value)


def shown(api: FakeApi, call: dict[str, Any] | None = None) -> None:
    """Have the daemon answer `show`, with one call in the list of calls."""
    answer(api, "/abab", SHOWN)
    path = f"/v1/calls?protocol={HASH}&limit=10"
    found = {"calls": [call or CALL], "next": None}
    api.answers[path] = httpx.Response(200, json=found)


def clean(text: str) -> bool:
    """Say whether a terminal has nothing to act on but line ends."""
    return all(c.isprintable() or c == "\n" for c in text)


def page(api: FakeApi, query: str, count: int, after: str | None) -> None:
    """Have the daemon give a page of agreements."""
    found = {"protocols": [AGREEMENT] * count, "next": after, "usage": USAGE}
    answer(api, query, found)


def test_the_list_reads_pages_until_it_has_enough(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    page(api, "?limit=3", 2, "agreement/b")
    page(api, "?limit=1&after=agreement%2Fb", 1, "agreement/c")
    assert anpd(home, "protocols", "list", "--limit", "3") == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert out.count(HASH[:12]) == 6
    assert "3, 75.0 % of them" not in out
    assert "calls through protocols: 4, 75.0 % of them without negotiation" in out
    assert "anpd protocols list --after 'agreement/c'" in out


def test_the_list_passes_its_filters_and_prints_json(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    page(api, "?peer=shop&role=provider&state=failed&limit=100", 1, None)
    words = ["--peer", "shop", "--role", "provider", "--state", "failed", "--json"]
    assert anpd(home, "protocols", "list", *words) == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert json.loads(out)["next"] is None


@pytest.mark.parametrize("options", [[], ["--code"], ["--json"]])
def test_hostile_texts_are_shown_and_not_acted_on(
    options: list[str], home: Home, api: FakeApi, capsys: Output
) -> None:
    shown(api)
    assert anpd(home, "protocols", "show", "abab", *options) == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert "evil" in out


def test_show_says_where_each_half_comes_from_and_how_it_does(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    shown(api)
    assert anpd(home, "protocols", "show", "abab") == 0
    out = capsys.readouterr().out
    for words in (
        "anpd negotiations show n1",
        f"from the bundle with SHA-256 {'b' * 64}",
        "tested      FAILED",
        "note        /depth is in metres",
        "revoked for all peers",
        f"anpd protocols approve {HASH[:12]}",
    ):
        assert words in out


def test_show_says_that_errors_of_trials_are_right_answers(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    shown(api)
    assert anpd(home, "protocols", "show", "abab") == 0
    runs, _, trials = capsys.readouterr().out.partition("\ntrials since")
    assert "is the right answer" not in runs
    assert "an error is the right answer to the broken messages" in trials


def test_revoke_and_approve_send_what_was_typed(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    buy = {"role": "provider", "peer": "did:x", "capability": "shop.buy"}
    said: dict[str, Any] = {
        "hash": HASH,
        "peer": "did:x",
        "revoked": True,
        "channels_closed": 2,
        "closed": [buy, {**buy, "role": "requester"}],
        "open": [{**buy, "capability": "shop.look"}],
    }
    answer(api, "/ab/revoke", said)
    words = ["revoke", "ab", "--peer", "shop", "--reason", "why"]
    assert anpd(home, "protocols", *words) == 0
    assert api.body() == {"peer": "shop", "reason": "why"}
    out = capsys.readouterr().out
    assert "revoked for did:x; 2 channels closed" in out
    assert "closed until you decide to did:x: shop.buy" in out
    assert "closed until you decide to your agent, of did:x: shop.buy" in out
    assert "still open to did:x: shop.look" in out
    assert anpd(home, "protocols", *words, "--text-only") == 0
    assert api.body() == {"peer": "shop", "reason": "why", "text_only": True}
    capsys.readouterr()
    back: dict[str, Any] = {
        "hash": HASH,
        "peer": None,
        "revocation_ended": False,
        "quarantine_ended": True,
        "negotiations_accepted": ["n1"],
        "reopened": [buy],
    }
    answer(api, "/ab/approve", back)
    assert anpd(home, "protocols", "approve", "ab") == 0
    assert api.body() == {}
    out = capsys.readouterr().out
    assert "no longer quarantined" in out
    assert "negotiation n1 is accepted" in out
    assert "open again to did:x: shop.buy" in out
    nothing = {**back, "quarantine_ended": False, "negotiations_accepted": []}
    nothing["reopened"] = []
    answer(api, "/ab/approve", nothing)
    assert anpd(home, "protocols", "approve", "ab") == 0
    assert "needed no approval" in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_failed_test_has_an_exit_code_of_its_own(
    options: list[str], home: Home, api: FakeApi, capsys: Output
) -> None:
    run = {"role": "requester", "peer": None, **RUN}
    answer(api, "/ab/test", {"hash": HASH, "passed": False, "runs": [run]})
    assert anpd(home, "protocols", "test", "ab", *options) == 11
    out, err = capsys.readouterr()
    assert clean(out)
    assert "anpd protocols revoke" in err
    if options:
        assert json.loads(out)["passed"] is False
    good = {**run, "passed": True, "problems": [], "results": []}
    answer(api, "/ab/test", {"hash": HASH, "passed": True, "runs": [good]})
    assert anpd(home, "protocols", "test", "ab", "--peer", "shop", *options) == 0
    assert api.body() == {"peer": "shop"}


def test_diff_compares_texts_and_code(home: Home, api: FakeApi, capsys: Output) -> None:
    for name, text in (("aa", f"one\n{EVIL}\n"), ("bb", "two\nsame\n")):
        api.answers[f"/v1/protocols/{name}/text"] = httpx.Response(
            200, content=text.encode()
        )
    assert anpd(home, "protocols", "diff", "aa", "bb") == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert "\n-one\n" in out
    assert "\n+two\n" in out
    assert "<1b>[2J<202e>evil<d><7>" in out
    other = {**HALF, "revision": 2, "source": "# other\n", "agreements": 0}
    answer(api, "/ab/code?role=requester", {"hash": HASH, "code": [HALF, other]})
    halves = ["ab:requester:1", "ab:requester:2"]
    assert anpd(home, "protocols", "diff", *halves, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is False
    assert "+# other" in found["diff"]
    # Without a revision the one in use is meant.
    assert anpd(home, "protocols", "diff", "ab:requester", halves[0]) == 0
    assert "are the same" in capsys.readouterr().out
    assert anpd(home, "protocols", "diff", "ab:requester:9", halves[0]) == 2
    assert "revisions here: 1, 2" in capsys.readouterr().err
    assert anpd(home, "protocols", "diff", "ab:nobody", halves[0]) == 2


def test_texts_that_are_too_long_are_not_compared() -> None:
    half = MAX_DIFF_LINES // 2
    assert changes("\n" * (half - 1), "x\n" * (half - 1), names=("a", "b"))
    with pytest.raises(CallError, match="compare those"):
        changes("\n" * (half - 1), "x\n" * half, names=("a", "b"))


def test_prune_says_what_and_how_much(home: Home, api: FakeApi, capsys: Output) -> None:
    removed = {
        "kind": "agreement",
        "hash": HASH,
        "why": "failed 99 d ago",
        "bytes": 700,
        "role": "requester",
        "revision": 1,
        "state": "failed",
        "peer": "did:key:zPeer",
    }
    found = {
        "dry_run": True,
        "older_than": 1.0,
        "counts": {"agreement": 1, "half": 2},
        "bytes": 900,
        "removed": [removed],
    }
    answer(api, "/prune", found)
    assert anpd(home, "protocols", "prune", "--older-than", "2w", "--dry-run") == 0
    assert api.body() == {"older_than": 14 * 86_400.0, "dry_run": True}
    out = capsys.readouterr().out
    assert "would delete agreement" in out
    assert "failed 99 d ago (700 bytes)" in out
    assert "and 2 more" in out
    assert "1 agreements, 2 halfs: 900 bytes" not in out
    assert out.endswith("900 bytes\n")
    found |= {"dry_run": False, "store_before": 8_000_000, "store_after": 90_000}
    answer(api, "/prune", found)
    assert anpd(home, "protocols", "prune") == 0
    out = capsys.readouterr().out
    assert out.endswith("the store took 8000000 bytes and takes 90000\n")
    assert anpd(home, "protocols", "prune", "--older-than", "soon") == 2


@pytest.mark.parametrize(
    ("age", "seconds"), [("90d", 7_776_000), ("1.5h", 5400), ("0s", 0), ("2w", 1209600)]
)
def test_ages_have_a_unit(age: str, seconds: float) -> None:
    assert seconds_of(age) == seconds


@pytest.mark.parametrize("age", ["", "90", "d", "-1d", "1y", "1e3d", "١d", "9" * 99])
def test_what_is_no_age_is_refused(age: str) -> None:
    with pytest.raises(CallError, match="such as 90d"):
        seconds_of(age)


def test_usage_tells_the_share(home: Home, api: FakeApi, capsys: Output) -> None:
    answer(api, "/usage", USAGE)
    assert anpd(home, "protocols", "usage") == 0
    assert "without negotiation 75.0 %" in capsys.readouterr().out


def test_without_a_daemon_each_says_how_to_start_one(
    tmp_path: Path, capsys: Output
) -> None:
    home = Home(tmp_path / "none")
    home.create()
    assert anpd(home, "protocols", "prune") == 4
    assert "start it with: anpd --home" in capsys.readouterr().err
