"""Daemons' groups in memory: true lines and stores, and channels that are queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anp.channel.channel import ChannelClosed
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind
from anp.identity.dids import Identities, agent_name
from anp.identity.keys import PrivateKey
from anp.identity.resolver import KeyResolver
from anp.interaction.elements import Message, Part, SenderRole
from anp.interaction.groups.elements import GroupPolicy, GroupState
from anp.interaction.groups.member_state import MemberState
from anp.protocols.gbz import GBZ_GROUPS_URI
from anp.sidecar.config.groups import GroupsConfig
from anp.sidecar.groups.parts import make_groups
from anp.sidecar.groups.service import GroupService
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.delivery.lines import Lines
from anp.wire.frames import ProtocolType
from cache.store import Store
from negotiation.consensus.written import WrittenLimits
from sandbox.pool.shares import Rank, Share, current_share
from tests.waiting import until

LIMITS = WrittenLimits(answer_timeout=10.0, max_message=786_432, max_served=8)

FREE = GroupPolicy(rate=0)


class Pipe:
    """One end of a channel."""

    max_payload = 786_432
    extensions: frozenset[str] = frozenset()

    def __init__(self, own: Node, peer: Node) -> None:
        self.local_did, self.peer_did = own.did, peer.did
        self.peer_key = peer.key.public_bytes
        self.other: Pipe = self
        self.open = True
        self.in_use: Callable[[], bool] = lambda: True
        self.peer_meta = SimpleNamespace(selected_protocol=GBZ_GROUPS_URI)
        self.sent = 0
        self.stuck = False
        "True while nothing that is sent arrives."

        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._held: list[bytes] = []

    async def send(self, kind: ProtocolType, data: bytes) -> None:
        if not self.open:
            raise ChannelClosed("closed", by_peer=False)
        self.sent += 1
        if self.stuck:
            self._held.append(data)
        else:
            self.other._queue.put_nowait(data)

    async def receive(self) -> Any:
        data = await self._queue.get()
        if data is None:
            raise ChannelClosed("closed", by_peer=False)
        frame = SimpleNamespace(protocol_type=ProtocolType.APPLICATION, data=data)
        return SimpleNamespace(frame=frame)

    async def close(self, reason: str = "") -> None:
        self.cut()

    async def wait_renewal(self) -> bool:
        await asyncio.Event().wait()
        return False

    def cut(self) -> None:
        """End the channel on both sides; what is under way is lost."""
        for end in (self, self.other):
            if end.open:
                end.open = False
                end._queue.put_nowait(None)


class Node:
    """The groups of one daemon."""

    def __init__(self, net: Net, name: str, config: GroupsConfig) -> None:
        self.net, self.name = net, name
        self.key = net.keys[name]
        self.identities = Identities.of_method(self.key, "did:key")
        self.did = self.identities.canonical
        self.address = f"ws://{name}/"
        self.store = net.store(name)
        self.lines = Lines(self, LIMITS)  # type: ignore[arg-type]  # asked for little
        self.serving: set[asyncio.Task[None]] = set()
        self.pipes: list[Pipe] = []
        self.up = False
        self.groups: GroupService = make_groups(
            config,
            store=self.store,
            secret=self.key.derive(b"groups"),
            identities=self.identities,
            resolver=KeyResolver(),
            policy=SimpleNamespace(is_listed=self.lists),  # type: ignore[arg-type]
            finder=self,  # type: ignore[arg-type]  # has `find`
            requesters=self,  # type: ignore[arg-type]  # has `open`
            lines=self.lines,
            own_url=lambda: self.address,
        )

    def lists(self, did: str) -> bool:
        return agent_name(did) in self.net.listed

    # For the lines.

    def untold(self, line: Line, *, is_ours: bool = False) -> list[str]:
        return []

    def go_on(self, peer: str) -> None:
        pass

    def in_use(self, peer: str) -> bool:
        return False

    # For the groups.

    async def find(self, peer: str, *, trust_first_use: bool = False) -> LinkTarget:
        found = self.net.named(peer)
        if found is None:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "nothing listens there")
        return LinkTarget(found.did, found.address)

    async def open(self, target: LinkTarget, digest: None, candidates: Any) -> Any:
        peer = self.net.reached(self.name, target.did)
        if not self.up:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "this daemon is no more")
        if peer is None or (self.name, peer.name) in self.net.walls:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "nothing listens there")
        here, there = Pipe(self, peer), Pipe(peer, self)
        here.other, there.other = there, here
        self.pipes.append(here)
        peer.pipes.append(there)
        peer.serve(there, self)
        return here

    def serve(self, pipe: Pipe, peer: Node) -> None:
        async def served() -> None:
            rank = Rank.LISTED if self.lists(peer.did) else Rank.COMMON
            current_share.set(Share(rank, peer.did))
            await self.lines.serve(pipe, GBZ_GROUPS_URI)  # type: ignore[arg-type]

        self.serving.add(asyncio.create_task(served()))

    def cut(self) -> None:
        """End all channels."""
        for pipe in self.pipes:
            pipe.cut()

    async def stop(self, *, kill: bool = False) -> None:
        """End this daemon; killed, it stores nothing more."""
        self.up = False
        if kill:
            self.cut()
            self.groups._shelf.save = _nothing  # type: ignore[method-assign]
        await self.groups.close()
        self.cut()
        await self.lines.close()
        for task in self.serving:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)
        self.store.close()


class Net:
    """Daemons that can reach one another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: dict[str, PrivateKey] = {}
        self.nodes: dict[str, Node] = {}
        self.listed: set[str] = set()
        self.walls: set[tuple[str, str]] = set()
        "Pairs of which the first cannot dial the second."

    def store(self, name: str) -> Store:
        """Open the store of a daemon."""
        return Store(self.folder / name)

    def named(self, peer: str) -> Node | None:
        for one in self.nodes.values():
            names = {one.name, one.did, f"{one.address}#{one.did}"}
            is_meant = peer in names or agent_name(one.did) == peer
            if one.up and (is_meant or peer == f"{one.address}#{agent_name(one.did)}"):
                return one
        return None

    def reached(self, dialler: str, peer: str) -> Node | None:
        """Return the daemon to which another one comes that dials an agent."""
        return self.named(peer)

    async def start(self, name: str, **config: Any) -> Node:
        """Start a daemon, or start it again after it stopped."""
        self.keys.setdefault(name, PrivateKey.generate())
        node = self.nodes[name] = Node(self, name, GroupsConfig(**config))
        await node.groups.load()
        node.up = True
        await node.groups.resume()
        return node

    async def again(self, node: Node, *, kill: bool = False, **config: Any) -> Node:
        """Stop or kill a daemon, and start it again."""
        if node.up:
            await node.stop(kill=kill)
        return await self.start(node.name, **config)


