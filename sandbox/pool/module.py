"""A loaded module: runs its functions and answers and limits its capability calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from sandbox.errors import CapabilityFailure, Finding, FrameError, SandboxError
from sandbox.frames import pack
from sandbox.lock.lockdown import Isolation
from sandbox.pool.config import SandboxConfig
from sandbox.pool.shares import OWNER, Share


class Worker(Protocol):
    """A place where a module runs, such as `WorkerProcess`."""

    pid: int
    calls: int

    @property
    def alive(self) -> bool:
        """True while it accepts requests."""

    async def ask_timed(
        self, request: dict[str, Any], *, deadline: float
    ) -> tuple[dict[str, Any], float]:
        """Send one request; return the reply and the seconds it took.

        Raises:
            SandboxError: There is no reply; the worker has ended, unless the request
                could not be sent.
        """

    def kill(self, why: str) -> None:
        """End it now; does nothing when it has ended."""


class WorkerBackend(Protocol):
    """Starts workers; `sandbox.processes.process.ForkServer` is one."""

    @property
    def isolation(self) -> Isolation:
        """The level of protection of its workers; `reduced` before `start`."""

    async def start(self) -> None:
        """Prepare to spawn workers; SandboxError if that fails."""

    async def close(self) -> None:
        """End all its processes."""

    async def spawn(self) -> Worker:
        """Return a new worker without a module; SandboxError if that fails."""


OnCall = Callable[[str, Any], Awaitable[Any]]
"Answers a capability call of a module, or raises `CapabilityFailure`."

WriteUpdate = Callable[[Any], Awaitable[Any]]
"Has the module write an update of a value; returns what its function returned."

OnStream = Callable[[str, Any, WriteUpdate], Awaitable[Any]]
"As `OnCall`, for a call whose updates the module can write."

_REPORTED = frozenset({"rejected", "error", "memory", "output_too_large"})
"Outcomes that a worker itself may report."

MAX_FINDINGS = 20
MAX_REASON = 2_000
MAX_LOG = 64 * 1024


class Host(Protocol):
    """The part of the pool that a module uses."""

    config: SandboxConfig

    async def worker_of(self, module: Module) -> Worker:
        """Return the module's worker; start and load one if necessary."""

    async def drop_run(self, worker: Worker, run: int) -> None:
        """Let a worker drop a generator that nobody waits for any more."""

    def refuse_quarantined(self, module: Module) -> None:
        """Raise SandboxError when the module is quarantined."""

    def ran(
        self, module: Module, error: SandboxError | None, *, seconds: float = 0.0
    ) -> None:
        """Record the end of a run and its duration."""

    def logged(self, module: Module, text: str) -> None:
        """Record text that a module printed."""


class Module:
    """A loaded source under its key; it replaces a lost worker by itself."""

    def __init__(
        self,
        host: Host,
        key: str,
        source: str,
        *,
        code: str,
        protocol: str,
        peer: str,
        share: Share = OWNER,
    ) -> None:
        self._host = host
        self.key = key
        self.source = source
        self.code = code
        "SHA-256 of the source."
        self.protocol = protocol
        self.peer = peer
        self.share = share
        "Whose worker it is."
        self.used = time.monotonic()
        "When its last run began or ended."
        self.unloaded = False
        self.worker: Worker | None = None
        self.busy = 0
        self.loading = asyncio.Lock()
        self.base_resident = 0
        "Resident bytes of its worker after loading."

    async def call(self, function: str, *args: Any, deadline: float) -> Any:
        """Call a plain function and return its value.

        Args:
            deadline: Seconds that the worker may take.

        Raises:
            SandboxError: The function returned no value.
        """

        async def once() -> Any:
            worker = await self._host.worker_of(self)
            request = {"op": "call", "function": function, "args": list(args)}
            reply, _ = await worker.ask_timed(request, deadline=deadline)
            self.keep_log(reply)
            return _value(reply, worker, function)

        return await self._counted(function, once)

    async def run(
        self,
        function: str,
        *args: Any,
        on_call: OnCall,
        deadline: float,
        on_stream: OnStream | None = None,
    ) -> Any:
        """Run a generator function, and answer the capability calls that it yields.

        Args:
            deadline: Seconds that the worker may take, without the time in `on_call`.
                Each update may take as long.
            on_stream: Answers the calls whose updates the module can write; without it
                `on_call` does.

        Raises:
            SandboxError: The function returned no value; `may_have_run` is true if a
                worker lost through another run had called a capability for this one.
        """

        async def once() -> Any:
            return await self._run(function, list(args), on_call, deadline, on_stream)

        return await self._counted(function, once)

    async def _counted(self, function: str, once: Callable[[], Awaitable[Any]]) -> Any:
        """Run; repeat once if another run ended the worker before any effect."""
        self._host.refuse_quarantined(self)
        self.busy += 1
        began = time.monotonic()
        try:
            try:
                value = await once()
            except SandboxError as exc:
                if not exc.collateral or exc.may_have_run:
                    raise
                value = await once()
        except SandboxError as exc:
            exc.function = exc.function or function
            exc.protocol = self.protocol
            self._host.ran(self, exc, seconds=time.monotonic() - began)
            raise
        finally:
            self.busy -= 1
            self.used = time.monotonic()
        self._host.ran(self, None, seconds=time.monotonic() - began)
        return value

    def keep_log(self, reply: dict[str, Any]) -> None:
        """Keep the text that the module printed, which comes with a reply; hostile."""
        log = reply.get("log")
        if type(log) is str:
            lines = (_text(line, 1_000) for line in log[:MAX_LOG].splitlines())
            self._host.logged(self, "".join(f"{line}\n" for line in lines))

    async def _run(
        self,
        function: str,
        args: list[Any],
        on_call: OnCall,
        deadline: float,
        on_stream: OnStream | None,
    ) -> Any:
        worker = await self._host.worker_of(self)
        left, spent = deadline, _Spent(self._host.config)
        request: dict[str, Any] = {"op": "start", "function": function, "args": args}
        run: int | None = None
        finished = False
        try:
            while True:
                reply, took = await worker.ask_timed(request, deadline=max(left, 0.001))
                left -= took
                self.keep_log(reply)
                run = run if run is not None else reply["id"]
                if "wanted" not in reply:
                    finished = True
                    return _value(reply, worker, function)
                spent.count(reply.get("params"))
                answering = on_call
                if reply.get("updates") is True and on_stream is not None:
                    write = partial(self._write, worker, run, deadline)
                    answering = partial(_streamed, on_stream, write)
                request = await _answer(reply, answering, run, worker)
        except SandboxError as exc:
            exc.may_have_run = exc.collateral and spent.calls > 0
            raise
        finally:
            if not finished and run is not None and worker.alive:
                await self._host.drop_run(worker, run)

    async def _write(
        self, worker: Worker, run: int, deadline: float, value: Any
    ) -> Any:
        """Have the module write an update of a value."""
        request = {"op": "update", "run": run, "value": value}
        reply, _ = await worker.ask_timed(request, deadline=deadline)
        self.keep_log(reply)
        return _value(reply, worker, "write_update")


