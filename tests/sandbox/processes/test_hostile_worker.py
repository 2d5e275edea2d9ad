"""The daemon survives a worker that sends anything at all."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SandboxError
from sandbox.frames import pack
from sandbox.pool.config import SandboxConfig
from sandbox.pool.module import Module
from sandbox.pool.pool import Sandbox
from sandbox.processes.process import ForkServer
from sandbox.processes.worker_process import Conversation, WorkerProcess
from tests.sandbox.processes.hostile_worker import HOSTILE, TRICKS
from tests.sandbox.processes.running import left_behind


async def _forged(answer: bytes) -> tuple[SandboxError, WorkerProcess]:
    """Return how a call ends when its worker answers `answer`."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", "input()", stdin=asyncio.subprocess.PIPE
    )
    ours, theirs = socket.socketpair()
    try:
        conversation = await Conversation.over(ours, max_frame=10_000)
        await asyncio.to_thread(theirs.sendall, pack({"locked": []}))
        worker = WorkerProcess(child.pid, conversation, max_frame=10_000)
        await worker.locked()
        sandbox = Sandbox()
        module = sandbox._modules["key"] = Module(
            sandbox, "key", "", code="", protocol="key", peer=""
        )
        module.worker = worker
        calling = asyncio.create_task(module.call("f", deadline=5))
        # Only what follows a question is an answer.
        await asyncio.to_thread(theirs.recv, 65_536)
        await asyncio.to_thread(theirs.sendall, answer)
        with pytest.raises(SandboxError) as caught:
            await calling
        async with asyncio.timeout(10):
            assert await child.wait() == -signal.SIGKILL
        return caught.value, worker
    finally:
        theirs.close()
        if child.returncode is None:
            child.kill()
        await child.communicate()


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xff\xff\xff",
        struct.pack(">I", 10_001),
        struct.pack(">I", 0),
        struct.pack(">II", 6, 2) + b"{}",
        struct.pack(">II", 6, 99) + b"{}",
        pack([1]),
        pack({"id": 2, "value": 1}),
        pack({"value": 1}),
        pack({"id": 1}),
        pack({"id": 1, "failed": "x"}),
        pack({"id": 1, "failed": {"outcome": []}}),
        pack({"id": 1, "failed": {"outcome": "forbidden", "reason": "x"}}),
        pack({"id": 1, "wanted": "look_up"}),
    ],
)
async def test_garbage_ends_the_worker_and_the_call_as_bad_frame(answer: bytes) -> None:
    failure, worker = await _forged(answer)
    assert failure.outcome == "bad_frame"
    assert not worker.alive


async def test_a_report_cannot_carry_control_characters_or_great_length() -> None:
    reason: Any = "\x1b[2J" + "x" * 3_000
    report = {"outcome": "memory", "reason": reason, "line": "x"}
    failure, _ = await _forged(pack({"id": 1, "failed": report}))
    assert failure.reason.isprintable()
    assert len(failure.reason) == 2_000
    assert failure.line is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads a locked process")
async def test_a_worker_holds_no_descriptor_but_its_own_even_beside_many(
    sandbox: Sandbox,
) -> None:
    # More than 256 of ours push the control socket of a new fork server high.
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(300)]
    other = Sandbox()
    try:
        await other.start()
        module = await other.load("key", "x = 1\n", origin="rules")
        assert module.worker is not None
        links = f"/proc/{module.worker.pid}/fd"
        assert sorted(os.listdir(links)) == ["0", "1", "2", "3"]
        assert [os.readlink(f"{links}/{n}") for n in range(2)] == ["/dev/null"] * 2
        assert os.readlink(f"{links}/2").startswith("pipe:")
        assert _environment(module.worker.pid) == b"LANG=C.UTF-8\0"
    finally:
        await other.close()
        for fd in held:
            os.close(fd)


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def _outcome(call: Awaitable[Any]) -> str:
    try:
        await call
    except SandboxError as exc:
        return exc.outcome
    return "ok"


@pytest.mark.parametrize("trick", TRICKS)
async def test_a_hostile_worker_costs_one_worker_and_harms_nobody(trick: str) -> None:
    backend = ForkServer(HOSTILE, memory=1 << 28, max_frame=1 << 20)
    sandbox = Sandbox(SandboxConfig(), backend=backend)
    await sandbox.start()
    try:
        bad = await sandbox.load("bad", "", origin="model")
        good = await sandbox.load("good", "", origin="model")
        first, other = bad.worker, good.worker
        outcomes = TRICKS[trick][1]
        # Long enough for a busy machine; only those that say nothing wait for it.
        deadline = 1.0 if "timeout" in outcomes else 30
        outcome = await _outcome(bad.call(trick, deadline=deadline))
        assert outcome in outcomes
        assert await good.call("echo", "still here", deadline=10) == "still here"
        assert good.worker is other
        assert first is not None
        assert await asyncio.to_thread(left_behind, [first.pid]) == []
        assert await bad.call("echo", "a new one", deadline=10) == "a new one"
        assert bad.worker is not first
    finally:
        await sandbox.close()
