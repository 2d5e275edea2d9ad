"""The measurements against agents made with the A2A library, with few calls."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.documents import ROOT
from tests.environments import side_python


@pytest.mark.slow
def test_updates_come_in_order_both_ways_and_each_layer_has_its_share() -> None:
    side_python("a2a")
    few = ("--updates", "20", "--rate", "200", "--rounds", "1")
    ended = subprocess.run(
        [sys.executable, "-m", "bench.updates", *few],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # The exit code tells about the goal, which a busy machine may miss.
    assert "every update came in order" in ended.stdout, ended.stderr
    assert ended.stdout.count("ms median") == 6
    assert "ratio of the medians" in ended.stdout


@pytest.mark.slow
def test_calls_through_the_face_are_compared_in_both_versions() -> None:
    side_python("a2a")
    ended = subprocess.run(
        [sys.executable, "-m", "bench.face", "--calls", "8", "--rounds", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.stdout.count("ratio of the times") == 4, ended.stderr
    assert ended.stdout.count("ms median") == 14
