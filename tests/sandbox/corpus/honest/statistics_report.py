# kind: statistics over measurements
"""Summaries of measurement series."""

import math
import statistics
from collections import Counter
from fractions import Fraction
from statistics import StatisticsError, fmean, median, pstdev


def _clean(values: list) -> list[float]:
    return [float(v) for v in values if v is not None and not math.isnan(float(v))]


def summarise(series: dict[str, list]) -> dict[str, dict]:
    report = {}
    for name, raw in series.items():
        values = _clean(raw)
        try:
            report[name] = {
                "n": len(values),
                "mean": round(fmean(values), 3),
                "median": median(values),
                "stdev": round(pstdev(values), 3),
                "quartiles": [round(q, 2) for q in statistics.quantiles(values, n=4)],
                "range": max(values) - min(values),
            }
        except StatisticsError:
            report[name] = {"n": len(values), "error": "not enough data"}
    return report


def mode_of(words: list[str]) -> list:
    counts = Counter(words)
    (word, count), *_ = counts.most_common()
    return [word, count, sorted(statistics.multimode(words))]


def moving_average(values: list[float], window: int) -> list[float]:
    if not 0 < window <= len(values):
        raise ValueError(f"window must be in 1..{len(values)}, not {window}")
    sums, current = [], sum(values[:window])
    sums.append(current)
    for old, new in zip(values, values[window:]):
        current += new - old
        sums.append(current)
    return [total / window for total in sums]


def odds(wins: int, losses: int) -> str:
    share = Fraction(wins, wins + losses)
    return f"{share.numerator}/{share.denominator} = {float(share):.1%}"
