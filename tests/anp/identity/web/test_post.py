"""What is sent to addresses that others name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from anp.identity.web.guard import FetchError
from tests.anp.identity.web.https_server import answer, serving
from tests.anp.identity.web.test_fetcher import Names, fetcher
from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder: Path = tmp_path_factory.mktemp("authority")
    return Authority(folder)


async def test_a_body_goes_to_the_address_that_was_checked(
    authority: Authority,
) -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    certificate = authority.issue("agent.example").context()
    async with serving(answer(b"", status="204 None"), certificate) as server:
        await fetcher(authority, names).post(
            f"https://agent.example:{server.port}/push?key=1",
            b"{}",
            headers={"Content-Type": "application/a2a+json", "Host": "evil.example"},
        )
    (head,) = server.requests
    assert head.startswith("POST /push?key=1 HTTP/1.1\r\n")
    assert f"host: agent.example:{server.port}\r\n" in head.lower()
    assert "evil" not in head
    assert "content-type: application/a2a+json\r\n" in head.lower()
    assert names.asked == ["agent.example"]


@pytest.mark.parametrize(
    "status", ["302 Found", "307 Again", "404 None", "500 No"], ids=str
)
async def test_any_other_status_is_a_failure_that_quotes_no_secret(
    authority: Authority, status: str
) -> None:
    write = answer(b"", status=status, headers="Location: /elsewhere\r\n")
    async with serving(write) as server:
        url = f"http://127.0.0.1:{server.port}/push?key=hidden"
        with pytest.raises(FetchError, match=status[:3]) as caught:
            await fetcher(authority).post(url, b"{}", headers={})
    assert "hidden" not in str(caught.value)
    assert len(server.requests) == 1


async def test_an_answer_that_does_not_end_is_not_read(authority: Authority) -> None:
    async def endless(writer: asyncio.StreamWriter, head: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with serving(endless) as server:
        url = f"http://127.0.0.1:{server.port}/"
        await fetcher(authority).post(url, b"{}", headers={}, deadline=10)


async def test_who_does_not_answer_is_left(authority: Authority) -> None:
    async def silent(writer: asyncio.StreamWriter, head: str) -> None:
        await asyncio.sleep(5)

    async with serving(silent) as server:
        url = f"http://127.0.0.1:{server.port}/"
        with pytest.raises(FetchError, match="no answer in"):
            await fetcher(authority).post(url, b"{}", headers={}, deadline=0.2)


async def test_inward_addresses_are_refused_before_anything_is_sent(
    authority: Authority,
) -> None:
    names = Names(["10.0.0.1"])
    for ask in (
        fetcher(authority, names).check("https://agent.example/"),
        fetcher(authority, names).post("https://agent.example/", b"", headers={}),
    ):
        with pytest.raises(FetchError) as caught:
            await ask
        assert caught.value.refused