async def _streamed(
    on_stream: OnStream, write: WriteUpdate, name: str, params: Any
) -> Any:
    return await on_stream(name, params, write)


class _Spent:
    """Counts the capability calls of one run, and their bytes."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self.calls = 0
        self._bytes = 0

    def count(self, params: Any) -> None:
        self.calls += 1
        most = self._config.max_capability_calls
        if self.calls > most:
            raise SandboxError(
                "capability_limit",
                f"more than {most} capability calls",
                limit=most,
                used=self.calls,
            )
        most = self._config.max_capability_bytes
        try:
            self._bytes += len(pack(params, max_frame=self._config.max_frame))
        except FrameError as exc:
            raise SandboxError("bad_frame", f"arguments of a call: {exc}") from exc
        if self._bytes > most:
            raise SandboxError(
                "capability_limit",
                f"capability calls with more than {most} bytes",
                limit=most,
                used=self._bytes,
            )


def _value(reply: dict[str, Any], worker: Worker, function: str) -> Any:
    if "failed" in reply:
        raise _failure(reply, worker, function)
    if "value" not in reply:
        worker.kill("it sent neither value nor failure")
        raise SandboxError("bad_frame", "neither value nor failure")
    return reply["value"]


def _failure(reply: dict[str, Any], worker: Worker, function: str) -> SandboxError:
    error = error_of(reply["failed"], worker, stage="call")
    error.function = function
    if error.outcome == "memory":
        worker.kill(error.reason)
    return error


async def _answer(
    reply: dict[str, Any], on_call: OnCall, run: int, worker: Worker
) -> dict[str, Any]:
    """Return the request that resumes a generator after its capability call."""
    name = reply["wanted"]
    if type(name) is not str:
        worker.kill("it sent no capability name")
        raise SandboxError("bad_frame", "no capability name")
    try:
        value = await on_call(name, reply.get("params"))
    except CapabilityFailure as exc:
        return {
            "op": "throw",
            "run": run,
            "code": exc.code,
            "message": exc.message[:500],
        }
    return {"op": "resume", "run": run, "value": value}


def error_of(failed: Any, worker: Worker, *, stage: str) -> SandboxError:
    """Return the error that a worker reports; the report is hostile data too."""
    outcome = failed.get("outcome") if type(failed) is dict else None
    if type(outcome) is not str or outcome not in _REPORTED:
        worker.kill("its report is none")
        return SandboxError("bad_frame", "a report of no known outcome")
    return SandboxError(
        outcome,
        _text(failed.get("reason"), MAX_REASON),
        stage=stage,
        line=_line(failed.get("line")),
        findings=tuple(_findings(failed.get("findings"))),
    )


def _findings(found: Any) -> list[Finding]:
    if type(found) is not list:
        return []
    return [
        Finding(
            _line(item.get("line")),
            _text(item.get("reason"), 500),
            _text(item.get("source", ""), 200),
        )
        for item in found[:MAX_FINDINGS]
        if type(item) is dict
    ]


def _line(line: Any) -> int | None:
    return line if type(line) is int and 0 < line <= 1_000_000 else None


def _text(value: Any, limit: int) -> str:
    text = value if type(value) is str else ""
    return "".join(c if c.isprintable() else " " for c in text[:limit])
