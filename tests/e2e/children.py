"""The Python children of daemons, as forks of processes that have imported their code.

Each daemon starts the processes in which halves and schemas run, and one for each
attached Python function; nearly all of their CPU time goes into importing. Here one
process for each kind of command line imports it once (this file, run as a program),
and forks: each fork takes over arguments, environment, folder and descriptors, and
goes on where the interpreter would begin. It is a process like any other from then on,
but for its parent. What cannot be forked so is started as ever, and so is everything
in the tests of those processes themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

MAX_MESSAGE: Final = 1 << 20
"Bytes of one order; a source that is longer is started as ever."

HIGH: Final = 512
"What a child gets has a lower descriptor."

MOST: Final = 4096
"No parent has a higher one."

FLAGS: Final = ("-I", "-B")
"Options of the interpreter: the sandbox's children have the first, with `-c`."

PASSED_OVER: Final = frozenset({"PYTHONDONTWRITEBYTECODE"})
"Variables that change nothing for these command lines."


class Child:
    """A child; the part of `asyncio.subprocess.Process` that daemons use."""

    def __init__(self, pid: int, told: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout: asyncio.StreamReader | None = None
        self._told = told
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(told.fileno(), self._hear)

    async def wait(self) -> int:
        """Wait for the end and return the exit code."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; ProcessLookupError when it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def _hear(self) -> None:
        # When the parent is gone the child may live on, but nobody is told of its end.
        data = b""
        with contextlib.suppress(OSError):
            data = self._told.recv(MAX_MESSAGE)
        self._loop.remove_reader(self._told.fileno())
        self._told.close()
        self.returncode = int(data or b"-9")
        self._ended.set()


