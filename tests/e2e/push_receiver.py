"""A receiver of push notifications that checks the token, and can be away."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Receiver", "receiver"]


@dataclass
class Receiver:
    """Everything that came with the right token, in order."""

    token: str = ""
    status: int = 200
    more: bytes = b""
    "Lines of the head, and then a body, of each answer."

    port: int = 0
    came: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/push"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        given = headers.get("x-a2a-notification-token", "")
        status = self.status
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            self.refused += 1
            status = 401
        elif status == 200:
            self.heads.append(headers)
            self.came.append(json.loads(body))
        writer.write(f"HTTP/1.1 {status} So\r\n".encode())
        writer.write(self.more or b"content-length: 0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def receiver(token: str = "") -> AsyncIterator[Receiver]:
    made = Receiver(token)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
