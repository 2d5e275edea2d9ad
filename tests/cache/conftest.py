"""Runs what is said of the store over each back end.

`Store(folder)` gives a store on disk. For a test that is run over a server, it gives
one whose prefix is that folder's, so the tests are the same to the letter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import fakeredis
import pytest

from cache.parts.keys import end_all_keys
from cache.redis.database import RedisDatabase
from cache.redis.place import RedisPlace
from tests.cache.servers import FAST, Server, fake_backend, find_server, is_wanted

BOTH = {
    "test_agreements",
    "test_peers",
    "test_imports",
    "test_keys",
    "test_logs",
    "test_usage",
    "test_negotiations",
    "test_store",
}
"Modules about what every store does."


def pytest_configure(config: pytest.Config) -> None:
    """Add our marker."""
    config.addinivalue_line("markers", "on_disk: looks into or damages the file")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat such tests over each back end."""
    is_of_both = metafunc.module.__name__.rpartition(".")[2] in BOTH
    if not is_of_both or metafunc.definition.get_closest_marker("on_disk"):
        return
    kinds = ["disk", "fake", *(["redis"] if is_wanted() else [])]
    metafunc.parametrize("kept_in", kinds, indirect=True)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server, for `make test-redis` only."""
    if not is_wanted() or find_server() is None:
        pytest.skip("needs a Redis server (run by `make test-redis`)")
    running = Server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no")
    yield running
    running.kill()


@pytest.fixture(autouse=True)
def kept_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where `Store(folder)` keeps its records: `disk`, `fake` or `redis`."""
    kind: str = getattr(request, "param", "disk")
    opened: Callable[[str], RedisDatabase]
    if kind == "fake":
        fakes: dict[str, fakeredis.FakeServer] = {}

        def opened(prefix: str) -> RedisDatabase:
            return fake_backend(fakes.setdefault(prefix, fakeredis.FakeServer()))

    elif kind == "redis":
        place = RedisPlace.parse(request.getfixturevalue("server").url)

        def opened(prefix: str) -> RedisDatabase:
            return RedisDatabase(
                replace(place, prefix=prefix), times=FAST, on_loss=end_all_keys
            )

    else:
        return kind

    def open_folder(folder: Path, *, lock_timeout: float) -> RedisDatabase:
        return opened(hashlib.sha256(bytes(folder)).hexdigest()[:16])

    monkeypatch.setattr("cache.parts.shelf.Database", open_folder)
    return kind
