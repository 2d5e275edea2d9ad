"""Nothing stays behind a daemon that was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.sandbox.processes.running import left_behind

PARENT = """
import asyncio, os
from sandbox.pool.pool import Sandbox
from sandbox.pool.validation import SchemaValidator


async def main():
    sandbox, validator = Sandbox(), SchemaValidator()
    await sandbox.start()
    await validator.start()
    idle = await sandbox.load("idle", "x = 1", origin="rules")
    source = "def spin():\\n    while True:\\n        pass\\n"
    busy = await sandbox.load("busy", source, origin="rules")
    await validator.validate({"pattern": "a"}, "a")
    spinning = asyncio.create_task(busy.call("spin", deadline=60))
    await asyncio.sleep(0.05)
    checkers = [validator._quick._seats[0].worker.pid]
    servers = [sandbox._backend._process.pid, validator._server._process.pid]
    print(idle.worker.pid, busy.worker.pid, *checkers, *servers, flush=True)
    await spinning


asyncio.run(main())
"""

ROOT = Path(__file__).resolve().parents[3]


def test_workers_and_fork_servers_end_when_the_daemon_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT
    )
    try:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
    finally:
        parent.kill()
        parent.communicate()
    assert len(pids) == 5
    assert left_behind(pids) == []
