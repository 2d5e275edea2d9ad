"""Attacks on plain HTTP, of the peers' port and of the local API."""

from __future__ import annotations

import asyncio

from anp.sidecar.peers.lists import LIST_PATH
from tests.attacks.kinds.base import Attack


class PageFlood(Attack):
    """Fifty clients that ask for `/.well-known/anp` as fast as they can."""

    name = "page-flood"
    path = "/.well-known/anp"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(50, self._ask)

    async def _ask(self) -> None:
        while True:
            async with self.socket() as one:
                await one.send(f"GET {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                await one.gone()


class ListFlood(PageFlood):
    """The same for the list of published protocols."""

    name = "list-flood"
    path = LIST_PATH


class ConnectionChurn(Attack):
    """Fifty clients that connect and leave at once, as fast as they can."""

    name = "connection-churn"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(50, self._come_and_go)

    async def _come_and_go(self) -> None:
        while True:
            async with self.socket():
                pass


class LinkChurn(Attack):
    """Thirty clients that open a WebSocket and leave at once, as fast as they can."""

    name = "link-churn"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(30, self._come_and_go)

    async def _come_and_go(self) -> None:
        while True:
            async with self.socket() as one:
                await one.upgrade()


class ApiUnfinished(Attack):
    """1,100 requests to the local API without token whose headers never end."""

    name = "api-unfinished"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(1_100, self._begin, batch=100)

    async def _begin(self) -> None:
        async with self.socket(self.target.api_place) as one:
            await one.send(b"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            await one.gone()


class ApiBodies(Attack):
    """1,100 requests to the local API without token whose bodies come byte by byte."""

    name = "api-bodies"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(1_100, self._begin, batch=100)

    async def _begin(self) -> None:
        host, port = self.target.api_place
        async with self.socket((host, port)) as one:
            await one.send(
                f"POST /v1/calls HTTP/1.1\r\nHost: {host}:{port}\r\n"
                "Content-Type: application/json\r\n"
                "Content-Length: 9999\r\n\r\n".encode()
            )
            while not one.reader.at_eof():
                await one.send(b" ")
                await asyncio.sleep(2.0)


class ApiRefused(Attack):
    """Thirty clients that guess tokens of the local API as fast as they can."""

    name = "api-refused"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(30, self._guess)

    async def _guess(self) -> None:
        host, port = self.target.api_place
        request = (
            f"GET /v1/info HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Authorization: Bearer guessed\r\n\r\n"
        ).encode()
        async with self.socket((host, port)) as one:
            while True:
                await one.send(request)
                head = await one.reader.readuntil(b"\r\n\r\n")
                size = head.lower().partition(b"content-length: ")[2].split(b"\r")[0]
                await one.reader.readexactly(int(size or 0))
                self.done["guesses"] += 1


ATTACKS = (
    PageFlood,
    ListFlood,
    ConnectionChurn,
    LinkChurn,
    ApiUnfinished,
    ApiBodies,
    ApiRefused,
)
