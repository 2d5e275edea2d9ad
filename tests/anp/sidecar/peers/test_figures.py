"""Figures about peers, and the order that they give, by scripted clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anp.sidecar.peers.figures import (
    AWAY,
    FRESH,
    Measures,
    PeerFigures,
    Rated,
    by_rate,
    health_of,
)
from anp.sidecar.telemetry.call_entry import CallEntry
from tests.clauses import clause


class Clock:
    """A clock that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def order(now: float = 1_000_000.0, **rated: Rated) -> str:
    return "".join(by_rate([*rated], rated.__getitem__, now=now))


def measured(ms: float, *, success: float = 1.0, at: float = 1_000_000.0) -> Rated:
    figures = PeerFigures(answered=3, latency=ms, success=success, at=at)
    return Rated(figures=figures)


@clause("A2A-26")
def test_the_faster_and_the_idle_peer_is_first() -> None:
    assert order(a=measured(900), b=measured(100), c=measured(300)) == "bca"
    busy = replace(measured(100), at_work=9)
    assert order(a=busy, b=measured(300)) == "ba"


@clause("A2A-26")
def test_a_peer_that_fails_or_is_away_goes_back_and_is_tried_again() -> None:
    assert order(a=measured(100, success=0.2), b=measured(300)) == "ba"
    away = replace(measured(1), away_at=1_000_000.0)
    assert order(a=away, b=measured(5_000)) == "ba"
    assert order(1_000_000.0 + AWAY, a=away, b=measured(5_000)) == "ab"
    old = measured(9_000, success=0.1, at=1_000_000.0 - FRESH)
    assert order(a=measured(100), b=old) == "ab"
    assert order(a=replace(measured(100), chosen=2), b=replace(old, chosen=1)) == "ba"


@clause("A2A-26")
def test_equal_peers_take_turns_and_the_unknown_one_is_tried() -> None:
    measures = Measures(Clock())
    seen = ""
    for _ in range(6):
        rated = {
            name: replace(measured(ms), chosen=measures.chosen(name))
            for name, ms in (("a", 100), ("b", 105), ("c", 98))
        }
        best = by_rate([*rated], rated.__getitem__, now=1_000_000.0)[0]
        measures.choose(best)
        seen += best
    assert seen == "abcabc"
    assert order(a=replace(measured(100), chosen=1), b=Rated()) == "ba"


def entry(outcome: str, ms: float = 10.0) -> CallEntry:
    return CallEntry(
        id="1",
        direction="made",
        at=0.0,
        ms=ms,
        outcome=outcome,
        peer="did:web:a.example",
        capability="wx.now",
    )


@clause("A2A-26")
def test_calls_are_measured_by_peer_and_capability() -> None:
    clock = Clock()
    measures = Measures(clock)
    for outcome in ("ok", "application_error", "usage", "policy", "interrupted"):
        measures.called(entry(outcome))
    measures.called(entry("ok", 500.0))
    measures.called(entry("ok", 10.0))
    found = measures.figures(["did:web:a.example"], "wx.now")
    assert found.latency == pytest.approx(88.4)
    measures = Measures(clock)
    # The first call may have a negotiation in it.
    measures.called(entry("ok", 900.0))
    measures.called(entry("application_error"))
    found = measures.figures(["did:web:a.example"], "wx.now")
    assert (found.answered, found.failed, found.latency) == (2, 0, 10.0)
    assert measures.figures(["did:web:a.example"]) == found
    assert measures.figures(["did:web:a.example"], "wx.later") == PeerFigures()
    assert health_of(found, away=False, now=clock.now) == "good"
    for _ in range(4):
        measures.called(entry("peer_unreachable"))
    found = measures.figures(["did:web:a.example"])
    assert (found.failed, found.failed_at) == (4, clock.now)
    assert health_of(found, away=False, now=clock.now) == "failing"
    assert health_of(found, away=True, now=clock.now) == "away"
    assert health_of(found, away=False, now=clock.now + FRESH) == "unknown"
