"""Runs `anpd` and notes which functions of the project are entered between two marks.

    python -P traced_daemon.py CHECKOUT SOCKET [arguments of anpd]

The measuring process connects to the Unix socket and writes `begin` or `end`, one a
line. The answer is one line of JSON: null, or for `end` the entered functions in order.
This file imports the standard library only, as it also runs with the code of other
checkouts.
"""

from __future__ import annotations

import json
import runpy
import socket
import sys
import threading
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("anp", "negotiation", "sandbox", "cache", "jsonic")
OTHER, PROJECT, SEND = range(3)
SENDS = frozenset({"send", "send_binary", "send_text", "data_to_send"})
"Functions of the WebSocket library that take a message of ours, or give its bytes."


class Recorder:
    """The functions entered since the last `begin`.

    The hook runs in every thread; a dict keeps the order, and one insertion is atomic.
    """

    def __init__(self, checkout: str) -> None:
        self._root = checkout.rstrip("/") + "/"
        self._folders = tuple(f"{self._root}{name}/" for name in PACKAGES)
        self._kinds: dict[CodeType, int] = {}
        self._entered: dict[CodeType, None] = {}
        self._before_send: int | None = None
        self._is_recording = False

    def hook(self, frame: FrameType, event: str, _: Any) -> None:
        """Note one call; this is the function for `sys.setprofile`."""
        if not self._is_recording or event != "call":
            return
        code = frame.f_code
        kind = self._kind(code)
        if kind == PROJECT:
            self._entered[code] = None
        elif kind == SEND and self._before_send is None:
            caller = frame.f_back
            if caller is not None and self._kind(caller.f_code) == PROJECT:
                self._before_send = len(self._entered)

    def begin(self) -> None:
        """Forget everything, and note what is entered from now on."""
        self._entered, self._before_send = {}, None
        self._is_recording = True

    def end(self) -> dict[str, Any]:
        """Note nothing any more, and return what was entered."""
        self._is_recording = False
        return {
            "functions": [
                [
                    code.co_filename.removeprefix(self._root),
                    f"{code.co_qualname}:{code.co_firstlineno}",
                ]
                for code in self._entered
            ],
            "before_send": self._before_send,
        }

    def _kind(self, code: CodeType) -> int:
        kind = self._kinds.get(code)
        if kind is None:
            kind = OTHER
            # The body of a module is entered by an import, not by a call.
            if code.co_filename.startswith(self._folders):
                kind = PROJECT if code.co_name != "<module>" else OTHER
            elif code.co_name in SENDS and "/websockets/" in code.co_filename:
                kind = SEND
            self._kinds[code] = kind
        return kind


def serve_marks(recorder: Recorder, listener: socket.socket) -> None:
    """Take marks from one connection until it ends."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            answer = None
            if line.strip() == "begin":
                recorder.begin()
            else:
                answer = recorder.end()
            stream.write(json.dumps(answer) + "\n")
            stream.flush()


def main() -> None:
    """Install the hook and run `anpd` with the rest of the arguments."""
    checkout, path, *arguments = sys.argv[1:]
    recorder = Recorder(checkout)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    # This thread starts before the hook is set, and so is not traced itself.
    threading.Thread(target=serve_marks, args=(recorder, listener), daemon=True).start()
    threading.setprofile(recorder.hook)
    sys.setprofile(recorder.hook)
    sys.argv = ["anpd", *arguments]
    runpy.run_module("anp", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
