"""The worker's end of its channel: blocking frames."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from sandbox.errors import FrameError
from sandbox.frames import MAX_FRAME, frame_length, pack, unpack

_PREFIX = 4

_SPACE = memoryview(bytearray(64 * 1024))
"Buffer of reads; one is enough for a process with one channel."

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve_frames(
    channel: socket.socket, answer: Answer, *, max_frame: int = MAX_FRAME
) -> None:
    """Answer each frame of the daemon until it closes the channel."""
    # One read usually gets a whole frame, as each costs a change of process.
    waiting = bytearray()
    while _fill(channel, waiting, _PREFIX):
        end = _PREFIX + frame_length(bytes(waiting[:_PREFIX]), max_frame=max_frame)
        if not _fill(channel, waiting, end):
            return
        body = bytes(waiting[_PREFIX:end])
        del waiting[:end]
        channel.sendall(_frame(answer(unpack(body)), max_frame))


def _frame(reply: dict[str, Any], max_frame: int) -> bytes:
    """Return the frame of a reply, or of an error if the reply cannot be sent."""
    try:
        return pack(reply, max_frame=max_frame)
    except MemoryError:
        outcome, reason = "memory", "the result needs too much memory"
    except FrameError as exc:
        outcome, reason = "error", str(exc)
        if "bytes, at most" in reason:
            outcome = "output_too_large"
    failure = {"outcome": outcome, "reason": reason}
    return pack({"id": reply["id"], "failed": failure})


def _fill(channel: socket.socket, waiting: bytearray, length: int) -> bool:
    """Read until `length` bytes are buffered; False when the channel was closed."""
    while len(waiting) < length:
        count = channel.recv_into(_SPACE)
        if not count:
            return False
        waiting += _SPACE[:count]
    return True
