"""The fork server: a small process that forks workers and reports their end.

It is started fresh, loads what workers need once, and stays single-threaded, so that a
fork is cheap and safe. Requests come as one message each with one descriptor: the
worker's end of its channel.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable

from sandbox.lockdown import lock_down

__all__ = ["CONTROL_FD", "main"]

CONTROL_FD = 3
"Descriptor of the control socket."

MAX_REQUEST = 4096
"Largest request, in bytes."

CPU_SECONDS = 3600
"CPU seconds of a worker's life; deadlines end a call long before."


def main(kind: str) -> None:
    """Serve until the control socket ends.

    Args:
        kind: `module` for workers that run halves, `schema` for those that validate.
    """
    serve = _preload(kind)
    control = socket.socket(fileno=os.dup(CONTROL_FD))
    os.close(CONTROL_FD)
    waking, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # The daemon ends us by closing the control socket; Ctrl-C on its terminal does not.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    control.send(json.dumps({"ready": os.getpid()}).encode())
    while True:
        readable, _, _ = select.select([control.fileno(), waking], [], [])
        if waking in readable:
            os.read(waking, 4096)
            _reap(control)
        if control.fileno() in readable:
            try:
                data, fds, _, _ = socket.recv_fds(control, MAX_REQUEST, 1)
            except ConnectionResetError:
                # The daemon was killed with messages of ours unread.
                return
            if not data:
                return
            request = json.loads(data)
            pid = os.fork()
            if pid == 0:
                _become_worker(fds[0], request, serve)
            os.close(fds[0])
            control.send(json.dumps({"spawned": request["id"], "pid": pid}).encode())


def _preload(kind: str) -> Callable[[socket.socket], None]:
    if kind == "schema":
        from sandbox.schema_worker import serve_schemas

        return serve_schemas
    from sandbox.worker import serve_modules

    return serve_modules


def _become_worker(
    fd: int, request: dict[str, int], serve: Callable[[socket.socket], None]
) -> None:
    """Run a worker in the forked child; never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for target in (0, 1, 2):
            os.dup2(null, target)
        os.dup2(fd, CONTROL_FD)
        os.closerange(CONTROL_FD + 1, 256)
        os.environ.clear()
        lock_down(memory=request["memory"], cpu_seconds=CPU_SECONDS)
        serve(socket.socket(fileno=CONTROL_FD))
        status = 0
    except BaseException:  # noqa: BLE001  # the last frame of a forked child
        # Standard error is closed off; the exit status tells the daemon.
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


def _reap(control: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        try:
            control.send(json.dumps({"ended": pid, "status": code}).encode())
        except BrokenPipeError:
            # The daemon has closed its end; the main loop sees the same and returns.
            return
