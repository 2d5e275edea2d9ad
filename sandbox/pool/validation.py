"""Checks schemas and values in separate workers, each check under a deadline.

A value that fits a schema that is proved harmless is told without a worker
(`sandbox.plain_schemas`). Every other check first gets a short time, `QUICK`, which
nearly all need a tenth of. One that takes longer is broken off and done again in the
lane of long checks, so that quick ones never wait behind long ones. In both lanes each
user of the workers has a fair share (`sandbox.pool.shares`), and one worker is kept for
the owner and for listed peers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sandbox.errors import SandboxError
from sandbox.plain_schemas import PlainSchemas, surely_schema
from sandbox.pool.shares import NICE, FairQueue, Rank, Share, TooManyWait, current_share
from sandbox.processes.process import ForkServer
from sandbox.processes.worker_process import WorkerProcess

logger = logging.getLogger(__name__)

QUICK = 0.1
"Seconds for a check before it counts as a long one."

UNCOUNTED = 0.02
"Seconds of a check that are nobody's burden; a usual one takes less than 0.001."

OUT_OF_TIME = "the check ran out of time"
"Finding of a check that was stopped at its deadline."

Schema = dict[str, Any] | bool


class SchemaValidator:
    """Checks schemas by their metaschema and values by schemas (2020-12).

    A peer's schema can take for ever; then its worker is killed and the check returns
    a finding. Every check returns findings in words; no finding means valid. Who asks
    is `current_share`.

    Args:
        workers: Number of quick checks, and of long ones, that run at a time; the first
            of each is kept for the owner and for listed peers.
        deadline: Seconds for one long check.
    """

    def __init__(
        self,
        workers: int = 2,
        deadline: float = 2.0,
        *,
        memory: int = 256 * 1024 * 1024,
        max_frame: int = 16 * 1024 * 1024,
    ) -> None:
        self._server = ForkServer("schema", memory=memory, max_frame=max_frame)
        self._deadline = deadline
        self._plain = PlainSchemas()
        self._quick = _Lane(self._server, workers)
        self._long = _Lane(self._server, workers)

    async def start(self) -> None:
        """Start the fork server; workers start on demand."""
        await self._server.start()

    async def close(self) -> None:
        """End every worker."""
        self._quick.close()
        self._long.close()
        await self._server.close()

    async def check_schema(self, schema: Schema) -> list[str]:
        """Check a schema against its metaschema."""
        if surely_schema(schema):
            return []
        return await self._check({"op": "check_schema", "schema": schema})

    async def validate(self, schema: Schema, value: Any) -> list[str]:
        """Check a value against a schema, which must not be changed afterwards."""
        if self._plain.fits(schema, value):
            return []
        return await self._check({"op": "validate", "schema": schema, "data": value})

    async def validate_json(
        self, schema: Schema, data: bytes, values: Any = None
    ) -> list[str]:
        """Check bytes that should be JSON against a schema; as `validate`.

        Args:
            values: What they say, if somebody read them as strict JSON already.
        """
        if (
            self._plain.fits_json(schema, data)
            if values is None
            else self._plain.fits(schema, values)
        ):
            return []
        return await self._check(
            {"op": "validate_json", "schema": schema, "data": data}
        )

    def fits(self, schema: Schema, data: bytes, value: Any) -> bool:
        """Return True if JSON surely fits a schema; False says nothing.

        Args:
            value: The same as `data`, parsed strictly.
        """
        return self._plain.fits_parsed(schema, data, value)

    async def _check(self, request: dict[str, Any]) -> list[str]:
        share = current_share.get()
        try:
            reply = await self._ask(request, share)
        except TooManyWait:
            return ["the check was not made: too many checks for this peer wait"]
        except SandboxError as exc:
            if exc.outcome == "timeout":
                return [OUT_OF_TIME]
            logger.warning("schema check failed outcome=%s", exc.outcome)
            return [f"the check failed: {exc.reason}"]
        findings = reply.get("value")
        if type(findings) is not list or not all(type(f) is str for f in findings):
            return ["the check failed: no findings came back"]
        return findings

    async def _ask(self, request: dict[str, Any], share: Share) -> dict[str, Any]:
        try:
            return await self._quick.ask(
                request, share, deadline=min(QUICK, self._deadline)
            )
        except SandboxError as exc:
            if exc.outcome != "timeout":
                raise
        pause = self._long.pause(share)
        if pause:
            found = f"{OUT_OF_TIME}, and this peer gets no longer one for {pause} s"
            return {"value": [found]}
        return await self._long.ask(request, share, deadline=self._deadline)


@dataclass(slots=True, eq=False)
class _Seat:
    """A place for one worker, which starts when it is needed."""

    kept: bool
    "Not for peers that the owner did not list."

    worker: WorkerProcess | None = None


class _Lane:
    """A few workers, and the checks that wait for one."""

    def __init__(self, server: ForkServer, size: int) -> None:
        self._server = server
        self._seats = [_Seat(kept=size > 1 and at == 0) for at in range(size)]
        self._free = list(self._seats)
        self._queue: FairQueue[asyncio.Future[_Seat]] = FairQueue()
        self._waiting = 0

    def pause(self, share: Share) -> int:
        """See `FairQueue.pause`."""
        return self._queue.pause(share, now=time.monotonic())

    def close(self) -> None:
        """End every worker."""
        for seat in self._seats:
            if seat.worker is not None:
                seat.worker.kill("the validator is closed")
                seat.worker = None

    async def ask(
        self, request: dict[str, Any], share: Share, *, deadline: float
    ) -> dict[str, Any]:
        """Return the reply of a worker, when it is the share's turn.

        Raises:
            TooManyWait: See `FairQueue.put`.
            SandboxError: No worker started, or the deadline passed.
        """
        seat = self._take_free(share) or await self._turn(share)
        began = time.monotonic()
        try:
            worker = seat.worker
            if worker is None or not worker.alive:
                worker = seat.worker = await self._spawn(kept=seat.kept)
            return await worker.ask(request, deadline=deadline)
        finally:
            now = time.monotonic()
            if now - began > UNCOUNTED:
                self._queue.use(share, now - began, now=now)
            self._give_back(seat, now)

    def _take_free(self, share: Share) -> _Seat | None:
        # The seat that is kept comes first: so one user alone has one worker.
        for seat in self._free:
            if share.rank is not Rank.COMMON or not seat.kept:
                self._free.remove(seat)
                return seat
        return None

    async def _turn(self, share: Share) -> _Seat:
        turn: asyncio.Future[_Seat] = asyncio.get_running_loop().create_future()
        self._queue.put(share, turn)
        self._waiting += 1
        try:
            return await turn
        except asyncio.CancelledError:
            self._queue.drop(share, turn)
            if turn.done() and not turn.cancelled():
                self._give_back(turn.result(), time.monotonic())
            raise
        finally:
            self._waiting -= 1

    def _give_back(self, seat: _Seat, now: float) -> None:
        while self._waiting:
            turn = self._queue.take(now=now, common=not seat.kept)
            if turn is None:
                break
            # One that was cancelled in this moment drops itself a little later.
            if not turn.done():
                turn.set_result(seat)
                return
        self._free.append(seat)
        self._free.sort(key=self._seats.index)

    async def _spawn(self, *, kept: bool) -> WorkerProcess:
        worker = await self._server.spawn()
        if not kept:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, worker.pid, NICE)
        return worker
