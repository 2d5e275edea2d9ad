"""One daemon of a history: its tasks, files and groups, around channels in memory."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anp.channel.channel import ChannelClosed
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind
from anp.identity.dids import Identities, agent_name
from anp.identity.keys import PrivateKey
from anp.identity.resolver import KeyResolver
from anp.interaction.elements import Part, PartKind
from anp.protocols.gbz import GBZ_GROUPS_URI, GBZ_URI, GbzCode
from anp.sidecar.attachments.requester import GivenFile, Question, current_requester
from anp.sidecar.config.groups import GroupsConfig
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.files.spool import Spool
from anp.sidecar.groups.parts import make_groups
from anp.sidecar.groups.service import GroupService
from anp.sidecar.tasks.known import KnownTask, known_task
from anp.sidecar.tasks.service import TaskService
from anp.wire.frames import ProtocolType
from cache.store import Store
from negotiation.consensus.written import (
    Ask,
    CallAnswered,
    CallRefused,
    Parties,
    WrittenLimits,
)
from negotiation.need import Capability, Role
from sandbox.pool.shares import Rank, Share, current_share
from tests.crossings.shelf import MemoryLogs
from tests.crossings.wires import Pipe, connect

__all__ = ["ENVELOPE_URI", "Network", "Node"]

ENVELOPE_URI = "urn:anpd:message-envelope:1.1"

LIMITS = WrittenLimits(answer_timeout=60.0, max_message=786_432, max_served=8)

MIB = 1024 * 1024

OBJECT = {"type": "object"}

CAPABILITIES = {
    name: Capability(
        f"agent.{name}",
        name,
        {"type": "object", "properties": {"number": {"type": "integer"}, **more}},
        OBJECT,
        idempotent=True,
    )
    for name, more in {
        "double": {},
        "wait": {},
        "ask": {},
        "stream": {},
        "digest": {"file": {"type": "string", "format": "path"}},
        "give": {},
    }.items()
}


class Agent:
    """The capabilities of a daemon's agent; a second start does no harm."""

    def __init__(self) -> None:
        self.gate = self

    def find(self, way: Any, peer: str, name: str) -> Capability | None:
        return CAPABILITIES.get(name.removeprefix("agent."))

    def named(self, way: Any, peer: str, name: str) -> Capability | None:
        return self.find(way, peer, name)

    def offered(self, way: Any, peer: str) -> list[Capability]:
        return list(CAPABILITIES.values())

    def is_repeatable(self, name: str, peer: str) -> bool:
        return True

    async def run(self, name: str, arguments: Any, *, begin: Any, **_: Any) -> Any:
        await begin()
        told: Any = current_requester.get()
        number = arguments.get("number", 0)
        match name.removeprefix("agent."):
            case "wait":
                await asyncio.sleep(number)
            case "ask":
                reply = await told.ask(Question(text=f"Is {number} right?"))
                return {"answer": str(reply.parts[0].content)}
            case "stream":
                for one in range(number):
                    await asyncio.sleep(0.2)
                    await told.update([Part.value(one)])
            case "digest":
                data = await asyncio.to_thread(Path(arguments["file"]).read_bytes)
                return {"digest": hashlib.sha256(data).hexdigest()}
            case "give":
                path = Path(told.folder) / "given"
                path.write_bytes(content(number))
                await told.send_file(GivenFile(str(path)))
        return {"number": number * 2}


def content(number: int) -> bytes:
    """Return the bytes of the file of a number."""
    return hashlib.sha256(str(number).encode()).digest() * (50 + number % 4_000)


class Policy:
    """Lists every daemon of the network."""

    def is_listed(self, did: str) -> bool:
        return True

    def is_blocked(self, did: str) -> bool:
        return False

    def known(self, did: str) -> list[Any]:
        return []

    async def share_of(self, did: str, *, address: str) -> Share:
        return Share(Rank.LISTED, did)


class _Life:
    """One run of a daemon, which dials nobody when it was killed."""

    def __init__(self, node: Node) -> None:
        self.node, self.alive = node, True

    async def use(self, *asked: object) -> None:
        """Allow each use of a peer's capability: no owner here withdrew one."""

    async def find(self, peer: str, *, trust_first_use: bool = False) -> LinkTarget:
        found = self.node.network.named(peer)
        return LinkTarget(found.did, found.address)

    async def open(self, target: LinkTarget, digest: None, uris: Sequence[str]) -> Pipe:
        peer = self.node.network.named(target.did)
        await asyncio.sleep(0.05)
        if not (self.alive and peer.up) or self.node.network.is_parted(self.node, peer):
            raise CallError(ErrorKind.PEER_UNREACHABLE, "nothing listens there")
        return connect(self.node, peer, uris[0])


