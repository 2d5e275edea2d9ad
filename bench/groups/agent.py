"""An agent's program that speaks in groups over the local API of its daemon.

Nothing but the standard library, and as lean as a program can be: one connection that
stays open for posts, and one for the stream of events.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any


class Refused(Exception):
    """The daemon refused a request."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Agent:
    """The program of one home's agent, with the owner's rights."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON that the daemon answers.

        Raises:
            Refused: It answered with an error.
            OSError: It is not there.
        """
        while True:
            is_used = bool(self._free)
            reader, writer = self._free.pop() if is_used else await self._connect()
            if reader.at_eof():
                # The daemon ends connections that rest.
                writer.close()
                continue
            try:
                answer = await self._asked(reader, writer, method, path, body)
            except ConnectionRefusedError:
                writer.close()
                raise
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                if not is_used:
                    raise ConnectionError("the daemon is gone") from None
                # It had ended before we asked, or the daemon with it.
                if method == "POST":
                    raise ConnectionError("the daemon is gone") from None
                continue
            self._free.append((reader, writer))
            return answer

    def events(
        self, group: str, after: int = 0, *, ready: Callable[[], None] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a group; see `follow`."""
        return self.follow(f"/v1/groups/{group}/events", after, ready=ready)

    async def follow(
        self, path: str, after: int = 0, *, ready: Callable[[], None] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a group or a task, until it or the daemon ends.

        Args:
            ready: Called when the daemon has begun to watch.
        """
        reader, writer = await self._connect()
        try:
            writer.write(self._head("GET", path, f"Last-Event-ID: {after}\r\n"))
            status = await reader.readline()
            if b" 200 " not in status:
                raise Refused(int(status.split()[1]), "no events")
            async for line in reader:
                if line.startswith(b": anpd") and ready is not None:
                    ready()
                elif line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            writer.close()

    def close(self) -> None:
        """Close what is open."""
        for _, writer in self._free:
            writer.close()
        self._free.clear()

    async def _asked(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        method: str,
        path: str,
        body: Any,
    ) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        more = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        writer.write(self._head(method, path, more) + data)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        _, _, length = head.lower().partition(b"content-length:")
        text = await reader.readexactly(int(length.split(b"\r\n", 1)[0]))
        if status == 401:
            # The daemon is another one by now, with a token of its own.
            raise ConnectionRefusedError
        if status >= 400:
            self._free.append((reader, writer))
            raise Refused(status, text.decode()[:300])
        return json.loads(text)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        owner = json.loads((self.home / "owner.json").read_text())
        self._token = owner["token"]
        return await asyncio.open_unix_connection(owner["socket"], limit=1 << 20)

    def _head(self, method: str, path: str, more: str) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: anpd\r\n"
            f"Authorization: Bearer {self._token}\r\n{more}\r\n"
        ).encode()
