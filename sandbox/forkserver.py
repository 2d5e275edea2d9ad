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

Serve = Callable[[socket.socket, int], None]
"Serves a channel with frames of at most so many bytes."

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
    try:
        _serve(kind)
    except (BrokenPipeError, ConnectionResetError):
        # The daemon was killed with messages of ours unread: its end, and so ours.
        return


def _serve(kind: str) -> None:
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
            data, fds, _, _ = socket.recv_fds(control, MAX_REQUEST, 1)
            if not data:
                return
            request = json.loads(data)
            try:
                pid = os.fork()
            except OSError as exc:
                os.close(fds[0])
                refusal = {"refused": request["id"], "reason": str(exc)}
                control.send(json.dumps(refusal).encode())
                continue
            if pid == 0:
                _become_worker(fds[0], request, serve)
            os.close(fds[0])
            control.send(json.dumps({"spawned": request["id"], "pid": pid}).encode())


def _preload(kind: str) -> Serve:
    if kind == "schema":
        from sandbox.schema_worker import serve_schemas

        return serve_schemas
    from sandbox.worker import serve_modules

    return serve_modules


def _become_worker(fd: int, request: dict[str, int], serve: Serve) -> None:
    """Run a worker in the forked child; never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for target in (0, 1, 2):
            os.dup2(null, target)
        os.dup2(fd, CONTROL_FD)
        # All of them: with the control socket a worker could name pids to kill.
        os.closerange(CONTROL_FD + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        lock_down(memory=request["memory"], cpu_seconds=CPU_SECONDS)
        serve(socket.socket(fileno=CONTROL_FD), request["max_frame"])
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
        control.send(json.dumps({"ended": pid, "status": code}).encode())
