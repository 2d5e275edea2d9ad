"""The measuring program works; its ratios are for `make attacks` alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.kinds.catalogue import ATTACKS
from tests.attacks.measure import Measured, Run, Stage, percentile
from tests.attacks.table import findings, header, line, remarks
from tests.attacks.victim import Figures

HELD = Figures(
    memory=2**20, memory_below=0, processes=1, files=9, cpu=1.0, log=0, store=0
)


def run(*, quiet: float, during: float, waited: float = 0.1) -> Run:
    """Return a run in which every call took the same time."""
    arrival = {
        "way": "envelope",
        "seconds": waited,
        "served": waited < 5,
        "tries": 1,
        "trouble": "",
    }
    return Run(
        "made-up",
        quiet={"agreement": [quiet] * 100},
        calls={"agreement": [during] * 100},
        again={"agreement": [quiet] * 100},
        errors={},
        quiet_errors={},
        arrivals=[arrival],
        quiet_arrivals=[],
        before=HELD,
        after=HELD,
        done={"links": 3},
    )


def test_there_are_enough_attacks_and_each_says_what_it_does() -> None:
    assert len(ATTACKS) >= 25
    for name, attack in ATTACKS.items():
        assert name == attack.name
        assert attack.__doc__
        assert "\n" not in attack.__doc__
        assert attack.__doc__.endswith(".")


def test_the_rule_is_kept_at_its_limits_and_broken_one_past_them() -> None:
    assert findings(run(quiet=10, during=30, waited=5.0)) == []
    assert len(findings(run(quiet=10, during=30.1))) == 1
    assert len(findings(run(quiet=10, during=30, waited=5.1))) == 1


def test_a_run_is_one_line_below_the_titles() -> None:
    one = run(quiet=10, during=25, waited=7.0)
    assert "2.50" in line(one)
    assert ">7.00" in line(one)
    assert len(header().split()) > 10
    assert any("3 links" in text for text in remarks(one))


@pytest.mark.parametrize(
    ("share", "value"), [(1, 1), (50, 2), (51, 3), (99, 4), (100, 4)]
)
def test_a_percentile_is_one_of_the_values(share: float, value: float) -> None:
    assert percentile([4, 1, 3, 2], share) == value


def test_nothing_has_the_percentile_0() -> None:
    assert percentile([], 50) == 0.0


@pytest.mark.slow
async def test_two_attacks_are_measured(tmp_path: Path) -> None:
    measured = Measured(tmp_path, Stage(seconds=1.0, quiet=1.0, rate=10.0))
    await measured.start()
    try:
        for name in ("silent-sockets", "call-flood"):
            found = await measured.run(ATTACKS[name])
            assert not found.trouble
            assert found.done
            assert sum(map(len, found.calls.values())) == 10
            assert found.arrivals
            assert found.after.cpu > found.before.cpu
    finally:
        measured.end()
