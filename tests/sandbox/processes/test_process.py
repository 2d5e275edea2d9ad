"""Workers and their fork server: how each end is told, and what stays behind."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandbox.errors import SandboxError
from sandbox.lock.lockdown import UNTESTED
from sandbox.processes.launch import Control, Message, control_pair
from sandbox.processes.process import ForkServer
from sandbox.processes.worker_process import Ending, WorkerProcess
from tests.sandbox.plain_worker import PLAIN, UNLOCKED

MEMORY = 256 * 1024 * 1024


def _server(kind: str = PLAIN, **changes: Any) -> ForkServer:
    return ForkServer(kind, **{"memory": MEMORY, "max_frame": 1 << 20} | changes)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain() -> AsyncIterator[ForkServer]:
    """A fork server whose workers run any source."""
    server = _server()
    await server.start()
    yield server
    await server.close()


async def _end(server: ForkServer, source: str, deadline: float = 20) -> SandboxError:
    worker = await server.spawn()
    with pytest.raises(SandboxError) as caught:
        await worker.ask({"source": source}, deadline=deadline)
    assert not worker.alive
    return caught.value


@pytest.mark.parametrize(
    ("status", "cpu", "outcome", "reason"),
    [
        (-signal.SIGXCPU, 60.0, "timeout", "60 CPU seconds"),
        (-signal.SIGKILL, 60.0, "timeout", "60 CPU seconds"),
        (-signal.SIGKILL, 59.9, "crashed", "SIGKILL"),
        (-signal.SIGSEGV, 0.0, "crashed", "SIGSEGV"),
        (-signal.SIGABRT, 0.0, "crashed", "SIGABRT"),
        (-60, 0.0, "crashed", "signal 60"),
        (0, 0.0, "crashed", "status 0"),
        (7, 0.0, "crashed", "status 7"),
    ],
)
def test_each_end_has_its_outcome(
    status: int, cpu: float, outcome: str, reason: str
) -> None:
    error = Ending(status, cpu, "").error(60)
    assert error.outcome == outcome
    assert reason in error.reason


@pytest.mark.skipif(sys.platform != "linux", reason="SIGSYS of a filter is Linux's")
def test_a_worker_ended_by_the_filter_is_told_as_forbidden_not_as_crashed() -> None:
    assert Ending(-signal.SIGSYS, 0.0, "").error(60).outcome == "forbidden_syscall"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("ctypes.string_at(0)", "it was ended by SIGSEGV"),
        ("os._exit(3)", "it ended itself with status 3"),
        ("os._exit(0)", "it ended itself with status 0"),
        ("raise SystemExit", "it ended itself with status 1"),
    ],
)
async def test_a_crash_names_its_signal_or_status(
    plain: ForkServer, source: str, reason: str
) -> None:
    failure = await _end(plain, source)
    assert (failure.outcome, failure.reason) == ("crashed", reason)


@pytest.mark.slow
async def test_the_cpu_limit_ends_a_spinning_worker_as_a_timeout() -> None:
    server = _server(cpu_seconds=1)
    await server.start()
    try:
        failure = await _end(server, "while True: pass", deadline=60)
        assert (failure.outcome, failure.limit) == ("timeout", 1)
        assert failure.used is not None
        assert failure.used > 0.5
        # One that blocks the signal has a second more.
        mask = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXCPU])"
        failure = await _end(server, f"{mask}\nwhile True: pass", deadline=60)
        assert (failure.outcome, failure.limit) == ("timeout", 1)
    finally:
        await server.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_worker_that_closes_its_channel_and_lives_on_is_killed(
    plain: ForkServer,
) -> None:
    worker = await plain.spawn()
    source = "channel.close()\nwhile True: pass"
    with pytest.raises(SandboxError) as caught:
        await worker.ask({"source": source}, deadline=20)
    assert caught.value.outcome == "crashed"
    assert caught.value.reason == "the worker closed its channel"
    await _gone(worker.pid)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_crashed_worker_said_is_logged_cut_and_quoted(
    plain: ForkServer, caplog: pytest.LogCaptureFixture
) -> None:
    said = "os.write(2, b'\\x1b[2Jlast words ' + b'x' * 1000)\nos._exit(1)"
    with caplog.at_level(logging.WARNING, "sandbox.processes.worker_process"):
        await _end(plain, said)
    [record] = caplog.records
    message = record.getMessage()
    assert "last words" in message
    assert "\x1b" not in message
    assert len(message) < 300


@pytest.mark.asyncio(loop_scope="module")
async def test_a_flood_on_standard_error_neither_blocks_nor_is_kept(
    plain: ForkServer,
) -> None:
    flood = """
lost = 0
for _ in range(1000):
    try:
        os.write(2, b'x' * 4096)
    except BlockingIOError:
        lost += 1
