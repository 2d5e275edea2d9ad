"""The worker of one module: loads the source once, then answers calls.

The compiled code runs again in a new namespace for each call, so that no state passes
from one call to the next. Generators stay until they return, raise or are dropped.
"""

from __future__ import annotations

import builtins
import socket
import sys
from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from types import CodeType, GeneratorType, ModuleType
from typing import Any

from sandbox.errors import Finding
from sandbox.language.facades.log import CappedLog
from sandbox.language.facades.modules import import_name
from sandbox.language.facades.objects import ANNOTATIONS, with_private_keywords
from sandbox.language.names import FILENAME, OWN_MODULE, plain_text
from sandbox.language.policy import compile_half
from sandbox.language.runtime.attributes import Hold, read, read_guarded, writable
from sandbox.language.runtime.builtin_names import BUILTINS
from sandbox.language.runtime.classes import exact_group
from sandbox.worker.channel import serve_frames

MAX_MESSAGE = 500
"Longest text of an exception that is reported, in characters."

MAX_REASON = 2_000
"Longest text of all findings of a source together, in characters."


class CapabilityError(Exception):
    """A capability call failed; modules know it by this name."""

    def __init__(self, code: int | str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ValueAbsent(CapabilityError):
    """A value that the document needs was not given; modules know it by this name.

    It is a `CapabilityError`, so that a provider half answers both in the document's
    own way. The message names the place: `output.price: the capability gave no value`.
    """

    def __init__(self, message: str) -> None:
        super().__init__("502", message)


class CapabilityCall:
    """The result of `call(name, params)`; a provider half yields it.

    A third argument is the half's own function that writes an update: it gets each
    value that the capability gives before its answer, and returns the bytes of a
    message for the requester.
    """

    __slots__ = ("name", "params", "write_update")

    def __init__(self, name: str, params: Any, write_update: Any = None) -> None:
        self.name = name
        self.params = params
        self.write_update = write_update


_GUARDS: dict[str, Any] = {
    "__name__": OWN_MODULE,
    "_annotation_": ANNOTATIONS.__getitem__,
    "_exact_group_": exact_group,
    "_getattr_": read,
    "_getattr_guarded_": read_guarded,
    "_hold_": Hold,
    "_keywords_": with_private_keywords,
    "_write_": writable,
    "CapabilityError": CapabilityError,
    "ValueAbsent": ValueAbsent,
    "call": CapabilityCall,
}


def fresh_globals(log: CappedLog | None = None) -> dict[str, Any]:
    """Return a new namespace for one execution of a half.

    Args:
        log: Receives the output of `print` and `logging`; None discards it.
    """
    log = log or CappedLog()
    return {
        **_GUARDS,
        "__builtins__": {**BUILTINS, "print": log.print},
        "_import_": partial(import_name, log),
    }


def plain_globals() -> dict[str, Any]:
    """Return a new namespace with all of Python, for tests of the process."""
    # Dataclasses look up the module of a class by its name.
    module = ModuleType(OWN_MODULE)
    sys.modules[OWN_MODULE] = module
    module.__dict__.update(
        __builtins__=builtins,
        CapabilityError=CapabilityError,
        ValueAbsent=ValueAbsent,
        call=CapabilityCall,
    )
    return module.__dict__


class _Failed(Exception):
    """Ends a request with a report."""

    def __init__(
        self,
        outcome: str,
        reason: str,
        line: int | None = None,
        findings: list[Finding] | None = None,
    ) -> None:
        super().__init__(reason)
        self.report: dict[str, Any] = {
            "outcome": outcome,
            "reason": reason,
            "line": line,
        }
        if findings:
            self.report["findings"] = [asdict(finding) for finding in findings]


def _rejected(findings: list[Finding]) -> _Failed:
    texts = (f"line {f.line}: {f.reason}" if f.line else f.reason for f in findings)
    # A SyntaxError's text or a name may hold lone surrogates, which cannot be sent.
    reason = "; ".join(texts).encode("utf-8", "replace").decode("utf-8")
    line = next((f.line for f in findings if f.line), None)
    return _Failed("rejected", reason[:MAX_REASON] or "no code", line, findings)


class _Returned:
    """A generator's returned value; no value that a module yields is of this class."""

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
        self._language = True
        self._log = CappedLog()
        self._running: dict[int, Generator[Any, Any, Any]] = {}
        self._writers: dict[int, Any] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        number = request["id"]
        try:
            reply = {"id": number, **self._do(request, number)}
        except _Failed as exc:
            reply = {"id": number, "failed": exc.report}
        log = self._log.take()
        return {**reply, "log": log} if log else reply

    def _do(self, request: dict[str, Any], number: int) -> dict[str, Any]:
        match request["op"]:
            case "load":
                return self._load(
                    request["source"], language=request.get("language", True)
                )
            case "call":
                return {"value": _guarded(self._function(request), *request["args"])}
            case "start":
                generator = _guarded(self._function(request), *request["args"])
                if type(generator) is not GeneratorType:
                    # A function that calls no capability may simply return.
                    return {"value": generator}
                self._running[number] = generator
                return self._step(number, generator.send, None)
            case "update":
                return self._update(request["run"], request["value"])
            case "resume":
                generator = self._running[request["run"]]
                return self._step(request["run"], generator.send, request["value"])
            case "throw":
                generator = self._running[request["run"]]
                error = CapabilityError(request["code"], request["message"])
                return self._step(request["run"], generator.throw, error)
            case _:
                self._running.pop(request["run"], None)
                self._writers.pop(request["run"], None)
                return {"value": None}

    def _update(self, run: int, value: Any) -> dict[str, Any]:
        """Have the function of a call at work write an update."""
        writer = self._writers.get(run)
        if writer is None:
            raise _Failed("error", "an update for a call that has none, or has ended")
        return {"value": _guarded(writer, value)}

    def _load(self, source: str, *, language: bool) -> dict[str, Any]:
        self._language = language
        self._code, findings = compile_half(source, language=language)
        if findings or self._code is None:
            raise _rejected(findings)
        namespace = self._executed(self._code, is_first=True)
        without = self._globals()
        names = (k for k, v in namespace.items() if k not in without and callable(v))
        return {"value": sorted(names)}

    def _globals(self) -> dict[str, Any]:
        return fresh_globals(self._log) if self._language else plain_globals()

    def _executed(self, code: CodeType, *, is_first: bool) -> dict[str, Any]:
        namespace = self._globals()
        # Output at import is logged once, as Python imports a module once.
        with nullcontext() if is_first else self._log.muted():
            _guarded(exec, code, namespace)
        return namespace

    def _function(self, request: dict[str, Any]) -> Any:
        if self._code is None:
            raise _Failed("error", "no module is loaded")
        namespace = self._executed(self._code, is_first=False)
        function = namespace.get(request["function"])
        if not callable(function):
            raise _Failed("error", f"the module has no {request['function']}")
        return function

    def _step(self, run: int, advance: Any, value: Any) -> dict[str, Any]:
        self._writers.pop(run, None)
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
        reply = {"wanted": wanted.name, "params": wanted.params}
        if wanted.write_update is None:
            return reply
        if not callable(wanted.write_update):
            self._running.pop(run, None)
            raise _Failed("error", "the third argument of call is no function")
        self._writers[run] = wanted.write_update
        return {**reply, "updates": True}


def _guarded(function: Any, *args: Any) -> Any:
    """Call the module's code; convert every exception of it into a report."""
    try:
        return function(*args)
    except BaseException as exc:  # noqa: BLE001  # strangers' code raises anything
        line = _line(exc)
        if isinstance(exc, MemoryError):
            raise _Failed("memory", "the memory limit was reached") from None
        raise _Failed("error", _told(exc), line) from None


def _told(exc: BaseException) -> str:
    """Return type and message of an exception, both of which may run hostile code."""
    name = type(exc).__name__
    try:
        text = f"{name}: {exc}"
        if isinstance(exc, CapabilityError):
            text = f"CapabilityError {exc.code}: {exc.message}"
    except BaseException:  # noqa: BLE001  # even its text is a stranger's code
        text = f"{name}: its text cannot be made"
    text = plain_text(text[:MAX_MESSAGE])
    clean = "".join(c if c.isprintable() else " " for c in text)
    # Lone surrogates cannot be sent to the daemon.
    return clean.encode("utf-8", "replace").decode("utf-8")


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