class Node:
    """One daemon; `start` makes it anew from what it stored."""

    def __init__(self, network: Network, name: str) -> None:
        self.network, self.name = network, name
        self.key = network.keys[name]
        self.identities = Identities.of_method(self.key, "did:key")
        self.did = self.identities.canonical
        self.address = f"ws://{name}/"
        self.url = self.address
        self.logs = MemoryLogs()
        self.folder = network.folder / name
        self.pipes: list[Pipe] = []
        self.serving: set[asyncio.Task[Any]] = set()
        self.up = False
        self._store: Store | None = None
        self._groups: GroupService | None = None

    async def start(self) -> None:
        """Start it, or start it again after a kill."""
        self.spool = Spool(
            self.folder / "files", bytes(32), max_file=64 * MIB, max_files=999 * MIB
        )
        self.spool.load()
        agent: Any = Agent()
        self.life = _Life(self)
        own: Any = self.life
        logs: Any = self.logs
        self.tasks = TaskService(
            logs=logs,
            identities=self.identities,
            finder=own,
            requesters=own,
            capabilities=agent,
            caller=own,
            policy=Policy(),  # type: ignore[arg-type]  # asked for little
            limits=LIMITS,
            config=InteractionConfig(),
            spool=self.spool,
            call_files=self.folder / "calls",
            order=self.network.order,
            think=own,
            measures=SimpleNamespace(answered=lambda *_: None),  # type: ignore[arg-type]
            is_linked=self.is_linked,
        )
        self.tasks.own_url = lambda: self.address
        self.up = True
        await self.tasks.resume()
        if self._store is not None:
            await self._start_groups()

    @property
    def groups(self) -> GroupService:
        assert self._groups is not None
        return self._groups

    async def with_groups(self) -> GroupService:
        """Return its groups, which have a store on the disk."""
        if self._groups is None:
            await self._start_groups()
        return self.groups

    async def _start_groups(self) -> None:
        self._store = Store(self.folder / "store")
        own: Any = self.life
        self._groups = make_groups(
            GroupsConfig(),
            store=self._store,
            secret=self.key.derive(b"groups"),
            identities=self.identities,
            resolver=KeyResolver(),
            policy=Policy(),  # type: ignore[arg-type]  # asked for little
            finder=own,
            requesters=own,
            lines=self.tasks.lines,
            own_url=lambda: self.address,
        )
        await self._groups.load()
        await self._groups.resume()

    async def kill(self) -> None:
        """End it at once; what was written is kept, and nothing else."""
        self.up = self.life.alive = False
        lost = self.logs
        self.logs = MemoryLogs()
        self.logs.__dict__ |= {
            name: dict(value) for name, value in lost.__dict__.items()
        }
        for pipe in self.pipes:
            pipe.cut()
        self.pipes.clear()
        lost.append_log = _dead  # type: ignore[assignment, method-assign]
        if self._groups is not None:
            self._groups._shelf.save = _nothing  # type: ignore[method-assign]
            await self._groups.close()
            self._groups = None
        await self.tasks.close()
        for task in [*self.serving]:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)
        self.serving.clear()
        if self._store is not None:
            self._store.close()

    # What its parts ask of the rest of a daemon.

    def is_linked(self, peer: str) -> bool:
        return any(
            pipe.open and agent_name(pipe.peer_did) == agent_name(peer)
            for pipe in self.pipes
        )

    def serve(self, pipe: Pipe, peer: Node, uri: str) -> None:
        """Serve a channel that a peer opened."""

        async def served() -> None:
            current_share.set(Share(Rank.LISTED, peer.did))
            await self.tasks.serve(pipe, uri)  # type: ignore[arg-type]

        self._spawn(served())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    # What its owner does.

    async def call(self, peer: Node, number: int, uri: str) -> Any:
        """Call a peer once, over a channel that stays open for a while."""
        target = await self.life.find(peer.name)
        pipe = await self.life.open(target, None, [uri])
        machine = GbzCode()(
            Role.REQUESTER,
            Parties(own_id=self.did, peer_id=peer.did, peer_aliases=frozenset()),
            limits=LIMITS,
            random_bytes=os.urandom,
        )
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def send() -> None:
            for data in machine.messages_to_send():
                await pipe.send(ProtocolType.APPLICATION, data)

        async def read() -> None:
            with contextlib.suppress(ChannelClosed):
                while True:
                    data = (await pipe.receive()).frame.data
                    machine.receive_message(data, now=time.monotonic(), wall_now=_now())
                    while (event := machine.next_event()) is not None:
                        if isinstance(event, CallAnswered) and not answer.done():
                            answer.set_result(event.result)
                        elif isinstance(event, CallRefused) and not answer.done():
                            answer.set_exception(CallError(ErrorKind.POLICY, "no"))
                    await send()
            if not answer.done():
                answer.set_exception(CallError(ErrorKind.PEER_UNREACHABLE, "cut"))
            answer.exception()

        ask = Ask(call_id="c", action="agent.double", arguments={"number": number})
        machine.ask(ask, now=time.monotonic(), wall_now=_now())
        self._spawn(read())
        await send()
        asyncio.get_running_loop().call_later(self.network.linger, pipe.cut)
        return await answer

    async def give(self, peer: Node, name: str, number: int, **more: Any) -> KnownTask:
        """Have a peer do something."""
        parts = [Part.value({"number": number})]
        if name == "digest":
            begun, writer = self.spool.begin(name="file", media_type="text/plain")
            writer.append(content(number))
            parts.append(self.spool.keep(begun, writer).part)
        return await self.tasks.start_task(
            peer.name, capability=f"agent.{name}", parts=parts, **more
        )

    def all_tasks(self) -> list[KnownTask]:
        """Return all tasks, of this daemon and of its peers."""
        return [known_task(one) for one in self.logs.items()]

    async def results(self, task: KnownTask) -> list[Any]:
        """Return the results of a task, a file as its hash when it is here."""
        found: list[Any] = []
        for event in await self.tasks.sessions.events(task.log, limit=10_000):
            message: Any = event.content
            is_result = str(getattr(message, "purpose", "")) == "result"
            if is_result and message.task == task.task.id:
                for part in message.parts:
                    if part.kind is PartKind.URI and part.is_file:
                        kept = self.spool.find(task.log, task.task.id, part.content)
                        assert kept is not None, "it was announced"
                        is_whole = self.spool.is_whole(kept)
                        if not is_whole and not kept.failed:
                            # As when its owner wants it.
                            self.tasks.files.start(kept)
                        found.append(part.sha256 if is_whole else None)
                    else:
                        found.append(part.content)
        return found