@asynccontextmanager
async def net_in(folder: Path, *names: str) -> AsyncIterator[tuple[Net, list[Node]]]:
    """Run daemons, each of which the others have on their lists."""
    net = Net(folder)
    async with asyncio.timeout(20):
        nodes = [await net.start(name) for name in names]
        net.listed |= {agent_name(one.did) for one in nodes}
        try:
            yield net, nodes
        finally:
            for node in net.nodes.values():
                if node.up:
                    await node.stop()


async def joined(hub: Node, *members: Node, policy: GroupPolicy = FREE) -> str:
    """Make a group, and let others join it; return its id."""
    group = (await hub.groups.create(policy=policy)).group.id
    for one in members:
        await join(hub, group, one)
    return group


async def join(hub: Node, group: str, one: Node) -> None:
    """Invite a daemon, and let it accept."""
    await hub.groups.invite(group, one.name)
    await until(lambda: _state(one, group) is MemberState.INVITED)
    await one.groups.accept(group)


def _state(one: Node, group: str) -> MemberState | None:
    known = {each.group.id: each.state for each in one.groups.all()}
    return known.get(group)


def note(node: Node, group: str, text: str) -> Message:
    """Return a message whose id is its text."""
    return Message(
        id=text,
        session=group,
        sender=node.did,
        role=SenderRole.REQUESTER,
        parts=(Part.text(text),),
    )


async def texts(node: Node, group: str, count: int, *, after: int = 0) -> list[str]:
    """Return the first messages of a group, as a daemon has them."""
    found: list[str] = []
    async for event in node.groups.watch(group, after=after):
        frame = event.frame()
        if frame["op"] == "message.send":
            found.append(frame["dataItems"][0]["payload"])
            if len(found) >= count:
                break
    return found


def is_closed(node: Node, group: str) -> bool:
    """Return whether a daemon knows that a group has ended."""
    return node.groups.known(group).group.state is GroupState.CLOSED


def _nothing(*args: Any, **more: Any) -> None:
    pass
