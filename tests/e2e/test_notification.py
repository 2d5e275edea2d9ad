"""Notification style: results come later, over a connection that the service makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from anp.channel.channel import Channel
from anp.interaction.elements import Message, Part, SenderRole, TaskChange
from anp.interaction.states import is_terminal
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.sidecar.tasks.delivery import attempts, lines
from anp.sidecar.tasks.known import KnownTask
from cache.records.peers import PeerState
from tests.clauses import clause
from tests.waiting import until

SOURCE = """
import time
from pathlib import Path


def late(file: str) -> str:
    \"\"\"Answer when the file is there.\"\"\"
    while not Path(file).exists():
        time.sleep(0.02)
    return "late"
"""


@dataclass
class Pair:
    """A caller that comes and goes, and a provider."""

    folder: Path
    port: int
    provider: Daemon

    @asynccontextmanager
    async def caller(self, **flags: Any) -> AsyncIterator[Daemon]:
        """Run the caller, at the same port each time."""
        daemon = made(self.folder / "caller", {"listen.port": self.port, **flags})
        async with daemon.running():
            self.port = daemon.port
            yield daemon

    async def start(self, caller: Daemon, **more: Any) -> KnownTask:
        """Start a task at the provider that ends when `answer` is called."""
        return await caller.tasks.start_task(
            f"{self.provider.url}#{self.provider.did}",
            capability="agent.late",
            parts=[Part.value({"file": str(self.folder / "go")})],
            notify=True,
            **more,
        )

    def answer(self) -> None:
        (self.folder / "go").touch()

    def is_working(self, caller: Daemon) -> bool:
        """Tell whether the provider works and both know it."""
        standing = caller.tasks.sessions.standing
        return self.provider.tasks.desk.working > 0 and not standing.untold(
            self.provider.did
        )

    async def letter_is(self, what: str) -> None:
        """Wait until a letter is dead, or has a problem."""
        async with asyncio.timeout(30):
            while True:
                if any(getattr(one, what) for one in await self.letters()):
                    return
                await asyncio.sleep(0.05)

    async def letters(self) -> list[attempts.Letter]:
        return await self.provider.tasks.outbox.letters()


def made(folder: Path, flags: dict[str, Any]) -> Daemon:
    home = Home(folder)
    home.create()
    settings = {"fetch.allow": ["127.0.0.0/8"], **flags}
    config = load_config(
        home, home_given=True, flags=settings, environ={}, cwd=folder.parent
    )
    return Daemon(home, config)


@asynccontextmanager
async def pair_in(folder: Path, *, listed: bool = True) -> AsyncIterator[Pair]:
    (folder / "late_agent.py").write_text(SOURCE)
    home = Home(folder / "provider")
    home.create()
    spec = AttachmentSpec(
        kind="python", name="agent", target="late_agent", cwd=folder, expose=("*",)
    )
    save_attachment(home.attachments, spec)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(90))
        provider = made(folder / "provider", {"listen.port": 0})
        await stack.enter_async_context(provider.running())
        did = made(folder / "caller", {"listen.port": 0}).did
        if listed:
            await provider.policy.rule(did, PeerState.ALLOWED)
        yield Pair(folder, 0, provider)


async def end_of(caller: Daemon, task: KnownTask) -> tuple[str, list[str]]:
    """Return how a task ended, and its results."""
    results: list[str] = []
    async with asyncio.timeout(8):
        async for event in caller.tasks.watch(task.log):
            content = event.content
            if isinstance(content, Message) and content.role is SenderRole.SERVICE:
                results += [str(part.content) for part in content.parts]
            if isinstance(content, TaskChange) and is_terminal(content.state):
                return str(content.state), results
    raise AssertionError("the events ended before the task")


async def dials_no_more(*args: Any) -> Channel:
    raise AssertionError("the caller dialled")


@clause("GBZ-55", "GBZ-58", "GBZ-Q12")
async def test_the_service_brings_the_result_over_a_connection_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "IDLE_CHECK", 0.1)
    monkeypatch.setattr(lines, "NEWS_SILENCE", 0.2)
    async with pair_in(tmp_path) as pair, pair.caller() as caller:
        task = await pair.start(caller)
        await until(lambda: pair.is_working(caller))
        # The caller needs no connection, and opens none any more.
        await until(lambda: not caller.tasks._exchange.lines._keeping)
        await pair.provider.links.cut_off([caller.did], "the connection ends")
        await until(lambda: caller.links.open_links == 0)
        monkeypatch.setattr(caller.links, "open_channel", dials_no_more)
        pair.answer()
        assert await end_of(caller, task) == ("completed", ["{'result': 'late'}"])
        # Acknowledged, so nothing waits there.
        await until(lambda: not pair.provider.tasks.sessions.standing.all_registered())
        assert await pair.provider.tasks.outbox.letters() == []


@clause("GBZ-58", "GBZ-Q12")
async def test_a_caller_that_comes_back_gets_what_came_meanwhile_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FIRST_WAIT", 600.0)
    async with pair_in(tmp_path) as pair:
        # Nobody could reach this caller, as behind a NAT.
        away = {"listen.public_url": "ws://127.0.0.1:1/"}
        async with pair.caller(**away) as caller:
            task = await pair.start(caller)
            await until(lambda: pair.is_working(caller))
        pair.answer()
        await pair.letter_is("problem")
        (letter,) = await pair.letters()
        assert letter.address == "ws://127.0.0.1:1/"
        assert letter.waiting >= 1
        assert not letter.dead
        async with pair.caller(**away) as caller:
            assert await end_of(caller, task) == ("completed", ["{'result': 'late'}"])
            # One that ends before it has acknowledged everything is told once more.
            standing = pair.provider.tasks.sessions.standing
            await until(lambda: not standing.all_registered())


@clause("GBZ-58")
@pytest.mark.parametrize(
    ("allowed", "is_known", "said"),
    [
        ("127.0.0.0/8", True, "another agent answers"),
        ("10.0.0.0/8", False, "fetch.allow"),
    ],
)
async def test_an_address_counts_only_with_the_same_identity_and_behind_the_guard(
    tmp_path: Path, allowed: str, is_known: bool, said: str
) -> None:
    async with pair_in(tmp_path) as pair:
        fetcher = pair.provider.fetcher
        fetcher._policy = replace(fetcher._policy, allow=(ip_network(allowed),))
        address = pair.provider.url if is_known else "ws://127.0.0.1:1/"
        async with pair.caller() as caller:
            caller.tasks.own_url = partial(str, address)
            await pair.start(caller)
            await until(lambda: pair.is_working(caller))
        pair.answer()
        await pair.letter_is("problem")
        (letter,) = await pair.letters()
        assert letter.address == address
        assert said in letter.problem


@clause("GBZ-58")
async def test_what_is_undeliverable_for_long_is_a_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(attempts, "MOST_WAIT", 0.1)
    monkeypatch.setattr(attempts, "LIFETIME", 2.0)
    async with pair_in(tmp_path) as pair:
        async with pair.caller() as caller:
            task = await pair.start(caller)
            await until(lambda: pair.is_working(caller))
        pair.answer()
        await pair.letter_is("dead")
        await until(lambda: not pair.provider.tasks.outbox._bringing)
        # It is not given up either when the owner looks for what nobody answers.
        await pair.provider.tasks.upkeep.sweep()
        (letter,) = await pair.letters()
        assert letter.attempts > 1
        # A daemon that is killed now, and started again, has it too.
        copy = tmp_path / "copy"
        await asyncio.to_thread(copytree, tmp_path / "provider", copy)
        again = made(copy, {"listen.port": 0})
        async with again.running():
            (found,) = await again.tasks.outbox.letters()
            assert (found.dead, found.session) == (True, letter.session)
            assert found.waiting == letter.waiting
        pair.provider.tasks.outbox.retry()
        assert not (await pair.letters())[0].dead
        async with pair.caller() as caller:
            assert (await end_of(caller, task))[0] == "completed"


@clause("GBZ-58")
async def test_only_listed_peers_register_and_only_so_often(tmp_path: Path) -> None:
    async with pair_in(tmp_path, listed=False) as pair, pair.caller() as caller:
        task = await pair.start(caller)
        await until(lambda: pair.is_working(caller))
        await asyncio.sleep(0.3)
        assert pair.provider.tasks.sessions.standing.all_registered() == []
        # The task itself is not touched by that.
        pair.answer()
        assert (await end_of(caller, task))[0] == "completed"
        (tmp_path / "go").unlink()
        await pair.provider.policy.rule(caller.did, PeerState.ALLOWED)
        pair.provider.tasks._exchange._max_registered = 1
        for _ in range(3):
            await pair.start(caller)
        await until(lambda: pair.provider.tasks.desk.working == 3)
        await asyncio.sleep(0.3)
        standing = pair.provider.tasks.sessions.standing
        assert len(standing.registered(caller.did)) == 1
        pair.answer()
