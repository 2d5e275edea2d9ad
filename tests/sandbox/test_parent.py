"""Nothing stays behind a daemon that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

PARENT = """
import asyncio, os
from sandbox.pool import Sandbox
from sandbox.validation import SchemaValidator


async def main():
    sandbox, validator = Sandbox(), SchemaValidator()
    await sandbox.start()
    await validator.start()
    idle = await sandbox.load("idle", "x = 1", origin="rules")
    source = "def spin():\\n    while True:\\n        pass\\n"
    busy = await sandbox.load("busy", source, origin="rules")
    await validator.validate(True, 1)
    spinning = asyncio.create_task(busy.call("spin", deadline=60))
    await asyncio.sleep(0.05)
    checkers = [worker.pid for worker in validator._workers]
    servers = [sandbox._server._process.pid, validator._server._process.pid]
    print(idle.worker.pid, busy.worker.pid, *checkers, *servers, flush=True)
    await spinning


asyncio.run(main())
"""

ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 15.0
"Seconds until a process that stays counts as left behind."


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
    until = time.monotonic() + PATIENCE
    while (left := [pid for pid in pids if _runs(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == []


def _runs(pid: int) -> bool:
    """Return whether a process is there; one that only waits to be reaped is not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
