"""A group of daemons: from a post until all have answered, and deliveries a second.

Each member is a daemon of its own process. The sender's daemon is the hub, except in a
sealed group, where a daemon that is no member distributes. The programs of the members
share one process, and the sender's program is the one that measures.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.groups.homes import ROOT, Home, join, start_all
from bench.groups.members import text_of

AT_ONCE: Final = 32
"Posts that wait for their answers at a time when deliveries are counted."


class Ours:
    """A running group that can be measured again and again."""

    def __init__(self, sender: Home, group: str, members: int, asks: str) -> None:
        self._sender = sender
        self._group = group
        self._members = members
        self._asks = asks
        self._answers: asyncio.Queue[str] = asyncio.Queue()

    @classmethod
    @asynccontextmanager
    async def running(
        cls, members: int, *, seal: bool, mixed: bool = False
    ) -> AsyncIterator[Ours]:
        """Run a group for a block.

        Args:
            members: Members besides the sender.
            mixed: Answers go to the sender alone, as messages about a task that it
                gave each member; else to the whole group.
        """
        with tempfile.TemporaryDirectory() as name:
            names = ["sender", *(f"member-{number}" for number in range(members))]
            hub = Home(Path(name) / "hub", groups__hub_for="listed") if seal else None
            homes = [Home(Path(name) / one) for one in names]
            all_homes = [*homes, *([hub] if hub else [])]
            programs = None
            try:
                for one in homes[1:] if mixed else ():
                    one.attach_inbox()
                await start_all(all_homes)
                if hub is not None:
                    allow = {"peer": homes[0].did}
                    await hub.agent.ask("POST", "/v1/peers/allow", allow)
                sealed = {"seal": True} if seal else {}
                group = await join(homes[0], homes[1:], hub=hub, **sealed)
                programs = _programs(group, homes[1:])
                assert programs.stdout is not None
                await asyncio.to_thread(programs.stdout.readline)
                made = cls(homes[0], group, members, "&" if mixed else "?")
                listening = [asyncio.create_task(made._listen())]
                if mixed:
                    listening += [await made._give_task(one) for one in homes[1:]]
                try:
                    yield made
                finally:
                    for task in listening:
                        task.cancel()
            finally:
                if programs is not None:
                    programs.kill()
                    programs.wait()
                for one in all_homes:
                    if one.process is not None:
                        one.process.terminate()
                for one in all_homes:
                    one.end()

    async def measure(
        self, *, rounds: int, deliveries: int, size: int
    ) -> dict[str, Any]:
        """Return the figures; the parameters are those of `bench.groups.slim.run`."""
        times, filler = [], "x" * (size - 1)
        for _ in range(rounds):
            began = time.perf_counter()
            posting = asyncio.create_task(self._post(self._asks + filler))
            for _ in range(self._members):
                await self._answers.get()
            times.append((time.perf_counter() - began) * 1000)
            await posting
        posts = max(1, deliveries // self._members)
        began = time.perf_counter()
        left = iter(range(posts))

        async def say() -> None:
            for _ in left:
                await self._post("." + filler)

        await asyncio.gather(*(say() for _ in range(AT_ONCE)))
        await self._post("!")
        counted = 0
        for _ in range(self._members):
            counted += int((await self._answers.get()).removeprefix("counted "))
        seconds = time.perf_counter() - began
        warm = sorted(times[len(times) // 10 :])
        return {
            "members": self._members,
            "rounds": len(warm),
            "p50_ms": round(statistics.median(warm), 2),
            "p99_ms": round(warm[min(len(warm) - 1, int(len(warm) * 0.99))], 2),
            "posts": posts,
            "delivered": counted,
            "lost": posts * self._members - counted,
            "deliveries_per_s": round(counted / seconds),
        }

    async def _post(self, text: str) -> None:
        path = f"/v1/groups/{self._group}/messages"
        await self._sender.agent.ask("POST", path, {"text": text})

    async def _give_task(self, member: Home) -> asyncio.Task[None]:
        """Give a member a task, and listen to what it says about it."""
        agent = self._sender.agent
        body = {
            "peer": member.address,
            "trust_first_use": True,
            "capability": "desk.help",
            "input": {},
        }
        task = (await agent.ask("POST", "/v1/tasks", body))["id"]

        async def listen() -> None:
            async for event in agent.follow(f"/v1/tasks/{task}/events"):
                if text_of(event).startswith("answer"):
                    self._answers.put_nowait("answer")

        return asyncio.create_task(listen())

    async def _listen(self) -> None:
        agent = self._sender.agent
        about = await agent.ask("GET", f"/v1/groups/{self._group}")
        async for event in agent.events(self._group, after=about["last"]):
            text = text_of(event)
            if text.startswith(("answer", "counted")):
                self._answers.put_nowait(text)


def _programs(group: str, members: Sequence[Home]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "bench.groups.members", group),
            *(str(one.path) for one in members),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
