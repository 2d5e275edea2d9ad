"""Calls over time: buckets, peers told apart, latencies, and what stays bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.config.settings import AccessLogConfig
from anp.sidecar.telemetry.call_entry import CallEntry
from anp.sidecar.telemetry.call_log import MAX_FAILED, CallLog
from anp.sidecar.telemetry.history import (
    MAX_PEERS,
    OTHERS,
    WINDOWS,
    History,
    HistoryView,
)
from cache.records.negotiations import ModelCallRecord

NOW = 1_700_000_000.0

GOOD = CallEntry(
    id="00", direction="served", at=NOW, ms=3.0, outcome="ok", peer="did:key:zA"
)


def seen(history: History, *, now: float = NOW) -> HistoryView:
    return history.view("hour", (), now=now, priced=False)


def test_calls_stand_in_the_minute_in_which_they_ended_and_by_peer() -> None:
    history = History()
    history.add(GOOD)
    history.add(replace(GOOD, direction="made", peer="did:key:zB", at=NOW - 60))
    history.add(replace(GOOD, outcome="timeout", count=5))
    found = seen(history)
    assert (found.step, len(found.points)) == WINDOWS["hour"]
    last, before = found.points[-1], found.points[-2]
    assert last.at <= NOW < last.at + 60
    assert (last.made, last.served, last.served_failed) == (0, 6, 5)
    assert (before.made, before.served) == (1, 0)
    assert [(one.peer, one.served, one.made) for one in found.peers] == [
        ("did:key:zA", 6, 0),
        ("did:key:zB", 0, 1),
    ]
    # A day shows the same calls, by quarters of an hour.
    day = history.view("day", (), now=NOW, priced=False)
    assert sum(one.served + one.made for one in day.points) == 7


def test_latencies_are_five_percent_off_at_most_and_of_good_calls_only() -> None:
    history = History()
    for ms in range(1, 101):
        history.add(replace(GOOD, ms=float(ms)))
    history.add(replace(GOOD, ms=90_000.0, outcome="timeout"))
    last = seen(history).points[-1]
    assert last.p50_ms is not None
    assert last.p95_ms is not None
    assert abs(last.p50_ms / 50 - 1) < 0.05
    assert abs(last.p95_ms / 95 - 1) < 0.05
    assert seen(history).points[-2].p50_ms is None


def test_many_peers_share_one_place_and_old_calls_leave() -> None:
    history = History()
    for number in range(MAX_PEERS + 20):
        history.add(replace(GOOD, peer=f"did:key:z{number}"))
    history.add(replace(GOOD, peer=None))
    found = seen(history)
    assert len(found.peers) == MAX_PEERS + 1
    assert found.peers[0].peer == OTHERS
    assert found.peers[0].served == 21
    # An hour later nothing of it is in the view, and the bucket goes.
    for minute in range(1, 62):
        history.add(replace(GOOD, at=NOW + 60 * minute))
    assert sum(one.served for one in seen(history, now=NOW + 3660).points) == 60
    history.add(GOOD)
    assert sum(one.served for one in seen(history).points) == 0


@given(st.lists(st.integers(-100_000, 100_000), max_size=200))
def test_any_order_of_times_keeps_the_buckets_in_order(moments: list[int]) -> None:
    history = History()
    for moment in moments:
        history.add(replace(GOOD, at=NOW + moment))
    for name, (step, count) in WINDOWS.items():
        found = history.view(name, (), now=NOW, priced=False)
        assert len(found.points) == count
        newest = sum(
            1 for one in moments if int(NOW + one + 0.003) // step == NOW // step
        )
        # The bucket of now is kept unless later ones filled all places.
        assert found.points[-1].served in {newest, 0}


def test_model_calls_of_the_ledger_stand_beside_the_calls() -> None:
    call = ModelCallRecord(
        id="one",
        day="2023-11-14",
        at=NOW - 60,
        account="owner",
        peer=None,
        negotiation_id=None,
        step="judge",
        model="some-model",
        outcome="ok",
        input_tokens=90,
        output_tokens=10,
        estimated=False,
        ms=1.0,
        cost=0.5,
    )
    old = replace(call, at=NOW - 9_000)
    found = History().view("hour", (call, old), now=NOW, priced=True)
    spent = [one for one in found.points if one.model_calls]
    assert [(one.model_calls, one.input_tokens, one.cost) for one in spent] == [
        (1, 90, 0.5)
    ]


async def test_the_log_counts_calls_without_a_line_and_those_before_a_start(
    tmp_path: Path,
) -> None:
    now = [NOW]

    def clock() -> float:
        return now[0]

    def log() -> CallLog:
        config = AccessLogConfig()
        return CallLog(tmp_path, config, clock=clock, monotonic=clock)

    first = log()
    for _ in range(MAX_FAILED + 7):
        first.add(replace(GOOD, outcome="policy"))
    found = seen(await first.history()).points[-1]
    assert found.served_failed == MAX_FAILED + 7
    await first.close()
    now[0] += 10
    second = log()
    second.add(replace(GOOD, at=now[0]))
    for _ in range(2):
        # Read once from the files: asking again counts nothing twice.
        found = seen(await second.history(), now=now[0]).points[-1]
    assert (found.served, found.served_failed) == (MAX_FAILED + 8, MAX_FAILED + 7)
