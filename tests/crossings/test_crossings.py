"""Some of the histories of `make crossings`."""

from __future__ import annotations

import pytest

from tests.crossings.history import tell


@pytest.mark.parametrize("seed", range(12))
def test_what_crosses_loses_nothing_and_stays_nowhere_at_work(seed: int) -> None:
    outcome = tell(seed)
    assert len(outcome.kinds) >= 2
    assert outcome.faults.total() >= 1
