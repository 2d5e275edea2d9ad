"""`python -m bench.growth`: time and memory of a warm call as something grows.

Peers that the caller's store knows, agreements, links of the provider, callers at a
time, and sizes of an argument. The daemons of one series run at the same time and take
turns, so that what else the machine does meets all of them; ratios are those to the
first of a series. `--write` puts the table and the pictures into the documentation.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from websockets.asyncio.client import connect

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from bench.direct import Socket, timed
from bench.growth.plots import Line, plot
from bench.growth.stations import Pair, Point, memory, peak, reset_peak
from tests.e2e.raw_peer import RawPeer

ROUNDS = 5
CALLS = 32
"Calls in one round of one caller."

LARGE_CALLS = 4
WARM = 70

BOTH = "both daemons"
PEAK = "both daemons, most of it above rest"

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- growth -->\n", "<!-- end of growth -->\n"

Calls = Callable[[], Awaitable[Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Series:
    """What grows, and in which places it is measured."""

    name: str
    title: str
    places: tuple[int, ...]
    memory: str
    make: Callable[[AsyncExitStack, Path, tuple[int, ...]], Awaitable[list[Point]]]

    async def measure(self, rounds: int) -> list[Point]:
        """Measure every place, by turns."""
        async with AsyncExitStack() as stack:
            temporary = tempfile.TemporaryDirectory(prefix="growth")
            folder = Path(stack.enter_context(temporary))
            points = await self.make(stack, folder, self.places)
            for _ in range(rounds):
                for one in random.sample(points, len(points)):
                    await one.round()
            return points


def _calls_of(sockets: Sequence[Socket], count: int, text: str = "text") -> Calls:
    """Return a round in which each connection makes some calls, all at a time."""

    async def caller(one: Socket) -> list[float]:
        # A daemon ends connections that were idle.
        await one.connect()
        return [await timed(one.call, text) for _ in range(count)]

    async def once() -> list[float]:
        found = await asyncio.gather(*map(caller, sockets))
        return list(itertools.chain.from_iterable(found))

    return once


async def _warm(pair: Pair, number: int = 0) -> Socket:
    made = await pair.socket(number)
    for _ in range(WARM):
        await made.call("text")
    return made


async def _peers(
    stack: AsyncExitStack, folder: Path, places: tuple[int, ...]
) -> list[Point]:
    points = []
    for at in places:
        pair = stack.enter_context(Pair.running(folder / str(at), known=at))
        socket = await _warm(pair)
        calls = _calls_of([socket], CALLS)
        points.append(Point(at, calls, partial(memory, pair.caller)))
    return points


async def _agreements(
    stack: AsyncExitStack, folder: Path, places: tuple[int, ...]
) -> list[Point]:
    points = []
    for at in places:
        pair = stack.enter_context(Pair.running(folder / str(at), functions=at))
        some = [await pair.socket(number) for number in range(at)]
        await _warm(pair)
        # Calls of a round go over as many agreements as there are.
        used = random.sample(some, min(len(some), CALLS))
        calls = _in_turn(used)
        for _ in range(2):
            # Of so many only the latest have an open channel: a connection has 64. What
            # opening them writes has the ways of all others looked up once more.
            await calls()
        points.append(Point(at, calls, partial(memory, pair.caller | pair.provider)))
    return points


def _in_turn(sockets: Sequence[Socket]) -> Calls:
    async def once() -> list[float]:
        found = []
        for _, one in zip(range(CALLS), itertools.cycle(sockets), strict=False):
            await one.connect()
            found.append(await timed(one.call, "text"))
        return found

    return once


async def _links(
    stack: AsyncExitStack, folder: Path, places: tuple[int, ...]
) -> list[Point]:
    points = []
    for at in places:
        others = [
            Identities.of_method(PrivateKey.generate(), "did:key").primary
            for _ in range(at - 1)
        ]
        dids = [one.did for one in others]
        pair = stack.enter_context(Pair.running(folder / str(at), allowed=dids))
        for number, one in enumerate(others):
            # Peers of one address have to share what there is for them.
            source = (f"127.0.{1 + number // 200}.{2 + number % 200}", 0)
            connection = await stack.enter_async_context(
                connect(pair.url, proxy=None, compression=None, local_addr=source)
            )
            peer = RawPeer(connection, pair.did)
            peer.identity = one
            await peer.open()
        socket = await _warm(pair)
        calls = _calls_of([socket], CALLS)
        points.append(Point(at, calls, partial(memory, pair.provider)))
    return points


async def _callers(
    stack: AsyncExitStack, folder: Path, places: tuple[int, ...]
) -> list[Point]:
    pair = stack.enter_context(Pair.running(folder / "callers"))
    await _warm(pair)
    sockets = [await pair.socket() for _ in range(max(places))]
    both = pair.caller | pair.provider
    return [
        Point(at, _calls_of(sockets[:at], max(4, CALLS // at)), partial(memory, both))
        for at in places
    ]


async def _sizes(
    stack: AsyncExitStack, folder: Path, places: tuple[int, ...]
) -> list[Point]:
    pair = stack.enter_context(Pair.running(folder / "sizes"))
    socket = await _warm(pair)
    both = pair.caller | pair.provider
    points = []
    for at in places:
        calls = _calls_of([socket], LARGE_CALLS, "x" * (at * 1024))
        before = [0.0]

        async def once(
            calls: Calls = calls, before: list[float] = before
        ) -> Sequence[float]:
            before[0] = reset_peak(both)
            return await calls()

        def used(before: list[float] = before) -> float:
            return max(0.0, peak(both) - before[0])

        points.append(Point(at, once, used))
    return points


SERIES = (
    Series("peers", "Peers known", (1, 100, 1_000, 10_000), "caller", _peers),
    Series("agreements", "Agreements", (1, 100, 1_000), BOTH, _agreements),
    Series("links", "Links of the provider", (1, 100, 500), "provider", _links),
    Series("callers", "Callers at a time", (1, 2, 4, 8, 16, 32, 64), BOTH, _callers),
    Series("sizes", "KiB of the argument", (1, 16, 64, 256, 700), PEAK, _sizes),
)


def _table(series: Series, points: Sequence[Point]) -> str:
    first = points[0]
    lines = [
        f"| {series.title} | p50 | times the first | memory ({series.memory}) |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {one.at:,} | {one.p50:.2f} ms | {one.p50 / first.p50:.2f} "
        f"| {one.memory:.1f} MiB |"
        for one in points
    ]
    return "\n".join(lines)


def _picture(series: Series, points: Sequence[Point]) -> str:
    lines = (
        Line("p50, ms", [one.p50 for one in points]),
        Line("MiB", [one.memory for one in points]),
    )
    title = f"Warm call and memory ({series.memory})"
    return plot(title, series.title, series.places, lines)


def _write(tables: dict[str, str], pictures: dict[str, str]) -> None:
    """Put what was measured into the documentation."""
    for name, svg in pictures.items():
        (DOCS / "pictures").mkdir(exist_ok=True)
        (DOCS / "pictures" / f"growth-{name}.svg").write_text(svg)
    page = DOCS / "performance.md"
    head, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    parts = [
        f"![A warm call and memory by {name}](pictures/growth-{name}.svg)\n\n{table}\n"
        for name, table in tables.items()
    ]
    page.write_text(head + BEGIN + "\n" + "\n".join(parts) + "\n" + END + tail, "utf-8")


def main() -> None:
    """Measure, print, and write if asked to."""
    names = [one.name for one in SERIES]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=names, nargs="*", default=names)
    parser.add_argument("--write", action="store_true", help="Change docs/.")
    given = parser.parse_args()
    tables, pictures = {}, {}
    for series in SERIES:
        if series.name not in given.only:
            continue
        points = asyncio.run(series.measure(given.rounds))
        tables[series.name] = _table(series, points)
        pictures[series.name] = _picture(series, points)
        print(f"{tables[series.name]}\n", flush=True)
    if given.write:
        _write(tables, pictures)


if __name__ == "__main__":
    main()
