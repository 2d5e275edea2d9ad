"""The worker that runs one module: loads it once, then answers calls.

The compiled code is executed anew in a fresh namespace for each call, so no state goes
from one call to the next. Generators stay until they return, raise or are dropped.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Generator
from types import CodeType
from typing import Any

from sandbox.channel import serve_frames
from sandbox.guards import CapabilityCall, CapabilityError, fresh_globals
from sandbox.policy import FILENAME, compile_half

__all__ = ["serve_modules"]

MAX_MESSAGE = 500
"Longest text of an exception that is reported, in characters."


class _Failed(Exception):
    """Ends a request with a report."""

    def __init__(self, outcome: str, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.report = {"outcome": outcome, "reason": reason, "line": line}


class _Returned:
    """What a generator returned; no yielded value of a module can be one."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _advance(advance: Any, value: Any) -> Any:
    try:
        return advance(value)
    except StopIteration as exc:
        return _Returned(exc.value)


class _Worker:
    def __init__(self) -> None:
        self._code: CodeType | None = None
        self._running: dict[int, Generator[Any, Any, Any]] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        number = request["id"]
        try:
            return {"id": number, **self._do(request, number)}
        except _Failed as exc:
            return {"id": number, "failed": exc.report}

    def _do(self, request: dict[str, Any], number: int) -> dict[str, Any]:
        match request["op"]:
            case "load":
                return self._load(request["source"])
            case "call":
                return {"value": _guarded(self._function(request), *request["args"])}
            case "start":
                generator = _guarded(self._function(request), *request["args"])
                if not isinstance(generator, Generator):
                    raise _Failed("error", f"{request['function']} does not yield")
                self._running[number] = generator
                return self._step(number, generator.send, None)
            case "resume":
                generator = self._running[request["run"]]
                return self._step(request["run"], generator.send, request["value"])
            case "throw":
                generator = self._running[request["run"]]
                error = CapabilityError(request["code"], request["message"])
                return self._step(request["run"], generator.throw, error)
            case _:
                self._running.pop(request["run"], None)
                return {"value": None}

    def _load(self, source: str) -> dict[str, Any]:
        self._code, findings = compile_half(source)
        if findings or self._code is None:
            named = re.match(r"Line (\d+)", findings[0]) if findings else None
            line = int(named[1]) if named else None
            raise _Failed("rejected", "; ".join(findings) or "no code", line)
        namespace = fresh_globals()
        _guarded(exec, self._code, namespace)
        return {"value": sorted(k for k, v in namespace.items() if callable(v))}

    def _function(self, request: dict[str, Any]) -> Any:
        if self._code is None:
            raise _Failed("error", "no module is loaded")
        namespace = fresh_globals()
        _guarded(exec, self._code, namespace)
        function = namespace.get(request["function"])
        if not callable(function):
            raise _Failed("error", f"the module has no {request['function']}")
        return function

    def _step(self, run: int, advance: Any, value: Any) -> dict[str, Any]:
        try:
            wanted = _guarded(_advance, advance, value)
        except _Failed:
            self._running.pop(run, None)
            raise
        if type(wanted) is _Returned:
            self._running.pop(run, None)
            return {"value": wanted.value}
        if type(wanted) is not CapabilityCall or type(wanted.name) is not str:
            self._running.pop(run, None)
            raise _Failed("error", "only call(name, params) may be yielded")
        return {"wanted": wanted.name, "params": wanted.params}


def _guarded(function: Any, *args: Any) -> Any:
    """Call the module's code; every exception of it becomes a report."""
    try:
        return function(*args)
    except MemoryError:
        raise _Failed("memory", "the memory limit was reached") from None
    except Exception as exc:  # noqa: BLE001  # strangers' code raises anything
        text = f"{type(exc).__name__}: {exc}"
        if isinstance(exc, CapabilityError):
            text = f"CapabilityError {exc.code}: {exc.message}"
        clean = "".join(c if c.isprintable() else " " for c in text[:MAX_MESSAGE])
        # Half characters may not cross to the daemon.
        clean = clean.encode("utf-8", "replace").decode("utf-8")
        raise _Failed("error", clean, _line(exc)) from None


def _line(exc: BaseException) -> int | None:
    line, frame = None, exc.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == FILENAME:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def serve_modules(channel: socket.socket, max_frame: int) -> None:
    """Serve one module until the daemon closes the channel."""
    serve_frames(channel, _Worker().answer, max_frame=max_frame)
