"""Requests in the usual form, read and answered with few steps.

Most requests have nothing special: one of three methods, headers of plain characters,
and a body of a stated length. Those are read here, by one pattern; whatever looks any
different is left to the HTTP library, which knows all of the standard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, RequestResponseCycle

HEAD: Final = re.compile(
    rb"(GET|POST|DELETE) (/[!-~]*) HTTP/1\.1\r\n"
    rb"((?:[0-9A-Za-z_-]+: ?[!-~](?:[ -~]*[!-~])?\r\n)+)\r\n"
)
SPECIAL: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"trailer"})
"Headers that change how a request is read; `Connection` may only be `keep-alive`."

LENGTH: Final = re.compile(rb"[0-9]{1,12}")

ANSWER: Final = re.compile(rb"(?:[0-9A-Za-z_-]+: [\t -~\x80-\xff]*\r\n)*")
"The headers of an answer, each on a line."

BODILESS: Final = frozenset({204, 304})
"Statuses whose answers have no body, and so no length either."

JOINED: Final = 64 * 1024
"Bytes up to which a body goes out in one piece with its head."


@dataclass(frozen=True, slots=True)
class PlainHead:
    """The head of a request in the usual form."""

    method: str
    target: bytes
    "The path, and the query if there is one, as they were sent."

    headers: list[tuple[bytes, bytes]]
    "In the order of the request, with names in lower case."

    length: int
    "Bytes of the body."

    size: int
    "Bytes of the head itself."


def read_head(data: bytes, *, max_size: int) -> PlainHead | None:
    """Return the head that some bytes begin with; None if it is not a usual one.

    Args:
        max_size: Most bytes of the head.
    """
    found = HEAD.match(data, 0, max_size)
    if found is None:
        return None
    headers: list[tuple[bytes, bytes]] = []
    hosts, length = 0, None
    for line in found[3].split(b"\r\n")[:-1]:
        written, _, value = line.partition(b":")
        name, value = written.lower(), value.strip(b" ")
        headers.append((name, value))
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            if length is not None or LENGTH.fullmatch(value) is None:
                return None
            length = int(value)
        elif name in SPECIAL or (
            name == b"connection" and value.lower() != b"keep-alive"
        ):
            return None
    if hosts != 1:
        return None
    return PlainHead(found[1].decode(), found[2], headers, length or 0, found.end())


class StrictConnection(h11.Connection):
    """Reads requests with the HTTP library, and refuses those with an unsure end.

    The library takes `Transfer-Encoding` where `Content-Length` stands beside it, and
    in HTTP/1.0, which does not have it. A proxy before us may take the length, and
    would let pass what we then read as a request of its own (RFC 9112, 6.1).
    """

    def next_event(self) -> Any:
        """Return the next event of the client; see the library's class.

        Raises:
            h11.RemoteProtocolError: The request is not valid: 400, and the connection
                ends.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            named = {name for name, _ in event.headers}
            if b"transfer-encoding" in named and (
                b"content-length" in named or event.http_version != b"1.1"
            ):
                raise h11.RemoteProtocolError("the length of the body is not sure")
        return event


class PlainCycle(RequestResponseCycle):
    """Answers one request in the usual form; the HTTP library is not asked."""

    _head = b""
    _left: int | None = None
    "Bytes of the body that are still to be sent; None when it goes out in chunks."

    async def send(self, message: Any) -> None:
        """Take one message of the application (ASGI)."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        wanted = "body" if self.response_started else "start"
        if self.response_complete or message["type"] != f"http.response.{wanted}":
            raise RuntimeError(f"the message {message['type']} is out of order")
        if not self.response_started:
            self._start(message["status"], [*message.get("headers", ())])
            return
        more = message.get("more_body", False)
        self._write(message.get("body", b""), last=not more)
        if more:
            return
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        if status in BODILESS:
            self._left = 0
        else:
            length = dict(headers).get(b"content-length")
            if length is not None:
                self._left = int(length)
            else:
                headers.append((b"transfer-encoding", b"chunked"))
        if CLOSE_HEADER in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE_HEADER)
        every, lines = [*self.default_headers, *headers], b""
        for one in every:
            lines += b"%b: %b\r\n" % one
        if ANSWER.fullmatch(lines) is None or lines.count(b"\n") != len(every):
            raise RuntimeError("a header of an answer has characters that may not be")
        self._head = b"HTTP/1.1 %d %b\r\n%b\r\n" % (
            status,
            STATUS_PHRASES[status],
            lines,
        )

    def _write(self, body: bytes, *, last: bool) -> None:
        """Write a piece of the body, with the head before the first one."""
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (last and self._left):
                raise RuntimeError("the body of an answer is not as long as it said")
        else:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body += b"0\r\n\r\n" if last else b""
        head, self._head = self._head, b""
        if len(body) <= JOINED:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            # A view, so that the part which has to wait is not copied twice.
            self.transport.write(memoryview(body))
