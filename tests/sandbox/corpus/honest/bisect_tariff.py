# kind: bisect look-up tables
"""Tariffs in steps: shipping by weight, tax brackets, grades."""

from bisect import bisect, bisect_left, bisect_right, insort
from itertools import accumulate, pairwise

WEIGHTS = [1.0, 5.0, 10.0, 30.0]
PRICES = [490, 690, 1290, 2490]
GRADES = "FDCBA"


def shipping(weight: float) -> int:
    """Return the price in cents."""
    index = bisect_left(WEIGHTS, weight)
    if weight <= 0 or index == len(WEIGHTS):
        raise ValueError(f"cannot ship {weight:g} kg")
    return PRICES[index]


def grade(score: int, breakpoints=(60, 70, 80, 90)) -> str:
    return GRADES[bisect(breakpoints, score)]


def income_tax(income: int, brackets: list[list]) -> float:
    """`brackets` are [upper limit or None, rate]; the last has no limit."""
    tax, lower = 0.0, 0
    for upper, rate in brackets:
        if upper is None or income <= upper:
            return round(tax + (income - lower) * rate, 2)
        tax += (upper - lower) * rate
        lower = upper
    raise AssertionError("the last bracket must be open")


def percentile_rank(values: list[float], value: float) -> float:
    ordered: list[float] = []
    for item in values:
        insort(ordered, item)
    return 100 * bisect_right(ordered, value) / len(ordered)


def weighted_pick(weights: dict[str, int], ticket: int) -> str:
    names, bounds = list(weights), list(accumulate(weights.values()))
    return names[bisect_right(bounds, ticket % bounds[-1])]


def gaps(values: list[int]) -> list[int]:
    return [b - a for a, b in pairwise(sorted(values))]
