"""A locked worker can do next to nothing, even with the language layer off."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandbox.errors import SandboxError
from sandbox.frames import pack
from sandbox.lock.lockdown import (
    UNTESTED,
    Isolation,
    Layer,
    Lock,
    LockDownError,
    level_of,
)
from sandbox.processes.process import ForkServer, measure_isolation
from sandbox.processes.self_test import self_test
from sandbox.processes.worker_process import WorkerProcess
from tests.sandbox.plain_worker import PLAIN

MEMORY = 256 * 1024 * 1024

ROOT = Path(__file__).resolve().parents[3]

IS_ROOT = os.geteuid() == 0

linux = pytest.mark.skipif(sys.platform != "linux", reason="the locks are Linux's")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain() -> AsyncIterator[ForkServer]:
    """A fork server whose workers run any source."""
    server = ForkServer(PLAIN, memory=MEMORY, max_frame=1 << 20)
    await server.start()
    yield server
    await server.close()


async def _run(server: ForkServer, source: str) -> Any:
    worker = await server.spawn()
    try:
        return (await worker.ask({"source": source}, deadline=10))["value"]
    finally:
        worker.kill("the test is over")


def _proc(worker: WorkerProcess, name: str) -> str:
    return Path(f"/proc/{worker.pid}/{name}").read_text()


ORDINARY = {
    "open": "open('/etc/hostname')",
    "open for writing": "open('/dev/null', 'w')",
    "open of its own memory": "open('/proc/self/mem', 'r+b')",
    "list": "os.listdir('/')",
    "descriptor again": "os.dup(3)",
    "stat": "os.stat('/')",
    "lstat": "os.lstat('/')",
    "fstat": "os.fstat(0)",
    "readlink": "os.readlink('/proc/self/exe')",
    "getcwd": "os.getcwd()",
    "statvfs": "os.statvfs('/')",
    "ioctl": "os.get_terminal_size(0)",
    "seek": "os.lseek(0, 0, 0)",
    "uname": "os.uname()",
    "sleep": "time.sleep(0.001)",
    "rusage": "resource.getrusage(resource.RUSAGE_SELF)",
    "rlimit": "resource.setrlimit(resource.RLIMIT_CPU, (10, 10))",
    "handler": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "affinity": "os.sched_getaffinity(0)",
}


@linux
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ORDINARY)
async def test_what_libraries_ask_by_the_way_is_an_ordinary_error(
    plain: ForkServer, name: str
) -> None:
    value = await _run(plain, f"return {ORDINARY[name]} and None")
    assert value in {"PermissionError 13", "OSError 13", "ValueError None"}


FORBIDDEN = {
    "TCP": "socket.socket()",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "unix socket": "socket.socket(socket.AF_UNIX)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socketpair": "socket.socketpair()",
    "descriptor passing": "socket.send_fds(channel, [b'x'], [0])",
    "descriptor receiving": "socket.recv_fds(channel, 1, 1)",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/true', ['true'])",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "signal 0": "os.kill(1, 0)",
    "signal to itself": "os.kill(os.getpid(), signal.SIGTERM)",
    "signal to all": "os.kill(-1, signal.SIGTERM)",
    "unlink": "os.unlink('/tmp/nothing')",
    "make a directory": "os.mkdir('/tmp/nothing')",
    "rename": "os.rename('/tmp/nothing', '/tmp/other')",
    "chmod": "os.chmod('/tmp', 0o777)",
    "chdir": "os.chdir('/tmp')",
    "chroot": "os.chroot('/')",
    "pipe": "os.pipe()",
    "dup": "os.dup2(3, 4)",
    "memfd": "os.memfd_create('x')",
    "session": "os.setsid()",
    "user": "os.setuid(0)",
    "nice": "os.nice(-5)",
    "timer": "signal.setitimer(signal.ITIMER_REAL, 1)",
    "pidfd": "os.pidfd_open(1)",
    "prctl": "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)",
    "ptrace": "ctypes.CDLL(None).ptrace(16, 1, 0, 0)",
    "a number beyond all": "ctypes.CDLL(None).syscall(100_000)",
    "Landlock again": "ctypes.CDLL(None).syscall(444, 0, 0, 1)",
    "io_uring": "ctypes.CDLL(None).syscall(425, 1, 0)",
}


@linux
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", FORBIDDEN)
async def test_what_no_module_needs_ends_the_worker_as_forbidden(
    plain: ForkServer, name: str
) -> None:
    with pytest.raises(SandboxError) as caught:
        await _run(plain, FORBIDDEN[name])
    assert caught.value.outcome == "forbidden_syscall"
    assert "asked the kernel" in caught.value.reason


@linux
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is of x86-64 only")
async def test_an_x32_call_ends_the_worker_as_forbidden(plain: ForkServer) -> None:
    with pytest.raises(SandboxError) as caught:
        await _run(plain, "ctypes.CDLL(None).syscall(0x40000000 + 39)")
    assert caught.value.outcome == "forbidden_syscall"


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_memory_can_be_had_but_never_be_executed(plain: ForkServer) -> None:
    rwx = "mmap.mmap(-1, 4096, prot=7)"
    assert await _run(plain, f"return {rwx}") == "PermissionError 1"
    rw = "mmap.mmap(-1, 4096, prot=3)"
    protect = f"""
