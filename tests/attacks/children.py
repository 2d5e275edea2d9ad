"""Processes that take one order a line and answer with one line."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

MAX_LINE = 64 * 1024 * 1024
"Bytes of one order or answer."


class ChildEnded(RuntimeError):
    """A process ended, or kept silent for too long."""


class Child:
    """A module of this package as a process on one core."""

    def __init__(
        self, module: str, *arguments: object, core: int | None, log: Path
    ) -> None:
        """Start it; what it complains of goes to `log`."""
        self._log = log
        with log.open("ab") as written:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                preexec_fn=partial(pin, core),
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return self._process.poll() is None

    async def ask(self, order: dict[str, Any], *, timeout: float) -> Any:
        """Give an order and return the answer.

        Raises:
            ChildEnded: It ended, or did not answer in `timeout` seconds.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            async with asyncio.timeout(timeout):
                line = await asyncio.to_thread(self._process.stdout.readline)
        except (OSError, TimeoutError) as exc:
            self.end()
            raise ChildEnded(f"{type(exc).__name__}\n{self._complaint()}") from exc
        if not line:
            raise ChildEnded(f"it ended\n{self._complaint()}")
        return json.loads(line)

    def _complaint(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:]

    def end(self) -> None:
        """End it with SIGKILL and wait."""
        self._process.kill()
        self._process.wait()


def pin(core: int | None) -> None:
    """Let this process, and what it starts, run on one core only."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def raise_file_limit() -> None:
    """Let this process have as many files as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def orders() -> AsyncIterator[dict[str, Any]]:
    """Give the orders that come on standard input, until it ends."""
    reader = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        yield json.loads(line)


def give(answer: object) -> None:
    """Answer the order that came last."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
