"""Fork servers that are started before the daemon that uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.processes import launch
from sandbox.processes.process import ForkServer
from tests.sandbox.plain_worker import PLAIN
from tests.sandbox.processes.running import left_behind

ROOT = Path(__file__).resolve().parents[3]

FAILING = """
from sandbox.processes import launch
launch.launch_ahead()
print(*(one.process.pid for one in launch._ahead.values()), flush=True)
raise SystemExit(3)
"""


@pytest.mark.asyncio
async def test_a_server_started_ahead_serves_the_first_of_its_kind_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "AHEAD", (PLAIN,))
    launch.launch_ahead()
    early = launch._ahead[PLAIN].process.pid
    first, second = (
        ForkServer(PLAIN, memory=1 << 28, max_frame=1 << 20) for _ in range(2)
    )
    try:
        await first.start()
        await second.start()
        assert first.pid == early
        assert second.pid != early
        assert (await first.spawn()).alive
    finally:
        await first.close()
        await second.close()
    assert left_behind([early]) == []


def test_servers_that_nobody_takes_end_with_the_process_that_started_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 3
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == len(launch.AHEAD)
    assert left_behind(pids) == []
