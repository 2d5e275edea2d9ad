"""Messages between the daemon and its fork server: JSON lines, some with a descriptor.

Both trust each other; text that a worker wrote is contained as text only.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys
from typing import Any

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
