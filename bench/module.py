"""A module call in the worker against the same function in process.

`python -m bench.module` prints ratios measured in one run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sandbox.pool import Sandbox

CALLS = 2_000

SOURCE = """
import json


def encode_request(message_id, arguments):
    message = {"messageId": message_id, "input": arguments}
    return json.dumps(message).encode("utf-8")
"""

ARGUMENTS = {"productId": "P12345", "count": 3, "names": ["a", "b", "c"]}


async def p50(call: Callable[[], Awaitable[Any]]) -> float:
    """Return the median seconds of `CALLS` calls."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await call()
        times.append(time.perf_counter() - started)
    return sorted(times)[CALLS // 2]


async def main() -> None:
    """Measure and print."""
    namespace: dict[str, Any] = {}
    # Our own text above, for comparison; a peer's code never runs here.
    exec(SOURCE, namespace)  # see above
    function = namespace["encode_request"]

    async def in_process() -> bytes:
        return bytes(function("m1", ARGUMENTS))

    sandbox = Sandbox()
    await sandbox.start()
    try:
        module = await sandbox.load("bench", SOURCE, origin="rules")

        async def in_worker() -> Any:
            return await module.call("encode_request", "m1", ARGUMENTS, deadline=5.0)

        await in_worker()
        plain, worker = await p50(in_process), await p50(in_worker)
    finally:
        await sandbox.close()
    print(f"module call, p50 of {CALLS}: in process {plain * 1e6:.1f} us")
    print(f"module call, p50 of {CALLS}: in the worker {worker * 1e6:.1f} us")
    print(f"ratio worker / in process: {worker / plain:.1f}")


if __name__ == "__main__":
    asyncio.run(main())
