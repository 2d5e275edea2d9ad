"""The peer-facing port: WebSocket upgrades and plain GET, nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import http
import logging
import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from anp.channel.admission import Admission, DoorSocket, Guest
from anp.channel.pipe import PromptConnection
from anp.errors import CallError, ErrorKind
from anp.identity.address import normalise_url

Page = tuple[str, bytes]
"A content type and a body."

Pages = Callable[[], Mapping[str, Page]]
"Returns what plain GET serves, by path."

METHODS = (b"GET ", b"HEAD ")
PIECE = 4096
"Bytes of a stranger that are read at once: 40 small frames, about a millisecond."

TURN = 0.0005
"Seconds after which a turn ends; a part of a long frame takes a hundredth of that."

CONNECTION_COST = 0.001
"Seconds of work that every connection counts for, until its request is answered."

BACKLOG = 128
"Connections that wait to be taken."

ACCEPTED_AT_ONCE = 8
"""Connections that are taken in one turn of the loop, about a millisecond.

Newer versions of Python take one more."""

METHOD_NOT_ALLOWED = (
    b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)

logger = logging.getLogger(__name__)


class _OneLine(logging.Filter):
    """Keeps the library's records to one line without traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info:
            cause = record.exc_info[1]
            record.msg = f"{record.getMessage()}: {type(cause).__name__}: {cause}"
            record.args = ()
            record.exc_info = None
            record.exc_text = None
        record.msg = str(record.msg).replace("\n", " ")[:400]
        return True


def websocket_logger() -> logging.Logger:
    """Return the logger that the websockets library writes to.

    What a stranger's connection does is no event of ours: one line, at most WARNING.
    """
    library = logging.getLogger("anp.channel.websockets")
    if not library.filters:
        library.addFilter(_OneLine())
        library.setLevel(logging.WARNING)
    return library


class _PeerPort(PromptConnection, ServerConnection):
    """A connection that reads what a stranger sends piece by piece, each at its turn.

    The library answers control frames and puts fragments together as soon as bytes
    arrive, long before anybody asks for a message; so the pace is set here. Nothing
    is read while something waits, or while the stranger does not read our answers.

    Methods other than GET and HEAD get 405: the library parses requests without a body
    only and drops the others without an answer, so the method is looked at before the
    bytes reach it.
    """

    def __init__(self, *args: Any, admission: Admission, **also: Any) -> None:
        super().__init__(*args, **also)
        self._admission = admission
        self._guest: Guest | None = None
        self._head = b""
        self._passed = False
        self._pending = bytearray()
        self._full = False
        self._asked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._guest = self._admission.find(transport.get_extra_info("peername"))
        super().connection_made(transport)
        self.recv_messages.pause = self._pause
        self.recv_messages.resume = self._resume

    def connection_lost(self, exc: Exception | None) -> None:
        # What waits ends with its connection.
        self._pending.clear()
        super().connection_lost(exc)
        # Nobody asks for it, and it holds this connection.
        self.protocol.handshake_exc = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._flow()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._flow()

    def data_received(self, data: bytes) -> None:
        if self._guest is None or not (self._pending or self._guest.stranger):
            self._take(data)
            return
        self._pending += data
        self._flow()

    def _pause(self) -> None:
        self._full = True
        self._flow()

    def _resume(self) -> None:
        self._full = False
        self._flow()

    @property
    def _held(self) -> bool:
        stranger = self._guest is not None and self._guest.stranger
        return self._full or (stranger and self.paused)

    def _flow(self) -> None:
        """Ask for a turn if there is something to do with it; read if there is not."""
        if self._pending and not self._held and not self._asked:
            assert self._guest is not None
            self._asked = True
            self._guest.do(self._piece)
            if not self._asked:
                # It was done at once, and has looked at what is left.
                return
        if self._pending or self._held:
            self.transport.pause_reading()
        else:
            # Its callback must not have the meter of a task that wrote to this peer.
            Context().run(self.transport.resume_reading)

    def _piece(self) -> None:
        assert self._guest is not None
        # `_asked` stays set: what is written meanwhile must not begin another piece.
        self._guest.has_turn = True
        ends = time.monotonic() + TURN
        read = 0
        try:
            while not self._held and read < len(self._pending):
                piece = bytes(memoryview(self._pending)[read : read + PIECE])
                read += len(piece)
                self._take(piece)
                if time.monotonic() >= ends:
                    break
        except Exception:
            # As the event loop ends a connection whose `data_received` fails.
            self.transport.abort()
            raise
        finally:
            self._asked = self._guest.has_turn = False
            del self._pending[:read]
        self._flow()

    def _take(self, data: bytes) -> None:
        if self._passed:
            super().data_received(data)
            return
        if self._guest is not None and not self._head:
            self._guest.charge(CONNECTION_COST)
        self._head += data
        if any(
            method.startswith(self._head) and method != self._head for method in METHODS
        ):
            return
        if not self._head.startswith(METHODS):
            self.transport.write(METHOD_NOT_ALLOWED)
            self.transport.close()
            self._head = b""
            return
        self._passed = True
        super().data_received(self._head)


