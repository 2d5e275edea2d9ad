"""A caller of A2A that costs little itself, so that the servers are measured."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Caller:
    """One connection, over which one call follows the other."""

    url: str
    version: str
    token: str = ""
    times: list[float] = field(default_factory=list)
    "Seconds of each call."

    spans: list[tuple[int, int, int]] = field(default_factory=list)
    "Number of each call, and the times of its begin and end in nanoseconds."

    refused: int = 0
    "Calls that were answered with an error, such as that a database is locked."

    async def run(self, number: int) -> None:
        """Make calls; each result is checked, and errors are counted."""
        at = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
        try:
            for _ in range(number):
                await self._call(reader, writer, at.netloc)
        finally:
            writer.close()

    async def _call(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str
    ) -> None:
        given = random.randrange(10**9, 10**12)
        body = json.dumps(_request(given, self.version)).encode()
        began = time.monotonic_ns()
        writer.write(
            f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            f"A2A-Version: {self.version}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split()[0]
        answer = json.loads(await reader.readexactly(int(length)))
        ended = time.monotonic_ns()
        if "error" in answer:
            self.refused += 1
            return
        task = answer["result"] if self.version == "0.3" else answer["result"]["task"]
        (part,) = task["artifacts"][0]["parts"]
        if part["data"]["twice"] != given * 2:
            raise RuntimeError(f"not twice {given}: {task}")
        self.times.append((ended - began) / 1e9)
        self.spans.append((given, began, ended))


def _request(given: int, version: str) -> dict[str, Any]:
    is_old = version == "0.3"
    data = {"data": {"skill": "source.twice", "arguments": {"number": given}}}
    part = {"kind": "data", **data} if is_old else data
    message = {
        "messageId": f"m-{given}",
        "role": "user" if is_old else "ROLE_USER",
        "parts": [part],
    }
    return {
        "jsonrpc": "2.0",
        "id": given,
        "method": "message/send" if is_old else "SendMessage",
        "params": {"message": {"kind": "message", **message} if is_old else message},
    }
