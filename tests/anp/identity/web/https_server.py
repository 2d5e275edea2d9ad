"""A web server for tests that says exactly what a test wants, over TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamWriter, str], Awaitable[None]]
"Writes what is answered to a request; gets the request's head."


@dataclass(slots=True)
class Served:
    """A running server."""

    port: int
    "Where it is, on 127.0.0.1."

    requests: list[str] = field(default_factory=list)
    "Heads of the requests so far."


def answer(
    body: bytes,
    *,
    status: str = "200 OK",
    content_type: str = "application/json",
    headers: str = "",
) -> Answer:
    """Return an answer with a body."""

    async def write(writer: asyncio.StreamWriter, head: str) -> None:
        text = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
        )
        writer.write(text.encode() + body)
        await writer.drain()

    return write


@asynccontextmanager
async def serving(
    write: Answer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    """Serve `write` on a free port of 127.0.0.1."""
    found = Served(0)

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            found.requests.append(head)
            await write(writer, head)
        except (OSError, asyncio.IncompleteReadError):
            return  # the client went, as hostile answers make it do
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
