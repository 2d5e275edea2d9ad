"""Fetching from hostile servers on this machine."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from anp.errors import ConfigError
from anp.identity.web.fetcher import JSON_TYPES, Fetcher
from anp.identity.web.guard import FetchError, FetchPolicy
from tests.anp.identity.web.https_server import answer, serving
from tests.certificates import Authority, Certificate

NETWORKS = (ipaddress.ip_network("127.0.0.0/8"),)


class Names:
    """A name server whose answers are listed; the last one is repeated."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.issue("agent.example", "other.example")


def fetcher(authority: Authority, names: Names | None = None) -> Fetcher:
    policy = FetchPolicy(
        allow=NETWORKS, allow_http_loopback=True, ca_file=str(authority.file)
    )
    return Fetcher(policy, resolve=names or Names(["127.0.0.1"]))


async def test_a_page_comes_from_the_address_that_was_checked(
    authority: Authority, certificate: Certificate
) -> None:
    # The second answer is what a rebinding name server would give to the connection.
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    write = answer(b"{}", headers="Cache-Control: public, max-age=60\r\n")
    async with serving(write, certificate.context()) as server:
        url = f"https://agent.example:{server.port}/did.json"
        found = await fetcher(authority, names).fetch(url, max_size=10)
    assert (found.url, found.body) == (url, b"{}")
    assert (found.content_type, found.max_age) == ("application/json", 60.0)
    assert names.asked == ["agent.example"]
    head = server.requests[0].lower()
    assert head.startswith("get /did.json http/1.1\r\n")
    assert f"host: agent.example:{server.port}\r\n" in head
    assert "cookie" not in head
    assert "authorization" not in head


async def test_a_name_that_turns_private_on_the_second_hop_is_refused(
    authority: Authority, certificate: Certificate
) -> None:
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    redirect = answer(b"", status="302 Found", headers="Location: /again\r\n")
    async with serving(redirect, certificate.context()) as server:
        with pytest.raises(FetchError, match="not public") as caught:
            await fetcher(authority, names).fetch(
                f"https://agent.example:{server.port}/", max_size=10
            )
    assert caught.value.refused
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["10.1.2.3"], ["93.184.215.14", "::1"], ["::"]]
)
async def test_a_name_with_a_forbidden_address_is_never_connected_to(
    addresses: list[str],
) -> None:
    async with serving(answer(b"{}")) as server:
        with pytest.raises(FetchError) as caught:
            await Fetcher(resolve=Names(addresses)).fetch(
                f"https://agent.example:{server.port}/", max_size=10
            )
    assert caught.value.refused
    assert server.requests == []


async def test_a_certificate_of_another_name_is_refused(
    authority: Authority, certificate: Certificate
) -> None:
    async with serving(answer(b"{}"), certificate.context()) as server:
        with pytest.raises(FetchError, match="certificate"):
            await fetcher(authority).fetch(
                f"https://stranger.example:{server.port}/", max_size=10
            )
    assert server.requests == []


async def test_a_certificate_of_an_unknown_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path).issue("agent.example")
    async with serving(answer(b"{}"), stranger.context()) as server:
        with pytest.raises(FetchError, match="certificate"):
            await fetcher(authority).fetch(
                f"https://agent.example:{server.port}/", max_size=10
            )


async def test_redirects_end(authority: Authority, certificate: Certificate) -> None:
    redirect = answer(b"", status="301 Moved", headers="Location: /again\r\n")
    async with serving(redirect, certificate.context()) as server:
        with pytest.raises(FetchError, match="more than 3 times"):
            await fetcher(authority).fetch(
                f"https://agent.example:{server.port}/", max_size=10
            )
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "location",
    ["http://agent.example/", "https://10.0.0.1/", "file:///etc/passwd"],
)
async def test_a_redirect_to_what_is_forbidden_is_not_followed(
    authority: Authority, certificate: Certificate, location: str
) -> None:
    write = answer(b"", status="307 Go", headers=f"Location: {location}\r\n")
    async with serving(write, certificate.context()) as server:
        with pytest.raises(FetchError) as caught:
            await fetcher(authority).fetch(
                f"https://agent.example:{server.port}/", max_size=10
            )
    assert caught.value.refused
    assert len(server.requests) == 1


async def test_a_redirect_to_another_host_is_followed_only_where_it_may(
    authority: Authority, certificate: Certificate
) -> None:
    async with serving(answer(b"{}"), certificate.context()) as target:
        location = f"Location: https://other.example:{target.port}/\r\n"
        write = answer(b"", status="302 Found", headers=location)
        async with serving(write, certificate.context()) as server:
            url = f"https://agent.example:{server.port}/"
            found = await fetcher(authority).fetch(url, max_size=10)
            assert found.url == f"https://other.example:{target.port}/"
            with pytest.raises(FetchError, match="another host"):
                await fetcher(authority).fetch(url, max_size=10, same_host=True)


