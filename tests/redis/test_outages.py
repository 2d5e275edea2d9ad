"""Troubles of a Redis server under running daemons: what was running, what was lost.

Run with `-s` to see the table. Both daemons keep their stores on the server.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.health import readiness
from anp.sidecar.home.home import Home
from cache.errors import StoreUnavailable
from negotiation.need import Need
from tests.cache.servers import Server, find_server, is_wanted, running
from tests.e2e.raw_peer import raw_peer

pytestmark = pytest.mark.skipif(
    not is_wanted() or find_server() is None,
    reason="needs a Redis server (run by `make test-redis`)",
)

SOURCE = """
import pathlib, time

def note(name, number):
    with (pathlib.Path(__file__).parent / "ran").open("a") as file:
        file.write(f"{name} {number}\\n")

def twice(number: int) -> dict[str, int]:
    note("twice", number)
    return {"number": number * 2}

def slow(number: int) -> dict[str, int]:
    time.sleep(3)
    note("slow", number)
    return {"number": number}

def third(number: int) -> dict[str, int]:
    note("third", number)
    return {"number": number * 3}
"""

LIMIT = 9.0
"Seconds in which everything has to have an answer, also from a server that hangs."


@contextmanager
def away(server: Server) -> Iterator[None]:
    """Stop the server: connections are refused."""
    server.kill()
    yield
    server.start()


@contextmanager
def hanging(server: Server) -> Iterator[None]:
    """Let the server take connections and say nothing."""
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    yield
    server.process.send_signal(signal.SIGCONT)


@contextmanager
def restarted(server: Server) -> Iterator[None]:
    """Kill the server and start it again with its data."""
    server.kill()
    server.start()
    yield


@contextmanager
def full(server: Server) -> Iterator[None]:
    """Let the server refuse every change."""
    server.ask("CONFIG", "SET", "maxmemory", "1")
    yield
    server.ask("CONFIG", "SET", "maxmemory", "0")


@contextmanager
def replica(server: Server) -> Iterator[None]:
    """Make the server a replica, as a failover does with the primary of before."""
    server.ask("REPLICAOF", "127.0.0.1", "1")
    yield
    server.ask("REPLICAOF", "NO", "ONE")


TROUBLES = (away, hanging, restarted, full, replica)

NOT_NOW = "says so"
"The answer names the store, at once or within the time limit; nothing else is harmed."

TABLE = {
    #                              away     hanging  restarted  full     replica
    "warm call in flight": ("done", "done", "done", "done", "done"),
    "warm call": ("done", "done", "done", "done", "done"),
    "cold call, agreed before": (NOT_NOW, NOT_NOW, "done", NOT_NOW, NOT_NOW),
    "negotiation": (NOT_NOW, NOT_NOW, "done", NOT_NOW, NOT_NOW),
    "handshake of a new peer": (NOT_NOW, NOT_NOW, "done", NOT_NOW, NOT_NOW),
    "owner revokes": (NOT_NOW, NOT_NOW, "done", NOT_NOW, NOT_NOW),
    "owner's list": (NOT_NOW, NOT_NOW, "done", "done", NOT_NOW),
    "readyz": ("503", "503", "200", "503", "503"),
    "warm call after all these": ("done", "done", "done", "done", "done"),
    "all of it, afterwards": ("done", "done", "done", "done", "done"),
    "calls lost, doubled": ("0, 0", "0, 0", "0, 0", "0, 0", "0, 0"),
}


class Fleet:
    """A provider, its caller, and a second caller that has agreed and is away."""

    def __init__(self, folder: Path, daemons: list[Daemon]) -> None:
        self.provider, self.caller, self.other = daemons
        self.called: Counter[str] = Counter()
        self._ran = folder / "ran"
        self._number = 0

    async def call(self, name: str, *, by: Daemon | None = None) -> None:
        """Call a function of the provider, and check what it answers."""
        self._number += 1
        number = self._number
        request = CallRequest(
            peer=f"{self.provider.url}#{self.provider.did}",
            need=Need(name),
            arguments={"number": number},
        )
        found = await (by or self.caller).caller.call(request)
        factor = {"twice": 2, "slow": 1, "third": 3}[name]
        assert found.output == {"number": number * factor}
        self.called[f"{name} {number}"] += 1

    async def hang_up(self, daemon: Daemon) -> None:
        """End every connection of a daemon; its agreements stay."""
        for link in [*daemon.links._links]:
            await link._pipe.connection.close()

    async def new_peer(self) -> None:
        """Let a peer that was never here begin to open a channel."""
        async with raw_peer(self.provider.url, self.provider.did) as peer:
            hello = peer.initiator().messages_to_send()
            await peer.say(*hello)
            answer = await peer.hear()
            if answer["type"] == "response":
                assert answer["code"] == 503, answer
                raise StoreUnavailable("the provider's")

    async def lists(self) -> None:
        """Read what an owner reads."""
        await asyncio.to_thread(self.provider.store.all_agreements)
        await self.provider.agreer.desk.negotiations()

    async def revoke(self) -> None:
        """Take back a protocol that nobody uses."""
        store = self.provider.store
        await asyncio.to_thread(store.revoke, "ab" * 32, at=time.time())

    def lost_and_doubled(self) -> str:
        """Compare what callers were told with what the functions wrote down."""
        ran = Counter(self._ran.read_text().splitlines())
        lost = self.called - ran
        return f"{lost.total()}, {sum(count - 1 for count in ran.values())}"


@asynccontextmanager
async def fleet_on(folder: Path, server: Server) -> AsyncIterator[Fleet]:
    """Run three daemons, each with a part of the server for itself."""
    name = f"made_{server.port}"
    (folder / f"{name}.py").write_text(SOURCE)
    daemons = []
    for who in ("provider", "caller", "other"):
        home = Home(folder / who)
        home.create()
        flags: dict[str, Any] = {"listen.port": 0, "consensus.use": False}
        # The second caller has its own disk: the trouble is the provider's alone.
        if who != "other":
            flags |= {"cache.url": server.url, "cache.prefix": who}
        for function in ("twice", "slow", "third") if who == "provider" else ():
            spec = AttachmentSpec(
                kind="python",
                name=function,
                target=f"{name}:{function}",
                cwd=folder,
                expose=("*",),
            )
            save_attachment(home.attachments, spec)
        config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
        daemons.append(Daemon(home, config))
    async with AsyncExitStack() as stack:
        for daemon in daemons:
            await stack.enter_async_context(daemon.running())
        yield Fleet(folder, daemons)


async def ends(work: Awaitable[Any]) -> str:
    """Return how a piece of work ended, in the words of the table."""
    try:
        async with asyncio.timeout(LIMIT):
            await work
    except StoreUnavailable:
        return NOT_NOW
    except CallError as exc:
        about_store = exc.kind == "local_resource" or "503" in exc.detail
        return NOT_NOW if about_store else f"{exc.kind}: {exc.detail}"
    except TimeoutError:
        return f"no answer in {LIMIT:g} s"
    return "done"


async def during(fleet: Fleet) -> dict[str, str]:
    """Do everything in the middle of the trouble."""
    found = {}
    works: dict[str, Callable[[], Awaitable[Any]]] = {
        "warm call": lambda: fleet.call("twice"),
        "cold call, agreed before": lambda: fleet.call("twice", by=fleet.other),
        "negotiation": lambda: fleet.call("third"),
        "handshake of a new peer": fleet.new_peer,
        "owner revokes": fleet.revoke,
        "owner's list": fleet.lists,
    }
    for name, work in works.items():
        found[name] = await ends(work())
    fleet.provider.store_watch.forget()
    found["readyz"] = "200" if (await readiness(fleet.provider)).ready else "503"
    found["warm call after all these"] = await ends(fleet.call("twice"))
    return found


async def once_more(fleet: Fleet) -> str:
    """Do everything when the trouble is over; it may take a moment to be seen."""
    works: dict[str, Callable[[], Awaitable[Any]]] = {
        **{name: partial(fleet.call, name) for name in ("twice", "third", "slow")},
        "other": lambda: fleet.call("twice", by=fleet.other),
        "new peer": fleet.new_peer,
        "revoke": fleet.revoke,
        "lists": fleet.lists,
    }
    for name, work in works.items():
        for pause in (0.2, 0.5, 1.0, 2.0, None):
            said = await ends(work())
            if said == "done":
                break
            if pause is None:
                return f"{name}: {said}"
            await asyncio.sleep(pause)
    return "done"


async def test_a_trouble_of_the_server_ends_nothing_that_does_not_need_it(
    tmp_path: Path,
) -> None:
    columns: dict[str, dict[str, str]] = {}
    for trouble in TROUBLES:
        folder = tmp_path / trouble.__name__
        folder.mkdir()
        with running(folder / "server") as server:
            async with asyncio.timeout(180), fleet_on(folder, server) as fleet:
                for by in (fleet.caller, fleet.other):
                    await fleet.call("twice", by=by)
                await fleet.call("slow")
                # Its count is written, and must leave what an outage needs.
                await fleet.caller.uses.flush()
                await fleet.call("twice")
                await fleet.hang_up(fleet.other)
                in_flight = asyncio.create_task(ends(fleet.call("slow")))
                await asyncio.sleep(0.5)
                with trouble(server):
                    column = await during(fleet)
                    column["warm call in flight"] = await in_flight
                column["all of it, afterwards"] = await once_more(fleet)
                column["calls lost, doubled"] = fleet.lost_and_doubled()
        columns[trouble.__name__] = column
    found = {name: tuple(column[name] for column in columns.values()) for name in TABLE}
    widths = [26, *(12 for _ in columns)]
    for row in (("", *columns), *((name, *ends) for name, ends in found.items())):
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)))
    assert found == TABLE
