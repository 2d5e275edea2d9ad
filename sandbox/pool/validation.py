"""Checks schemas and values in separate workers, each check under a deadline."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from sandbox.errors import SandboxError
from sandbox.processes.process import ForkServer, WorkerProcess

__all__ = ["SchemaValidator"]

logger = logging.getLogger(__name__)

OUT_OF_TIME = "the check ran out of time"
"Finding of a check that was stopped at its deadline."

Schema = dict[str, Any] | bool


class SchemaValidator:
    """Checks schemas by their metaschema and values by schemas (2020-12).

    A peer's `pattern` can run for ever; then its worker is killed and the check returns
    a finding. Every check returns findings in words; no finding means valid.

    Args:
        workers: Number of checks that run at a time.
        deadline: Seconds for one check.
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
        self._count = workers
        self._deadline = deadline
        self._free: asyncio.Queue[WorkerProcess | None] = asyncio.Queue()
        self._workers: set[WorkerProcess] = set()

    async def start(self) -> None:
        """Start the fork server; workers start on demand."""
        await self._server.start()
        for _ in range(self._count):
            self._free.put_nowait(None)

    async def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.kill("the validator is closed")
        self._workers.clear()
        await self._server.close()

    async def check_schema(self, schema: Schema) -> list[str]:
        """Check a schema against its metaschema."""
        return await self._check({"op": "check_schema", "schema": schema})

    async def validate(self, schema: Schema, value: Any) -> list[str]:
        """Check a value against a schema."""
        return await self._check({"op": "validate", "schema": schema, "data": value})

    async def validate_json(self, schema: Schema, data: bytes) -> list[str]:
        """Check bytes that should be JSON (RFC 8259) against a schema."""
        return await self._check(
            {"op": "validate_json", "schema": schema, "data": data}
        )

    async def _check(self, request: dict[str, Any]) -> list[str]:
        worker = await self._free.get()
        try:
            if worker is None or not worker.alive:
                worker = await self._server.spawn()
                self._workers.add(worker)
            reply = await worker.ask(request, deadline=self._deadline)
        except SandboxError as exc:
            if exc.outcome == "timeout":
                return [OUT_OF_TIME]
            logger.warning("schema check failed outcome=%s", exc.outcome)
            return [f"the check failed: {exc.reason}"]
        finally:
            if worker is not None and not worker.alive:
                self._workers.discard(worker)
                worker = None
            self._free.put_nowait(worker)
        findings = reply.get("value")
        if type(findings) is not list or not all(type(f) is str for f in findings):
            return ["the check failed: no findings came back"]
        return findings
