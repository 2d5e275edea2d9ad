"""The comparison of the soak and its rule of flatness; the run is `make soak`."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.soak.ledger import Ledger, compare
from tests.soak.provider import read_notes
from tests.soak.samples import RULES, Rule, Sample, rows_of, trend
from tests.soak.trouble import KILLS, Trouble, plan

RUN = {"call": "c1", "run": "r1", "value": 3, "repeatable": False}
TOLD = {"call": "c1", "run": "r1", "answer": "21"}
ASKED = {"call": "c1", "asked": "a.note_0"}


def one(told: dict[str, Any], *written: dict[str, Any]) -> Ledger:
    """Compare one call."""
    return compare([ASKED, {"call": "c1", **told}], written)


def test_a_result_that_was_written_down_is_no_fault() -> None:
    ledger = one({"told": TOLD}, RUN)
    assert (ledger.asked, ledger.told, ledger.runs, ledger.faults) == (1, 1, 1, 0)


def test_a_result_that_nobody_wrote_down_is_lost() -> None:
    assert one({"told": TOLD}).lost == 1


@pytest.mark.parametrize(
    "told", [{**TOLD, "run": "r2"}, {**TOLD, "answer": "22"}, {}, None, [TOLD]]
)
def test_a_result_of_no_run_is_invented(told: Any) -> None:
    assert one({"told": told}, RUN).invented == 1


def test_a_second_run_is_doubled_unless_it_may_be_repeated() -> None:
    second = {**RUN, "run": "r2"}
    assert one({"told": TOLD}, RUN, second).doubled == 1
    both = [{**run, "repeatable": True} for run in (RUN, second)]
    ledger = one({"told": TOLD}, *both)
    assert (ledger.doubled, ledger.repeated, ledger.faults) == (0, 1, 0)


def test_an_error_may_say_not_run_only_of_what_did_not_run() -> None:
    error = {"error": "timeout: no", "may_have_run": False}
    assert one(error).faults == 0
    assert one(error, RUN).denied == 1
    told = one({**error, "may_have_run": True}, RUN)
    assert (told.faults, told.may_have_run, told.did_run) == (0, 1, 1)


def test_a_call_whose_caller_was_killed_is_open() -> None:
    ledger = compare([ASKED], [RUN])
    assert (ledger.open, ledger.faults) == (1, 0)


def test_a_line_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    assert list(read_notes(path)) == []
    path.write_bytes(b'{"call": "c1"}\n{"call": ')
    assert list(read_notes(path)) == [{"call": "c1"}]


def samples(*values: float) -> list[Sample]:
    """Return one sample a second in which every figure has the same value."""
    return [
        Sample(at, value, value, value, value, value, value)
        for at, value in enumerate(values)
    ]


@pytest.mark.parametrize("rule", RULES[:-1], ids=lambda rule: rule.figure)
def test_growth_in_the_first_half_alone_is_flat(rule: Rule) -> None:
    level = [100.0] * 50
    assert trend(rule, samples(*range(50), *level), 100).flat
    grows = [100.0 + 2 * number for number in range(50)]
    found = trend(rule, samples(*level, *grows), 100)
    assert not found.flat
    assert found.second == pytest.approx(98.0)
    assert found.peak == 198.0


def test_the_log_may_grow_on_as_fast_as_before() -> None:
    [rule] = [rule for rule in RULES if rule.figure == "log"]
    steady = [float(number) for number in range(100)]
    assert trend(rule, samples(*steady), 100).flat
    faster = [*range(50), *(50 + 2 * number for number in range(50))]
    assert not trend(rule, samples(*faster), 100).flat


def test_the_daemon_is_killed_in_the_first_third_only() -> None:
    events = plan(900.0)
    kills = [event for event in events if event.trouble is Trouble.KILL_DAEMON]
    assert len(kills) == len(KILLS)
    assert all(event.at < 900 / 3 for event in kills)
    assert all(first.at <= second.at for first, second in pairwise(events))
    assert {event.trouble for event in plan(20.0)} == set(Trouble)


def test_what_was_taken_away_is_attached_again() -> None:
    comes = [Trouble.DETACH, Trouble.ATTACH]
    order = [event.trouble for event in plan(120.0) if event.trouble in comes]
    assert order == comes * (len(order) // 2)


def test_a_store_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert rows_of(tmp_path) == 0


@pytest.mark.slow
async def test_a_short_run_finds_no_call_that_was_told_what_is_not_so() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.soak", "--seconds", "15", "--calls", "20"),
        *("--agreements", "4", "--peers", "4"),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(200):
        printed, _ = await process.communicate()
    text = printed.decode()
    for fault in ("lost", "doubled", "invented"):
        assert f"       0  {fault}\n" in text, text
