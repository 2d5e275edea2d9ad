"""The endpoint against raw sockets: silence, slowness, floods, broken connections."""

from __future__ import annotations

import asyncio
import gzip
import threading
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from typing import Any

import pytest

from negotiation.errors import MindError
from negotiation.llm.asking.attempts import AskingLimits
from negotiation.llm.asking.endpoint import EndpointSettings, ModelEndpoint
from tests.negotiation.llm.script import GREEN, KEY, QUESTION, server, validate

BODY = (
    b'{"choices": [{"message": {"content": "{\\"colour\\": \\"green\\"}"},'
    b' "finish_reason": "stop"}]}'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
GOOD = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def at(url: str, **settings: Any) -> ModelEndpoint:
    known = {"model": "m", "base_url": url, "api_key": KEY, "timeout": 20.0}
    known["limits"] = AskingLimits(first_wait=0.0)
    return ModelEndpoint(EndpointSettings(**{**known, **settings}), validate)


async def test_a_real_connection_answers_and_is_closed() -> None:
    ended = asyncio.Event()

    async def serve(reader: Reader, writer: Writer) -> None:
        writer.write(GOOD)
        await writer.drain()
        assert await reader.read() == b""
        ended.set()

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url)
        assert await asked.ask(QUESTION) == {"colour": "green"}
        await asked.close()
        await ended.wait()


async def test_connections_are_made_once_and_not_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bool] = []
    make = ModelEndpoint._connection

    def watched(self: ModelEndpoint) -> object:
        made.append(threading.current_thread() is threading.main_thread())
        return make(self)

    monkeypatch.setattr(ModelEndpoint, "_connection", watched)

    async def serve(_reader: Reader, writer: Writer) -> None:
        writer.write(GOOD)

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url)
        await asyncio.gather(asked.prepare(), asked.prepare())
        assert await asked.ask(QUESTION) == {"colour": "green"}
        await asked.close()
    assert made == [False]


async def test_a_proxy_of_the_environment_is_not_used_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def serve(_reader: Reader, writer: Writer) -> None:
        writer.write(GOOD)

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1/")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with asyncio.timeout(20), server(serve) as url:
        assert await at(url).ask(QUESTION) == {"colour": "green"}


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"Content-Length: 99\r\n\r\n{"])
async def test_silence_ends_at_the_deadline_of_the_question(sent: bytes) -> None:
    asks = 0

    async def serve(reader: Reader, writer: Writer) -> None:
        nonlocal asks
        asks += 1
        writer.write(sent)
        await reader.read()

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url, timeout=0.3)
        with pytest.raises(MindError, match=r"llm\.timeout|fell silent"):
            await asked.ask(QUESTION)
        await asked.close()
    assert asks <= 3


async def test_a_trickle_ends_at_the_deadline_too() -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        writer.write(HEAD + b"Content-Length: 100000\r\n\r\n")
        while not reader.at_eof():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url, timeout=0.4)
        with pytest.raises(MindError, match=r"llm\.timeout"):
            await asked.ask(QUESTION)
        await asked.close()


async def test_an_endless_body_is_cut_off_before_it_fills_the_memory() -> None:
    sent = 0

    async def serve(_reader: Reader, writer: Writer) -> None:
        nonlocal sent
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(400):
            writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            await writer.drain()
            sent += 0x10000

    async with asyncio.timeout(60), server(serve) as url:
        asked = at(url, limits=AskingLimits(max_requests=1))
        with pytest.raises(MindError, match="more than 2097152 bytes"):
            await asked.ask(QUESTION)
        await asked.close()
    assert sent < 20 * 1024 * 1024


async def test_an_endless_body_of_an_error_is_cut_off_too() -> None:
    async def serve(_reader: Reader, writer: Writer) -> None:
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 99999999\r\n\r\n"
        writer.write(head)
        for _ in range(400):
            writer.write(b"x" * 0x10000)
            await writer.drain()

    async with asyncio.timeout(60), server(serve) as url:
        asked = at(url, limits=AskingLimits(max_requests=1))
        with pytest.raises(MindError, match="more than 2097152 bytes"):
            await asked.ask(QUESTION)
        await asked.close()


async def test_a_compressed_body_is_refused_for_it_could_be_a_bomb() -> None:
    packed = gzip.compress(b" " * 50_000_000)

    async def serve(_reader: Reader, writer: Writer) -> None:
        writer.write(HEAD + b"Content-Encoding: gzip\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(packed) + packed)

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url)
        with pytest.raises(MindError, match="broke"):
            await asked.ask(QUESTION)
        await asked.close()


@pytest.mark.parametrize(
    "junk",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", b"\x00\xff\r\n\r\n"],
)
async def test_a_connection_that_breaks_is_tried_again(junk: bytes) -> None:
    asks = 0

    async def serve(_reader: Reader, writer: Writer) -> None:
        nonlocal asks
        asks += 1
        writer.write(junk if asks == 1 else GOOD)

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url)
        assert await asked.ask(QUESTION) == {"colour": "green"}
        await asked.close()
    assert asks == 2


async def test_nobody_at_the_address_is_told_with_what_to_do() -> None:
    async def serve(_reader: Reader, _writer: Writer) -> None:
        raise AssertionError("nobody is here")

    async with server(serve) as url:
        pass
    asked = at(url)
    with pytest.raises(MindError, match="does it run"):
        await asked.ask(QUESTION)
    await asked.close()


async def test_closing_ends_a_question_under_way() -> None:
    arrived = asyncio.Event()

    async def serve(reader: Reader, _writer: Writer) -> None:
        arrived.set()
        await reader.read()

    async with asyncio.timeout(20), server(serve) as url:
        asked = at(url)
        asking = asyncio.create_task(asked.ask(QUESTION))
        await arrived.wait()
        await asked.close()
        with pytest.raises(MindError):
            await asking


def test_the_answer_of_these_tests_is_the_one_of_the_others() -> None:
    assert GREEN.replace('"', '\\"').encode() in BODY
