"""An HTTP server for one test, which answers as no server should."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from anp.sidecar.attachments import (
    Attachment,
    AttachmentLimits,
    AttachmentSpec,
    open_attachment,
)
from anp.sidecar.attachments.attachment import SupervisorConfig

FAST = SupervisorConfig(start_timeout=10.0, min_backoff=0.01, max_backoff=0.05)
LIMITS = AttachmentLimits(supervisor=FAST)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Handler = Callable[[Asked], bytes | Awaitable[bytes] | AsyncIterator[bytes]]


@dataclass(slots=True)
class Web:
    """A running server and what it was asked."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    "Set when a client hung up before the answer."

    sent: int = 0
    "Bytes of answers that came piece by piece, when the connection had room for them."

    server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
            self.server = None


def answer(
    content: Any = None,
    status: int = 200,
    content_type: str = "application/json",
    **headers: str,
) -> bytes:
    """Return the bytes of an answer."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n"
    head += f"Content-Type: {content_type}\r\nConnection: close\r\n"
    head += "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    return head.encode() + b"\r\n" + body


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncIterator[Web]:
    """Run a server for a block."""
    web = Web()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            asked = await _read(reader)
            web.asked.append(asked)
            found = handler(asked)
            if not isinstance(found, bytes):
                if isinstance(found, AsyncIterator):
                    found = _pour(found, web, writer)
                work = asyncio.ensure_future(found)
                hangup = asyncio.ensure_future(reader.read(1))
                await asyncio.wait({work, hangup}, return_when="FIRST_COMPLETED")
                hangup.cancel()
                if not work.done():
                    web.hung_up.set()
                    work.cancel()
                    return
                found = await work
            writer.write(found)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            tasks.discard(task)
            writer.close()

    web.server = await asyncio.start_server(serve, "127.0.0.1", port)
    web.port = web.server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        await web.close()
        for task in tasks:
            task.cancel()


async def _pour(
    pieces: AsyncIterator[bytes], web: Web, writer: asyncio.StreamWriter
) -> bytes:
    async for piece in pieces:
        try:
            writer.write(piece)
            await writer.drain()
        except ConnectionError:
            web.hung_up.set()
            raise
        web.sent += len(piece)
    return b""


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    size = int(headers.get("content-length", "0"))
    return Asked(method, target, headers, await reader.readexactly(size))


@asynccontextmanager
async def attached(
    kind: str, url: str, limits: AttachmentLimits = LIMITS, **fields: Any
) -> AsyncIterator[Attachment]:
    """Attach what is at a URL as `my` for a block."""
    spec = AttachmentSpec(kind=kind, name="my", url=url, **fields)  # type: ignore[arg-type]  # a test's word
    attachment = open_attachment(spec, limits=limits)
    async with asyncio.timeout(60):
        try:
            await attachment.start()
            yield attachment
        finally:
            await attachment.close()


async def call(
    attachment: Attachment, tool: str, timeout: float = 10.0, /, **arguments: Any
) -> dict[str, Any]:
    """Call a capability of the attachment `my`."""
    return await attachment.call(
        f"my.{tool}", arguments, caller="did:key:zCaller", timeout=timeout
    )
