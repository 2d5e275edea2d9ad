"""A stranger that sends much, on real sockets, keeps neither others nor memory."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from websockets.asyncio.client import connect

from anp.channel.link import Link
from tests.anp.channel.two_links import META, Party, echo
from tests.waiting import until

PING = {
    "version": "1.0",
    "type": "heartbeat",
    "message": "ping",
    "timestamp": "2026-11-21T12:00:00.000Z",
}


async def test_answers_that_a_stranger_does_not_read_are_bounded(
    tmp_path: Path,
) -> None:
    """4,000 answers waited in memory, and all connections waited for their making."""
    async with Party(tmp_path).up() as links:
        url = f"ws://127.0.0.1:{links._server.port if links._server else 0}/"
        # The client library reads nothing more once one message waits for its reader.
        async with connect(url, proxy=None, max_queue=1, close_timeout=0.1) as peer:
            [link] = links._links

            async def ask() -> None:
                for number in range(4_000):
                    one = {**PING, "messageId": f"{number:06d}" + "x" * 4_000}
                    await peer.send(json.dumps(one))

            asking = asyncio.create_task(ask())
            await until(lambda: asking.done() or _paused(link))
            await asyncio.sleep(0.5)
            assert not asking.done()
            assert link._pipe._outbox.qsize() < 100
            # Who reads again is served again.
            for _ in range(500):
                await peer.recv()
            asking.cancel()


def _paused(link: Link) -> bool:
    connection = link._pipe.connection
    return connection.paused and not connection.transport.is_reading()


async def test_calls_of_a_stranger_go_on_while_another_sends_what_is_none(
    tmp_path: Path,
) -> None:
    """A flood from 127.0.0.2 against calls from 127.0.0.1."""
    provider, requester = Party(tmp_path / "provider"), Party(tmp_path / "requester")
    async with provider.up(), requester.up() as links:
        channel = await links.open_channel(provider.target, META)
        wide = json.dumps({"type": "sourceHello", "x": [{}] * 14_000})

        async def flood() -> None:
            url = provider.target.url or ""
            while True:
                async with connect(
                    url, proxy=None, local_addr=("127.0.0.2", 0), close_timeout=0.1
                ) as peer:
                    for _ in range(30):
                        await peer.send(wide)
                    await peer.wait_closed()

        floods = [asyncio.create_task(flood()) for _ in range(8)]
        await asyncio.sleep(0.5)
        slowest = 0.0
        for number in range(20):
            began = time.monotonic()
            await echo(channel, b"%d" % number)
            slowest = max(slowest, time.monotonic() - began)
        for one in floods:
            one.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
        assert slowest < 1.0, f"a call took {slowest:.2f} s"
