# mypy: ignore-errors
"""The function over the official SDK's handshake and cipher: a server and its client.

Run with the SDK's own environment, from a folder outside this repository, because both
packages are called `anp`: `python -P sdk_echo.py` serves and prints its URL and DID;
`python -P sdk_echo.py URL DID` calls it. Each line of the client's standard input has a
number of callers and of calls for each; the answer has the seconds of every call and of
all together. The SDK has no sessions (WIRE row 51), so sockets and the calls on them
are ours, as in the tests with it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from pathlib import Path

import websockets

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "sdk"))

from peer import APPLICATION, Party, Session


async def say(session, value) -> None:
    await session.send(bytes([APPLICATION]) + json.dumps(value).encode())


async def serve() -> None:
    party = Party()

    async def answer(connection) -> None:
        hello = json.loads(await connection.recv())
        session = Session(party, connection)
        await session.handshake(hello["sourceDid"], hello)
        reading = asyncio.create_task(session.read())
        while not reading.done():
            given = json.loads(await session.application.get())
            found = {"text": given["text"], "number": str(given["number"] * 2)}
            await say(session, {"id": given["id"], "output": found})

    async with websockets.serve(answer, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        print(json.dumps([f"ws://127.0.0.1:{port}/", party.did]), flush=True)
        await asyncio.Event().wait()


async def call(url: str, did: str) -> None:
    async with websockets.connect(url, proxy=None, compression=None) as connection:
        session = Session(Party(), connection)
        await session.handshake(did)
        numbers, waiting = itertools.count(), {}

        async def hear() -> None:
            while True:
                found = json.loads(await session.application.get())
                waiting.pop(found["id"]).set_result(found["output"])

        async def caller(calls: int, times: list[float]) -> None:
            for _ in range(calls):
                began, number = time.perf_counter(), next(numbers)
                answered = asyncio.get_running_loop().create_future()
                waiting[number] = answered
                await say(session, {"id": number, "number": 21, "text": "same bytes"})
                assert (await answered)["number"] == "42"
                times.append(time.perf_counter() - began)

        both = asyncio.gather(session.read(), hear())
        while line := await asyncio.to_thread(sys.stdin.readline):
            callers, calls = map(int, line.split())
            times, began = [], time.perf_counter()
            await asyncio.gather(*(caller(calls, times) for _ in range(callers)))
            took = time.perf_counter() - began
            print(json.dumps({"times": times, "took": took}), flush=True)
        both.cancel()


asyncio.run(call(*sys.argv[1:]) if sys.argv[1:] else serve())
