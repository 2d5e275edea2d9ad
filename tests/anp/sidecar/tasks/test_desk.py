"""The rate of strangers, and who has something unfinished."""

from __future__ import annotations

from anp.sidecar.tasks.desk import Pace
from sandbox.pool.shares import OWNER, Rank, Share


def test_strangers_of_one_address_are_taken_more_slowly_and_no_others() -> None:
    now = 0.0
    pace = Pace(burst=10, rate=2, clock=lambda: now)
    one, other = (Share(Rank.COMMON, name) for name in ("one", "other"))
    assert [pace.wait(one) for _ in range(10)] == [0.0] * 10
    assert pace.wait(one) == 0.5
    # Who waits as it is told is never told to wait longer.
    for _ in range(20):
        now += 0.5
        assert pace.wait(one) == 0.5
    assert pace.wait(other) == 0.0
    assert pace.wait(OWNER) == 0.0
    assert {pace.wait(Share(Rank.LISTED, "did")) for _ in range(100)} == {0.0}
    now += 60
    assert pace.wait(one) == 0.0
