"""Pairs of daemons to measure, and the memory of their processes."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.call import Anpd
from bench.direct import Socket, children

PER_FILE = 100
"Functions in one attachment."

FUNCTION = """
def double{number}(number: int, text: str) -> dict[str, str]:
    return {{"text": text, "number": str(number * 2)}}
"""


def _processes(pids: set[int]) -> Iterator[int]:
    left = list(pids)
    while left:
        pid = left.pop()
        yield pid
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            left += map(int, task.read_text().split())


def _bytes_of(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{file} has no {name}")


def memory(pids: set[int]) -> float:
    """Return the MiB of processes and their children; what they share counts once."""
    found = (
        _bytes_of(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") for pid in _processes(pids)
    )
    return sum(found) / 2**20


def reset_peak(pids: set[int]) -> float:
    """Forget the largest memory so far; return what is used now, in MiB."""
    used = 0
    for pid in _processes(pids):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        used += _bytes_of(Path(f"/proc/{pid}/status"), "VmRSS:")
    return used / 2**20


def peak(pids: set[int]) -> float:
    """Return the largest memory of each process since `reset_peak`, in MiB."""
    found = (
        _bytes_of(Path(f"/proc/{pid}/status"), "VmHWM:") for pid in _processes(pids)
    )
    return sum(found) / 2**20


@dataclass
class Point:
    """One place of a series, and what was measured there."""

    at: int
    once: Callable[[], Awaitable[Sequence[float]]]
    "Makes the calls of one round, and returns the seconds of each."

    used: Callable[[], float]
    "Returns the memory that counts, in MiB."

    medians: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """Median of the rounds' medians, in milliseconds."""
        return statistics.median(self.medians) * 1e3

    @property
    def memory(self) -> float:
        """Median of the rounds, in MiB."""
        return statistics.median(self.sizes)

    async def round(self) -> None:
        """Measure once."""
        self.medians.append(statistics.median(await self.once()))
        self.sizes.append(self.used())


@dataclass
class Pair:
    """Two daemons; one has functions that the other may call."""

    url: str
    did: str
    provider: set[int]
    "Process ids of the daemon that answers."

    caller: set[int]
    _path: str
    "Socket of the caller's local API."

    @classmethod
    @contextmanager
    def running(
        cls,
        folder: Path,
        *,
        functions: int = 1,
        known: int = 0,
        allowed: Sequence[str] = (),
    ) -> Iterator[Pair]:
        """Run two daemons.

        Args:
            folder: For their homes; it is made.
            functions: How many functions there are to call.
            known: Further peers that the caller's store knows.
            allowed: DIDs whose daemons the provider allows.
        """
        folder.mkdir()
        tree = Path(__file__).resolve().parents[2]
        provider, caller = (Anpd(tree, folder / one) for one in ("provider", "caller"))
        provider.environment["ANPD_LIMITS__MAX_CONNECTIONS"] = "4000"
        for first in range(0, functions, PER_FILE):
            some = range(first, min(functions, first + PER_FILE))
            file = folder / f"made{first}.py"
            file.write_text("\n".join(FUNCTION.format(number=one) for one in some))
            name = ("--name", f"b{first}", "--expose", "*")
            provider.run("attach", "python", file.stem, *name)
        if allowed:
            provider.remember(allowed)
        if known:
            caller.run("init")
            caller.remember(f"did:key:z{one}" for one in range(known))
        with ExitStack() as stack:
            before = children()
            address, api = stack.enter_context(provider.up())
            api.close()
            serving = children() - before
            _, api = stack.enter_context(caller.up())
            calling = children() - before - serving
            api.close()
            url, _, did = address.partition("#")
            yield cls(url, did, serving, calling, api.path)

    async def socket(self, number: int = 0) -> Socket:
        """Return a connection for calls of one function, after a first call of it."""
        name = f"b{number // PER_FILE * PER_FILE}.double{number}"
        body = {"peer": f"{self.url}#{self.did}", "need": name}
        made = Socket(self._path, body, "agreement")
        await made.connect()
        arguments: dict[str, Any] = {"is_first": True}
        await made.call("first", **arguments)
        return made
