"""Due times of cron in zones whose clocks change, and of repetitions."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from anp.interaction.errors import InteractionError
from anp.interaction.triggers.schedule import At, Cron, Every, dues, last_due
from tests.anp.interaction.triggers.cron_years import walk
from tests.clauses import clause


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def shown(schedule: Cron, begin: str, end: str) -> list[str]:
    """Return what the wall shows at the due times, with the offset."""
    zone = ZoneInfo(schedule.zone)
    return [
        datetime.fromtimestamp(due, zone).isoformat(timespec="minutes")
        for due in dues(
            schedule, after=at(begin, schedule.zone), until=at(end, schedule.zone)
        )
    ]


@clause("GBZ-63")
def test_a_fixed_time_runs_once_on_days_whose_clocks_change() -> None:
    job = Cron("30 2 * * *", "Europe/Berlin")
    assert shown(job, "2026-03-29T00:00", "2026-03-30T00:00") == [
        "2026-03-29T03:00+02:00"
    ]
    assert shown(job, "2026-10-25T00:00", "2026-10-26T00:00") == [
        "2026-10-25T02:30+02:00"
    ]


def test_a_star_follows_the_clock_on_the_wall() -> None:
    job = Cron("*/30 2 * * *", "Europe/Berlin")
    assert shown(job, "2026-03-29T00:00", "2026-03-30T00:00") == []
    assert shown(job, "2026-10-25T00:00", "2026-10-26T00:00") == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
    ]


def test_a_change_of_half_an_hour_loses_no_due_time() -> None:
    zone = "Australia/Lord_Howe"
    found = shown(Cron("0 */5 * * *", zone), "2026-10-04T00:00", "2026-10-04T12:00")
    assert found == ["2026-10-04T05:00+11:00", "2026-10-04T10:00+11:00"]
    # The library alone leaves out five o'clock, which is why it sees no change here.
    alone = CronSim("0 */5 * * *", datetime(2026, 10, 4, tzinfo=ZoneInfo(zone)))
    assert next(alone).hour == 10


def test_what_was_done_in_the_first_of_two_equal_hours_is_not_due_again() -> None:
    job = Cron("50 1 * * *", "America/New_York")
    second = datetime(2026, 11, 1, 1, 45, fold=1, tzinfo=ZoneInfo("America/New_York"))
    due = job.next_due(second.timestamp())
    assert due == at("2026-11-02T01:50", "America/New_York")


def test_repetitions_count_from_their_beginning() -> None:
    every = Every(1.5, start=100.0)
    assert list(dues(every, after=100.0, until=105.0)) == [101.5, 103.0, 104.5]
    assert last_due(every, after=100.0, until=10_000_000.0) == 10_000_000.0
    assert every.next_due(0.0) == 101.5
    assert last_due(every, after=103.0, until=104.0) is None


def test_one_moment_is_due_once() -> None:
    assert list(dues(At(5.0), after=4.0, until=9.0)) == [5.0]
    assert last_due(At(5.0), after=5.0, until=9.0) is None


def test_the_last_of_a_year_of_minutes_is_found_at_once() -> None:
    begin, end = at("2025-01-01T00:00"), at("2026-01-01T00:00")
    assert last_due(Cron("* * * * *"), after=begin, until=end) == end
    leap = Cron("0 0 29 2 *")
    found = last_due(leap, after=begin, until=at("2030-01-01T00:00"))
    assert found == at("2028-02-29T00:00")


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("", "UTC"),
        ("* * * *", "UTC"),
        ("61 * * * *", "UTC"),
        ("0 0 31 2 *", "UTC"),
        ("x", "UTC"),
        ("0 0 * * L-", "UTC"),
        ("1,2/ * * * *", "UTC"),
        ("* * * * *", "Mars/Olympus"),
        ("* * * * *", "../../etc/passwd"),
        ("* * * * *", "/etc/localtime"),
    ],
)
def test_what_is_no_cron_expression_or_zone_is_refused(
    expression: str, zone: str
) -> None:
    with pytest.raises(InteractionError):
        Cron(expression, zone).check()


@clause("GBZ-63")
@pytest.mark.parametrize("missed", ["all", "once"])
@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("30 2 * * *", "Europe/Berlin"),
        ("0 */11 * * *", "Australia/Lord_Howe"),
    ],
)
def test_two_years_with_kills_and_gaps(expression: str, zone: str, missed: str) -> None:
    found = walk(expression, zone, missed, seed=2)
    assert found.kills > 20
    assert found.gaps > 5
    assert max(found.stored.values()) == 1
    assert (found.lost, found.wrong) == (0, 0)
