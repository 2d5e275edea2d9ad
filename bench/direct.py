"""A warm call through two daemons against the same tool called directly.

    python -m bench.direct [--against DIR] [--rounds N]

Directly means the `mcp` SDK over stdio. The tool is `double`, a Python function: as a
tool of the SDK's server, and attached to a daemon as a function or as that server. 1, 8
and 32 callers wait for answers at a time. All take turns in one run, and the medians of
their rounds are compared; only ratios of one run mean anything. With `--against` a
second checkout is measured by turns. Calls per second are those of 32 callers, against
the SDK over streamable HTTP. CPU time is that of both daemons and all their children,
per call. The last two figures are of one caller with 700 KiB of arguments: the p50, and
how much the memory of all those processes grew, over the size of the arguments. Each
ratio is the median of the rounds' ratios with the least and the most of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from anp.protocols.envelope import ENVELOPE_URI
from bench.call import ARGUMENTS, FUNCTION, Anpd

CALLERS = (1, 8, 32)
CALLS = 64
"Calls of each kind and number of callers in one round, if that is `EACH` or more each."

EACH = 20
"Least calls of each caller in one round; with two, most of the time is the beginning."

ROUNDS = 8
WARM = 80
BIG = 700 * 1024
"Characters of the large argument."

BIG_CALLS = 4

START = 60.0
"Seconds for a server of the SDK to begin to listen."

GOALS = {
    "agreement, Python": {
        "p50, 1 at a time": 1.5,
        "p50, 8 at a time": 1.2,
        "p50, 32 at a time": 1.0,
        "calls a second": 1.5,
        "CPU per call": 1.7,
        "p50 of 700 KiB": 1.5,
        "memory of 700 KiB": 4.0,
    },
    "agreement, MCP server": {
        "p50, 1 at a time": 2.5,
        "p50, 8 at a time": 2.0,
        "p50, 32 at a time": 1.5,
    },
    "envelope, Python": {
        "p50, 1 at a time": 1.2,
        "p50, 8 at a time": 1.0,
        "p50, 32 at a time": 0.8,
        "CPU per call": 1.1,
    },
}
"Most of each ratio, but for calls a second, of which it is the least."

SERVER = (
    FUNCTION
    + """
import sys
from mcp.server import MCPServer

