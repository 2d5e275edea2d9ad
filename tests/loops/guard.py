"""Sockets and processes are refused while a pure test runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

REFUSED: Final = {
    "socket.bind": "binds a socket",
    "socket.connect": "connects a socket",
    "socket.getaddrinfo": "looks up a host",
    "socket.sendto": "sends a datagram",
    "os.exec": "becomes another program",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "os.posix_spawn": "starts a process",
    "os.system": "starts a shell",
    "subprocess.Popen": "starts a process",
}
"""Events of the interpreter's audit. A pair of sockets, such as an event loop has to
wake itself up, is neither bound nor connected."""


class NotPure(BaseException):
    """A test of the quick run did what only other tests may.

    Code that expects `OSError` or any `Exception` does not get to hide it.
    """


class _Audit:
    """Hears of every event in this process, as audit hooks cannot be taken back."""

    def __init__(self) -> None:
        self.refuses = False
        self._installed = False

    def install(self) -> None:
        if not self._installed:
            sys.addaudithook(self._hear)
            self._installed = True

    def _hear(self, event: str, _: tuple[object, ...]) -> None:
        if self.refuses and event in REFUSED:
            raise NotPure(
                f"a test of `make quick` {REFUSED[event]} ({event}); "
                "its file belongs to those that tests/loops/quick.py leaves out"
            )


_AUDIT = _Audit()


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raise `NotPure` for a block where a socket or a process would be used."""
    _AUDIT.install()
    before, _AUDIT.refuses = _AUDIT.refuses, True
    try:
        yield
    finally:
        _AUDIT.refuses = before
