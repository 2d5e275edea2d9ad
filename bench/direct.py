"""A warm call through two daemons against the same tool called directly.

    python -m bench.direct [--against DIR] [--rounds N]

Directly means the `mcp` SDK over stdio. The tool is `double`, a Python function: as a
tool of the SDK's server, and attached to a daemon as a function or as that server. 1, 8
and 32 callers wait for answers at a time. All take turns in one run, and the medians of
their rounds are compared; only ratios of one run mean anything. With `--against` a
second checkout is measured by turns. CPU time is that of both daemons and all their
children, per call. The last column is the p50 of one caller with 700 KiB of arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from anp.protocols.envelope import ENVELOPE_URI
from bench.call import ARGUMENTS, FUNCTION, Anpd

__all__ = ["Socket", "children", "main", "timed"]

CALLERS = (1, 8, 32)
CALLS = 64
"Calls of each kind and number of callers in one round."

ROUNDS = 8
WARM = 80
BIG = 700 * 1024
"Characters of the large argument."

BIG_CALLS = 4

SERVER = (
    FUNCTION
    + """
from mcp.server import MCPServer

server = MCPServer("direct")
server.tool()(double)
server.run("stdio")
"""
)

Once = Callable[[str], Awaitable[None]]
"Makes one call with a text, and checks the answer."


@dataclass
class Kind:
    """One way to call, and what its rounds took."""

    name: str
    callers: list[Once]
    "One for each caller; they share nothing that makes them wait."

    begin: Callable[[], Awaitable[None]]
    "Called before each round, because a daemon ends connections that are idle."

    cpu: Callable[[], float]
    "CPU seconds of all processes that it uses, so far."

    p50: dict[int, list[float]] = field(default_factory=dict)
    per_second: dict[int, list[float]] = field(default_factory=dict)
    cost: list[float] = field(default_factory=list)
    large: list[float] = field(default_factory=list)

    async def round(self) -> None:
        """Measure each number of callers once."""
        await self.begin()
        for number in CALLERS:
            times: list[float] = []
            cpu, began = self.cpu(), time.perf_counter()
            await asyncio.gather(
                *(_calls(one, CALLS // number, times) for one in self.callers[:number])
            )
            took = time.perf_counter() - began
            self.p50.setdefault(number, []).append(statistics.median(times))
            self.per_second.setdefault(number, []).append(len(times) / took)
            if number == 1:
                self.cost.append((self.cpu() - cpu) / len(times))
        text = "x" * BIG
        times = []
        for _ in range(BIG_CALLS):
            times.append(await timed(self.callers[0], text))
        self.large.append(statistics.median(times))


async def timed(once: Once, text: str) -> float:
    """Return the seconds that a call with a text took."""
    began = time.perf_counter()
    await once(text)
    return time.perf_counter() - began


async def _calls(once: Once, count: int, times: list[float]) -> None:
    for _ in range(count):
        took = await timed(once, str(ARGUMENTS["text"]))
        times.append(took)


def _cpu_of(pids: list[int]) -> float:
    """Return the CPU seconds of processes and of all that they started."""
    ticks = 0
    parents: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.name))
        spent[int(entry.name)] = sum(map(int, fields[11:15]))
    left = list(pids)
    while left:
        pid = left.pop()
        ticks += spent.get(pid, 0)
        left += parents.get(pid, [])
    return ticks / os.sysconf("SC_CLK_TCK")


class Socket:
    """One kept connection to the local API of a daemon."""

    def __init__(self, path: str, peer: str, need: str, source: str) -> None:
        self._path, self._source = path, source
        self._body = {"peer": peer, "need": need}
        if source == "consensus":
            self._body["protocol"] = ENVELOPE_URI
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> None:
        """Connect anew."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = await asyncio.open_unix_connection(self._path, limit=1 << 22)

    async def call(self, text: str, *, is_first: bool = False) -> None:
        """Make one call; the first may negotiate.

        Raises:
            RuntimeError: It failed, or went another way than it should.
        """
        assert self._streams is not None
        reader, writer = self._streams
        body = json.dumps({**self._body, "input": {**ARGUMENTS, "text": text}}).encode()
        head = (
            "POST /v1/calls HTTP/1.1\r\nhost: anpd\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.partition("content-length:")[2].split("\r\n")[0])
        found = json.loads(await reader.readexactly(length))
        right = is_first or found.get("source") == self._source
        if not right or "42" not in str(found.get("output"))[-40:]:
            raise RuntimeError(f"the call failed: {str(found)[:300]}")


async def _direct(stack: AsyncExitStack, folder: Path) -> Kind:
    (folder / "server.py").write_text(SERVER)
    before = children()
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(folder / "server.py")]
    )
    log = stack.enter_context((folder / "server.log").open("w"))
    streams = await stack.enter_async_context(stdio_client(parameters, errlog=log))
    session = await stack.enter_async_context(ClientSession(*streams))
    await session.initialize()
    pids = [pid for pid in children() if pid not in before]

    async def call(text: str) -> None:
        found: Any = await session.call_tool("double", {**ARGUMENTS, "text": text})
        if "42" not in found.content[0].text[-40:]:
            raise RuntimeError(f"the call failed: {found}")

    async def begin() -> None:
        pass

    return Kind(
        "mcp over stdio",
        [call] * max(CALLERS),
        begin,
        # The SDK's client runs in this process.
        lambda: _cpu_of(pids) + time.process_time(),
    )


