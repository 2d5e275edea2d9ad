"""Commands and daemons as forks of one process that has imported their code.

Hundreds of processes of `anpd` run in one run of the tests, and importing is most of
what each of them does. Here one process (this file, run as a program) imports it once
and then forks: each fork takes over arguments, environment, folder and standard
streams, and goes on where `python -m anp` would begin. It is a process like any other
from then on. Files such as test_run_and_clients.py start `python -m anp` as a user
does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from tests.e2e.children import forked, parents

PRELOADED: Final = (
    "anp.cli.app",
    "anp.sidecar.process.run",
    "anp.sidecar.process.a2a_face",
    "anp.sidecar.api.app",
    "anp.sidecar.calls.caller",
    "httpx2",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
    "websockets.asyncio.client",
    "websockets.asyncio.server",
)
"What a daemon and the commands that talk to it import."

MAX_MESSAGE: Final = 1 << 20
"Bytes of one request or answer between a test and the process that forks."


class Fork:
    """A process of `anpd`; the part of `subprocess.Popen` that tests need."""

    def __init__(self, parent: _Parent, pid: int) -> None:
        self._parent = parent
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._parent.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs after `timeout` seconds.
        """
        limit = None if timeout is None else time.monotonic() + timeout
        pause = 0.001
        while (code := self.poll()) is None:
            if limit is not None and time.monotonic() > limit:
                raise subprocess.TimeoutExpired("anpd", timeout or 0)
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        # What daemons start is forked as well, by others.
        children = json.dumps(parents.start())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno()), children],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "NO_COLOR": "1"},
            )

    def fork(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path | None,
        env: Mapping[str, str],
        streams: Sequence[IO[Any]],
    ) -> Fork:
        """Return a new process; `streams` are its standard ones."""
        order = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": {**env}}
        return Fork(self, self.ask(order, [one.fileno() for one in streams]))

    def ask(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Send a request, and return what comes back."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(order).encode()], [*descriptors])
            answer = self._socket.recv(MAX_MESSAGE)
        assert answer, "the process that forks has ended"
        return json.loads(answer)

    def close(self) -> None:
        """End it; what it forked is left alone."""
        self._socket.close()
        self._process.wait(timeout=30)


_parents: list[_Parent] = []


def fork(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str],
    streams: Sequence[IO[Any]],
) -> Fork:
    """Start `python -m anp` with these arguments.

    Args:
        streams: Its standard input, output and error, open files all.
    """
    if not _parents:
        _parents.append(_Parent())
    return _parents[0].fork(arguments, cwd=cwd, env=env, streams=streams)


def close() -> None:
    """End the process that forks, if there is one."""
    while _parents:
        _parents.pop().close()


def _serve(channel: socket.socket) -> None:
    """Answer requests; return in each new process, set up as it was ordered."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, MAX_MESSAGE, 3)
        if not data:
            os._exit(0)
        order = json.loads(data)
        if "poll" in order:
            pid, status = os.waitpid(order["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                channel.close()
                _become(order, descriptors)
                return
            for one in descriptors:
                os.close(one)
        channel.send(json.dumps(answer).encode())


def _become(order: dict[str, Any], descriptors: Sequence[int]) -> None:
    for number, one in enumerate(descriptors):
        os.dup2(one, number)
        os.close(one)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[:] = [str(Path(importlib.import_module("anp").__path__[0], "__main__.py"))]
    sys.argv += order["arguments"]
    sys.path.insert(0, order["cwd"])


def _main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    children = json.loads(sys.argv[2])
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("anp.identity.web.fetcher").client_tls()
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    _serve(channel)
    with forked(lambda: children):
        runpy.run_module("anp", run_name="__main__")


if __name__ == "__main__":
    _main()