area = {rw}
area[:4] = b'abcd'
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
refused = libc.mprotect(ctypes.c_void_p(address), 4096, 5), ctypes.get_errno()
return [*refused, libc.mprotect(ctypes.c_void_p(address), 4096, 1)]
"""
    assert await _run(plain, protect) == [-1, 1, 0]


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_what_honest_code_asks_of_the_kernel_works(plain: ForkServer) -> None:
    source = """
import datetime, hashlib, json, random, secrets, uuid, unicodedata, decimal
import xml.etree.ElementTree as tree
hashlib.sha256(b'x' * 100_000).hexdigest(); hashlib.sha3_256(b''); hashlib.blake2b(b'')
datetime.datetime.strptime('2020-01-02', '%Y-%m-%d'); datetime.datetime.now()
time.time(); time.monotonic(); time.localtime(); random.random(); secrets.token_hex(4)
uuid.uuid4(); unicodedata.name('a'); decimal.Decimal('1.1') + 1
int('7' * 4000) ** 20; len(b'x' * 50_000_000); print('to nowhere')
texts = [
    'ä'.encode(name).decode(name)
    for name in ('utf-16-be', 'utf-32', 'latin-1', 'cp1252', 'gb18030', 'UTF-7')
]
texts += ['中'.encode(name).decode(name) for name in ('big5', 'gbk', 'shift_jis')]
'bücher.example'.encode('idna')
tree.fromstring("<?xml version='1.0' encoding='iso-8859-1'?><a><b/></a>")
return ''.join(texts)
"""
    assert await _run(plain, source) == "ä" * 6 + "中" * 3


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_an_unknown_encoding_or_module_is_an_ordinary_error(
    plain: ForkServer,
) -> None:
    assert await _run(plain, "'a'.encode('nope')") == "LookupError None"
    missing = await _run(plain, "import ftplib")
    assert missing in {"ModuleNotFoundError None", "PermissionError 13"}


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_the_kernel_says_that_the_worker_is_locked_when_spawn_returns(
    plain: ForkServer,
) -> None:
    worker = await plain.spawn()
    lines = _proc(worker, "status").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Threads"] == "1"
    if IS_ROOT:
        assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
        assert status["Groups"].strip() == ""
    # No power is left but what a new user namespace could give, which is refused.
    assert {status[name] for name in ("CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    fields = _proc(worker, "stat").rpartition(")")[2].split()
    # Fields 3, 6 and 19 of proc(5): state comes first here.
    assert fields[3] == str(worker.pid)
    # Ten less pressing than we are ourselves, down to the last one.
    assert fields[16] == str(min(os.nice(0) + 10, 19))
    assert _proc(worker, "oom_score_adj").strip() == "1000"
    worker.kill("the test is over")


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_the_limits_are_those_of_the_design(plain: ForkServer) -> None:
    worker = await plain.spawn()
    limits = {}
    for line in _proc(worker, "limits").splitlines()[1:]:
        limits[line[:26].strip()] = line[26:].split()[:2]
    for name in ("file size", "processes", "core file size", "locked memory"):
        assert limits[f"Max {name}"] == ["0", "0"]
    assert limits["Max msgqueue size"] == ["0", "0"]
    assert limits["Max open files"] == ["8", "8"]
    assert limits["Max cpu time"] == ["3600", "3601"]
    soft, hard = map(int, limits["Max address space"])
    assert soft == hard
    assert MEMORY < soft < 2 * MEMORY
    worker.kill("the test is over")


@linux
@pytest.mark.skipif(not IS_ROOT, reason="a locked worker can be inspected by root only")
@pytest.mark.asyncio(loop_scope="module")
async def test_it_holds_four_descriptors_and_no_memory_to_write_and_execute(
    plain: ForkServer,
) -> None:
    others = [await plain.spawn() for _ in range(3)]
    worker = await plain.spawn()
    links = f"/proc/{worker.pid}/fd"
    targets = {int(n): os.readlink(f"{links}/{n}") for n in os.listdir(links)}
    assert targets.keys() == {0, 1, 2, 3}
    assert targets[0] == targets[1] == "/dev/null"
    assert targets[2].startswith("pipe:")
    assert targets[3].startswith("socket:")
    assert os.readlink(f"/proc/{worker.pid}/cwd") == "/"
    rights = [line.split()[1] for line in _proc(worker, "maps").splitlines()]
    assert rights
    assert not [one for one in rights if "w" in one and "x" in one]
    for one in (worker, *others):
        one.kill("the test is over")


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_it_sees_no_environment(plain: ForkServer) -> None:
    assert await _run(plain, "return dict(os.environ)") == {}
    libc = "ctypes.CDLL(None)"
    seen = await _run(
        plain, f"{libc}.getenv.restype = None; return {libc}.getenv(b'A')"
    )
    assert not seen


@linux
@pytest.mark.skipif(IS_ROOT, reason="root may inspect every process")
@pytest.mark.asyncio(loop_scope="module")
async def test_a_user_cannot_look_into_its_own_locked_worker(
    plain: ForkServer,
) -> None:
    worker = await plain.spawn()
    with pytest.raises(PermissionError):
        _proc(worker, "maps")
    worker.kill("the test is over")


@linux
async def test_all_layers_are_active_on_this_machine() -> None:
    isolation = await measure_isolation()
    assert isolation.level in {"full", "full-no-landlock"}
    inactive = {name for name, active, _ in isolation.layers if not active}
    assert inactive <= ({"landlock"} if IS_ROOT else {"landlock", "uid"})
    words = {name: text for name, _, text in isolation.layers}
    expected = "nobody" if IS_ROOT else "not root: nothing to drop"
    assert expected in words["uid"]


@linux
@pytest.mark.parametrize(
    ("without", "level"),
    [
        (["seccomp"], "reduced"),
        (["landlock"], "full-no-landlock"),
        (["seccomp", "landlock"], "reduced"),
    ],
)
async def test_a_missing_layer_is_reported_and_lowers_the_level(
    without: list[str], level: str
) -> None:
    isolation = await measure_isolation(without=without)
    assert isolation.level == level
    inactive = {name for name, active, _ in isolation.layers if not active}
    assert set(without) <= inactive


@linux
@pytest.mark.parametrize("without", ["seccomp", "landlock"])
async def test_each_of_the_two_locks_alone_keeps_files_closed(
    without: str,
) -> None:
    server = ForkServer(PLAIN, memory=MEMORY, max_frame=1 << 20, without=[without])
    await server.start()
    try:
        active = {name for name, on, _ in server.isolation.layers if on}
        if not active & {"seccomp", "landlock"}:
            pytest.skip("this kernel has only one of them")
        assert await _run(server, "open('/etc/hostname')") == "PermissionError 13"
    finally:
        await server.close()


def _in_child(function: Callable[[], object]) -> int:
    """Return the exit status of a child: 0, or 7 for a LockDownError."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        except LockDownError:
            status = 7
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@linux
@pytest.mark.parametrize("layer", ["seccomp", "landlock"])
def test_a_worker_that_lacks_a_layer_the_machine_has_is_not_unlocked_but_ended(
    layer: str,
) -> None:
    lock = Lock(without=[layer])

    def close(*required: str) -> None:
        lock.close(memory=1 << 30, cpu_seconds=10, required=required)

    assert _in_child(lambda: close(layer)) == 7
    assert _in_child(close) == 0


