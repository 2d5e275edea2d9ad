"""The machine of one subscription: triggers, limits, clocks that jump, repeats."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.interaction.errors import InteractionError
from anp.interaction.triggers.subscription import EventSource, read_subscription
from anp.interaction.triggers.watch import Happening, Occasion, Watch
from tests.clauses import clause

EVERY = {"type": "time", "every": 10}
FAILED = {"type": "event", "event": "build.failed"}
HOME = {
    "type": "place",
    "circle": {"lat": 52.52, "lon": 13.405, "radius": 500},
    "subject": "van",
}


def watch(*triggers: dict[str, Any], **more: Any) -> Watch:
    """Return the machine of a subscription that was created at 1000."""
    found = read_subscription({"triggers": triggers, **more}, created=1000.0)
    return Watch(found, created=1000.0)


def fired(found: Watch, occasions: Sequence[Occasion], now: float) -> list[str]:
    """Fire them all; return the keys of those that no limit forbids."""
    firings = [found.fire(one, now=now) for one in occasions]
    found.settle()
    return [one.key for one in firings if one is not None]


def timed(found: Watch, now: float) -> list[float]:
    """Return the due times that fire until now, in seconds after 1000."""
    due = found.handle_timer(now=now)
    times = {one.key: one.at - 1000 for one in due}
    return [times[key] for key in fired(found, due, now)]


def told(
    found: Watch, type_: str, now: float, name: str = "", /, **data: Any
) -> list[str]:
    """Return the keys that a local event fires."""
    event = Happening(
        id=name or f"e-{now}",
        source=EventSource.LOCAL,
        type=type_,
        at=now,
        data=data,
        subject=str(data.get("subject", "")),
    )
    wanted = found.interested(event)
    return fired(found, found.observe(event, fits=wanted, now=now), now)


@clause("GBZ-63")
@pytest.mark.parametrize(
    ("missed", "late"),
    [("skip", [100]), ("once", [100]), ("all", [20, 30, 40, 50, 60, 70, 80, 90, 100])],
)
def test_missed_times(missed: str, late: list[float]) -> None:
    found = watch(EVERY, missed=missed)
    assert timed(found, 1010) == [10]
    assert timed(found, 1104) == late
    assert found.get_timer() == 1110


def test_skip_makes_up_for_nothing_that_is_late() -> None:
    found = watch({"type": "time", "every": 100}, missed="skip")
    assert timed(found, 1111) == []
    assert timed(found, 1210) == [200]


def test_one_gap_of_several_triggers_is_one_start() -> None:
    found = watch(EVERY, {"type": "time", "every": 15}, missed="once")
    assert timed(found, 1100) == [100]
    found = watch(EVERY, {"type": "time", "every": 15}, missed="all")
    assert timed(found, 1030) == [10, 15, 20, 30]


def test_a_long_gap_is_done_in_portions_and_loses_nothing() -> None:
    found = watch({"type": "time", "every": 1}, missed="all")
    seen: list[float] = []
    while (found.get_timer() or 0) <= 1950:
        portion = timed(found, 1950)
        assert 0 < len(portion) <= 100
        seen += portion
    assert seen == list(range(1, 951))


@clause("GBZ-63")
def test_a_clock_that_is_set_back_fires_nothing_twice() -> None:
    found = watch(EVERY, missed="all")
    assert timed(found, 1025) == [10, 20]
    assert timed(found, 900) == []
    assert timed(found, 1025) == []
    assert timed(found, 1030) == [30]
    assert found.get_timer() == 1040


def test_an_event_starts_it_once() -> None:
    found = watch(FAILED)
    assert told(found, "build.failed", 1001, "b-1") == ["local/b-1"]
    assert told(found, "build.failed", 1002, "b-1") == []
    assert told(found, "build.passed", 1003, "b-2") == []
    # Also when the machine was dropped meanwhile.
    again = Watch(
        read_subscription({"triggers": [FAILED]}, created=1000.0),
        created=1000.0,
        state=json.loads(json.dumps(found.state)),
    )
    assert told(again, "build.failed", 1004, "b-1") == []
    assert again.runs == 1


def test_all_triggers_within_a_window() -> None:
    found = watch(EVERY, FAILED, match="all", window=5, missed="all")
    assert told(found, "build.failed", 1002) == []
    assert timed(found, 1010) == []
    assert told(found, "build.failed", 1012, "b") == ["local/b"]
    # Each counts once.
    assert told(found, "build.failed", 1013) == []


@pytest.mark.parametrize("when", ["enter", "leave"])
def test_a_place_is_entered_and_left(when: str) -> None:
    found = watch({**HOME, "when": when})
    inside, outside = {"lat": 52.5203, "lon": 13.4049}, {"lat": 52.6, "lon": 13.4}
    # The first position says where it is, and crosses nothing.
    for now, where in enumerate((inside, outside, outside, inside, inside), start=1001):
        keys = told(found, "position", now, subject="van", **where)
        crossed = {1002: "leave", 1004: "enter"}.get(now)
        assert bool(keys) is (crossed == when), now
    # Another one's position, and none at all.
    assert told(found, "position", 1010, subject="car", **outside) == []
    assert told(found, "position", 1011, subject="van", lat="x", lon=1) == []


def test_a_polygon_across_the_180th_meridian() -> None:
    corners = [[10, 170], [10, -170], [-10, -170], [-10, 170]]
    found = watch({"type": "place", "polygon": corners})
    assert told(found, "position", 1001, lat=0, lon=160) == []
    assert told(found, "position", 1002, lat=0, lon=179.9) != []
    assert told(found, "position", 1003, lat=0, lon=-179.9) == []
    assert told(found, "position", 1004, lat=20, lon=-179.9) == []
    assert told(found, "position", 1005, lat=5, lon=-179.9) != []


def test_it_ends_by_its_limits() -> None:
    found = watch(EVERY, maxRuns=2, missed="all")
    assert timed(found, 1095) == [10, 20]
    assert (found.ended, found.get_timer()) == ("max_runs", None)
    found = watch(EVERY, expires="1970-01-01T00:17:15Z", missed="all")
    assert timed(found, 1012) == [10]
    assert timed(found, 1036) == []
    assert found.ended == "expired"
    found = watch({"type": "time", "at": "1970-01-01T00:16:50Z"})
    assert timed(found, 1010) == [10]
    assert found.ended == "done"


def test_debounce_starts_nothing_for_a_while() -> None:
    found = watch(FAILED, debounce=5)
    assert told(found, "build.failed", 1001) != []
    assert told(found, "build.failed", 1005.9) == []
    assert told(found, "build.failed", 1006) != []
    # A clock that was set back holds up nothing.
    assert told(found, "build.failed", 500) != []


def test_states_of_tasks_and_events_of_peers() -> None:
    def event(source: EventSource, type_: str, subject: str, **more: Any) -> Happening:
        return Happening(
            id="1", source=source, type=type_, at=1.0, subject=subject, **more
        )

    any_task = watch({"type": "event", "state": "failed"})
    one_task = watch({"type": "event", "state": "failed", "taskId": "t-1"})
    peer = watch({"type": "event", "event": "alarm", "sender": "did:key:z1"})
    anybody = watch({"type": "event", "event": "alarm", "sender": "*"})
    task = event(EventSource.TASK, "failed", "t-1")
    other = event(EventSource.TASK, "failed", "t-2")
    # Subscriptions do not start each other for ever.
    derived = event(EventSource.TASK, "failed", "t-1", derived=True)
    alarm = event(EventSource.PEER, "alarm", "did:key:z1")
    stranger = event(EventSource.PEER, "alarm", "did:key:z2")
    local = event(EventSource.LOCAL, "alarm", "did:key:z1")
    for found, meant in (
        (any_task, [task, other]),
        (one_task, [task, derived]),
        (peer, [alarm]),
        (anybody, [alarm, stranger]),
    ):
        told_ = [task, other, derived, alarm, stranger, local]
        assert [one for one in told_ if found.interested(one)] == meant


@pytest.mark.parametrize(
    "given_",
    [
        {},
        {"triggers": []},
        {"triggers": [EVERY] * 17},
        {"triggers": [{}]},
        {"triggers": [{"type": "time"}]},
        {"triggers": [{"type": "time", "every": 0.5}]},
        {"triggers": [{"type": "time", "every": True}]},
        {"triggers": [{"type": "time", "every": 5, "cron": "* * * * *"}]},
        {"triggers": [{"type": "time", "at": "2026-01-01"}]},
        {"triggers": [{"type": "event"}]},
        {"triggers": [{"type": "event", "event": "a", "state": "failed"}]},
        {"triggers": [{"type": "event", "event": "a", "taskId": "t"}]},
        {"triggers": [{"type": "place"}]},
        {"triggers": [{"type": "place", "circle": {"lat": 91, "lon": 0, "radius": 1}}]},
        {"triggers": [{"type": "place", "polygon": [[0, 0], [1, 1]]}]},
        {"triggers": [EVERY], "match": "some"},
        {"triggers": [EVERY], "window": 5},
        {"triggers": [EVERY], "maxRuns": 0},
        {"triggers": [EVERY], "condition": "x > 3"},
        {"triggers": [EVERY], "surprise": 1},
    ],
)
def test_what_is_wrong_is_refused(given_: dict[str, Any]) -> None:
    with pytest.raises(InteractionError):
        read_subscription(given_, created=0.0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["triggers", "type", "at", "every", "cron", "zone", "circle"]
                )
                | st.text(max_size=5),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(value: Any) -> None:
    with contextlib.suppress(InteractionError):
        read_subscription(value, created=0.0)
