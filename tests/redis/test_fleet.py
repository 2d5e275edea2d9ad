"""Two daemons with one identity behind one store, as real processes."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cache.servers import Server, find_server, is_wanted, running
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.raw_peer import raw_peer

pytestmark = pytest.mark.skipif(
    not is_wanted() or find_server() is None,
    reason="needs a Redis server (run by `make test-redis`)",
)

SOURCE = """from typing import TypedDict


class Answer(TypedDict):
    doubled: int


def double_it(number: int) -> Answer:
    return {"doubled": 2 * number}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "server") as started:
        started.ask("CONFIG", "SET", "requirepass", "s3cret")
        yield started


def fleet(folder: Path, server: Server) -> tuple[Anpd, Anpd]:
    """Return two homes with one identity and one store."""
    url = f"redis://:s3cret@127.0.0.1:{server.port}/0"
    one = Anpd(folder / "one", cache__url=url, cache__prefix="shop")
    other = Anpd(folder / "other", cache__url=url, cache__prefix="shop")
    (folder / "mod.py").write_text(SOURCE)
    one.ok("init")
    shutil.copytree(one.home, other.home)
    return one, other


def attach(daemon: Anpd, folder: Path) -> None:
    daemon.ok("attach", "python", "mod:double_it", "--expose", "*", cwd=folder)


def call(caller: Anpd, provider: Anpd) -> dict[str, object]:
    data = json.dumps({"number": 21})
    ended = caller.ok("call", provider.address, "double_it", "-d", data, "--json")
    found: dict[str, object] = ended.json()
    assert found["output"] == {"doubled": 42}
    return found


@clause("ANP-84", "ANP-86")
def test_what_was_agreed_with_one_is_used_with_the_other(
    tmp_path: Path, server: Server
) -> None:
    one, other = fleet(tmp_path, server)
    caller = Anpd(tmp_path / "caller")
    with one.up(), other.up():
        assert one.did == other.did
        for daemon in (one, other):
            attach(daemon, tmp_path)
        with caller.up():
            first = call(caller, one)
            assert first["source"] == "negotiated"
        # Killed in the middle of its work, it leaves nothing that others trip over.
        one.kill()
        with caller.up():
            second = call(caller, other)
            assert second["source"] == "agreement"
            assert second["negotiation_messages"] == 0
            assert second["protocol"] == first["protocol"]
            # The store goes away: the channel is there, and what it needs was read.
            server.kill()
            assert call(caller, other)["source"] == "agreement"
    for daemon in (one, other):
        assert "s3cret" not in daemon.log()


async def test_a_hello_that_one_was_sent_is_refused_by_the_other(
    tmp_path: Path, server: Server
) -> None:
    one, other = fleet(tmp_path, server)
    with one.up(), other.up():
        async with asyncio.timeout(30):
            async with raw_peer(one.url, one.did) as peer:
                hello = peer.initiator().messages_to_send()
                await peer.say(*hello)
                assert (await peer.hear())["type"] == "destinationHello"
            async with raw_peer(other.url, other.did) as peer:
                await peer.say(*hello)
                answer = await peer.hear()
            assert (answer["type"], answer["code"]) == ("response", 403)


def test_callers_of_one_identity_share_what_they_agreed(
    tmp_path: Path, server: Server
) -> None:
    one, other = fleet(tmp_path, server)
    provider = Anpd(tmp_path / "provider")
    with provider.up():
        attach(provider, tmp_path)
        with one.up():
            assert call(one, provider)["source"] == "negotiated"
        with other.up():
            second = call(other, provider)
            assert second["source"] == "agreement"
            assert second["negotiation_messages"] == 0


def test_the_password_is_shown_nowhere_and_a_missing_server_is_one_line(
    tmp_path: Path, server: Server
) -> None:
    one, _ = fleet(tmp_path, server)
    for command in (("config", "show"), ("config", "show", "--json"), ("doctor",)):
        ended = one.run(*command)
        assert "s3cret" not in ended.stdout + ended.stderr
        assert f"redis://127.0.0.1:{server.port}/0" in ended.stdout
    server.kill()
    ended = one.run("up", "--port", "0")
    assert ended.code == 13
    assert "cannot be reached" in ended.stderr.splitlines()[-1]
    assert "s3cret" not in ended.stdout + ended.stderr
    ended = one.run("doctor")
    assert ended.code != 0
    assert "cannot be reached" in ended.stdout