class Launched:
    """The same of a child that is started without asyncio; as `subprocess.Popen`."""

    def __init__(self, pid: int, told: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            with self._told:
                self.returncode = int(self._told.recv(MAX_MESSAGE) or b"-9")
        return self.returncode

    def kill(self) -> None:
        """End it with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)


class _Parents:
    """The processes that fork, one for each kind; they start when they are needed."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str]
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> dict[str, str]:
        """Start them, and return the paths of their sockets by their flag."""
        if not self._processes:
            self._folder = tempfile.TemporaryDirectory(prefix="anpd-")
            for flag in FLAGS:
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
                    listening.bind(f"{self._folder.name}/{flag[1:]}")
                    listening.listen(64)
                    self._processes.append(_start(flag, listening.fileno()))
        return {flag: f"{self._folder.name}/{flag[1:]}" for flag in FLAGS}

    def close(self) -> None:
        """End them; what they forked is left alone."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)
        if self._processes:
            self._folder.cleanup()
        self._processes.clear()


parents: Final = _Parents()
"Those of this process."


def close() -> None:
    """End those of this process, if there are any."""
    parents.close()


def _start(flag: str, listening: int) -> subprocess.Popen[bytes]:
    load = f"import runpy; runpy.run_path({__file__!r}, run_name='parent')"
    return subprocess.Popen(
        [sys.executable, flag, "-c", f"{load}['serve']({listening}, {flag!r})"],
        # Its end is the end of whoever started it, however that ends.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=[listening],
    )


@contextlib.contextmanager
def forked(paths: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """Have asyncio and the sandbox fork the children of daemons for a block.

    Args:
        paths: Returns what `parents.start` does.
    """
    # Imported here: this file is no part of what it preloads.
    launch: Any = importlib.import_module("sandbox.processes.launch")
    before, popen = asyncio.create_subprocess_exec, launch.Popen

    def start(words: list[str], **options: Any) -> Any:
        options = {"stderr": None, **options}
        if not _can_fork(words, options):
            return popen(words, **options)
        pid, told, _ = _fork(paths()[words[1]], words, options)
        return Launched(pid, told)

    async def create(*command: Any, **options: Any) -> Any:
        words = [os.fspath(one) for one in command]
        if not _can_fork(words, options):
            return await before(*command, **options)
        return await _forked(paths()[words[1]], words, options)

    asyncio.create_subprocess_exec = create
    launch.Popen = start
    try:
        yield
    finally:
        asyncio.create_subprocess_exec = before
        launch.Popen = popen


def _can_fork(words: Sequence[str], options: dict[str, Any]) -> bool:
    """Return whether it is a command line as daemons have them for their children."""
    is_ours = len(words) > 2 and words[0] == sys.executable and words[1] in FLAGS
    streams = (options.get("stdin"), options.get("stdout"), options.get("stderr"))
    env = options.get("env")
    return (
        is_ours
        and streams
        in (
            (subprocess.DEVNULL, subprocess.DEVNULL, None),
            (subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT),
        )
        and options.get("start_new_session", False)
        and (words[1] == "-I") == (words[2] == "-c")
        and all(one < HIGH for one in options.get("pass_fds", ()))
        and env is not None
        and not any(one.startswith("PYTHON") for one in env.keys() - PASSED_OVER)
        and sum(map(len, words)) < MAX_MESSAGE // 2
    )


async def _forked(path: str, words: list[str], options: dict[str, Any]) -> Child:
    pid, told, reading = _fork(path, words, options)
    child = Child(pid, told)
    if reading >= 0:
        child.stdout = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(child.stdout)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: protocol, os.fdopen(reading, "rb", 0))
    return child


def _fork(
    path: str, words: list[str], options: dict[str, Any]
) -> tuple[int, socket.socket, int]:
    """Return the pid of a new child, what tells its end, and its output or -1."""
    cwd = options.get("cwd")
    order = {
        "command": words[2:],
        "cwd": str(Path.cwd() if cwd is None else cwd),
        "env": options["env"],
        "numbers": list(options.get("pass_fds", ())),
    }
    if not os.path.isdir(order["cwd"]):
        raise FileNotFoundError(2, "No such file or directory", order["cwd"])
    told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.ExitStack() as stack:
        undo = stack.enter_context(contextlib.ExitStack())
        undo.callback(told.close)
        told.connect(path)
        nothing = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, nothing)
        reading = -1
        output, errors = nothing, 2
        if options["stdout"] == subprocess.PIPE:
            reading, output = os.pipe()
            undo.callback(os.close, reading)
            stack.callback(os.close, output)
            errors = output
        given = [nothing, output, errors, *order["numbers"]]
        socket.send_fds(told, [json.dumps(order).encode()], given)
        # A fork takes no longer than that of `subprocess`, which waits as well.
        pid = int(told.recv(MAX_MESSAGE))
        undo.pop_all()
    return pid, told, reading


# From here on it runs in the processes that fork.


def serve(listening: int, flag: str) -> None:
    """Fork on orders; return in each new process when its command line has run.

    Args:
        listening: Descriptor of the socket on which the orders come.
        flag: The kind of command lines.
    """
    _preload(flag)
    order = _Server(listening).run()
    script, *arguments = order["command"]
    if script == "-c":
        code, *arguments = arguments
        run = compile(code, "<string>", "exec")
        sys.argv[:] = ["-c", *arguments]
        found = {}
    else:
        run = _code_of(script)
        sys.argv[:] = [script, *arguments]
        sys.path.insert(0, str(Path(script).parent))
        found = {"__file__": script}
    module = types.ModuleType("__main__")
    vars(module).update(found, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    exec(run, vars(module))  # the program itself


_codes: dict[str, types.CodeType] = {}


def _code_of(script: str) -> types.CodeType:
    if script not in _codes:
        _codes[script] = compile(Path(script).read_bytes(), script, "exec")
    return _codes[script]


def _preload(flag: str) -> None:
    root = str(Path(__file__).parents[2])
    # What `-c` puts in front is no part of the command lines to come.
    sys.path[:] = [root, *filter(None, sys.path)]
    if flag == "-I":
        _measure(importlib.import_module("sandbox.processes.forkserver"))
        importlib.import_module("sandbox.worker.worker")
        importlib.import_module("sandbox.worker.schema_worker")
    else:
        runner = Path(root, "anp", "sidecar", "attachments", "python", "runner.py")
        runpy.run_path(str(runner), run_name="preloaded")
        _code_of(str(runner))
    sys.path.remove(root)
    gc.collect()
    gc.freeze()


def _measure(forkserver: Any) -> None:
    """Test once for all fork servers how this machine isolates workers."""
    control, other = importlib.import_module("sandbox.processes.launch").control_pair()
    with control, other:
        isolation = forkserver._Server(control, "module", ())._test()
    forkserver.self_test = lambda run: isolation


class _Server:
    """Takes orders and forks, and tells the ends of what it forked."""

    def __init__(self, listening: int) -> None:
        self._listening = socket.socket(fileno=listening)
        self._told: dict[int, socket.socket] = {}
        self._waking, self._waker = os.pipe()
        for one in (self._waking, self._waker):
            os.set_blocking(one, False)
        signal.set_wakeup_fd(self._waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> dict[str, Any]:
        """Return the order in each fork."""
        while True:
            listening = self._listening.fileno()
            ready, _, _ = select.select([0, self._waking, listening], [], [])
            if 0 in ready:
                os._exit(0)
            if self._waking in ready:
                os.read(self._waking, 4096)
                self._reap()
            if listening in ready:
                told, _ = self._listening.accept()
                data, descriptors, _, _ = socket.recv_fds(told, MAX_MESSAGE, 16)
                order: dict[str, Any] = json.loads(data)
                pid = os.fork()
                if pid == 0:
                    # Its number may become that of something that the child gets.
                    told.detach()
                    self._become(order, descriptors)
                    return order
                for one in descriptors:
                    os.close(one)
                self._told[pid] = told
                _tell(told, pid)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                told = self._told.pop(pid)
                _tell(told, os.waitstatus_to_exitcode(status))
                told.close()

    def _become(self, order: dict[str, Any], descriptors: Sequence[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        self._listening.detach()
        for told in self._told.values():
            told.detach()
        targets = [0, 1, 2, *order["numbers"]]
        moved = [fcntl.fcntl(one, fcntl.F_DUPFD, HIGH) for one in descriptors]
        os.closerange(3, HIGH)
        for number, one in zip(targets, moved, strict=True):
            os.dup2(one, number)
        os.closerange(HIGH, MOST)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])


def _tell(told: socket.socket, number: int) -> None:
    # A daemon that was killed hears nothing any more.
    with contextlib.suppress(OSError):
        told.send(str(number).encode())
