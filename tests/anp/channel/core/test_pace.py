"""Whoever is in a hurry waits; others do not notice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.channel.core.pace import MAX_KEYS, MAX_WAIT, Pace


def test_a_burst_passes_and_then_the_rate_counts() -> None:
    pace = Pace(10.0, 3)
    assert [pace.take("a", now=0.0) for _ in range(4)] == [True, True, True, False]
    assert not pace.take("a", now=0.09)
    assert pace.take("a", now=0.1)
    assert not pace.take("a", now=0.1)


def test_keys_have_a_pace_each() -> None:
    pace = Pace(10.0, 1)
    assert pace.take("a", now=0.0)
    assert pace.take("b", now=0.0)


def test_reservations_follow_each_other_at_the_rate() -> None:
    pace = Pace(10.0, 2)
    waits = [pace.reserve("a", now=0.0) for _ in range(5)]
    assert waits == [0.0, 0.0, 0.1, 0.2, 0.3]
    assert pace.reserve("b", now=0.0) == 0.0


def test_a_turn_that_is_too_far_away_is_none_and_none_is_kept_for_it() -> None:
    pace = Pace(10.0, 2)
    waits = [pace.turn("a", now=100.0, longest=0.25) for _ in range(4)]
    assert waits == pytest.approx([0.0, 0.0, 0.1, 0.2])
    assert pace.turn("a", now=100.0, longest=0.25) is None
    assert pace.turn("a", now=100.1, longest=0.25) == pytest.approx(0.2)
    assert pace.turn("a", now=200.0, longest=0.25) == 0.0


def test_no_hurry_costs_more_than_the_longest_wait() -> None:
    pace = Pace(10.0, 2)
    assert max(pace.reserve("a", now=0.0) for _ in range(10_000)) == MAX_WAIT
    assert pace.reserve("a", now=MAX_WAIT) <= 0.1


def test_memory_is_bounded() -> None:
    pace = Pace(1.0, 1)
    for number in range(MAX_KEYS + 10):
        pace.take(str(number), now=0.0)
    assert len(pace._spent) == MAX_KEYS


@given(st.lists(st.floats(0.0, 0.5), max_size=100), st.integers(1, 10))
def test_never_more_than_burst_and_rate_allow(gaps: list[float], burst: int) -> None:
    pace, now, passed = Pace(5.0, burst), 0.0, 0
    for gap in gaps:
        now += gap
        passed += pace.take("a", now=now)
    assert passed <= burst + 5.0 * now + 1e-6
