"""Runs one attempt in plain Python: the throw-away process of the control run.

Started as a file by `control.py`, with nothing but the standard library. It stands in
for a worker without any layer: descriptor 3 is its channel, with a request waiting in
it, and a descriptor and an environment variable lead to the token. It reports over a
descriptor far above those that attempts scan or close.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import socket
import sys
from typing import Any

CHANNEL = 3
"Descriptor of the channel, as in a worker."

MARK = b"the answer"
"What an honest run sends over the channel, once, at its end."

REQUEST = b"a request"
"What waits in the channel for the serve loop, not for the attempt."

MEMORY = 768 * 1024 * 1024
"Bytes of address space."

CPU_SECONDS = 5
"CPU seconds, a backstop behind the wall clock of the control run."

FILE_SIZE = 16 * 1024 * 1024
"Largest file, in bytes."

MAX_TEXT = 8_000
"Longest text of a report, in characters; its JSON has to fit into a pipe."


class CapabilityCall:
    """What `call(name, params)` gives in a worker; here it is answered with None."""

    def __init__(self, name: str, params: object) -> None:
        self.name = name
        self.params = params


def _limit() -> None:
    for what, soft, hard in (
        (resource.RLIMIT_AS, MEMORY, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS, CPU_SECONDS + 1),
        (resource.RLIMIT_FSIZE, FILE_SIZE, FILE_SIZE),
        (resource.RLIMIT_CORE, 0, 0),
        # The gap lets an attempt show that it can raise a limit.
        (resource.RLIMIT_NOFILE, 64, 128),
    ):
        resource.setrlimit(what, (soft, hard))


def _run(code: Any, function: str, probe: dict[str, Any]) -> Any:
    namespace: dict[str, Any] = {"__name__": "half", "call": CapabilityCall}
    exec(code, namespace)
    value = namespace[function](dict(probe))
    if hasattr(value, "send") and hasattr(value, "gi_frame"):
        # Answered as the daemon answers, but without its limit on the count.
        try:
            value.send(None)
            while True:
                value.send(None)
        except StopIteration as exc:
            return exc.value
    return value


def main() -> None:
    """Run the attempt that standard input holds and report over a descriptor."""
    result = fcntl.fcntl(int(sys.argv[1]), fcntl.F_DUPFD, 900)
    spare = fcntl.fcntl(int(sys.argv[2]), fcntl.F_DUPFD, 900)
    request = json.load(sys.stdin)
    # The descriptor given by number lies above those of a fresh process.
    for name in (1, 2):
        os.close(int(sys.argv[name]))
    os.dup2(spare, CHANNEL)
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.close(null)
    channel_before = os.fstat(CHANNEL)
    # Attempts replace what they can reach; the report must not go through it.
    kept = (json.JSONEncoder().encode, repr, str, len, type, os.write)
    encode, to_text, text_of, length, kind_of, write = kept
    fstat, getfl, error_type = os.fstat, fcntl.F_GETFL, OSError
    file_control, nonblocking = fcntl.fcntl, os.O_NONBLOCK
    answer = socket.socket(fileno=spare)
    peek, readable = socket.MSG_PEEK, select.select
    flags = file_control(spare, getfl)
    _limit()

    report: dict[str, Any] = {}
    try:
        code = compile(request["source"], "<half>", "exec", dont_inherit=True)
        value = _run(code, "attempt", request["probe"])
        text = to_text(value)
        report["size"] = length(text)
        report["text"] = text[:MAX_TEXT]
        if kind_of(value) is str:
            report["value"] = value[:100]
    except BaseException as exc:  # noqa: BLE001  # attempts raise anything
        text = text_of(exc)
        report = {"error": kind_of(exc).__name__, "size": length(text)}
        report["text"] = text[:MAX_TEXT]
    if "def check(" in request["source"]:
        with contextlib.suppress(Exception):
            report["check"] = _run(code, "check", request["probe"])
    try:
        after = fstat(CHANNEL)
        report["channel"] = (
            after.st_ino != channel_before.st_ino
            or file_control(spare, getfl) & nonblocking != flags & nonblocking
            or not readable([spare], [], [], 0)[0]
            or answer.recv(100, peek) != REQUEST
        )
        answer.sendall(MARK)
    except error_type:
        report["channel"] = True
    write(result, encode(report).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
