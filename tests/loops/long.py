"""Tests of which `make test` runs a part that covers, and `make test-long` all."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pytest
from _pytest.mark import ParameterSet

LONG: Final = pytest.mark.long
"Marks what only `make test-long` runs."


def crossed(
    rows: Collection[str], columns: Collection[str], *, one_of: int
) -> list[ParameterSet]:
    """Return each row with each column; all but one of so many are marked as long.

    What is left has every row and every column, with others in each.
    """
    return [
        pytest.param(row, column, marks=[LONG] if other % one_of else [])
        for number, row in enumerate(rows)
        for other, column in enumerate(columns, number)
    ]


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests, unless `-m` or an id asks for them."""
    by_id = any("::" in one for one in config.args)
    if by_id or "long" in config.getoption("markexpr"):
        return
    found = [one for one in items if one.get_closest_marker("long") is not None]
    if found:
        config.hook.pytest_deselected(items=found)
        items[:] = [one for one in items if one.get_closest_marker("long") is None]