@linux
def test_a_worker_whose_fork_server_is_gone_is_ended() -> None:
    lock = Lock()

    def orphan() -> None:
        # Its parent is not the process that prepared the lock.
        status = _in_child(lambda: lock.close(memory=1 << 30, cpu_seconds=10))
        os._exit(status)

    assert _in_child(orphan) == 7


def _layers(**inactive: str) -> list[Layer]:
    names = ("process", "rlimits", "no-new-privs", "landlock", "seccomp", "uid")
    return [(name, name.replace("-", "_") not in inactive, "") for name in names]


@pytest.mark.parametrize(
    ("missing", "level"),
    [
        ({}, "full"),
        ({"uid": ""}, "full"),
        ({"landlock": ""}, "full-no-landlock"),
        ({"seccomp": ""}, "reduced"),
        ({"no_new_privs": ""}, "reduced"),
        ({"rlimits": ""}, "reduced"),
        ({"seccomp": "", "landlock": ""}, "reduced"),
    ],
)
def test_the_level_follows_from_the_layers(missing: dict[str, str], level: str) -> None:
    assert level_of(_layers(**missing)).level == level


def test_before_any_test_the_level_is_the_lowest() -> None:
    assert UNTESTED.level == "reduced"


def _tested(
    *, gentle: dict[str, str], lethal: int, beneath: dict[str, str]
) -> Isolation:
    """Return what the self-test says of workers that end and answer like this."""
    ours: dict[str, str] = {}

    def run(
        probe: Callable[[socket.socket, int], None], *, without_filter: bool
    ) -> tuple[int, bytes]:
        status = lethal if ours else 0
        answers = beneath if without_filter else {} if ours else gentle
        ours.update(gentle)
        locked = pack({"locked": _layers()})
        return status, locked + (pack(answers) if status == 0 or answers else b"")

    return self_test(run)


