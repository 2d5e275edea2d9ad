"""Memory, files, workers, rows and log over time, and the rule of flatness."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

MOST_GROWTH = 0.05
"Part of its mean by which a figure may grow over the second half."

MOST_LOG = 1.25
"The log may grow so many times as fast in the second half as in the first."


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of one moment."""

    at: float
    "Seconds since the start."

    memory: float
    "Resident memory of the daemon, in MiB."

    memory_below: float
    "That of all processes below it, in MiB."

    files: float
    "Open files of the daemon."

    workers: float
    "Processes below it."

    rows: float
    "Rows of its store."

    log: float
    "Its log in KiB."


@dataclass(frozen=True, slots=True)
class Rule:
    """How flat a figure has to be in the second half."""

    figure: str
    "Name of a field of `Sample`."

    floor: float
    "Growth that is nothing, in the unit of the figure."


RULES = (
    Rule("memory", 6.0),
    Rule("memory_below", 30.0),
    Rule("files", 10.0),
    Rule("workers", 4.0),
    Rule("rows", 10.0),
    Rule("log", 0.0),
)


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure over the run."""

    figure: str
    "Its name."

    first: float
    "Growth over the first half by a straight line through it."

    second: float
    "Growth over the second half."

    peak: float
    "The largest value of all."

    mean: float
    "Mean of the second half."

    allowed: float
    "Growth that the rule allows in the second half."

    @property
    def flat(self) -> bool:
        """True if the rule is kept."""
        return self.second <= self.allowed


def trend(rule: Rule, samples: Sequence[Sample], seconds: float) -> Trend:
    """Return how a figure moved, by least squares over each half.

    In the second half it may grow by 5 % of its mean, plus the part of its scatter
    that a straight line leaves; a log may not grow faster than in the first half.
    """
    points = [(one.at, float(getattr(one, rule.figure))) for one in samples]
    halves = [
        [point for point in points if point[0] < seconds / 2],
        [point for point in points if point[0] >= seconds / 2],
    ]
    (first, _), (second, scatter) = (_line(half) for half in halves)
    values = [value for _, value in halves[1]] or [0.0]
    mean = fmean(values)
    allowed = max(MOST_GROWTH * mean, rule.floor) + scatter
    if rule.figure == "log":
        allowed = MOST_LOG * max(first, 1.0)
    peak = max((value for _, value in points), default=0.0)
    return Trend(rule.figure, first, second, peak, mean, allowed)


def rows_of(store: Path) -> int:
    """Return how many rows a store has; 0 if it cannot be read now."""
    place = store / "cache.db"
    if not place.exists():
        return 0
    try:
        database = sqlite3.connect(f"file:{place}?mode=ro", uri=True, timeout=5)
        try:
            return int(database.execute("SELECT count(*) FROM Cache").fetchone()[0])
        finally:
            database.close()
    except sqlite3.Error:
        return 0


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the growth of the line through points, and the scatter around it."""
    if len(points) < 3:
        return 0.0, 0.0
    times, values = zip(*points, strict=True)
    middle, mean = fmean(times), fmean(values)
    spread = sum((at - middle) ** 2 for at in times)
    slope = sum((at - middle) * (value - mean) for at, value in points) / spread
    scatter = pstdev([v - mean - slope * (at - middle) for at, v in points])
    return slope * (times[-1] - times[0]), scatter
