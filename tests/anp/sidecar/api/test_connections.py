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
    Seating,
)
from anp.sidecar.api.servers import served, unix_listener
from tests.waiting import until

LIMITS = ConnectionLimits(max_strangers=3, max_known=2, owner_places=1, max_waiting=2)
IN, WAITS, FULL = Seating.IN, Seating.WAITS, Seating.FULL


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
        assert ours.admit(one) == (IN, None)
    for number in range(20):
        assert ours.enter(f"s{number}") not in {"k", "l"}
    assert {"k", "l"} < set(ours.all())


def test_the_oldest_known_one_that_does_nothing_gives_its_place_up() -> None:
    busy: set[str] = set()
    ours = lobby(busy)
    for one in "klm":
        ours.enter(one)
    ours.admit("k")
    ours.admit("l")
    assert ours.admit("m") == (IN, None)
    # Nobody ends it: it is a stranger until its next request.
    assert not ours.is_known("k")
    assert "k" in ours.all()
    busy.update("lm")
    assert ours.admit("k") == (WAITS, None)


def test_a_request_waits_until_another_is_answered_and_the_first_comes_first() -> None:
    busy = set("klmnop")
    ours = lobby(busy)
    for one in "klmno":
        ours.enter(one)
        ours.admit(one)
    assert [ours.is_known(one) for one in "klmn"] == [True, True, False, False]
    ours.enter("p")
    assert ours.admit("p") == (FULL, None)
    busy.remove("l")
    assert ours.release("l") == (["m"], None)
    assert ours.is_known("m")
    assert not ours.is_known("l")
    assert ours.leave("k") == ["n"]


def test_one_that_waited_too_long_is_a_stranger_again() -> None:
    ours = lobby(set("klm"))
    for one in "klm":
        ours.enter(one)
        ours.admit(one)
    ours.give_up("m")
    assert ours.leave("k") == []
    assert "m" in ours.all()


def test_the_owner_has_places_of_its_own() -> None:
    ours = lobby(set("klmnop"))
    for one in "klm":
        ours.enter(one)
        ours.admit(one)
    ours.enter("o")
    assert ours.admit("o", is_owner=True) == (IN, None)
    ours.enter("p")
    assert ours.admit("p", is_owner=True) == (WAITS, None)
    # A place of the owner's goes to the owner, also when others waited longer.
    assert ours.leave("o") == ["p"]
    assert not ours.is_known("m")


def test_who_leaves_frees_a_place() -> None:
    ours = lobby({"a", "b", "c"})
    for one in "abc":
        ours.enter(one)
    ours.leave("b")
    assert ours.enter("d") is None
    ours.leave("never there")


@given(st.lists(st.tuples(st.sampled_from("eaorgl"), st.integers(0, 9)), max_size=60))
def test_no_share_is_ever_over_its_limit(steps: list[tuple[str, int]]) -> None:
    ours = lobby({"3", "4", "5", "6", "7"})
    inside: set[str] = set()
    waiting: set[str] = set()
    for step, number in steps:
        one = str(number)
        gone: str | None = None
        seated: list[str] = []
        if step == "e" and one not in inside:
            gone = ours.enter(one)
            inside.add(one)
        elif step in "ao" and one in inside - waiting and not ours.is_known(one):
            admission, gone = ours.admit(one, is_owner=step == "o")
            assert ours.is_known(one) == (admission is IN)
            waiting |= {one} if admission is WAITS else set()
        elif step == "r" and ours.is_known(one):
            seated, gone = ours.release(one)
        elif step == "g":
            ours.give_up(one)
            waiting.discard(one)
        elif step == "l":
            gone = one
            seated = ours.leave(one)
        if gone is not None:
            inside.discard(gone)
            waiting.discard(gone)
        assert set(seated) <= waiting
        waiting -= set(seated)
        known = {each for each in inside if ours.is_known(each)}
        assert set(ours.all()) == inside
        assert not known & waiting
        assert len(known) <= LIMITS.max_known + LIMITS.owner_places
        assert len(waiting) <= LIMITS.max_waiting
        # Those that gave up waiting come back over the limit.
        most = LIMITS.max_strangers + LIMITS.max_waiting
        assert len(inside - known - waiting) <= most


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
