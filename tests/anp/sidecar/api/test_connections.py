"""Shares of the connections of one door of the local API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.api.connections import (
    CONNECTION,
    ApiConnection,
    ConnectionLimits,
    HangUp,
    Lobby,
)
from anp.sidecar.api.servers import served, unix_listener
from tests.waiting import until

LIMITS = ConnectionLimits(max_strangers=3, max_known=2)


def lobby(busy: set[str]) -> Lobby[str]:
    """Return an empty one, where `busy` has the connections with a request."""
    return Lobby(LIMITS, busy.__contains__)


def test_the_oldest_stranger_that_does_nothing_makes_room() -> None:
    busy = {"a"}
    ours = lobby(busy)
    assert [ours.enter(one) for one in "abc"] == [None, None, None]
    assert ours.enter("d") == "b"
    busy.update("cd")
    # All are being answered: the oldest goes, so that a new one can come.
    assert ours.enter("e") == "a"


def test_strangers_never_take_the_place_of_a_known_connection() -> None:
    ours = lobby(set())
    for one in "kl":
        ours.enter(one)
        assert ours.admit(one) == (True, None)
    for number in range(20):
        assert ours.enter(f"s{number}") not in {"k", "l"}
    assert {"k", "l"} < set(ours.all())


def test_the_oldest_known_one_that_does_nothing_makes_room() -> None:
    busy: set[str] = set()
    ours = lobby(busy)
    for one in "klm":
        ours.enter(one)
    ours.admit("k")
    ours.admit("l")
    assert ours.admit("m") == (True, "k")
    busy.update("lm")
    ours.enter("n")
    assert ours.admit("n") == (False, None)
    busy.remove("m")
    assert ours.admit("n") == (True, "m")


def test_who_leaves_frees_a_place() -> None:
    ours = lobby({"a", "b", "c"})
    for one in "abc":
        ours.enter(one)
    ours.leave("b")
    assert ours.enter("d") is None
    ours.leave("never there")


@given(st.lists(st.tuples(st.sampled_from("eal"), st.integers(0, 9)), max_size=60))
def test_no_share_is_ever_over_its_limit(steps: list[tuple[str, int]]) -> None:
    ours = lobby({"3", "4"})
    inside: set[str] = set()
    known: set[str] = set()
    for step, number in steps:
        one = str(number)
        gone: str | None = None
        if step == "e" and one not in inside:
            gone = ours.enter(one)
            inside.add(one)
        elif step == "a" and one in inside - known:
            admitted, gone = ours.admit(one)
            if admitted:
                known.add(one)
        elif step == "l":
            gone = one
            ours.leave(one)
        if gone is not None:
            inside.discard(gone)
            known.discard(gone)
        assert len(known) <= LIMITS.max_known
        assert len(inside - known) <= LIMITS.max_strangers


async def test_an_idle_connection_is_ended_without_a_timer_of_its_own(
    tmp_path: Path,
) -> None:
    found: list[ApiConnection] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope["state"][CONNECTION])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    path = tmp_path / "socket"
    limits = ConnectionLimits(look_seconds=0.01)
    async with (
        asyncio.timeout(20),
        served(unix_listener(path), app, name="socket", limits=limits),
    ):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\r\nHost: anpd\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 204")
        (connection,) = found
        assert connection.timeout_keep_alive_task is None
        connection.timeout_keep_alive = 0
        assert await reader.read() == b""
        writer.close()


async def test_who_hangs_up_is_noticed_at_once(tmp_path: Path) -> None:
    told = asyncio.Event()
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        with HangUp(scope, told.set):
            seen.append("begun")
            await told.wait()
        with HangUp(scope, lambda: seen.append("known already")):
            pass

    path = tmp_path / "socket"
    async with (
        asyncio.timeout(20),
        served(unix_listener(path), app, name="socket", limits=ConnectionLimits()),
    ):
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET / HTTP/1.1\r\nHost: anpd\r\n\r\n")
        await until(lambda: bool(seen))
        writer.close()
        await until(lambda: seen == ["begun", "known already"])