async def test_a_body_has_to_fit(authority: Authority) -> None:
    async with serving(answer(b"x" * 100)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert len((await fetcher(authority).fetch(url, max_size=100)).body) == 100
        with pytest.raises(FetchError, match="at most 99 fit"):
            await fetcher(authority).fetch(url, max_size=99)


async def test_an_endless_body_is_cut(authority: Authority) -> None:
    async def endless(writer: asyncio.StreamWriter, head: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(b"x" * 4096)
            await writer.drain()

    async with serving(endless) as server:
        with pytest.raises(FetchError, match="more than 10000 bytes"):
            await fetcher(authority).fetch(
                f"http://127.0.0.1:{server.port}/", max_size=10_000
            )


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_the_deadline_holds_for_a_body_that_drips(
    authority: Authority, head: bytes
) -> None:
    async def drip(writer: asyncio.StreamWriter, request: str) -> None:
        writer.write(head)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(drip) as server:
        began = time.monotonic()
        with pytest.raises(FetchError):
            await fetcher(authority).fetch(
                f"http://127.0.0.1:{server.port}/", max_size=10_000, deadline=0.3
            )
        assert time.monotonic() - began < 5.0


async def test_a_compressed_answer_is_refused(authority: Authority) -> None:
    bomb = gzip.compress(b"x" * 1_000_000)
    write = answer(bomb, headers="Content-Encoding: gzip\r\n")
    async with serving(write) as server:
        with pytest.raises(FetchError, match="compressed"):
            await fetcher(authority).fetch(
                f"http://127.0.0.1:{server.port}/", max_size=10_000
            )


@pytest.mark.parametrize(
    ("content_type", "is_taken"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/did+json", True),
        ("application/did+ld+json", True),
        ("text/html", False),
        ("application/jsonx", False),
        ("json", False),
    ],
)
async def test_only_the_content_types_asked_for_are_taken(
    authority: Authority, content_type: str, is_taken: bool
) -> None:
    async with serving(answer(b"{}", content_type=content_type)) as server:
        fetched = fetcher(authority).fetch(
            f"http://127.0.0.1:{server.port}/", max_size=10, content_types=JSON_TYPES
        )
        if is_taken:
            assert (await fetched).body == b"{}"
        else:
            with pytest.raises(FetchError, match="content type"):
                await fetched


@pytest.mark.parametrize(
    ("status", "is_gone"),
    [("404 Not Found", True), ("410 Gone", True), ("500 Oh", False), ("204 No", False)],
)
async def test_another_status_is_a_failure(
    authority: Authority, status: str, is_gone: bool
) -> None:
    async with serving(answer(b"", status=status)) as server:
        with pytest.raises(FetchError) as caught:
            await fetcher(authority).fetch(
                f"http://127.0.0.1:{server.port}/", max_size=10
            )
    assert caught.value.gone is is_gone
    assert not caught.value.refused


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x01\x02",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000,
    ],
    ids=["nothing", "binary", "ssh", "huge head"],
)
async def test_what_is_no_http_is_a_failure(authority: Authority, data: bytes) -> None:
    async def write(writer: asyncio.StreamWriter, head: str) -> None:
        writer.write(data)
        await writer.drain()

    async with serving(write) as server:
        with pytest.raises(FetchError):
            await fetcher(authority).fetch(
                f"http://127.0.0.1:{server.port}/", max_size=10
            )


async def test_proxies_of_the_environment_are_not_used(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(answer(b"proxy")) as proxy, serving(answer(b"{}")) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        found = await fetcher(authority).fetch(
            f"http://127.0.0.1:{server.port}/", max_size=10
        )
    assert found.body == b"{}"
    assert proxy.requests == []


async def test_a_name_without_address_is_a_failure() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    for resolve in (unknown, Names([])):
        with pytest.raises(FetchError) as caught:
            await Fetcher(resolve=resolve).fetch("https://agent.example/", max_size=10)
        assert not caught.value.refused


async def test_nobody_there_is_a_failure(authority: Authority) -> None:
    async with serving(answer(b"")) as server:
        port = server.port
    with pytest.raises(FetchError, match="cannot connect"):
        await fetcher(authority).fetch(f"http://127.0.0.1:{port}/", max_size=10)


def test_authorities_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for path in (empty, tmp_path / "absent.pem"):
        with pytest.raises(ConfigError, match="ca_file"):
            Fetcher(FetchPolicy(ca_file=str(path)))
