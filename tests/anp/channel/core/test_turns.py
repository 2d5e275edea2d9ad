"""Strangers have a part of the time, and whoever had least of it is next."""

from __future__ import annotations

from anp.channel.core.turns import BURST, HALF_LIFE, MOST_PLACES, PLACE, SHARE, Turns


def test_the_first_turn_is_at_once_and_the_next_after_a_rest() -> None:
    turns = Turns[str]()
    assert turns.free(now=100.0)
    turns.spent("a", BURST, now=100.0)
    assert turns.free(now=100.0)
    turns.spent("a", 0.01, now=100.0)
    assert not turns.free(now=100.0)
    turns.add("a", "more")
    wait = turns.wait(now=100.0)
    assert wait is not None
    assert abs(wait - 0.01 / SHARE) < 1e-9
    assert turns.wait(now=101.0) == 0.0


def test_over_a_long_time_strangers_have_their_share_and_no_more() -> None:
    turns = Turns[str]()
    now = worked = 0.0
    while now < 10.0:
        turns.add("a", "piece")
        now += turns.wait(now=now) or 0.0
        turns.take(now=now)
        now += 0.005
        worked += 0.005
        turns.spent("a", 0.005, now=now)
    assert abs(worked / now - SHARE) < 0.02


def test_a_newcomer_has_the_next_turn_whoever_waits() -> None:
    turns = Turns[str]()
    turns.spent("busy", 1.0, now=0.0)
    for number in range(100):
        turns.add("busy", f"busy {number}")
    turns.add("new", "new")
    assert turns.take(now=0.0) == ("new", "new")
    assert turns.take(now=0.0) == ("busy", "busy 0")


def test_who_holds_many_places_waits_for_who_holds_one() -> None:
    places = {"full": 3, "crowd": 500, "new": 1}
    turns = Turns[str](places.__getitem__)
    # As much time as two places count for.
    turns.spent("new", 1.9 * PLACE, now=0.0)
    for key in places:
        for _ in range(5):
            turns.add(key, key)
    assert turns.take(now=0.0) == ("new", "new")
    turns.spent("new", 0.2 * PLACE, now=0.0)
    assert turns.take(now=0.0) == ("full", "full")
    # Users of one address, as behind a gateway, wait for a bounded time.
    turns.spent("new", MOST_PLACES * PLACE, now=0.0)
    turns.spent("full", MOST_PLACES * PLACE, now=0.0)
    assert turns.take(now=0.0) == ("crowd", "crowd")


def test_addresses_that_want_the_same_get_the_same() -> None:
    turns = Turns[str]()
    had = {"a": 0, "b": 0, "c": 0}
    for key in had:
        for _ in range(40):
            turns.add(key, key)
    for _ in range(60):
        key, _ = turns.take(now=0.0)
        had[key] += 1
        turns.spent(key, 0.001, now=0.0)
    assert set(had.values()) == {20}


def test_time_long_ago_counts_little() -> None:
    turns = Turns[str]()
    turns.spent("early", 1.0, now=0.0)
    turns.spent("late", 0.1, now=10 * HALF_LIFE)
    turns.add("late", "late")
    turns.add("early", "early")
    assert turns.take(now=10 * HALF_LIFE)[0] == "early"


def test_nothing_waits_when_all_is_taken() -> None:
    turns = Turns[str]()
    assert turns.wait(now=0.0) is None
    turns.add("a", "one")
    turns.take(now=0.0)
    assert turns.wait(now=0.0) is None
