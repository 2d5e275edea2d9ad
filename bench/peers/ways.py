"""Each way to make the call, with its processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from bench.call import ARGUMENTS, FUNCTION
from bench.direct import Kind, Once, daemons, direct, timed
from bench.face.__main__ import agent
from bench.face.caller import Caller
from bench.groups.slim.run import PYTHON as SLIM_PYTHON
from bench.groups.slim.run import measure as measure_slim
from bench.updates.__main__ import AGENT_PYTHON, ROOT, process

HERE: Final = Path(__file__).parent
SDK_PYTHON: Final = ROOT / ".venvs" / "sdk" / "bin" / "python"

TEXT: Final = str(ARGUMENTS["text"])


class Missing(Exception):
    """An environment is not there; the text says how to make it."""


@dataclass(frozen=True, slots=True)
class Round:
    """What some callers found who called at the same time."""

    times: list[float]
    "Seconds of each call."

    took: float
    "Seconds of all together."


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make the call."""

    name: str

    call: Callable[[int, int], Awaitable[Round]]
    "Makes calls, given the number of callers at a time and of calls of each."

    most_callers: int = 32
    "Callers at a time that it is made for."


async def ways(stack: AsyncExitStack) -> list[Way]:
    """Start everything; it ends with `stack`.

    Raises:
        Missing: The environment of one is not there.
    """
    for python, target in (
        (AGENT_PYTHON, "a2a-env"),
        (SDK_PYTHON, "sdk-env"),
        (SLIM_PYTHON, "slim-env"),
    ):
        if not python.exists():
            raise Missing(f"an environment is missing: make {target}")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench")))
    (folder / "made.py").write_text(FUNCTION)
    kinds = [await direct(stack, folder, http=http) for http in (False, True)]
    kinds += await daemons(stack, ROOT, folder)
    return [
        *map(_of_kind, kinds),
        await _plain_http(stack, folder),
        _a2a(stack, folder),
        await _official_sdk(stack, folder),
        Way("SLIM with MLS", _slim, most_callers=1),
    ]


def _of_kind(kind: Kind) -> Way:
    ours = not kind.ours

    async def call(callers: int, calls: int) -> Round:
        await kind.begin()
        return await _together(kind.callers[:callers], calls)

    return Way(f"anpd, {kind.name}" if ours else kind.name, call)


async def _together(callers: list[Once], calls: int) -> Round:
    times: list[float] = []

    async def each(once: Once) -> None:
        for _ in range(calls):
            took = await timed(once, TEXT)
            times.append(took)

    began = time.perf_counter()
    await asyncio.gather(*(each(once) for once in callers))
    return Round(times, time.perf_counter() - began)


async def _plain_http(stack: AsyncExitStack, folder: Path) -> Way:
    words = (sys.executable, "-m", "bench.peers.http_server")
    running = stack.enter_context(process(*words, cwd=folder, PYTHONPATH=str(ROOT)))
    port = int(await asyncio.to_thread(running.stdout.readline))
    body = json.dumps(ARGUMENTS).encode()
    head = (
        f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body

    async def call(callers: int, calls: int) -> Round:
        opened = [
            await asyncio.open_connection("127.0.0.1", port) for _ in range(callers)
        ]

        def caller(one: int) -> Once:
            reader, writer = opened[one]

            async def once(text: str) -> None:
                writer.write(request)
                answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = answer.partition("content-length:")[2].split("\r\n")[0]
                found = json.loads(await reader.readexactly(int(length)))
                if found != {"text": text, "number": "42"}:
                    raise RuntimeError(f"the call failed: {found}")

            return once

        found = await _together([caller(one) for one in range(callers)], calls)
        for _, writer in opened:
            writer.close()
        return found

    return Way("plain HTTP", call)


def _a2a(stack: AsyncExitStack, folder: Path) -> Way:
    (folder / "source.py").write_text(
        (ROOT / "bench" / "face" / "source.py").read_text()
    )
    url = agent(folder, stack.enter_context(ExitStack()))

    async def call(callers: int, calls: int) -> Round:
        made = [Caller(url, "1.0") for _ in range(callers)]
        began = time.perf_counter()
        await asyncio.gather(*(one.run(calls) for one in made))
        took = time.perf_counter() - began
        return Round([seconds for one in made for seconds in one.times], took)

    return Way("a2a-sdk, tasks in SQLite", call)


async def _official_sdk(stack: AsyncExitStack, folder: Path) -> Way:
    script = (str(SDK_PYTHON), "-P", str(HERE / "sdk_echo.py"))
    server = stack.enter_context(process(*script, cwd=folder))
    url, did = json.loads(await asyncio.to_thread(server.stdout.readline))
    sent, heard = stack.enter_context(_client(*script, url, did, folder=folder))

    def ask(callers: int, calls: int) -> Round:
        sent.write(f"{callers} {calls}\n")
        sent.flush()
        for line in heard:
            found: dict[str, Any] = json.loads(line)
            # The other lines say what its tests look at.
            if "times" in found:
                return Round(found["times"], found["took"])
        raise RuntimeError("the client over the official SDK ended")

    async def call(callers: int, calls: int) -> Round:
        return await asyncio.to_thread(ask, callers, calls)

    return Way("official SDK, one connection", call)


@contextmanager
def _client(*words: str, folder: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """Run a program for a block; give what it reads and what it writes."""
    with subprocess.Popen(
        words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            yield running.stdin, running.stdout
        finally:
            running.terminate()


async def _slim(callers: int, calls: int) -> Round:
    """Post to a group of one member, which answers, one post after another."""
    assert callers == 1
    found = await asyncio.to_thread(measure_slim, 1, rounds=calls, deliveries=1)
    seconds = found["p50_ms"] / 1e3
    return Round([seconds], seconds)
