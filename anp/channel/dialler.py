"""Connecting to a peer's WebSocket."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidURI

from anp.channel.dial_errors import dial_problem
from anp.channel.listener import websocket_logger
from anp.channel.pipe import PromptConnection
from anp.errors import CallError, ErrorKind
from anp.identity.web.guard import FetchError

Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"Returns the addresses of a host that may be connected to; raises `FetchError`."

_DEFAULT_PORT = {"ws": 80, "wss": 443}


class _DialledConnection(PromptConnection, ClientConnection):
    """See `PromptConnection`."""


class _Connect(connect):
    """Follows no redirects: a peer says elsewhere where it is."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def _connected(url: str, **options: Any) -> PromptConnection:
    connection = await _Connect(url, create_connection=_DialledConnection, **options)
    assert isinstance(connection, _DialledConnection)
    return connection


class Dialler:
    """Opens connections, to checked addresses where a peer named them."""

    def __init__(
        self, *, tls: ssl.SSLContext | None = None, addresses: Addresses | None = None
    ) -> None:
        """Dial.

        Args:
            tls: How certificates are checked; None is the system's way.
            addresses: Checks a host that a peer named; without it none is dialled.
        """
        self._tls = tls
        self._addresses = addresses

    async def dial(
        self,
        url: str,
        *,
        guarded: bool,
        open_timeout: float,
        ping_interval: float,
        max_size: int,
    ) -> PromptConnection:
        """Return an open connection.

        Args:
            url: WebSocket URL, normalised.
            guarded: A peer named it, so it is dialled only at an address that the owner
                lets peers send us to (DESIGN.md, Trust).
            open_timeout: Seconds to connect.
            ping_interval: Seconds between pings, and to wait for a pong.
            max_size: Largest message, in bytes.

        Raises:
            CallError: PEER_UNREACHABLE.
        """
        options: dict[str, Any] = {
            "compression": None,
            "open_timeout": open_timeout,
            "ping_interval": ping_interval,
            "ping_timeout": ping_interval,
            "max_size": max_size,
            "proxy": None,
            "user_agent_header": None,
            "logger": websocket_logger(),
        }
        parts = urlsplit(url)
        if parts.scheme == "wss" and self._tls is not None:
            options["ssl"] = self._tls
        try:
            if not guarded:
                return await _connected(url, **options)
            options["port"] = parts.port or _DEFAULT_PORT[parts.scheme]
            found = await self._checked(parts.hostname or "", options["port"])
            for address in found[:-1]:
                with contextlib.suppress(OSError):
                    return await _connected(url, host=address, **options)
            return await _connected(url, host=found[-1], **options)
        except (
            *(OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError),
            FetchError,
        ) as exc:
            # Our own guard says what it refused in words.
            guard = isinstance(exc, FetchError)
            reason = str(exc) if guard else dial_problem(exc, url, waited=open_timeout)
            raise CallError(
                ErrorKind.PEER_UNREACHABLE, f"cannot connect to {url}: {reason}"
            ) from exc

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        if self._addresses is None:
            raise CallError(
                ErrorKind.PEER_UNREACHABLE,
                f"{host} was named by a peer and cannot be checked here",
            )
        return await self._addresses(host, port)
