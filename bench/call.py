"""One call over an agreed protocol against a raw WebSocket echo of the same bytes.

`python -m bench.call` prints ratios measured in one run.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.caller import CallRequest
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Task

CALLS = 300

ARGUMENTS = {"number": 21, "text": "same bytes both ways"}

FUNCTION = """
def double(number: int, text: str) -> dict[str, str]:
    return {"text": text, "number": str(number * 2)}
"""


async def p50(call: Callable[[], Awaitable[Any]]) -> float:
    """Return the median seconds of `CALLS` calls."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await call()
        times.append(time.perf_counter() - started)
    return sorted(times)[CALLS // 2]


def daemon(folder: Path, name: str, *, provides: bool) -> Daemon:
    """Return a daemon in a home of its own."""
    home = Home(folder / name)
    home.create()
    if provides:
        spec = AttachmentSpec(
            kind="python", name="b", target="made:double", cwd=folder, expose=("*",)
        )
        save_attachment(home.attachments, spec)
    config = load_config(
        home, home_given=True, flags={"listen.port": 0}, environ={}, cwd=folder
    )
    return Daemon(home, config)


async def echo(connection: ServerConnection) -> None:
    """Send back what comes."""
    async for message in connection:
        await connection.send(message)


async def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "made.py").write_text(FUNCTION)
        caller = daemon(folder, "caller", provides=False)
        provider = daemon(folder, "provider", provides=True)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(caller.running())
            await stack.enter_async_context(provider.running())
            request = CallRequest(
                peer=f"{provider.url}#{provider.did}",
                task=Task("double"),
                arguments=ARGUMENTS,
            )
            first = await caller.caller.call(request)
            whole = await p50(lambda: caller.caller.call(request))
            server = await stack.enter_async_context(
                serve(echo, "127.0.0.1", 0, compression=None)
            )
            port = next(iter(server.sockets)).getsockname()[1]
            raw = await stack.enter_async_context(
                connect(f"ws://127.0.0.1:{port}/", compression=None, proxy=None)
            )
            data = json.dumps({"messageId": "0" * 16, "input": ARGUMENTS})

            async def exchange() -> None:
                await raw.send(data)
                await raw.recv()

            bare = await p50(exchange)
    print(f"first call, with the negotiation: {first.ms:.1f} ms")
    print(f"call over the agreement, p50 of {CALLS}: {whole * 1e3:.2f} ms")
    print(f"raw echo of the same bytes, p50 of {CALLS}: {bare * 1e3:.2f} ms")
    print(f"ratio call / echo: {whole / bare:.1f}")
    print(f"ratio first call / later call: {first.ms / 1e3 / whole:.1f}")


if __name__ == "__main__":
    asyncio.run(main())
