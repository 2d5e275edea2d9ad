"""A worker that does on its channel whatever a test names; locked like any other."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from typing import Any, NoReturn

from sandbox.frames import pack
from sandbox.worker.channel import serve_frames

HOSTILE = "tests.sandbox.processes.hostile_worker:serve"
"The kind for `ForkServer`."


def _garbage(channel: socket.socket, number: int) -> None:
    channel.sendall(os.urandom(4096))


def _flood(channel: socket.socket, number: int) -> NoReturn:
    while True:
        channel.sendall(b"\0" * 65_536)


def _flood_of_answers(channel: socket.socket, number: int) -> NoReturn:
    while True:
        channel.sendall(pack({"id": number, "value": 1}) * 1000)


def _huge_prefix(channel: socket.socket, number: int) -> None:
    channel.sendall(struct.pack(">I", 0xFFFFFFFF))


def _another_id(channel: socket.socket, number: int) -> None:
    channel.sendall(pack({"id": number + 1, "value": "not yours"}))


def _id_of_another_type(channel: socket.socket, number: int) -> None:
    channel.sendall(pack({"id": True, "value": "not yours"}))


def _two_answers(channel: socket.socket, number: int) -> None:
    channel.sendall(pack({"id": number, "value": 1}) + pack({"id": number, "value": 2}))


def _no_object(channel: socket.socket, number: int) -> None:
    channel.sendall(pack([number, "value"]))


def _unknown_outcome(channel: socket.socket, number: int) -> None:
    channel.sendall(pack({"id": number, "failed": {"outcome": "ok", "reason": "x"}}))


def _half_a_frame(channel: socket.socket, number: int) -> NoReturn:
    channel.sendall(pack({"id": number, "value": "x" * 100})[:50])
    _silence(channel, number)


def _silence(channel: socket.socket, number: int) -> NoReturn:
    while True:
        channel.recv(65_536)


def _drip(channel: socket.socket, number: int) -> NoReturn:
    while True:
        channel.sendall(b"\0\0\0\x20"[:1])
        sum(range(2_000_000))


def _death(channel: socket.socket, number: int) -> NoReturn:
    os._exit(3)


def _hanging_up(channel: socket.socket, number: int) -> NoReturn:
    channel.close()
    while True:
        pass


def _crash(channel: socket.socket, number: int) -> None:
    os.kill(os.getpid(), 9)


def _deep(channel: socket.socket, number: int) -> None:
    header = b'{"value": ' + b"[" * 1_000_000
    body = struct.pack(">I", len(header)) + header
    channel.sendall(struct.pack(">I", len(body)) + body)


def _a_long_number(channel: socket.socket, number: int) -> None:
    header = b'{"value": ' + b"9" * 1_000_000 + b', "bytes": []}'
    body = struct.pack(">I", len(header)) + header
    channel.sendall(struct.pack(">I", len(body)) + body)


TRICKS: dict[str, tuple[Callable[[socket.socket, int], Any], set[str]]] = {
    "garbage": (_garbage, {"bad_frame"}),
    "flood": (_flood, {"bad_frame"}),
    "flood of answers": (_flood_of_answers, {"ok", "bad_frame"}),
    "huge prefix": (_huge_prefix, {"bad_frame"}),
    "another id": (_another_id, {"bad_frame"}),
    "id of another type": (_id_of_another_type, {"bad_frame"}),
    "no object": (_no_object, {"bad_frame"}),
    "two answers": (_two_answers, {"ok", "bad_frame"}),
    "unknown outcome": (_unknown_outcome, {"bad_frame"}),
    "deep": (_deep, {"bad_frame"}),
    "a long number": (_a_long_number, {"bad_frame"}),
    "half a frame": (_half_a_frame, {"timeout"}),
    "silence": (_silence, {"timeout"}),
    "drip": (_drip, {"timeout", "bad_frame"}),
    "death": (_death, {"crashed"}),
    "hanging up": (_hanging_up, {"crashed"}),
    "crash": (_crash, {"forbidden_syscall"}),
}
"Each trick: what it does, and the outcomes that are right; it is gone after all."


def serve(channel: socket.socket, max_frame: int) -> None:
    """Load anything; answer a call of `echo`, and play the trick of any other name."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        number = request["id"]
        if request["op"] == "load":
            return {"id": number, "value": []}
        if request["function"] == "echo":
            return {"id": number, "value": request["args"][0]}
        TRICKS[request["function"]][0](channel, number)
        # Behind the trick nothing honest follows.
        _silence(channel, number)

    serve_frames(channel, answer, max_frame=max_frame)
