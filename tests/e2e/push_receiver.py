"""A receiver of push notifications that checks token and signature, and can be away."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt

SIGNATURE = "x-a2a-notification-signature"

MAX_AGE = 300.0
"Seconds after which a signature counts no more."


@dataclass
class Receiver:
    """Everything that came with the right token and signature, in order."""

    token: str = ""
    status: int = 200
    more: bytes = b""
    "Lines of the head, and then a body, of each answer."

    port: int = 0
    came: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    "Everything that was sent, believed or not."

    problems: list[str] = field(default_factory=list)
    "Why a request was not believed."

    later: float = 0.0
    "Seconds by which its clock is ahead."

    keys: jwt.PyJWKSet | None = None
    "Keys of the face whose signature it checks; None for a check of the token alone."

    issuer: str = ""
    seen: set[str] = field(default_factory=set)
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

    async def trust(self, face: str) -> None:
        """Believe from now on only what a face signed."""
        async with httpx.AsyncClient(trust_env=False) as http:
            found = await http.get(f"{face}/.well-known/jwks.json")
        self.keys = jwt.PyJWKSet.from_dict(found.json())
        self.issuer = face

    def _problem(self, headers: dict[str, str], body: bytes) -> str:
        """Return why a request is not believed, empty for a good one."""
        given = headers.get("x-a2a-notification-token", "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "another token"
        if self.keys is None:
            return ""
        try:
            signed = headers[SIGNATURE]
            claims = jwt.decode(
                signed,
                self.keys[jwt.get_unverified_header(signed)["kid"]].key,
                algorithms=["ES256"],
                audience=self.url,
                issuer=self.issuer,
                options={"require": ["iat", "exp", "jti"], "verify_exp": False},
            )
        except (KeyError, jwt.PyJWTError) as exc:
            return type(exc).__name__
        if time.time() + self.later - claims["iat"] > MAX_AGE:
            return "too old"
        if claims["request_body_sha256"] != hashlib.sha256(body).hexdigest():
            return "another body"
        if claims["jti"] in self.seen:
            return "seen before"
        self.seen.add(claims["jti"])
        return ""

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
        self.requests.append((headers, body))
        status, problem = self.status, self._problem(headers, body)
        if problem:
            self.problems.append(problem)
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
