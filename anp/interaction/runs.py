"""Sets of numbers as runs: the first and the last number of each, in turn."""

from __future__ import annotations

from collections.abc import Iterable


def runs_of(numbers: Iterable[int]) -> Iterable[int]:
    """Return the runs of some numbers: (3, 5, 9, 9) for 3, 4, 5 and 9."""
    first = before = None
    for number in sorted(numbers):
        if before is not None and number == before + 1:
            before = number
            continue
        if first is not None and before is not None:
            yield from (first, before)
        first = before = number
    if first is not None and before is not None:
        yield from (first, before)


def numbers_in(runs: tuple[int, ...]) -> Iterable[int]:
    """Return the numbers of some runs, in order."""
    for first, last in zip(runs[::2], runs[1::2], strict=True):
        yield from range(first, last + 1)
