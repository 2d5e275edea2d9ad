"""The worker's end of its channel: blocking frames."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from sandbox.errors import FrameError
from sandbox.frames import MAX_FRAME, frame_length, pack, unpack

__all__ = ["serve_frames"]

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve_frames(
    channel: socket.socket, answer: Answer, *, max_frame: int = MAX_FRAME
) -> None:
    """Answer each frame of the daemon until it closes the channel."""
    while (prefix := _read(channel, 4)) is not None:
        body = _read(channel, frame_length(prefix, max_frame=max_frame))
        if body is None:
            return
        request = unpack(body)
        reply = answer(request)
        try:
            frame = pack(reply, max_frame=max_frame)
        except MemoryError:
            failure = {
                "outcome": "memory",
                "reason": "the result needs too much memory",
            }
            frame = pack({"id": reply["id"], "failed": failure})
        except FrameError as exc:
            failure = {"outcome": "output_too_large", "reason": str(exc)}
            if "bytes, at most" not in str(exc):
                failure = {"outcome": "error", "reason": str(exc)}
            frame = pack({"id": reply["id"], "failed": failure})
        channel.sendall(frame)


def _read(channel: socket.socket, length: int) -> bytes | None:
    parts = []
    while length:
        part = channel.recv(min(length, 65_536))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
