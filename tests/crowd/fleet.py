"""A hub of three daemons with one identity, of which one after the other is killed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from bench.groups.homes import Home, join, start_all
from tests.cache.servers import running
from tests.crowd.crowd import counts, restarted, settled
from tests.crowd.ledger import Said, faults
from tests.crowd.programs import heard_by, speak

DAEMONS = 3
MEMBERS = 4

KILLS = 6
"Of the daemon that has the hub and of sisters, by turns."

ROUND = 25
"Messages that a member says before a pause."

PAUSE = 0.25
"Seconds of it."

AWAY = 4.0
"Most seconds for which a killed one stays away."


class Fleet:
    """The daemons of a fleet, and the address behind which they stand."""

    def __init__(self, folder: Path, store: str, seed: int) -> None:
        self.choose = random.Random(seed)
        self.url = ""
        self._folder = folder
        self._store = store
        self.homes: list[Home] = []
        self.kills = {"hub": 0, "sister": 0}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the fleet behind an address that leads to one that lives."""
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}/"
        settings = {
            "cache__url": self._store,
            "cache__prefix": "crowd",
            "listen__public_url": self.url,
        }
        self.homes = [
            Home(self._folder / f"fleet-{number}", port=_free_port(), **settings)
            for number in range(DAEMONS)
        ]
        first, *sisters = self.homes
        try:
            await start_all([first])
            for one in sisters:
                one.path.mkdir()
                shutil.copy(first.path / "identity.key", one.path)
            await start_all(sisters)
            yield
        finally:
            server.close()
            for one in self.homes:
                one.end()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry one connection to a daemon that lives."""
        for home in self.choose.sample(self.homes, len(self.homes)):
            if home.process is None:
                continue
            try:
                there = await asyncio.open_connection("127.0.0.1", home.port)
            except OSError:
                continue
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(
                    *(_copy(reader, there[1]), _copy(there[0], writer)),
                    return_exceptions=True,
                )
            break
        writer.close()

    async def holder(self, group: str) -> Home | None:
        """Return the daemon that has the hub of a group, if one has it now."""
        for home in self.homes:
            with contextlib.suppress(Exception):
                known = await home.agent.ask("GET", "/v1/groups")
                if any(one["id"] == group for one in known["groups"]):
                    return home
        return None

    async def kill(self, group: str, *, hub: bool) -> None:
        """Kill the daemon that has the hub, or a sister, and start it again later."""
        holder = await self.holder(group)
        others = [home for home in self.homes if home not in (holder, None)]
        killed = holder if hub and holder else self.choose.choice(others)
        self.kills["hub" if killed is holder else "sister"] += 1
        await restarted(killed, after=self.choose.uniform(0, AWAY))


async def fleet_figures(folder: Path, messages: int, seed: int) -> dict[str, Any]:
    """Say everything while daemons are killed; return the figures with all faults."""
    members = [Home(folder / f"member-{number}") for number in range(MEMBERS)]
    with running(folder / "server") as store:
        fleet = Fleet(folder, store.url, seed)
        try:
            async with fleet.running():
                await start_all(members)
                return await _figures(fleet, members, messages)
        finally:
            for one in members:
                one.end()


async def _figures(
    fleet: Fleet, members: Sequence[Home], messages: int
) -> dict[str, Any]:
    group = await join(fleet.homes[0], members)
    began, said = time.monotonic(), 0
    killing = asyncio.Event()

    def told() -> None:
        nonlocal said
        said += 1

    async def trouble() -> None:
        for number in range(KILLS):
            wanted = said + messages / KILLS
            while said < wanted:  # noqa: ASYNC110 - programs count, and tell nobody
                await asyncio.sleep(0.01)
            await fleet.kill(group, hub=number % 2 == 0)
        killing.set()

    async def speaking(home: Home, name: str) -> Said:
        whole, rounds = Said(), 0
        while said < messages or not killing.is_set():
            rounds += 1
            some = await speak(home, group, f"{name}-{rounds}", ROUND, told)
            whole.numbers |= some.numbers
            whole.queued |= some.queued
            whole.unknown |= some.unknown
            whole.refused += some.refused
            await asyncio.sleep(PAUSE)
        return whole

    troubling = asyncio.create_task(trouble())
    spoken = await asyncio.gather(
        *(speaking(one, f"m{number}") for number, one in enumerate(members))
    )
    spoken_s = time.monotonic() - began
    await troubling
    async with asyncio.timeout(60):
        while (holder := await fleet.holder(group)) is None:  # noqa: ASYNC110 - a poll
            await asyncio.sleep(0.1)
    last = await settled([holder, *members], group)
    ended = time.monotonic() - began
    heard = {one.did: await heard_by(one, group, last) for one in [holder, *members]}
    by_member = {one.did: what for one, what in zip(members, spoken, strict=True)}
    return {
        "fleet": DAEMONS,
        **counts(by_member, spoken_s, ended),
        "events": last,
        "deliveries_per_s": round(last * MEMBERS / ended),
        **fleet.kills,
        "faults": faults(by_member, heard),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
