"""The owner's word to one daemon of a fleet holds on the others within a second."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import ErrorKind
from anp.sidecar.attachments import (
    AttachmentSpec,
    load_attachments,
    save_attachment,
)
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.sidecar.operation import reload_daemon
from tests.cache.servers import Server, find_server, is_wanted, running
from tests.e2e.traffic import WAYS, Traffic, lost, post, watched

pytestmark = pytest.mark.skipif(
    not is_wanted() or find_server() is None,
    reason="needs a Redis server (run by `make test-redis`)",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "server") as started:
        yield started


def daemon_in(home: Home, folder: Path, **settings: Any) -> Daemon:
    flags = {"listen.port": 0, **settings}
    config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
    return Daemon(home, config)


@asynccontextmanager
async def fleet_in(
    folder: Path, server: Server, way: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Daemon, Traffic]]:
    """Run two daemons of one agent, and a caller of the second; give the first."""
    (folder / "fleet_mod.py").write_text(
        "def twice(number: int) -> dict[str, int]:\n    return {'twice': number * 2}\n"
    )
    homes = [Home(folder / name) for name in ("one", "other", "caller")]
    for home in homes:
        home.create()
    use = {"consensus.use": way == "envelope"}
    shared = {"cache.url": f"redis://127.0.0.1:{server.port}/0", **use}
    one = daemon_in(homes[0], folder, **shared)
    shutil.copy(homes[0].key_file, homes[1].key_file)
    other = daemon_in(homes[1], folder, **shared)
    caller = daemon_in(homes[2], folder, **use)
    spec = AttachmentSpec(
        kind="python",
        name="twice",
        target="fleet_mod:twice",
        cwd=folder,
        expose=("*",),
    )
    for home in homes[:2]:
        save_attachment(home.attachments, spec)
    async with (
        asyncio.timeout(120),
        caller.running(),
        one.running(),
        other.running(),
    ):
        assert one.did == other.did
        with watched(caller, other, way, monkeypatch) as traffic:
            assert await traffic.call(2)
            yield one, traffic


@pytest.mark.parametrize("way", WAYS)
async def test_a_block_by_one_ends_the_calls_of_the_other(
    way: str, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_in(tmp_path, server, way, monkeypatch) as (one, traffic):
        body = {"peer": traffic.caller.did}
        error = await traffic.stops_by(lambda: post(one, "/v1/peers/block", body))
        assert lost(error)
        assert traffic.ended[-1].kind is ErrorKind.IDENTITY_REFUSED
        assert traffic.provider.links.open_channels == 0
        await post(one, "/v1/peers/allow", body)
        assert await traffic.call(2)


async def test_a_revocation_by_one_ends_the_calls_of_the_other(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_in(tmp_path, server, "agreement", monkeypatch) as (one, traffic):
        (agreement,) = traffic.caller.store.all_agreements()
        path = f"/v1/protocols/{agreement.hash}/revoke"
        assert lost(await traffic.stops_by(lambda: post(one, path, {})))
        assert traffic.ended[-1].kind is ErrorKind.NEGOTIATION_REJECTED


async def test_a_caller_of_a_fleet_stops_calling_whom_its_sister_blocked(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_in(tmp_path, server, "agreement", monkeypatch) as (one, traffic):
        # The second daemon of the fleet calls, and the one outside serves.
        save_attachment(
            traffic.caller.home.attachments,
            load_attachments(one.home.attachments)[0],
        )
        await reload_daemon(traffic.caller)
        with watched(
            traffic.provider, traffic.caller, "agreement", monkeypatch
        ) as back:
            assert await back.call(2)
            body = {"peer": traffic.caller.did}
            error = await back.stops_by(lambda: post(one, "/v1/peers/block", body))
            assert lost(error, ErrorKind.POLICY)
            assert {call.kind for call in back.ended} == {ErrorKind.POLICY}


async def test_what_one_hides_the_other_serves_on(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_in(tmp_path, server, "agreement", monkeypatch) as (one, traffic):
        for daemon, served in ((one, True), (traffic.provider, False)):
            (spec,) = load_attachments(daemon.home.attachments)
            save_attachment(daemon.home.attachments, replace(spec, expose=()))
            if served:
                # What is exposed stands in the folder of each daemon.
                await reload_daemon(daemon)
                await asyncio.sleep(1)
                assert await traffic.call(2)
            else:
                error = await traffic.stops_by(
                    lambda daemon=daemon: reload_daemon(daemon)  # type: ignore[misc]
                )
                assert lost(error)