server = MCPServer("direct")
server.tool()(double)
if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
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

    pids: list[int]
    "The processes that it uses, without their children."

    ours: bool = False
    "True if its client, the SDK's, runs in this process."

    p50: dict[int, list[float]] = field(default_factory=dict)
    per_second: dict[int, list[float]] = field(default_factory=dict)
    cost: list[float] = field(default_factory=list)
    large: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def cpu(self) -> float:
        """Return the CPU seconds of all its processes so far."""
        spent = _cpu_of(_with_children(self.pids))
        return spent + time.process_time() if self.ours else spent

    async def round(self) -> None:
        """Measure each number of callers once."""
        await self.begin()
        for number in CALLERS:
            times: list[float] = []
            cpu, began = self.cpu(), time.perf_counter()
            await asyncio.gather(
                *(
                    _calls(one, max(CALLS // number, EACH), times)
                    for one in self.callers[:number]
                )
            )
            took = time.perf_counter() - began
            self.p50.setdefault(number, []).append(statistics.median(times))
            self.per_second.setdefault(number, []).append(len(times) / took)
            if number == 1:
                self.cost.append((self.cpu() - cpu) / len(times))
        text = "x" * BIG
        times = []
        pids = _with_children(self.pids)
        for _ in range(BIG_CALLS):
            _forget_peaks(pids)
            before = sum(_memory_of(pid, "VmRSS") for pid in pids)
            times.append(await timed(self.callers[0], text))
            most = sum(_memory_of(pid, "VmHWM") for pid in pids)
            self.memory.append((most - before) / BIG)
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


def _with_children(pids: list[int]) -> list[int]:
    """Return processes and all that they started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], list(pids)
    while left:
        pid = left.pop()
        found.append(pid)
        left += parents.get(pid, [])
    return found


def _cpu_of(pids: list[int]) -> float:
    """Return the CPU seconds of processes, with those of children that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _forget_peaks(pids: list[int]) -> None:
    """Have the highest memory of processes count from now on."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory_of(pid: int, name: str) -> int:
    """Return a figure of a process's memory, in bytes; 0 for one that has ended."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition(f"{name}:")[2].split()[0]) * 1024
    return 0


class Socket:
    """One kept connection to the local API of a daemon."""

    def __init__(self, path: str, body: dict[str, Any], source: str) -> None:
        self._path, self._source = path, source
        self._body = body
        "What is asked, without the input; shared by all connections to one daemon."
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
        found = await self._ask({**self._body, "input": {**ARGUMENTS, "text": text}})
        if is_first and found.get("detail") == "task is missing":
            # A checkout of before the field had its present name.
            self._body["task"] = self._body.pop("need")
            await self.call(text, is_first=True)
            return
        right = is_first or found.get("source") == self._source
        if not right or "42" not in str(found.get("output"))[-40:]:
            raise RuntimeError(f"the call failed: {str(found)[:300]}")

    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._streams is not None
        reader, writer = self._streams
        body = json.dumps(asked).encode()
        head = (
            "POST /v1/calls HTTP/1.1\r\nhost: anpd\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.partition("content-length:")[2].split("\r\n")[0])
        answer_body: dict[str, Any] = json.loads(await reader.readexactly(length))
        return answer_body


async def direct(stack: AsyncExitStack, folder: Path, *, http: bool) -> Kind:
    """Start a server of the SDK, over streamable HTTP or stdio, and connect to it."""
    server = folder / "server.py"
    server.write_text(SERVER)
    before = children()
    log = stack.enter_context((folder / "server.log").open("a"))
    if http:
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(server), str(port)), stdout=log, stderr=log
        )
        stack.push_async_callback(process.wait)
        stack.callback(process.terminate)
        await _listening(port)
        url = f"http://127.0.0.1:{port}/mcp"
        reader, writer, *_ = await stack.enter_async_context(
            streamable_http_client(url, max_sse_event_size=1 << 23)
        )
    else:
        parameters = StdioServerParameters(command=sys.executable, args=[str(server)])
        reader, writer = await stack.enter_async_context(
            stdio_client(parameters, errlog=log)
        )
    session = await stack.enter_async_context(ClientSession(reader, writer))
    await session.initialize()
    pids = [pid for pid in children() if pid not in before]

    async def call(text: str) -> None:
        found: Any = await session.call_tool("double", {**ARGUMENTS, "text": text})
        if "42" not in found.content[0].text[-40:]:
            raise RuntimeError(f"the call failed: {found}")

    async def begin() -> None:
        pass

    name = "mcp over HTTP" if http else "mcp over stdio"
    return Kind(name, [call] * max(CALLERS), begin, pids, ours=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def _listening(port: int) -> None:
    async with asyncio.timeout(START):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.1)


def children() -> set[int]:
    """Return the ids of the processes that this one started."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= set(map(int, (task / "children").read_text().split()))
    return found


async def daemons(stack: AsyncExitStack, tree: Path, folder: Path) -> list[Kind]:
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
        body = {"peer": address, "need": "double"}
        if source == "consensus":
            body["protocol"] = ENVELOPE_URI
        sockets = [Socket(api.path, body, source) for _ in range(max(CALLERS))]

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
                pids,
            )
        )
    return kinds


async def measure(trees: dict[str, Path], rounds: int) -> dict[str, list[Kind]]:
    """Measure every way to call, by turns."""
    async with AsyncExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="bench")
        folder = Path(stack.enter_context(temporary))
        found = {"": [await direct(stack, folder, http=http) for http in (False, True)]}
        for number, (name, tree) in enumerate(trees.items()):
            own = folder / str(number)
            own.mkdir()
            (own / "made.py").write_text(FUNCTION)
            (own / "server.py").write_text(SERVER)
            found[name] = await daemons(stack, tree, own)
        turns = [one for several in found.values() for one in several]
        for _ in range(rounds):
            for one in random.sample(turns, len(turns)):
                await one.round()
        return found


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):5.2f} ({min(values):.2f} to {max(values):.2f})"


def _over(ours: list[float], theirs: list[float]) -> list[float]:
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def _show(kind: Kind, base: Kind, over_http: Kind) -> None:
    """Print the figures of one way to call, each with its ratio and the goal."""
    most = CALLERS[-1]
    rows: list[tuple[str, list[float], float, str, list[float]]] = [
        (
            f"p50, {number} at a time",
            kind.p50[number],
            1e3,
            "ms",
            _over(kind.p50[number], base.p50[number]),
        )
        for number in CALLERS
    ]
    rates, http = kind.per_second[most], over_http.per_second[most]
    # The kernel counts CPU in hundredths of a second: too coarse for one round.
    cost = [statistics.mean(kind.cost) / statistics.mean(base.cost)]
    rows += [
        ("calls a second", rates, 1, "/s", _over(rates, http)),
        ("CPU per call", [statistics.mean(kind.cost)], 1e3, "ms", cost),
        ("p50 of 700 KiB", kind.large, 1e3, "ms", _over(kind.large, base.large)),
        ("memory of 700 KiB", [max(kind.memory) * BIG], 2**-20, "MiB", kind.memory),
    ]
    print(f"  {kind.name}")
    goals = GOALS.get(kind.name, {})
    for name, values, unit, suffix, ratios in rows:
        value = f"{statistics.median(values) * unit:7.2f} {suffix:3}"
        goal = f"goal {goals[name]:g}" if name in goals else ""
        print(f"    {name:18} {value}  {_spread(ratios):24} {goal}".rstrip())


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
    base, over_http = found[""]
    for name, kinds in found.items():
        print(f"{name or 'direct'}:")
        for kind in kinds:
            _show(kind, base, over_http)


if __name__ == "__main__":
    main()
