"""The pool: loads modules into workers, runs them, and ends them at deadlines."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import resource
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.lock.lockdown import Isolation
from sandbox.pool.config import SandboxConfig
from sandbox.pool.history import KILLS, History, Quarantine, Runs
from sandbox.pool.module import Module, Worker, WorkerBackend, error_of
from sandbox.pool.shares import NICE, Rank, current_share
from sandbox.processes.process import ForkServer

logger = logging.getLogger(__name__)

_LEVELS = {"reduced": 0, "full-no-landlock": 1, "full": 1}
"Rank of each level: seccomp covers a missing Landlock (SANDBOX.md, Layers)."

_REST = 30.0
"Most seconds between two looks for workers that are not used."

_GROWTH_CHECK = 256
"Requests between two checks of a worker's memory."


class Sandbox:
    """One worker for each loaded module, and a few spare ones without a module.

    Args:
        backend: Starts workers; by default a fork server of our own.
        on_run: Called with the outcome and the seconds of each run.
    """

    def __init__(
        self,
        config: SandboxConfig | None = None,
        *,
        backend: WorkerBackend | None = None,
        on_run: Callable[[str, float], None] | None = None,
    ) -> None:
        self.config = config or SandboxConfig()
        self._on_run = on_run
        self._backend: WorkerBackend = backend or ForkServer(
            "module" if self.config.language_layer else "plain",
            memory=self.config.memory,
            max_frame=self.config.max_frame,
        )
        self._modules: OrderedDict[str, Module] = OrderedDict()
        self._warm: list[Worker] = []
        self._warming: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._quarantine = Quarantine(self.config.quarantine)
        self.history = History()
        "Outcomes of the runs."

    @property
    def loaded(self) -> int:
        """Number of modules that are kept loaded."""
        return len(self._modules)

    @property
    def isolation(self) -> Isolation:
        """The level of protection of workers; `reduced` before `start`."""
        return self._backend.isolation

    async def start(self) -> None:
        """Start the backend; SandboxError if that fails."""
        await self._backend.start()
        self._keep_warm()
        self._resting = asyncio.create_task(self._rest())

    async def close(self) -> None:
        """End every worker and the backend."""
        tasks = [task for task in (self._warming, self._resting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._warming = self._resting = None
        for module in self._modules.values():
            if module.worker is not None:
                module.worker.kill("the sandbox is closed")
        for worker in self._warm:
            worker.kill("the sandbox is closed")
        self._modules.clear()
        self._warm.clear()
        await self._backend.close()

    async def load(
        self,
        key: str,
        source: str,
        *,
        origin: str,
        protocol: str | None = None,
        peer: str = "",
    ) -> Module:
        """Load a source into a worker of its own, unless it is loaded already.

        The worker counts for `current_share`.

        Args:
            key: Identifies the worker: role, protocol, revision and peer.
            origin: Author of the code. Only `rules` runs below the required level.
            protocol: Name under which runs are counted; by default the key.
            peer: The peer that the protocol is used with.

        Raises:
            SandboxError: `forbidden`, `quarantined`, or `rejected` with all findings
                by line; or loading failed.
        """
        protocol = key if protocol is None else protocol
        self._refuse_level(origin)
        self._refuse_source(source)
        known = self._modules.get(key)
        if known is None or known.source != source:
            await self.unload(key)
            code = _digest(source)
            known = Module(
                self,
                key,
                source,
                code=code,
                protocol=protocol,
                peer=peer,
                share=current_share.get(),
            )
            self._modules[key] = known
        try:
            self.refuse_quarantined(known)
            await self.worker_of(known)
        except SandboxError as exc:
            exc.stage, exc.protocol = "load", protocol
            await self.unload(key)
            self.ran(known, exc)
            raise
        except BaseException:
            await self.unload(key)
            raise
        return known

    async def unload(self, key: str) -> None:
        """End the worker of `key`; does nothing when there is none."""
        module = self._modules.pop(key, None)
        if module is not None:
            module.unloaded = True
            if module.worker is not None:
                module.worker.kill("unloaded")

    async def worker_of(self, module: Module) -> Worker:
        """Return the module's worker; start and load one if necessary."""
        worker = module.worker
        if worker is not None and self._usable(module, worker):
            return worker
        async with module.loading:
            if (
                module.unloaded
                or self._modules.setdefault(module.key, module) is not module
            ):
                raise SandboxError("crashed", "the module was unloaded")
            worker = module.worker
            if worker is not None and worker.alive and module.busy <= 1:
                self._recycle(module, worker)
            if worker is not None and worker.alive:
                return worker
            self._make_room(module)
            worker = module.worker = await self._blank()
            if module.share.rank is Rank.COMMON:
                with suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, worker.pid, NICE)
            reply, _ = await worker.ask_timed(
                {
                    "op": "load",
                    "source": module.source,
                    "language": self.config.language_layer,
                },
                deadline=self.config.load_timeout,
            )
            if "failed" in reply:
                error = error_of(reply["failed"], worker, stage="load")
                worker.kill("it did not load")
                raise error
            module.keep_log(reply)
            module.base_resident = _resident(worker.pid)
            return worker

    async def drop_run(self, worker: Worker, run: int) -> None:
        """Let a worker drop a generator that nobody waits for any more."""
        try:
            await worker.ask_timed(
                {"op": "drop", "run": run}, deadline=self.config.load_timeout
            )
        except SandboxError:
            worker.kill("it could not drop a run")

    async def ready(self) -> None:
        """Wait until the spare workers are ready."""
        if self._warming is not None:
            await asyncio.wait({self._warming})

    # Information for the owner.

    def quarantined(
        self, protocol: str, *, source: str | None = None, peer: str | None = None
    ) -> str | None:
        """Return why `peer` may not use a protocol's code, or None if it may.

        Without `peer` the quarantine for everybody is meant.

        Args:
            source: The code's text; None includes any text.
        """
        if self._quarantine.is_empty:
            return None
        return self._quarantine.reason(
            protocol,
            code=None if source is None else _digest(source),
            peer=peer,
            now=time.monotonic(),
        )

    def release(self, protocol: str) -> bool:
        """End a quarantine; False if there was none."""
        return self._quarantine.release(protocol)

    def runs(self, protocol: str) -> Runs:
        """Return the outcomes of a protocol's runs since the start."""
        return self.history.of(protocol)

    def refuse_quarantined(self, module: Module) -> None:
        """Raise SandboxError when the module is quarantined."""
        reason = self._quarantine.reason(
            module.protocol, code=module.code, peer=module.peer, now=time.monotonic()
        )
        if reason is not None:
            raise SandboxError("quarantined", reason)

    def ran(
        self, module: Module, error: SandboxError | None, *, seconds: float = 0.0
    ) -> None:
        """Count a run, and begin a quarantine when too many workers were killed."""
        if self._on_run is not None:
            self._on_run("ok" if error is None else error.outcome, seconds)
        if error is None:
            self.history.succeeded(module.protocol)
            return
        self.history.failed(module.protocol, error)
        if error.outcome not in KILLS or error.collateral:
            return
        now = time.monotonic()
        began = self._quarantine.killed(
            module.protocol, module.code, module.peer, error.outcome, now=now
        )
        if began is not None:
            logger.warning(
                "protocol quarantined hash=%s peer=%s reason=%r",
                module.protocol[:12],
                module.peer,
                began,
            )

    def logged(self, module: Module, text: str) -> None:
        """Keep text that a module printed."""
        self.history.logged(module.protocol, text)

    # Checks before a source is loaded.

    def _refuse_level(self, origin: str) -> None:
        level, required = self.isolation.level, self.config.required_level
        # An unknown required level counts as the highest.
        enough = _LEVELS[level] >= _LEVELS.get(required, 2)
        if origin != "rules" and not enough:
            raise SandboxError(
                "forbidden",
                f"isolation is {level}, so only code written by rules runs; "
                'sandbox.level = "reduced" together with sandbox.without_kernel = '
                '"as my own" runs the rest as if you had written it',
                stage="load",
            )

    def _refuse_source(self, source: str) -> None:
        try:
            data = source.encode("utf-8")
        except UnicodeEncodeError:
            raise SandboxError(
                "rejected", "the source is not valid UTF-8", stage="load"
            ) from None
        if len(data) > self.config.max_source or b"\0" in data:
            raise SandboxError(
                "rejected",
                f"the source has {len(data)} bytes, at most {self.config.max_source}, "
                "none of them NUL",
                stage="load",
                limit=self.config.max_source,
                used=len(data),
            )

    # Workers.

    async def _blank(self) -> Worker:
        """Return a locked worker without a module."""
        while self._warm:
            worker = self._warm.pop()
            self._keep_warm()
            if worker.alive:
                return worker
        return await self._backend.spawn()

    def _keep_warm(self) -> None:
        if self._warming is None or self._warming.done():
            self._warming = asyncio.create_task(self._fill())

    async def _fill(self) -> None:
        try:
            while len(self._warm) < self.config.warm_workers:
                self._warm.append(await self._backend.spawn())
        except SandboxError as exc:
            # The next call spawns one itself and reports the error to its caller.
            logger.warning("no worker kept ready reason=%s", exc.reason)

    def _usable(self, module: Module, worker: Worker) -> bool:
        """Return whether a worker can be used without any check, as for most calls."""
        if module.key not in self._modules:
            return False
        self._modules.move_to_end(module.key)
        return (
            worker.alive
            and not module.loading.locked()
            and worker.calls % _GROWTH_CHECK != 0
            and worker.calls < self.config.max_calls_per_worker
        )

    def _recycle(self, module: Module, worker: Worker) -> None:
        """End an idle worker after its number of requests, or when it grew too much."""
        if worker.calls >= self.config.max_calls_per_worker:
            worker.kill("it has served its time")
        elif worker.calls % _GROWTH_CHECK == 0:
            grown = _resident(worker.pid) - module.base_resident
            if grown > self.config.max_growth:
                worker.kill(f"it has grown by {grown} bytes")

    def _make_room(self, module: Module) -> None:
        """End longest unused workers without a call where there are too many.

        There is a bound for each share, one for the common rank and one for all. Its
        own workers make room for a share; only where all together are too many one of
        another goes, and first one of the common rank.

        Raises:
            SandboxError: All workers that could end are busy.
        """
        # A module with a held lock is starting its worker: it counts, but must not end.
        live = [
            other
            for other in self._modules.values()
            if other is not module and (_idle(other) or _working(other))
        ]
        config, share = self.config, module.share
        if share.rank is not Rank.OWNER:
            own = [other for other in live if other.share == share]
            most = max(1, int(config.max_workers * config.share))
            live = _reduced(live, own, most, f"{most} workers for this peer")
        if share.rank is Rank.COMMON:
            common = [other for other in live if other.share.rank is Rank.COMMON]
            most = max(1, config.max_workers // 2)
            live = _reduced(live, common, most, f"{most} workers for unlisted peers")
        # Sorting keeps the order of those that are equal, the longest unused one first.
        order = sorted(live, key=lambda other: other.share.rank is not Rank.COMMON)
        _reduced(live, order, config.max_workers, f"{config.max_workers} workers")

    async def _rest(self) -> None:
        """End workers that have not been used for long, and forget their modules."""
        idle = self.config.idle_timeout
        while True:
            await asyncio.sleep(min(idle / 4, _REST))
            latest = time.monotonic() - idle
            for module in [
                one
                for one in self._modules.values()
                if not _working(one) and one.busy == 0 and one.used < latest
            ]:
                # Whoever still has it goes on with a new worker.
                del self._modules[module.key]
                if module.worker is not None:
                    module.worker.kill("not used for long")


def _reduced(
    live: list[Module], some: Iterable[Module], most: int, bound: str
) -> list[Module]:
    """End as many of `some` as are too many with one more; return who of `live` stays.

    Raises:
        SandboxError: Not enough of them are idle.
    """
    found = list(some)
    surplus = len(found) + 1 - most
    gone: list[Module] = []
    for other in found:
        if surplus > len(gone) and _idle(other):
            assert other.worker is not None
            other.worker.kill("room for another")
            gone.append(other)
    if surplus > len(gone):
        raise SandboxError("busy", f"all {bound} are busy; try again", limit=most)
    return [other for other in live if other not in gone]


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8")).hexdigest()


def _alive(module: Module) -> bool:
    return module.worker is not None and module.worker.alive


def _idle(module: Module) -> bool:
    return _alive(module) and module.busy == 0 and not module.loading.locked()


def _working(module: Module) -> bool:
    return module.loading.locked() or (_alive(module) and module.busy > 0)


def _resident(pid: int) -> int:
    """Return the resident bytes of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * resource.getpagesize()
