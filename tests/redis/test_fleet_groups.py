"""A group whose daemon is killed goes on at a sister, over a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cache.store import open_store
from tests.anp.sidecar.groups.fleet import fleet_in, go_on_after_kill, grow
from tests.cache.servers import Server, find_server, is_wanted, running

pytestmark = pytest.mark.skipif(
    not is_wanted() or find_server() is None,
    reason="needs a Redis server (run by `make test-redis`)",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "server") as started:
        yield started


async def test_a_group_outlives_its_daemon(tmp_path: Path, server: Server) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(
        tmp_path, lambda: open_store(shared, url=server.url, prefix="shop"), "b", "c"
    ) as run:
        await go_on_after_kill(*run)


async def test_members_are_served_by_every_daemon(
    tmp_path: Path, server: Server
) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(
        tmp_path,
        lambda: open_store(shared, url=server.url, prefix="shop"),
        *("b", "c", "d"),
    ) as run:
        await grow(*run)
