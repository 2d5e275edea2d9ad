"""A server that does not answer holds up one caller, once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fakeredis
import pytest
import redis

from cache.errors import StoreUnavailable
from cache.redis.database import RedisDatabase
from cache.redis.place import RedisPlace
from cache.redis.server import RedisConnection, RedisTimes
from cache.store import Store
from tests.cache.samples import KNOWN_PEER, PIN, trio

HANGS = 0.5
"Seconds until our own time limit ends a wait for the server, in these tests."


class Line:
    """A server in memory that can be made to say nothing, or to close connections."""

    def __init__(self) -> None:
        self.server = fakeredis.FakeServer()
        self.silent = False
        self.cut = False
        self.dialled = 0

    def dial(self, place: RedisPlace, times: RedisTimes) -> RedisConnection:
        self.dialled += 1
        self.cut = False
        client = fakeredis.FakeRedis(server=self.server, protocol=2)
        pool: Any = client.connection_pool
        connection = pool.get_connection()
        read = connection.read_response

        def read_response(*args: Any, **kwargs: Any) -> Any:
            if self.silent:
                time.sleep(HANGS)
                raise redis.TimeoutError("Timeout reading from socket")
            if self.cut:
                raise redis.ConnectionError("Connection closed by server.")
            return read(*args, **kwargs)

        connection.read_response = read_response
        return RedisConnection(connection)


@pytest.fixture
def line() -> Line:
    return Line()


def store_on(line: Line, *, retry: float = 60.0) -> Store:
    place = RedisPlace.parse("redis://localhost/0")
    times = RedisTimes(retry=retry, patience=0.05)
    return Store(RedisDatabase(place, times=times, dial=line.dial))


def test_only_the_first_calls_wait_for_a_server_that_hangs(line: Line) -> None:
    with store_on(line) as store:
        store.save_peer(KNOWN_PEER)
        assert store.peer(KNOWN_PEER.did) == KNOWN_PEER
        line.silent = True
        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(store.peer, KNOWN_PEER.did) for _ in range(8)]
            assert {one.result() for one in asked} == {KNOWN_PEER}
        # All eight together, and not one after the other.
        assert time.monotonic() - began < 2 * HANGS
        began = time.monotonic()
        for _ in range(50):
            assert store.peer(KNOWN_PEER.did) == KNOWN_PEER
            with pytest.raises(StoreUnavailable, match="does not answer"):
                store.save_pin(PIN)
        assert time.monotonic() - began < HANGS


def test_a_look_whether_it_is_back_holds_nobody_up(line: Line) -> None:
    with store_on(line, retry=0.0) as store:
        line.silent = True
        with pytest.raises(StoreUnavailable):
            store.save_pin(PIN)
        began = time.monotonic()
        for _ in range(20):
            with pytest.raises(StoreUnavailable):
                store.save_pin(PIN)
        # Each look takes half a second, and goes on without those who asked for it.
        assert time.monotonic() - began < 4 * HANGS
        line.silent = False
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            try:
                store.save_pin(PIN)
            except StoreUnavailable:
                time.sleep(0.05)
            else:
                break
        assert store.pin(PIN.url) == PIN


def test_a_connection_that_a_restarted_server_closed_fails_nothing(line: Line) -> None:
    with store_on(line) as store:
        saved = store.save_agreement(*trio(0))
        line.cut = True
        assert store.agreements_of(saved.hash) == [saved]
        line.cut = True
        store.add_usage([], [(saved, 1, 5000.0)])
        assert [one.uses for one in store.agreements_of(saved.hash)] == [1]


def test_what_was_just_written_is_there_in_an_outage(line: Line) -> None:
    with store_on(line) as store:
        saved = store.save_agreement(*trio(0))
        names = saved.own_did, saved.peer_did, saved.role, saved.need_key or ""
        assert store.agreements(*names) == [saved]
        # The count of a call changes the row that the next call needs.
        store.add_usage([], [(saved, 1, 5000.0)])
        line.silent = True
        assert [one.uses for one in store.agreements(*names)] == [1]
