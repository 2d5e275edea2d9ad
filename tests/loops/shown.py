"""A clause is shown by a test that passed, not by one that was skipped."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.clauses import unshown

PROPERTY = "clauses"
"Name under which the report of a test carries its clauses, also between processes."

NARROWING = (
    *("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf"),
    *("collectonly", "maxfail", "quick", "stepwise"),
)
"Options with which some tests do not run."


def is_whole_suite(config: pytest.Config) -> bool:
    """Return whether a run was asked for everything there is."""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not any(
        config.getoption(name, None) for name in NARROWING
    )


class ShownClauses:
    """Fails a run of the whole suite in which a clause was shown by no test."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._outcomes: dict[str, set[str]] = {}
        self._lines: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Let each report name the clauses of its test."""
        for item in items:
            ids = [name for mark in item.iter_markers("clause") for name in mark.args]
            if ids:
                item.user_properties.append((PROPERTY, ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of the outcome of a test, or of a set-up that came to nothing."""
        if report.when == "call" or report.outcome != "passed":
            self.take(dict(report.user_properties), report.outcome)

    def take(self, properties: Mapping[str, object], outcome: str) -> None:
        """Take note of one outcome."""
        names = properties.get(PROPERTY, ())
        assert isinstance(names, list | tuple)
        for name in names:
            self._outcomes.setdefault(name, set()).add(outcome)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail the run if a clause was not shown."""
        # With xdist, tests run in workers, and their reports come to us.
        if hasattr(session.config, "workerinput") or not self._whole:
            return
        if exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            self._lines = unshown(self._outcomes)
            if self._lines:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Name each clause that was not shown."""
        for line in self._lines:
            terminalreporter.write_line(line, red=True)