class PeerServers:
    """The servers of the port for peers, one for each address of its host."""

    def __init__(self) -> None:
        self._servers: list[Server] = []

    def add(self, server: Server) -> None:
        """Take in a server that listens."""
        self._servers.append(server)

    @property
    def port(self) -> int:
        """The port that they listen on."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    @property
    def serving(self) -> bool:
        """True while new connections are taken."""
        return any(server.is_serving() for server in self._servers)

    def close(self, *, close_connections: bool = True) -> None:
        """Take no new connections, and end those that are open unless told not to."""
        for server in self._servers:
            server.close(close_connections=close_connections)

    async def wait_closed(self) -> None:
        """Wait until all connections have ended."""
        await asyncio.gather(*(server.wait_closed() for server in self._servers))


async def listen(
    host: str,
    port: int,
    *,
    on_connection: Callable[[_PeerPort], Awaitable[None]],
    pages: Pages,
    own_url: Callable[[], str],
    max_size: int,
    open_timeout: float,
    ping_interval: float,
    accepts: Callable[[], bool],
    admission: Admission,
    tls: ssl.SSLContext | None = None,
) -> PeerServers:
    """Listen for peers.

    Args:
        pages: What plain GET serves, by path.
        own_url: Returns the URL at which peers reach us. A page in a browser, which
            says its `Origin`, may connect only from there; daemons say none.
        max_size: Largest first message, in bytes.
        open_timeout: Seconds for the HTTP request to arrive.
        ping_interval: Seconds between WebSocket pings, and to wait for a pong.
        accepts: Tells whether a link may still find a place; otherwise 503.
        admission: Gives connections their places; one without is reset.
        tls: Certificate and key, to speak https and wss; None speaks http and ws.

    Raises:
        CallError: `local_resource`, the address is in use or not ours.
    """

    def process_request(
        connection: ServerConnection, request: Request
    ) -> Response | None:
        if _is_upgrade(request.headers):
            if not _is_ours(request.headers.get_all("Origin"), own_url()):
                # Also one under a rebound name (DNS): its `Origin` says that name.
                told = _text("pages of other sites may not connect")
                return _answer(request, http.HTTPStatus.FORBIDDEN, told)
            if accepts():
                return None
            return _answer(request, http.HTTPStatus.SERVICE_UNAVAILABLE, _text("full"))
        page = pages().get(request.path.partition("?")[0])
        if page is None:
            return _answer(request, http.HTTPStatus.NOT_FOUND, _text("not found"))
        return _answer(request, http.HTTPStatus.OK, page)

    options: dict[str, Any] = {
        "create_connection": partial(_PeerPort, admission=admission)
    }
    servers = PeerServers()
    try:
        for door in await _bind(host, port, admission):
            server = await serve(
                # Each connection is a `_PeerPort`; see `options`.
                cast("Callable[[ServerConnection], Awaitable[None]]", on_connection),
                sock=door,
                backlog=ACCEPTED_AT_ONCE,
                process_request=process_request,
                compression=None,
                max_size=max_size,
                open_timeout=open_timeout,
                ping_interval=ping_interval,
                ping_timeout=ping_interval,
                server_header=None,
                ssl=tls,
                logger=websocket_logger(),
                **options,
            )
            # The loop takes about as many at once as it lets wait; here more may wait.
            door.listen(BACKLOG)
            servers.add(server)
    except OSError as exc:
        # The loop's own text repeats the address; a failed look-up has no errno.
        number = exc.errno or 0
        reason = os.strerror(number) if number > 0 else exc.strerror
        raise CallError(
            ErrorKind.LOCAL_RESOURCE,
            f"cannot listen on {host}:{port}: {reason or exc}; "
            "is another anpd running? --port chooses another port",
        ) from exc
    return servers


async def _bind(host: str, port: int, admission: Admission) -> list[DoorSocket]:
    """Return bound sockets for all addresses of a host, as the event loop makes them.

    Raises:
        OSError: An address is in use, not ours, or unknown.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    doors: list[DoorSocket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            door = DoorSocket(admission, family, kind, protocol)
            doors.append(door)
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if port == 0 and len(doors) > 1:
                # The system chooses once, for all addresses.
                address = (address[0], doors[0].getsockname()[1], *address[2:])
            door.bind(address)
    except BaseException:
        for door in doors:
            door.close()
        raise
    return doors


def _is_upgrade(headers: Headers) -> bool:
    return any(
        value.strip().lower() == "websocket" for value in headers.get_all("Upgrade")
    )


def _is_ours(origins: Sequence[str], url: str) -> bool:
    """Say if a request comes from no page, or from one of our own site. Pure."""
    return all(_site(one) is not None and _site(one) == _site(url) for one in origins)


def _site(url: str) -> str | None:
    """Return the part of a URL that is the same for one site; None if it is none."""
    try:
        parts = urlsplit(normalise_url(url))
    except CallError:
        return None
    return f"{parts.scheme}://{parts.netloc}"


def _text(text: str) -> Page:
    return "text/plain; charset=utf-8", f"{text}\n".encode()


def _answer(request: Request, status: http.HTTPStatus, page: Page) -> Response:
    content_type, body = page
    headers = Headers([("Connection", "close"), ("X-Content-Type-Options", "nosniff")])
    if status is http.HTTPStatus.OK:
        headers["ETag"] = etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        # Asked for again each time, and mostly answered without a body.
        headers["Cache-Control"] = "no-cache"
        if _knows(request.headers, etag):
            status = http.HTTPStatus.NOT_MODIFIED
            return Response(status.value, status.phrase, headers)
    headers["Content-Type"] = content_type
    headers["Content-Length"] = str(len(body))
    if request.method == "HEAD":
        body = b""
    return Response(status.value, status.phrase, headers, body)


def _knows(headers: Headers, etag: str) -> bool:
    """Say if the asker's copy is this one (RFC 9110, If-None-Match)."""
    return any(
        known.strip().removeprefix("W/") in {etag, "*"}
        for value in headers.get_all("If-None-Match")
        for known in value.split(",")
    )
