"""Workers of the tests without the language layer: they run any source at all."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import socket
import time
from typing import Any

from sandbox.worker.channel import serve_frames

PLAIN = "tests.sandbox.plain_worker:serve"
"The kind for `ForkServer`."

UNLOCKED = "tests.sandbox.plain_worker:serve_nothing"
"The kind of a worker that ends at once."


def serve(channel: socket.socket, max_frame: int) -> None:
    """Run the `source` of each request as a function body and answer its value."""
    serve_frames(
        channel, lambda request: _answer(request, channel), max_frame=max_frame
    )


def serve_nothing(channel: socket.socket, max_frame: int) -> None:
    """End at once."""


def _answer(request: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    body = "\n".join(f"    {line}" for line in request["source"].splitlines())
    # What a worker cannot import any more.
    namespace: dict[str, Any] = {
        "channel": channel,
        "ctypes": ctypes,
        "mmap": mmap,
        "os": os,
        "resource": resource,
        "signal": signal,
        "socket": socket,
        "time": time,
    }
    exec(f"def run():\n{body}\n", namespace)
    try:
        value = namespace["run"]()
    except Exception as exc:  # noqa: BLE001  # reported, as the worker does
        value = f"{type(exc).__name__} {getattr(exc, 'errno', None)}"
    return {"id": request["id"], "value": value}