return lost
"""
    worker = await plain.spawn()
    reply = await worker.ask({"source": flood}, deadline=20)
    assert reply["value"] >= 900
    worker.kill("the test is over")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_that_waited_for_a_crashed_worker_ends_as_collateral(
    plain: ForkServer,
) -> None:
    worker = await plain.spawn()
    first = worker.ask({"source": "os._exit(3)"}, deadline=20)
    second = worker.ask({"source": "return 1"}, deadline=20)
    ends = await asyncio.gather(first, second, return_exceptions=True)
    errors = [end for end in ends if isinstance(end, SandboxError)]
    assert [error.collateral for error in errors] == [False, True]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cancelled_request_ends_its_worker(plain: ForkServer) -> None:
    worker = await plain.spawn()
    source = "while True: pass"
    waiting = asyncio.create_task(worker.ask({"source": source}, deadline=20))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not worker.alive
    await _gone(worker.pid)


async def test_a_worker_that_cannot_be_locked_dies_and_spawn_raises() -> None:
    # No limit is that high.
    server = _server(memory=1 << 70)
    await server.start()
    try:
        with pytest.raises(SandboxError, match="could not be locked"):
            await server.spawn()
        await _no_children(server)
    finally:
        await server.close()


async def test_a_worker_that_ends_after_its_lock_was_locked() -> None:
    server = _server(UNLOCKED)
    await server.start()
    try:
        worker = await server.spawn()
        with pytest.raises(SandboxError) as caught:
            await worker.ask({"source": ""}, deadline=20)
        assert caught.value.reason == "it ended itself with status 0"
    finally:
        await server.close()


async def test_isolation_is_the_lowest_before_the_start_and_measured_after() -> None:
    server = _server()
    assert server.isolation == UNTESTED
    await server.start()
    try:
        assert server.isolation != UNTESTED
    finally:
        await server.close()


async def test_two_hundred_workers_leave_no_descriptor_zombie_or_process() -> None:
    server = _server()
    await server.start()
    try:
        # The first brings what stays: buffers, files that are read once.
        await _settle(server)
        before = _descriptors(os.getpid()), _descriptors(_pid(server))
        pids = []
        for number in range(200):
            worker = await server.spawn()
            pids.append(worker.pid)
            if number % 4 == 0:
                # Some end by themselves, with words.
                source = "os.write(2, b'bye')\nos._exit(1)"
                await asyncio.gather(
                    worker.ask({"source": source}, deadline=20),
                    return_exceptions=True,
                )
            worker.kill("the test is over")
        await _settle(server)
        assert (_descriptors(os.getpid()), _descriptors(_pid(server))) == before
        assert not server._spawning
        assert [pid for pid in pids if _runs(pid)] == []
    finally:
        await server.close()


async def test_a_cancelled_spawn_leaves_no_descriptor_and_no_process() -> None:
    server = _server()
    await server.start()
    try:
        await _settle(server)
        before = _descriptors(os.getpid()), _descriptors(_pid(server))
        for steps in range(12):
            spawning = asyncio.create_task(server.spawn())
            for _ in range(steps):
                await asyncio.sleep(0.0005)
            spawning.cancel()
            [worker] = await asyncio.gather(spawning, return_exceptions=True)
            if isinstance(worker, WorkerProcess):
                worker.kill("the test is over")
        await _settle(server)
        assert (_descriptors(os.getpid()), _descriptors(_pid(server))) == before
    finally:
        await server.close()


async def test_a_dead_fork_server_takes_its_workers_along_and_comes_back() -> None:
    server = _server()
    await server.start()
    try:
        worker = await server.spawn()
        source = "while True: pass"
        waiting = asyncio.create_task(worker.ask({"source": source}, deadline=20))
        await asyncio.sleep(0.05)
        os.kill(_pid(server), signal.SIGKILL)
        with pytest.raises(SandboxError) as caught:
            await waiting
        assert caught.value.outcome == "crashed"
        await _gone(worker.pid)
        other = await server.spawn()
        reply = await other.ask({"source": "return 5"}, deadline=20)
        assert reply["value"] == 5
    finally:
        await server.close()


async def test_after_close_there_is_no_spawn_and_no_process() -> None:
    server = _server()
    await server.start()
    worker = await server.spawn()
    pid = _pid(server)
    await server.close()
    await _gone(worker.pid)
    await _gone(pid)
    with pytest.raises(SandboxError, match="closed"):
        await server.spawn()


def test_control_messages_are_found_in_a_stream_with_their_descriptors() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    sender, receiver = Control(ours), Control(theirs)
    reading, writing = os.pipe()
    sender.send({"n": 1})
    sender.send({"n": 2, "text": "a\nb" * 100}, reading)
    sender.send({"n": 3})
    messages: list[Message] = []
    while len(messages) < 3:
        messages += receiver.receive()
    assert [message["n"] for message, _ in messages] == [1, 2, 3]
    descriptor = messages[1][1]
    assert descriptor is not None
    assert not os.get_inheritable(descriptor)
    os.write(writing, b"x")
    assert os.read(descriptor, 1) == b"x"
    sender.close()
    with pytest.raises(EOFError):
        receiver.receive()
    receiver.close()
    for fd in (reading, writing, descriptor):
        os.close(fd)


def test_a_control_socket_closes_descriptors_that_nobody_took() -> None:
    ours, theirs = control_pair()
    sender, receiver = Control(ours), Control(theirs)
    before = _descriptors(os.getpid())
    with open(os.devnull) as null:
        # A descriptor without its message: the other end died in between.
        socket.send_fds(ours, [b'{"half'], [null.fileno()])
    assert receiver.receive() == []
    assert _descriptors(os.getpid()) == before + 1
    receiver.close()
    sender.close()
    assert _descriptors(os.getpid()) == before - 2


def _pid(server: ForkServer) -> int:
    assert server._process is not None
    return server._process.pid


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


async def _no_children(server: ForkServer) -> None:
    """Wait until the fork server has no child, not even one that waits for it."""
    pid = _pid(server)
    await _until(lambda: not _read(f"/proc/{pid}/task/{pid}/children").strip())


async def _settle(server: ForkServer) -> None:
    """Wait until the fork server has done all that was asked, and no worker is left."""
    # It answers one after the other, also those that nobody waits for any more; and it
    # reports an end when it has closed everything of that worker.
    (await server.spawn()).kill("the last one")
    await _until(lambda: not server._endings)
    await _no_children(server)


async def _gone(pid: int) -> None:
    """Wait until a process has ended; its reaper may be slow."""
    await _until(lambda: not _runs(pid))


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(4000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen")


def _runs(pid: int) -> bool:
    stat = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(stat) and stat[0] != "Z"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
