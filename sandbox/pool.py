"""Modules in their workers: loaded once, called often, killed at their deadline."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sandbox.errors import CapabilityFailure, SandboxError
from sandbox.lockdown import Isolation, isolation
from sandbox.process import ForkServer, WorkerProcess

__all__ = ["Module", "Sandbox", "SandboxConfig"]

OnCall = Callable[[str, Any], Awaitable[Any]]
"Answers a capability call of a module, or raises `CapabilityFailure`."

_RECYCLED = frozenset({"memory", "timeout", "crashed", "bad_frame"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """Limits of the sandbox."""

    max_workers: int = 64
    "Workers at a time; the longest unused one without a call ends first."

    max_source: int = 64 * 1024
    "Largest source text, in bytes of UTF-8 (SANDBOX.md, Layer 0)."

    max_frame: int = 16 * 1024 * 1024
    "Largest frame to or from a worker, in bytes."

    memory: int = 256 * 1024 * 1024
    "Address space of a worker above what it starts with, in bytes."

    load_timeout: float = 5.0
    "Seconds to compile and load a source."

    max_capability_calls: int = 64
    "Capability calls of one run."

    max_calls_per_worker: int = 10_000
    "Requests after which a worker is replaced."

    required_level: str = "full"
    "Isolation that code not written by rules needs; the owner may lower it."


class Module:
    """A loaded source under its key; a lost worker is replaced by itself."""

    def __init__(self, sandbox: Sandbox, key: str, source: str) -> None:
        self._sandbox = sandbox
        self.key = key
        self.source = source
        self.worker: WorkerProcess | None = None
        self.busy = 0
        self.loading = asyncio.Lock()

    async def call(self, function: str, *args: Any, deadline: float) -> Any:
        """Call a plain function and return its value.

        Args:
            deadline: Seconds of its own time.

        Raises:
            SandboxError: It gave no value.
        """
        self.busy += 1
        try:
            worker = await self._sandbox.worker_of(self)
            request = {"op": "call", "function": function, "args": list(args)}
            return self._value(
                await worker.ask(request, deadline=deadline), worker, function
            )
        finally:
            self.busy -= 1

    async def run(
        self, function: str, *args: Any, on_call: OnCall, deadline: float
    ) -> Any:
        """Run a generator function, answering the calls it yields.

        Args:
            deadline: Seconds of its own time, without the time of `on_call`.

        Raises:
            SandboxError: It gave no value.
        """
        self.busy += 1
        try:
            return await self._run(function, list(args), on_call, deadline)
        finally:
            self.busy -= 1

    async def _run(
        self, function: str, args: list[Any], on_call: OnCall, deadline: float
    ) -> Any:
        worker = await self._sandbox.worker_of(self)
        left, calls = deadline, 0
        request: dict[str, Any] = {"op": "start", "function": function, "args": args}
        run: int | None = None
        finished = False
        try:
            while True:
                reply, took = await worker.ask_timed(request, deadline=max(left, 0.001))
                left -= took
                run = run if run is not None else reply["id"]
                if "wanted" not in reply:
                    finished = True
                    return self._value(reply, worker, function)
                calls += 1
                if calls > self._sandbox.config.max_capability_calls:
                    raise SandboxError(
                        "capability_limit",
                        f"more than {self._sandbox.config.max_capability_calls} calls",
                        function=function,
                        limit=self._sandbox.config.max_capability_calls,
                        used=calls,
                    )
                request = await _answer(reply, on_call, run, worker)
        finally:
            if not finished and run is not None and worker.alive:
                await self._sandbox.drop_run(worker, run)

    def _value(
        self, reply: dict[str, Any], worker: WorkerProcess, function: str
    ) -> Any:
        failed = reply.get("failed")
        if failed is None:
            if "value" not in reply:
                worker.kill("it sent neither value nor failure")
                raise SandboxError("bad_frame", "neither value nor failure")
            return reply["value"]
        error = _error(failed, worker, function)
        if error.outcome in _RECYCLED:
            worker.kill(error.reason)
        raise error


class Sandbox:
    """The fork server and one worker for each loaded module."""

    def __init__(self, config: SandboxConfig | None = None) -> None:
        self.config = config or SandboxConfig()
        self._server = ForkServer(
            "module", memory=self.config.memory, max_frame=self.config.max_frame
        )
        self._modules: OrderedDict[str, Module] = OrderedDict()

    @property
    def isolation(self) -> Isolation:
        """How well workers are locked, for `anpd doctor`."""
        return isolation()

    async def start(self) -> None:
        """Start the fork server; SandboxError if it cannot."""
        await self._server.start()

    async def close(self) -> None:
        """End every worker and the fork server."""
        for module in self._modules.values():
            if module.worker is not None:
                module.worker.kill("the sandbox is closed")
        self._modules.clear()
        await self._server.close()

    async def load(self, key: str, source: str, *, origin: str) -> Module:
        """Load a source into a worker of its own, or find it loaded.

        Args:
            key: One worker each: the protocol and the peer.
            origin: Who wrote it. Only `rules` runs below the required level.

        Raises:
            SandboxError: `forbidden`, or `rejected` with all findings by line, or it
                failed while it was loaded.
        """
        if origin != "rules" and self.config.required_level != "reduced":
            level = self.isolation.level
            if level != "full":
                raise SandboxError(
                    "forbidden",
                    f"isolation is {level}, so only code written by rules runs; "
                    'sandbox.level = "reduced" lowers what is asked',
                )
        try:
            data = source.encode("utf-8")
        except UnicodeEncodeError:
            raise SandboxError("rejected", "the source is not valid UTF-8") from None
        if len(data) > self.config.max_source or b"\0" in data:
            raise SandboxError(
                "rejected",
                f"the source has {len(data)} bytes, at most {self.config.max_source}, "
                "none of them NUL",
                limit=self.config.max_source,
                used=len(data),
            )
        known = self._modules.get(key)
        if known is None or known.source != source:
            await self.unload(key)
            known = self._modules[key] = Module(self, key, source)
        try:
            await self.worker_of(known)
        except BaseException:
            await self.unload(key)
            raise
        return known

    async def unload(self, key: str) -> None:
        """End the worker of `key`; harmless when there is none."""
        module = self._modules.pop(key, None)
        if module is not None and module.worker is not None:
            module.worker.kill("unloaded")

    async def worker_of(self, module: Module) -> WorkerProcess:
        """Return the worker of a module, started and loaded if need be."""
        async with module.loading:
            if self._modules.get(module.key) is not module:
                raise SandboxError("crashed", "the module was unloaded")
            worker = module.worker
            if (
                worker is not None
                and worker.alive
                and worker.calls >= self.config.max_calls_per_worker
                and module.busy <= 1
            ):
                worker.kill("it has served its time")
            if worker is not None and worker.alive:
                self._modules.move_to_end(module.key)
                return worker
            self._make_room(module)
            worker = module.worker = await self._server.spawn()
            reply = await worker.ask(
                {"op": "load", "source": module.source},
                deadline=self.config.load_timeout,
            )
            if "failed" in reply:
                error = _error(reply["failed"], worker, "load")
                worker.kill("it did not load")
                raise error
            return worker

    async def drop_run(self, worker: WorkerProcess, run: int) -> None:
        """Let a worker forget a generator that nobody waits for any more."""
        try:
            await worker.ask(
                {"op": "drop", "run": run}, deadline=self.config.load_timeout
            )
        except SandboxError:
            worker.kill("it could not drop a run")

    def _make_room(self, module: Module) -> None:
        """End the longest unused worker without a call when there are too many."""
        # A locked one is starting its worker: it counts, and may not be ended.
        live = [
            other
            for other in self._modules.values()
            if other is not module and (_idle(other) or _working(other))
        ]
        surplus = len(live) + 1 - self.config.max_workers
        for other in [other for other in live if _idle(other)]:
            if surplus <= 0:
                break
            assert other.worker is not None
            other.worker.kill("room for another")
            surplus -= 1
        if surplus > 0:
            raise SandboxError(
                "error",
                f"all {self.config.max_workers} workers are busy; try again",
                limit=self.config.max_workers,
            )


def _alive(module: Module) -> bool:
    return module.worker is not None and module.worker.alive


def _idle(module: Module) -> bool:
    return _alive(module) and module.busy == 0 and not module.loading.locked()


def _working(module: Module) -> bool:
    return module.loading.locked() or (_alive(module) and module.busy > 0)


async def _answer(
    reply: dict[str, Any], on_call: OnCall, run: int, worker: WorkerProcess
) -> dict[str, Any]:
    """Return the request that goes on with a generator after its capability call."""
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


def _error(failed: Any, worker: WorkerProcess, function: str) -> SandboxError:
    """Return the error that a worker reports; a report is hostile data too."""
    outcomes = {"rejected", "error", "memory", "output_too_large"}
    outcome = failed.get("outcome") if type(failed) is dict else None
    if type(outcome) is not str or outcome not in outcomes:
        worker.kill("its report is none")
        return SandboxError("bad_frame", "a report of no known outcome")
    line, reason = failed.get("line"), str(failed.get("reason"))
    return SandboxError(
        outcome,
        "".join(c if c.isprintable() else " " for c in reason[:2000]),
        function=function,
        line=line if type(line) is int else None,
    )
