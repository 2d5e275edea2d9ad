"""The demo, as `make demo` runs it ."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DEMO = [sys.executable, "-m", "anp", "demo", "--json"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give the demo a folder for its files, with a path that sockets can have."""
    path = Path(tempfile.mkdtemp(prefix="anpd-"))
    yield path
    shutil.rmtree(path)


@pytest.mark.slow
def test_the_demo_agrees_then_calls_and_then_repairs(folder: Path) -> None:
    done = subprocess.run(
        DEMO,
        env={**os.environ, "TMPDIR": str(folder), "ANPD_LISTEN__PORT": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    calls = document["calls"]
    first, second = calls[:4], calls[4:]
    assert len(second) == 4
    for before, after in zip(first, second, strict=True):
        assert (before["source"], after["source"]) == ("negotiated", "agreement")
        assert before["negotiation_messages"] > 0
        assert after["negotiation_messages"] == 0
        assert before["protocol"] == after["protocol"]
        assert before["llm_calls"] == after["llm_calls"] == 0
        assert before["ms"] > 0
        assert after["ms"] > 0
    assert first[0]["output"]["target"]["timezone"] == "Asia/Tokyo"
    assert first[1]["output"]["productId"] == "P12345"
    assert first[2]["output"]["text"].count("Commit: ") == 2
    for call in first:
        [cases] = [test["cases"] for test in call["tests"] if "cases" in test]
        assert cases["mode"] == "wire"
        assert len(cases["results"]) >= 2
        assert all(result["passed"] for result in cases["results"])
    # A wrong field was reported, accepted and repaired; each call booked once.
    repair = document["repair"]
    assert [call["negotiation_messages"] for call in repair["calls"]] == [0, 3, 0]
    assert [call["output"]["booking"] for call in repair["calls"]] == [1, 2, 3]
    assert repair["origin"] == "rules"
    assert list(folder.iterdir()) == []


def test_without_git_the_demo_says_so_in_one_line(folder: Path) -> None:
    done = subprocess.run(
        DEMO,
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 13
    assert done.stderr.count("\n") == 1
    assert "git" in done.stderr
    assert json.loads(done.stdout)["kind"] == "local_resource"
