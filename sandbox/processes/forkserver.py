"""The fork server: a small process that forks workers and reports their ends.

Theory of operation
-------------------

A worker is a Python process that is locked before it sees any code of others. Starting
a fresh interpreter for each would take some 40 ms. So the daemon starts one process,
this one, which loads everything that workers need once (`preload`) and then forks: a
fork takes a millisecond and shares the memory. The fork server stays single-threaded,
since a fork of a process with threads is not safe, and it never runs code of others
itself.

    daemon  <---- control socket ---->  fork server
       |                                    | fork, then locked
       +------ a channel for each --------> worker

Start. The environment is emptied and the memory is frozen (`gc.freeze`), so that a
collection in a child does not copy every page. Then the self-test forks workers that
try what no worker may do. A layer that the kernel took, and that held, is *required*
from then on; the answer `ready` tells the daemon which these are. Nothing is claimed
that was not seen.

Spawning. A request is a line of JSON together with a descriptor: the worker's end of a
socket pair, whose other end the daemon keeps. After the fork the parent closes its copy
and answers with the pid and a pidfd. The pidfd is taken before anybody can reap the
child, so what the daemon kills through it can only be this worker, even if the number
has been given to another process.

In the child the order matters. Standard input and output become /dev/null, standard
error a small pipe that never blocks, the channel becomes descriptor 3, and every other
descriptor is closed: with the control socket a worker could name pids to kill. Then
`Lock.close` drops privileges, sets the limits, and installs the filter of system calls
last. A required layer that fails raises, and the child ends. Only now the child says
`locked` on its channel and begins to serve. It leaves with `os._exit`, never by
returning into the fork server's code.

Ending. The kernel tells by SIGCHLD that a child ended; `select` is woken through a
pipe. `wait4` gives the status and the CPU time, and both go to the daemon with the last
words of the child's standard error. The status tells apart a violation of the filter, a
kill at a deadline, a crash and a normal end. Those last words are the only thing
written by a worker that this process ever reads, and it reads at most 2,000 bytes of
them.

The end of the control socket is the order to stop. It comes when the daemon closes it,
and also when the daemon was killed.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NoReturn

from sandbox.frames import pack
from sandbox.lock.lockdown import Isolation, Lock
from sandbox.processes.launch import CONTROL_FD, Control
from sandbox.processes.preload import preload
from sandbox.processes.self_test import self_test

Serve = Callable[[socket.socket, int], None]
"Serves a channel; the number is the largest frame in bytes."

CHANNEL_FD = 3
"Descriptor of a worker's channel; it has only the standard three besides."

MAX_TEXT = 2000
"Largest reported part of a worker's output on standard error, in bytes."

MAX_DESCRIPTORS = 4096
"Descriptors of the fork server: one for each worker and a few more."

_PIPE_SIZE = 4096

_LOCKED = pack({"locked": True})

_SERVES = {
    "module": "sandbox.worker.worker:serve_modules",
    "plain": "sandbox.worker.worker:serve_modules",
    "schema": "sandbox.worker.schema_worker:serve_schemas",
}


def main(kind: str, without: Collection[str] = ()) -> None:
    """Serve requests until the control socket is closed.

    Args:
        kind: `module` for workers that run halves (`plain` with all of Python's library
            loaded, for tests without the language layer), `schema` for validation,
            or `package.module:function` for a `Serve` of another kind.
        without: Layers to leave out, as for `Lock`, for tests.
    """
    control = Control(socket.socket(fileno=os.dup(CONTROL_FD)))
    os.close(CONTROL_FD)
    try:
        server = _Server(control, kind, without)
        server.serve()
    except (BrokenPipeError, ConnectionResetError, EOFError):
        # The daemon was killed with unread messages of ours, so this process ends too.
        return


class _Server:
    def __init__(self, control: Control, kind: str, without: Collection[str]) -> None:
        self._control = control
        module, _, function = _SERVES.get(kind, kind).partition(":")
        preload(plain=kind == "plain")
        self._serve: Serve = getattr(importlib.import_module(module), function)
        self._lock = Lock(without=without)
        self._texts: dict[int, int] = {}
        # One pipe for each worker; and a child has no higher number to close.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most == resource.RLIM_INFINITY or most > MAX_DESCRIPTORS:
            most = MAX_DESCRIPTORS
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def serve(self) -> None:
        # The daemon ends this process by closing the control socket; Ctrl-C at its
        # terminal must not.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Workers inherit an empty environment.
        os.environ.clear()
        gc.collect()
        gc.freeze()
        isolation = self._test()
        self._required = {name for name, active, _ in isolation.layers if active}
        waking, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._control.send(
            {"ready": os.getpid(), "level": isolation.level, "layers": isolation.layers}
        )
        while True:
            readable, _, _ = select.select([self._control.fileno(), waking], [], [])
            if waking in readable:
                os.read(waking, 4096)
                self._reap()
            if self._control.fileno() in readable:
                for request, descriptor in self._control.receive():
                    self._spawn(request, descriptor)

    def _spawn(self, request: dict[str, int], channel: int | None) -> None:
        if channel is None:
            reason = "the fork server has too many descriptors open"
            self._control.send({"refused": request["id"], "reason": reason})
            return
        try:
            pid, text = self._fork(channel, request, self._serve, self._required)
        except OSError as exc:
            self._control.send({"refused": request["id"], "reason": str(exc)})
            return
        finally:
            os.close(channel)
        self._texts[pid] = text
        # Opened before the child is reaped, so that the pid cannot be reused.
        pidfd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        try:
            self._control.send({"spawned": request["id"], "pid": pid}, pidfd)
        finally:
            if pidfd is not None:
                os.close(pidfd)

    def _fork(
        self,
        channel: int,
        request: dict[str, int],
        serve: Serve,
        required: Collection[str],
        *,
        without_filter: bool = False,
    ) -> tuple[int, int]:
        """Fork a worker; return its pid and the reading end of its standard error."""
        text, writing = os.pipe()
        try:
            # Text beyond a full pipe is lost; a worker cannot block us or fill memory.
            os.set_blocking(writing, False)
            os.set_blocking(text, False)
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                with suppress(OSError):
                    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
            pid = os.fork()
        except OSError:
            os.close(text)
            raise
        else:
            if pid == 0:
                self._become_worker(
                    channel,
                    writing,
                    request,
                    serve,
                    required,
                    without_filter=without_filter,
                )
            return pid, text
        finally:
            os.close(writing)

    def _become_worker(
        self,
        channel: int,
        writing: int,
        request: dict[str, int],
        serve: Serve,
        required: Collection[str],
        *,
        without_filter: bool,
    ) -> NoReturn:
        """Run a worker in the forked child."""
        status = 1
        try:
            # The handler of SIGCHLD may stay: a worker cannot have children.
            signal.set_wakeup_fd(-1)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(writing, 2)
            os.dup2(channel, CHANNEL_FD)
            # Closes all others: with the control socket a worker could have pids
            # killed.
            os.closerange(CHANNEL_FD + 1, MAX_DESCRIPTORS)
            # Made before the filter, since it asks the kernel for the descriptor's
            # type.
            connection = socket.socket(
                socket.AF_UNIX, socket.SOCK_STREAM, fileno=CHANNEL_FD
            )
            layers = self._lock.close(
                memory=request["memory"],
                cpu_seconds=request["cpu_seconds"],
                required=required,
                without_filter=without_filter,
            )
            # Each page that a child touches is copied, so little is built anew here.
            connection.sendall(_LOCKED if required else pack({"locked": layers}))
            serve(connection, request["max_frame"])
            status = 0
        except BaseException:  # noqa: BLE001  # the last frame of a forked child
            # The fork server reports this text with the exit status.
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._control.send(
                {
                    "ended": pid,
                    "status": os.waitstatus_to_exitcode(status),
                    "cpu": usage.ru_utime + usage.ru_stime,
                    "text": _read_text(self._texts.pop(pid)),
                }
            )

    def _test(self) -> Isolation:
        """Run the self-test with workers of this server."""

        def run(probe: Serve, *, without_filter: bool) -> tuple[int, bytes]:
            ours, theirs = socket.socketpair()
            request = {"memory": 1 << 28, "cpu_seconds": 10, "max_frame": 4096}
            with ours:
                with theirs:
                    pid, text = self._fork(
                        theirs.fileno(),
                        request,
                        probe,
                        (),
                        without_filter=without_filter,
                    )
                ours.settimeout(5)
                answer = b""
                with suppress(OSError):
                    while part := ours.recv(4096):
                        answer += part
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            os.close(text)
            return os.waitstatus_to_exitcode(status), answer

        return self_test(run)


def _read_text(descriptor: int) -> str:
    """Return the shortened text that an ended worker wrote to standard error."""
    try:
        with suppress(BlockingIOError):
            return os.read(descriptor, MAX_TEXT).decode("utf-8", "replace")
        return ""
    finally:
        os.close(descriptor)
