"""A clause whose tests were all skipped is not shown, in one process or several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.clauses import IMPLEMENTED, unshown
from tests.documents import ROOT
from tests.environments import SIDE, side_python
from tests.loops.shown import is_whole_suite

CONFTEST = """
from tests.loops.shown import ShownClauses

def pytest_configure(config):
    config.addinivalue_line("markers", "clause(*ids): clauses")
    config.pluginmanager.register(ShownClauses(whole=True))
"""
SUITE = """
import pytest

@pytest.mark.clause("ANP-3")
@pytest.mark.skipif(True, reason="no environment")
def test_skipped(): pass

@pytest.mark.clause("ANP-3", "ANP-4")
def test_skipped_inside(): pytest.skip("no server")

@pytest.mark.clause("ANP-4")
def test_passed(): pass
"""


def test_a_clause_of_skipped_tests_is_not_shown() -> None:
    outcomes = {name: {"passed"} for name in IMPLEMENTED}
    assert unshown(outcomes) == []
    outcomes["ANP-5"] = {"passed", "skipped"}
    outcomes["ANP-6"] = {"failed"}
    assert unshown(outcomes) == []
    outcomes["ANP-7"] = {"skipped"}
    del outcomes["ENV-3"]
    assert [line.split()[0] for line in unshown(outcomes)] == ["ANP-7", "ENV-3"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_that_skipped_all_tests_of_a_clause_fails(
    tmp_path: Path, workers: str
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, "-c", "/dev/null", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout
    assert "1 passed, 2 skipped" in done.stdout
    assert "\nANP-3 was not shown" in done.stdout
    assert "ANP-4 " not in done.stdout


def config(source: pytest.Config.ArgsSource, **options: object) -> pytest.Config:
    """Return what a run was started with, as far as we look at it."""
    made = SimpleNamespace(args_source=source, getoption=options.get)
    return cast("pytest.Config", made)


def test_only_a_run_of_everything_has_to_show_all_clauses() -> None:
    everything = pytest.Config.ArgsSource.TESTPATHS
    assert is_whole_suite(config(everything, markexpr="", maxfail=0))
    assert not is_whole_suite(config(pytest.Config.ArgsSource.ARGS))
    for name, value in (("markexpr", "not slow"), ("keyword", "x"), ("maxfail", 1)):
        assert not is_whole_suite(config(everything, **{name: value}))


@pytest.mark.parametrize("name", SIDE)
def test_a_missing_environment_names_what_makes_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.environments.ROOT", tmp_path)
    with pytest.raises(pytest.skip.Exception, match=f"make {name}-env"):
        side_python(name)
    assert f"\n{name}-env: " in (ROOT / "Makefile").read_text("utf-8")
