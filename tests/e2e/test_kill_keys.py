"""Idempotency keys outlive a kill of the caller's daemon."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.daemons import Anpd, Ended

FUNCTION = """
import time
from pathlib import Path

FOLDER = Path({folder!r})


def pay(amount: int) -> int:
    with (FOLDER / "runs").open("a") as runs:
        print(amount, file=runs)
    while (FOLDER / "wait").exists():
        time.sleep(0.01)
    return amount
"""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    (tmp_path / "made.py").write_text(FUNCTION.format(folder=str(tmp_path)))
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    provider.ok(
        *("attach", "python", "made:pay", "--expose", "*", "--name", "p"),
        cwd=tmp_path,
    )
    provider.start()
    caller.start()
    yield caller, provider
    caller.kill()
    provider.kill()


def pay(caller: Anpd, provider: Anpd, amount: int, key: str) -> Ended:
    return caller.run(*words(provider, amount, key))


def words(provider: Anpd, amount: int, key: str) -> list[str]:
    data = json.dumps({"amount": amount})
    return [
        *("call", provider.address, "pay", "-d", data),
        *("--idempotency-key", key, "--json"),
    ]


def runs(folder: Path) -> list[str]:
    path = folder / "runs"
    return path.read_text().split() if path.exists() else []


def again(caller: Anpd) -> None:
    """Kill the caller's daemon and start it anew."""
    caller.kill()
    caller.start()


@pytest.mark.slow
def test_a_known_outcome_is_told_after_a_kill_and_nothing_runs_twice(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    first = pay(caller, provider, 1, "one")
    again(caller)
    second = pay(caller, provider, 1, "one")
    told: list[dict[str, Any]] = [first.json(), second.json()]
    print(f"\nruns {runs(tmp_path)}, outputs {[one.get('output') for one in told]}")
    assert runs(tmp_path) == ["1"]
    assert told[0] == told[1]
    # Another request with this key is refused, as before the kill.
    other = pay(caller, provider, 2, "one")
    assert (other.code, other.json()["kind"]) == (2, "usage")
    assert runs(tmp_path) == ["1"]


@pytest.mark.slow
def test_a_call_cut_off_by_a_kill_is_told_as_such_and_not_sent_again(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    assert pay(caller, provider, 1, "warm").code == 0
    (tmp_path / "wait").touch()
    home = str(caller.home)
    command = [sys.executable, "-m", "anp", "--home", home]
    with subprocess.Popen(
        [*command, *words(provider, 2, "two")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as calling:
        limit = time.monotonic() + 30
        while runs(tmp_path) != ["1", "2"]:
            assert time.monotonic() < limit
            time.sleep(0.01)
        caller.kill()
        cut, _ = calling.communicate(timeout=30)
    # The command cannot know it either.
    assert json.loads(cut)["may_have_run"] is True
    (tmp_path / "wait").unlink()
    caller.start()
    repeated = pay(caller, provider, 2, "two")
    print(f"\nruns {runs(tmp_path)}, {repeated.stderr}")
    assert runs(tmp_path) == ["1", "2"]
    problem = repeated.json()
    assert (problem["kind"], problem["may_have_run"]) == ("interrupted", True)
    # A key of its own runs it.
    assert pay(caller, provider, 2, "three").json()["output"] == {"result": 2}