def children() -> set[int]:
    """Return the ids of the processes that this one started."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= set(map(int, (task / "children").read_text().split()))
    return found


async def _daemons(stack: AsyncExitStack, tree: Path, folder: Path) -> list[Kind]:
    """Start the daemons of one checkout; return what to measure of it."""
    kinds: list[Kind] = []
    for name, source, attach in (
        ("agreement, Python", "agreement", ("python", "made:double")),
        ("envelope, Python", "consensus", ("python", "made:double")),
        (
            "agreement, MCP server",
            "agreement",
            ("mcp", "--", sys.executable, str(folder / "server.py")),
        ),
    ):
        number = len(kinds)
        provider = Anpd(tree, folder / f"provider{number}")
        kind, *what = attach
        provider.run("attach", kind, "--expose", "*", "--name", "b", *what)
        before = children()
        address, _ = stack.enter_context(provider.up())
        caller = Anpd(tree, folder / f"caller{number}", consensus=source == "consensus")
        _, api = stack.enter_context(caller.up())
        pids = [pid for pid in children() if pid not in before]
        api.close()
        sockets = [
            Socket(api.path, address, "double", source) for _ in range(max(CALLERS))
        ]

        async def begin(sockets: list[Socket] = sockets) -> None:
            for one in sockets:
                await one.connect()

        await begin()
        await sockets[0].call(str(ARGUMENTS["text"]), is_first=True)
        for _ in range(WARM):
            await sockets[0].call(str(ARGUMENTS["text"]))
        kinds.append(
            Kind(
                name,
                [one.call for one in sockets],
                begin,
                lambda pids=pids: _cpu_of(pids),  # type: ignore[misc]  # its own list
            )
        )
    return kinds


async def measure(trees: dict[str, Path], rounds: int) -> dict[str, list[Kind]]:
    """Measure every way to call, by turns."""
    async with AsyncExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="bench")
        folder = Path(stack.enter_context(temporary))
        direct = await _direct(stack, folder)
        found = {"": [direct]}
        for number, (name, tree) in enumerate(trees.items()):
            own = folder / str(number)
            own.mkdir()
            (own / "made.py").write_text(FUNCTION)
            (own / "server.py").write_text(SERVER)
            found[name] = await _daemons(stack, tree, own)
        turns = [one for several in found.values() for one in several]
        for _ in range(rounds):
            for one in random.sample(turns, len(turns)):
                await one.round()
        return found


def _row(kind: Kind, base: Kind) -> str:
    cells = []
    for number in CALLERS:
        ours = statistics.median(kind.p50[number])
        ratio = ours / statistics.median(base.p50[number])
        cells.append(f"{ours * 1e3:7.2f} ms {ratio:5.2f}")
    cost = statistics.median(kind.cost) * 1e3
    cells.append(f"{statistics.median(kind.per_second[CALLERS[-1]]):6.0f}/s")
    cells.append(f"{cost:6.2f} ms {cost / statistics.median(base.cost) / 1e3:5.2f}")
    large = statistics.median(kind.large)
    cells.append(f"{large * 1e3:7.1f} ms {large / statistics.median(base.large):5.2f}")
    return " | ".join([f"{kind.name:26}", *cells])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    trees = {"here": Path(__file__).resolve().parents[1]}
    if options.against is not None:
        trees["there"] = options.against.resolve()
    found = asyncio.run(measure(trees, options.rounds))
    base = found[""][0]
    heads = [f"p50, {number} callers" for number in CALLERS]
    print(" | ".join(["", *heads, "calls", "CPU per call", "700 KiB"]))
    for name, kinds in found.items():
        if name:
            print(f"{name}:")
        for kind in kinds:
            print(_row(kind, base))


if __name__ == "__main__":
    main()
