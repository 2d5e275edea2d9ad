"""Needs that come once leave nothing behind at the daemon that calls."""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path

from anp.errors import CallError
from tests.e2e.house import house_in


async def test_a_lock_of_a_need_goes_when_nobody_waits_for_it(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        assert await house.call("twice", number=4) == {"twice": 8}
        for number in range(3):
            with contextlib.suppress(CallError):
                await house.call(f"nothing_{number}", number=4)
                raise AssertionError("it was called")
        gc.collect()
        # The latest error may still be held somewhere, with what its functions had.
        assert len(house.caller.caller._binder._locks) <= 1
