"""HTTP to a daemon over its Unix socket, with the standard library alone.

A library for HTTP takes longer to load than a warm call takes.
"""

from __future__ import annotations

import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import IO
from urllib.parse import urlencode

BLOCK = 256 * 1024
"Bytes of a file that are sent at once; the library's own 8 KiB take twice as long."


class LostError(Exception):
    """There is no whole answer."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent
        "Whether the daemon may have the request."


class LocalHttp:
    """Requests to one daemon, each over a connection of its own.

    Args:
        path: Of the socket.
        headers: Sent with every request.
    """

    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        self._path = path
        self.headers = headers

    @contextmanager
    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Generator[HTTPResponse]:
        """Send a request and give the answer, to be read before this ends.

        Raises:
            LostError: The daemon cannot be reached, or ends before its answer does.
        """
        target = f"{path}?{urlencode(params)}" if params else path
        connection = _Connection(self._path)
        try:
            try:
                connection.connect()
            except OSError as exc:
                raise LostError(exc.strerror or str(exc), sent=False) from exc
            # A body that is refused before all of it was sent has an answer, too.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    method, target, body, {**self.headers, **(headers or {})}
                )
            yield connection.getresponse()
        except (HTTPException, OSError) as exc:
            raise LostError(str(exc) or type(exc).__name__, sent=True) from exc
        finally:
            connection.close()


class _Connection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("anpd", blocksize=BLOCK)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket; without a limit of time, as calls may take long."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)