class Network:
    """Daemons that reach one another, as long as nothing parts them."""

    def __init__(self, folder: Path, names: str, order: Sequence[str]) -> None:
        self.folder = folder
        self.order = tuple(order)
        self.keys = {
            name: _KEYS.setdefault(name, PrivateKey.generate()) for name in names
        }
        self.nodes = {name: Node(self, name) for name in names}
        self.parted: set[frozenset[str]] = set()
        self.linger = 30.0
        "Seconds for which the channel of a call stays open."

    def named(self, peer: str) -> Node:
        """Return a daemon by its name, its DID, or both."""
        did = peer.rpartition("#")[2]
        for one in self.nodes.values():
            if did in (one.name, one.did, one.address) or agent_name(did) == agent_name(
                one.did
            ):
                return one
        raise CallError(ErrorKind.PEER_UNREACHABLE, f"nobody is {peer}")

    def is_parted(self, one: Node, other: Node) -> bool:
        """Return whether nothing goes between two daemons now."""
        return frozenset({one.name, other.name}) in self.parted

    def cut(self, one: Node, other: Node, *, late: float = 0.0) -> None:
        """End all channels between two daemons."""
        for pipe in [*one.pipes]:
            if pipe.other.owner is other and pipe.open:
                pipe.cut(late=late)


_KEYS: dict[str, PrivateKey] = {}

PROTOCOLS = (GBZ_URI, GBZ_GROUPS_URI, ENVELOPE_URI)
"The protocols that carry tasks over lines."


def _now() -> datetime:
    return datetime.now(UTC)


def _dead(*_: Any) -> Any:
    raise RuntimeError("this daemon is dead")


def _nothing(*_: Any, **more: Any) -> None:
    pass
