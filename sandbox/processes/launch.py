"""Starts the process of a fork server, at will before there is an event loop."""

from __future__ import annotations

import array
import json
import os
import socket
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

# Messages between the daemon and its fork server: JSON lines, some with a descriptor.
#
# Both trust each other; text that a worker wrote is contained as text only.


Message = tuple[dict[str, Any], int | None]
"A message, and the descriptor that came with it, if any."

CONTROL_FD = 3
"Descriptor of the control socket when the fork server starts."

MAX_MESSAGE = 64 * 1024
"Largest message, in bytes."


def control_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets for a `Control` each."""
    # macOS has no packet sockets here; the line breaks also separate messages.
    linux = sys.platform == "linux"
    kind = socket.SOCK_SEQPACKET if linux else socket.SOCK_STREAM
    return socket.socketpair(socket.AF_UNIX, kind)


class Control:
    """One end of the pair; blocking if its socket is."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._rest = b""
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait on."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        """Send a message; the receiver gets a duplicate of `descriptor`.

        Raises:
            OSError: The other end is closed, or does not read.
        """
        data = json.dumps({**message, "fd": descriptor is not None}).encode() + b"\n"
        sent = socket.send_fds(
            self._socket, [data], [] if descriptor is None else [descriptor]
        )
        if sent != len(data):
            raise OSError("the other end of the control socket does not read")

    def receive(self) -> list[Message]:
        """Return the messages received with one read, possibly none.

        Raises:
            EOFError: The other end is closed.
            OSError: Reading failed, or would block.
        """
        space = socket.CMSG_LEN(16 * array.array("i").itemsize)
        # Child processes of the daemon must not inherit the descriptors.
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        data, ancillary, _, _ = self._socket.recvmsg(MAX_MESSAGE, space, flags)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) // 4 * 4])
                self._descriptors.extend(numbers)
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages: list[Message] = []
        for line in lines:
            message = json.loads(line)
            # The descriptor is lost when this process has too many open.
            came = message.pop("fd") and self._descriptors
            messages.append((message, self._descriptors.pop(0) if came else None))
        return messages

    def close(self) -> None:
        """Close the socket and all descriptors that were not taken."""
        self._socket.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()


PACKAGES = str(Path(__file__).resolve().parents[2])
"Folder of this package; under -I the fork server has to be told."

AHEAD = ("module", "schema")
"Kinds of fork servers that a daemon has."


@dataclass(frozen=True, slots=True)
class Launched:
    """The process of a fork server, which ends when its control socket is closed."""

    process: Popen[bytes]
    control: Control


_ahead: dict[str, Launched] = {}
"""Those that nobody has taken yet, by kind.

Of the process and not of a `ForkServer`, as they are started before the modules are
loaded that could pass them on.
"""


def launch_ahead() -> None:
    """Start the fork servers of the daemon that this process is about to become.

    They take as long to load what workers need as the daemon takes to load itself.
    Limits are no matter of the servers: they come with the request for each worker.
    """
    for kind in AHEAD:
        _ahead[kind] = launch(kind)


def launched(kind: str, without: Collection[str] = ()) -> Launched:
    """Return a fork server that was started ahead, once, or start one.

    Args:
        kind: See `sandbox.processes.forkserver.main`.
        without: Layers of the lock to leave out, for tests.
    """
    return (None if without else _ahead.pop(kind, None)) or launch(kind, without)


def launch(kind: str, without: Collection[str] = ()) -> Launched:
    """Start a fork server; see `launched`."""
    ours, theirs = control_pair()
    ours.setblocking(False)
    control = Control(ours)
    try:
        with theirs:
            process = Popen(
                _command(kind, theirs.fileno(), tuple(without)),
                pass_fds=(theirs.fileno(),),
                stdin=DEVNULL,
                stdout=DEVNULL,
                env={"LANG": "C.UTF-8"},
                start_new_session=True,
            )
    except BaseException:
        control.close()
        raise
    return Launched(process, control)


def _command(kind: str, descriptor: int, without: tuple[str, ...]) -> list[str]:
    """Return the command that starts a fork server with its control socket."""
    # -I keeps the environment and the current folder out of the import path.
    code = (
        f"import sys; sys.path.insert(0, {PACKAGES!r}); import os; "
        f"fd = {descriptor}; os.dup2(fd, {CONTROL_FD}); "
        f"fd == {CONTROL_FD} or os.close(fd); "
        "from sandbox.processes.forkserver import main; "
        f"main({kind!r}, {without!r})"
    )
    return [sys.executable, "-I", "-c", code]
