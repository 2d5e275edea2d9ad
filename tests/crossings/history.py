"""Random steps of three daemons, and what has to be true when all is well again."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anp.errors import AnpError
from anp.interaction.elements import Part
from anp.interaction.groups.elements import GroupPolicy
from anp.interaction.states import is_pause, is_terminal
from anp.sidecar.tasks.known import KnownTask
from tests.crossings.clock import simulated
from tests.crossings.node import PROTOCOLS, Network, Node, content

__all__ = ["KINDS", "Outcome", "Wrong", "tell"]

KINDS = ("calls", "tasks", "questions", "files", "groups", "protocols")
"Kinds of work; each history has three or more of them."

PATIENCE = 600.0
"Simulated seconds after which everything has to be done, when nothing fails any more."


class Wrong(AssertionError):
    """Something was lost, or stays at work."""


@dataclass
class Outcome:
    """Counts of one history."""

    seed: int
    kinds: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)


@dataclass
class _Given:
    node: str
    item: str
    name: str
    number: int


class History:
    """One network and what was asked of it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        kinds = self.random.sample(KINDS, k=self.random.choice([3, 3, 4, 5]))
        order = self.random.sample(PROTOCOLS, k=3)
        if "files" in kinds:
            order = [uri for uri in order if "envelope" not in uri]
        self.network = Network(folder, "abc", order)
        self.network.linger = self.random.choice([0.5, 30.0, 3_000.0])
        self.outcome = Outcome(seed)
        self.given: list[_Given] = []
        self.waiting: set[asyncio.Task[None]] = set()
        self.problems: list[str] = []
        self.group = ""
        self.posts: list[str] = []
        if "groups" in kinds and self.random.random() < 0.6:
            # They have a store on the disk, and take most of the time.
            others = [one for one in KINDS if one not in (*kinds, "files")]
            kinds[kinds.index("groups")] = (others or ["tasks"])[0]
        self.kinds = kinds

    def pair(self) -> tuple[Node, Node]:
        """Return two daemons that run."""
        one, other = self.random.sample([*self.network.nodes.values()], k=2)
        return one, other

    async def run(self) -> Outcome:
        """Do all steps, and look at what came of them."""
        for node in self.network.nodes.values():
            await node.start()
        if "groups" in self.kinds:
            await self.begin_group()
        works = {
            "calls": self.call,
            "tasks": self.task,
            "questions": self.question,
            "files": self.file,
            "groups": self.post,
            "protocols": self.bound_task,
        }
        faults: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self.kill,
            self.cut,
            self.half_cut,
            self.part,
        ]
        count = self.random.randint(8, 30)
        steps: list[tuple[str, Any]] = [(kind, works[kind]) for kind in self.kinds]
        steps += [
            (kind, works[kind])
            for kind in self.random.choices(self.kinds, k=count - len(steps))
        ]
        at = self.random.sample(range(1, count), k=max(1, count // 6))
        for number in at:
            chosen = self.random.choice(faults)
            steps.insert(number, (f"fault {chosen.__name__}", chosen))
        for kind, step in steps:
            with contextlib.suppress(AnpError):
                await step()
                which = self.outcome.faults if "fault" in kind else self.outcome.kinds
                which[kind] += 1
            await asyncio.sleep(self.random.choice([0, 0, 0.1, 1, 5, 40]))
        await self.settle()
        await self.check()
        return self.outcome

    # Work.

    async def call(self) -> None:
        one, other = self.pair()
        number = self.random.randrange(1000)
        uri = self.random.choice(PROTOCOLS[:2])

        async def called() -> None:
            with contextlib.suppress(AnpError):
                found = await one.call(other, number, uri)
                if found != {"number": 2 * number}:
                    self.problems.append(f"a call of {number} gave {found}")

        task = asyncio.create_task(called())
        self.waiting.add(task)
        task.add_done_callback(self.waiting.discard)

    async def give(self, name: str, number: int, **more: Any) -> None:
        one, other = self.pair()
        found = await one.give(other, name, number, **more)
        self.given.append(_Given(one.name, found.id, name, number))

    async def task(self) -> None:
        name = self.random.choice(["double", "wait", "stream"])
        is_told = self.random.random() < 0.3
        await self.give(name, self.random.randrange(40), notify=is_told)

    async def question(self) -> None:
        await self.give("ask", self.random.randrange(100))
        await self.answer_some()

    async def file(self) -> None:
        name = self.random.choice(["digest", "give"])
        await self.give(name, self.random.randrange(60_000))

    async def bound_task(self) -> None:
        # Over the envelope come no files, whose sessions may go on over any line.
        known = PROTOCOLS[:2] if "files" in self.kinds else PROTOCOLS
        uri = self.random.choice(known)
        await self.give("wait", self.random.randrange(20), protocol=uri)

    async def answer_some(self) -> None:
        for one in self.given:
            node = self.network.nodes[one.node]
            found = node.logs.log_item(one.item)
            if found is None or self.random.random() < 0.5:
                continue
            await self.answer(node, one)

    async def answer(self, node: Node, one: _Given) -> None:
        known = await node.tasks.task(one.item)
        if is_pause(known.task.state) and known.task.state != "x-requested":
            with contextlib.suppress(AnpError):
                await node.tasks.send(known.id, [Part.text("yes")], metadata={})

    # Groups.

    async def begin_group(self) -> None:
        hub, *members = self.network.nodes.values()
        for one in (hub, *members):
            await one.with_groups()
        policy = GroupPolicy(rate=0)
        self.group = (await hub.groups.create(policy=policy)).group.id
        for one in members:
            await hub.groups.invite(self.group, one.name)
            for _ in range(100):
                with contextlib.suppress(AnpError):
                    await one.groups.accept(self.group)
                    break
                await asyncio.sleep(0.5)

    async def post(self) -> None:
        node = self.random.choice([*self.network.nodes.values()])
        name = f"post {len(self.posts)}"
        number = await node.groups.post(self.group, [Part.text(name)], metadata={})
        if number[1] is not None:
            self.posts.append(name)

    # Faults.

    async def kill(self) -> None:
        node = self.random.choice([*self.network.nodes.values()])
        await node.kill()
        await asyncio.sleep(self.random.choice([0, 1, 30]))
        await node.start()

    async def cut(self) -> None:
        self.network.cut(*self.pair())

    async def half_cut(self) -> None:
        self.network.cut(*self.pair(), late=20.0)

    async def part(self) -> None:
        one, other = self.pair()
        names = frozenset({one.name, other.name})
        self.network.parted.add(names)
        self.network.cut(one, other)
        later = self.random.choice([1, 20, 90])
        asyncio.get_running_loop().call_later(later, self.network.parted.discard, names)

    # The end.

    async def settle(self) -> None:
        """Let everything come to its end, and answer what is asked."""
        self.network.parted.clear()
        open_ones, ends = self.given, asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(10)
            open_ones = [one for one in open_ones if not await self.is_done(one)]
            for one in open_ones:
                await self.answer(self.network.nodes[one.node], one)
            if not (open_ones or self.waiting or await self.lacking()):
                return

    async def is_done(self, one: _Given) -> bool:
        node = self.network.nodes[one.node]
        known = await node.tasks.task(one.item)
        done = is_terminal(known.task.state)
        return done and not (one.name == "give" and None in await node.results(known))

    async def lacking(self) -> dict[str, list[str]]:
        """Return the posts of the group that somebody lacks."""
        found = {}
        for node in self.network.nodes.values() if self.posts else ():
            heard = await heard_of(node, self.group)
            lacks = [one for one in self.posts if one not in heard]
            if lacks:
                found[node.name] = lacks
        return found

    async def check(self) -> None:
        """Look for what was lost, or is at work still."""
        problems = self.problems
        for one in self.given:
            node = self.network.nodes[one.node]
            known = await node.tasks.task(one.item)
            what = f"{one.name}({one.number}) of {one.node} is {known.task.state}"
            if known.task.state != "completed":
                problems.append(f"{what} {known.task.code} {known.task.reason}")
                continue
            problems += await self.check_results(node, known, one, what)
        for node in self.network.nodes.values():
            for known in node.all_tasks():
                if not is_terminal(known.task.state):
                    problems.append(f"at {node.name} {known.task.state} stays")
        lacks = await self.lacking()
        if lacks:
            problems.append(f"posts were lost: {lacks}")
        if self.waiting:
            problems.append(f"{len(self.waiting)} calls never ended")
        orders = [
            [name for name in await heard_of(node, self.group) if name in self.posts]
            for node in (self.network.nodes.values() if self.posts else ())
        ]
        if not lacks and any(one != orders[0] for one in orders):
            problems.append(f"orders differ: {orders}")
        if problems:
            raise Wrong(f"history {self.outcome.seed}: " + "; ".join(problems[:6]))

    async def check_results(
        self, node: Node, known: KnownTask, one: _Given, what: str
    ) -> list[str]:
        found = await node.results(known)
        match one.name:
            case "ask":
                wanted: list[Any] = [{"answer": "yes"}]
            case "stream":
                # After a restart it is told again from its beginning.
                is_there = set(range(one.number)) <= {*filter(_is_int, found)}
                return [] if is_there else [f"{what} with {found}"]
            case "digest":
                digest = hashlib.sha256(content(one.number)).hexdigest()
                wanted = [{"digest": digest}]
            case "give":
                wanted = [hashlib.sha256(content(one.number)).hexdigest()]
                found = sorted({str(each) for each in found if isinstance(each, str)})
            case _:
                wanted = [{"number": 2 * one.number}]
        return [] if found == wanted else [f"{what} with {str(found)[:100]}"]


def _is_int(value: object) -> bool:
    return isinstance(value, int)


async def heard_of(node: Node, group: str) -> list[str]:
    """Return the messages of a group that a daemon has, in order."""
    found: list[str] = []
    events = node.groups.watch(group, after=0)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            async for event in events:
                frame = event.frame()
                if frame["op"] == "message.send":
                    found.append(frame["dataItems"][0]["payload"])
    return found


def tell(seed: int) -> Outcome:
    """Run one history; `Wrong` says what was lost in it."""
    logging.disable(logging.CRITICAL)
    random.seed(seed)
    home = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="crossings", dir=home))
    try:
        return simulated(lambda: History(seed, folder).run())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        logging.disable(logging.NOTSET)
