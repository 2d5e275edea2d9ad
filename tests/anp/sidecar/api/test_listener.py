"""The listening sockets of the local API."""

from __future__ import annotations

import asyncio
import socket

from anp.sidecar.api.doors import LOOPBACK
from anp.sidecar.api.servers import tcp_listener


async def test_answers_over_loopback_leave_at_once() -> None:
    listener = tcp_listener("127.0.0.1", 0, "listen.api_port")
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def taken(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = writer.get_extra_info("socket")
        accepted.set_result(made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(taken, sock=listener):
        _, writer = await asyncio.open_connection(LOOPBACK, listener.getsockname()[1])
        assert await accepted
        writer.close()
