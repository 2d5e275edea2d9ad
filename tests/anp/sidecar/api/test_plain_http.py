"""Requests in the usual form are read and answered as the HTTP library does it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.plain_http import read_head
from anp.sidecar.api.servers import served, unix_listener

SIZE = 16 * 1024

HEAD = (
    b"POST /v1/calls?a=1 HTTP/1.1\r\nHost: anpd\r\nContent-Type: application/json\r\n"
)

LINES = st.sampled_from(
    [
        b"Host: anpd",
        b"host: other",
        b"Content-Length: 3",
        b"content-length: 03",
        b"content-length: +3",
        b"content-length: 3, 3",
        b"Transfer-Encoding: chunked",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Expect: 100-continue",
        b"X: a\tb",
        b"X: \xc3\xa9",
        b"X:",
        b"X : y",
        b" folded",
        b"X:  two  blanks ",
        b"X_Y-1: ok",
        b"X: a\rb",
        b"X: a\nb: c",
    ]
)


def with_library(data: bytes) -> Any:
    """Return what the library reads of a request."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=SIZE)
    connection.receive_data(data)
    found = connection.next_event()
    assert isinstance(found, h11.Request)
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += bytes(event.data)
    return found, body


@given(
    st.sampled_from([b"GET", b"POST", b"DELETE", b"HEAD", b"get"]),
    st.sampled_from([b"/", b"/v1/calls?a=%20", b"*", b"/\xc3", b"http://x/", b"/a b"]),
    st.lists(LINES, max_size=5),
)
def test_what_is_read_here_the_library_reads_alike(
    method: bytes, target: bytes, lines: list[bytes]
) -> None:
    data = b"\r\n".join([b"%b %b HTTP/1.1" % (method, target), *lines, b"", b"abc"])
    found = read_head(data, max_size=SIZE)
    if found is None:
        return
    theirs, body = with_library(data)
    assert found.method.encode() == theirs.method
    assert found.target == theirs.target
    assert found.headers == [(name.lower(), value) for name, value in theirs.headers]
    assert data[found.size :][: found.length] == body
    # Nothing of what follows could be another request's.
    assert theirs.http_version == b"1.1"


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    read_head(data, max_size=SIZE)
    read_head(HEAD + data + b"\r\n\r\n", max_size=SIZE)


@pytest.mark.parametrize(
    "line",
    [
        b"Transfer-Encoding: chunked",
        b"Content-Length: 3\r\nContent-Length: 3",
        b"Host: twice",
        b"Expect: 100-continue",
        b"Connection: close",
        b"Upgrade: websocket",
        b"X: a\nb",
        b"Content-Length: -1",
    ],
)
def test_what_is_special_is_left_to_the_library(line: bytes) -> None:
    assert read_head(HEAD + b"\r\n", max_size=SIZE) is not None
    assert read_head(HEAD + line + b"\r\n\r\n", max_size=SIZE) is None


def test_a_head_that_is_too_large_is_left_to_the_library() -> None:
    data = HEAD + b"\r\n"
    assert read_head(data, max_size=len(data)) is not None
    assert read_head(data, max_size=len(data) - 1) is None


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with what was asked, in the way that the path names."""
    body, more = b"", scope["path"] != "/early"
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    said = b"%b %b" % (scope["path"].encode(), body[:20])
    length = (b"content-length", b"%d" % len(said))
    headers = {
        "/stream": [],
        "/line": [length, (b"x", b"a\r\nb: c")],
        "/long": [(b"content-length", b"1")],
    }.get(scope["path"], [length])
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": said, "more_body": True})
        said = b""
    await send({"type": "http.response.body", "body": said})


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connected(tmp_path: Path) -> AsyncIterator[Streams]:
    path = tmp_path / "s"
    listener = unix_listener(path)
    async with (
        asyncio.timeout(5),
        served(listener, _app, name="socket", limits=ConnectionLimits()),
    ):
        reader, writer = await asyncio.open_unix_connection(path)
        yield reader, writer
        writer.close()


def request(path: str, body: bytes = b"", *more: bytes) -> bytes:
    lines = [b"POST %b HTTP/1.1" % path.encode(), b"host: x", *more]
    return b"\r\n".join([*lines, b"content-length: %d" % len(body), b"", body])


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Return the body of the next answer, as a client of the library reads it."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(await reader.readuntil(b"\r\n\r\n"))
    found = client.next_event()
    assert isinstance(found, h11.Response)
    assert found.status_code == 200
    body = b""
    while not isinstance(event := client.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            client.receive_data(await reader.read(1))
        else:
            assert isinstance(event, h11.Data)
            body += bytes(event.data)
    return body


async def test_requests_in_pieces_and_behind_one_another_are_answered_in_order(
    tmp_path: Path,
) -> None:
    wanted = [request("/one", b"a" * 9), request("/stream", b"b"), request("/three")]
    wanted += [request("/odd", b"c", b"expect: nothing"), request("/five", b"d")]
    async with connected(tmp_path) as (reader, writer):
        for size in (1, 7, 10_000):
            data = b"".join(wanted)
            for begin in range(0, len(data), size):
                writer.write(data[begin : begin + size])
                await asyncio.sleep(0)
            said = [await answer(reader) for _ in wanted]
            assert said == [
                b"/one aaaaaaaaa",
                b"/stream b",
                b"/three ",
                b"/odd c",
                b"/five d",
            ]


async def test_a_large_body_comes_whole(tmp_path: Path) -> None:
    async with connected(tmp_path) as (reader, writer):
        writer.write(request("/big", b"x" * 2_000_000) + request("/after"))
        assert await answer(reader) == b"/big " + b"x" * 20
        assert await answer(reader) == b"/after "


async def test_a_body_that_nobody_reads_is_no_further_request(tmp_path: Path) -> None:
    inner = request("/inner", b"z")
    async with connected(tmp_path) as (reader, writer):
        data = request("/early", inner * 3)
        writer.write(data[:90])
        assert await answer(reader) == b"/early "
        writer.write(data[90:] + request("/next"))
        assert await answer(reader) == b"/next "


@pytest.mark.parametrize("path", ["/line", "/long"])
async def test_an_answer_that_would_break_its_frame_does_not_leave(
    tmp_path: Path, path: str
) -> None:
    async with connected(tmp_path) as (reader, writer):
        writer.write(request(path))
        said = await reader.read()
    assert b"b: c" not in said
    assert said.startswith(b"HTTP/1.1 500") or not said


@pytest.mark.parametrize(
    ("version", "framing"),
    [
        (b"1.1", b"Content-Length: 49\r\nTransfer-Encoding: chunked\r\n"),
        (b"1.1", b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        (b"1.1", b"Content-Length: 5\r\nX: y\nTransfer-Encoding: chunked\r\n"),
        (b"1.1", b"Content-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n"),
        (b"1.0", b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n"),
    ],
)
async def test_a_request_with_two_lengths_gets_one_refusal_and_no_second_answer(
    tmp_path: Path, version: bytes, framing: bytes
) -> None:
    head = b"POST /outer HTTP/" + version + b"\r\nHost: anpd\r\n" + framing
    async with connected(tmp_path) as (reader, writer):
        writer.write(request("/before"))
        assert await answer(reader) == b"/before "
        writer.write(head + b"\r\n0\r\n\r\n" + request("/smuggled"))
        said = await reader.read()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"smuggled" not in said
    assert b"outer" not in said