GOOD = {"open": "EACCES", "stat": "EACCES", "executable memory": "EPERM"}


@pytest.mark.parametrize(
    ("gentle", "lethal", "beneath", "level"),
    [
        (GOOD, -signal.SIGSYS, {"open": "EACCES"}, "full"),
        (GOOD, 0, {"open": "EACCES"}, "reduced"),
        (GOOD, -signal.SIGKILL, {"open": "EACCES"}, "reduced"),
        (GOOD | {"open": "allowed"}, -signal.SIGSYS, {"open": "EACCES"}, "reduced"),
        (GOOD | {"stat": "ENOENT"}, -signal.SIGSYS, {"open": "EACCES"}, "reduced"),
        ({}, -signal.SIGSYS, {"open": "EACCES"}, "reduced"),
        (GOOD, -signal.SIGSYS, {"open": "allowed"}, "full-no-landlock"),
        (GOOD, -signal.SIGSYS, {}, "full-no-landlock"),
    ],
)
def test_a_lock_that_the_kernel_took_but_does_not_hold_does_not_count(
    gentle: dict[str, str], lethal: int, beneath: dict[str, str], level: str
) -> None:
    assert _tested(gentle=gentle, lethal=lethal, beneath=beneath).level == level


USER = """
import asyncio, os
from sandbox.errors import SandboxError
from sandbox.processes.process import ForkServer


async def main():
    server = ForkServer(
        "tests.sandbox.plain_worker:serve", memory=1 << 28, max_frame=1 << 20
    )
    await server.start()
    inactive = sorted(name for name, on, _ in server.isolation.layers if not on)
    print(os.geteuid(), server.isolation.level, ",".join(inactive))
    for source in ("open('/etc/hostname')", "os.fork()", "socket.socket()"):
        worker = await server.spawn()
        try:
            print((await worker.ask({"source": source}, deadline=10))["value"])
        except SandboxError as exc:
            print(exc.outcome)
    await server.close()


asyncio.run(main())
"""


@linux
@pytest.mark.skipif(not IS_ROOT, reason="the other tests run as an ordinary user now")
def test_an_ordinary_user_without_capabilities_gets_the_same_lock() -> None:
    try:
        done = subprocess.run(
            [sys.executable, "-c", USER],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd=ROOT,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    except PermissionError:
        pytest.skip(f"an ordinary user may not run {sys.executable}")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.split()[0] == "65534"
    assert first.split()[1] in {"full", "full-no-landlock"}
    assert rest == ["PermissionError 13", "forbidden_syscall", "forbidden_syscall"]


@linux
@pytest.mark.asyncio(loop_scope="module")
async def test_memory_ends_where_its_limit_is(plain: ForkServer) -> None:
    source = f"return len(b'x' * {MEMORY + (16 << 20)})"
    assert await _run(plain, source) == "MemoryError None"
    assert await _run(plain, f"return len(b'x' * {MEMORY // 2})") == MEMORY // 2


def test_the_limits_of_this_process_are_untouched() -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0
