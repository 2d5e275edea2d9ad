"""A connection that fails says why, in words for people."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ssl
from collections.abc import AsyncIterator

import pytest

from anp.channel.dial_errors import dial_problem
from anp.channel.dialler import Dialler
from anp.errors import CallError, ErrorKind


@contextlib.asynccontextmanager
async def server(answer: bytes | None) -> AsyncIterator[int]:
    """Listen, and answer with these bytes; None never answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(100)
            if answer is None:
                await asyncio.sleep(30)
            writer.write(answer or b"")
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


async def reason(url: str) -> str:
    with pytest.raises(CallError) as caught:
        await Dialler().dial(
            url, guarded=False, open_timeout=0.5, ping_interval=20.0, max_size=1000
        )
    assert caught.value.kind is ErrorKind.PEER_UNREACHABLE
    start = f"cannot connect to {url}: "
    assert caught.value.detail.startswith(start)
    return caught.value.detail.removeprefix(start)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_port_where_nobody_listens(host: str) -> None:
    words = "nothing listens there (connection refused); is its anpd up?"
    assert await reason(f"ws://{host}:1/") == words


async def test_a_name_that_nobody_has() -> None:
    said = await reason("ws://nobody.invalid/")
    assert said in {
        "the name nobody.invalid was not found",
        "the name nobody.invalid cannot be looked up now",
    }


@pytest.mark.parametrize(
    ("scheme", "answer", "words"),
    [
        ("ws", None, "no answer within 0.5 s"),
        ("ws", b"hello\r\n\r\n", "what listens there does not speak WebSocket"),
        ("ws", b"", "what listens there does not speak WebSocket"),
        ("ws", b"HTTP/1.1 404 No\r\n\r\n", "what listens there answers HTTP 404"),
        ("wss", b"HTTP/1.1 400 No\r\n\r\n", "TLS: what listens there does not speak"),
    ],
)
async def test_a_server_of_another_kind(
    scheme: str, answer: bytes | None, words: str
) -> None:
    async with server(answer) as port:
        assert (await reason(f"{scheme}://127.0.0.1:{port}/")).startswith(words)


def test_a_certificate_that_is_not_accepted() -> None:
    exc = ssl.SSLCertVerificationError(1, "[SSL: X] certificate verify failed")
    exc.verify_message = "self-signed certificate"
    assert dial_problem(exc, "wss://a.example/") == (
        "TLS: its certificate is not accepted (self-signed certificate)"
    )


@pytest.mark.parametrize(
    ("exc", "words"),
    [
        (OSError(errno.EHOSTUNREACH, "x"), "there is no route to that machine"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "the connection was cut"),
        (OSError("Multiple exceptions: [Errno 113] a, [Errno 113] b"), "there is no"),
        (OSError("nothing known"), "the connection failed"),
    ],
)
def test_other_reasons_have_words(exc: OSError, words: str) -> None:
    outer = RuntimeError("outer")
    outer.__cause__ = ExceptionGroup("several", [exc])
    assert dial_problem(outer, "ws://a.example/").startswith(words)
