"""Groups of a fleet: the daemons `one` and `other` have one identity and one store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from anp.identity.dids import agent_name
from anp.identity.keys import PrivateKey
from anp.interaction.errors import InteractionError
from anp.interaction.groups.member_state import MemberState
from cache.errors import StoreUnavailable
from cache.store import Store
from tests.anp.sidecar.groups.net import FREE, Net, Node, join, note, texts
from tests.waiting import until


class SharedStore(Store):
    """A store on disk that says of itself that others use it, too."""

    is_shared = True
    is_cut = False
    "True while no letter can be sent."

    boxes: ClassVar[dict[str, list[bytes]]] = {}
    _posted: ClassVar[threading.Condition] = threading.Condition()

    def send_mail(self, box: str, letter: bytes) -> None:
        if self.is_cut:
            raise StoreUnavailable("the server is away")
        with self._posted:
            self.boxes.setdefault(box, []).append(letter)
            self._posted.notify_all()

    def mail(self, box: str, after: str, wait: float) -> tuple[str, list[bytes]]:
        with self._posted:
            start, letters = int(after), self.boxes.setdefault(box, [])
            if len(letters) <= start:
                self._posted.wait_for(lambda: len(letters) > start, wait)
            return str(len(letters)), letters[start:]


class FleetNet(Net):
    """Daemons of which two are one agent; who dials it comes to one that is up."""

    def __init__(self, folder: Path, opened: Callable[[], Store]) -> None:
        super().__init__(folder)
        self._opened = opened
        self.keys["one"] = self.keys["other"] = PrivateKey.generate()
        self.routes: dict[str, str] = {}
        "For a member, the daemon of the fleet to which it comes, if that is up."

    async def start(self, name: str, **config: Any) -> Node:
        node = await super().start(name, **config)
        if name in {"one", "other"}:
            node.address = "ws://fleet/"
        return node

    def reached(self, dialler: str, peer: str) -> Node | None:
        found = self.named(peer)
        way = self.nodes.get(self.routes.get(dialler, ""))
        if found is not None and way is not None and way.up and way.did == found.did:
            return way
        return found

    def store(self, name: str) -> Store:
        return self._opened() if name in {"one", "other"} else super().store(name)


@asynccontextmanager
async def fleet_in(
    folder: Path, opened: Callable[[], Store], *members: str
) -> AsyncIterator[tuple[FleetNet, list[Node]]]:
    """Run a fleet, and members of groups, which it has on its list."""
    net = FleetNet(folder, opened)
    async with asyncio.timeout(20):
        nodes = [await net.start(name) for name in ("one", "other", *members)]
        net.listed |= {agent_name(node.did) for node in nodes}
        try:
            yield net, nodes
        finally:
            for node in net.nodes.values():
                if node.up:
                    await node.stop()


async def kill(node: Node) -> None:
    """Let a daemon end so that its leases stay as they are."""
    holder: Any = node.groups._holder
    holder.leave = holder.stop
    await node.stop(kill=True)


def lapse(node: Node, group: str, store: Store) -> None:
    """Make the time of a daemon's lease of a group pass."""
    owner = node.groups._shelf.owner
    assert store.group_leases()[group][0] == owner
    assert not store.lease_groups([group], owner=owner, now=0.0, until=1.0)


async def settle(node: Node) -> None:
    """Let a daemon renew its leases, and look for those that ended, now."""
    await node.groups._holder.look()


async def grow(net: FleetNet, nodes: list[Node]) -> None:
    """Have members at both daemons say and hear everything, in one order."""
    one, other, b, c, d = nodes
    net.routes |= {"c": "other", "d": "other"}
    group = (await one.groups.create(policy=FREE)).group.id
    for member in (b, c, d):
        await join(one, group, member)
    # They can be reached no more, and dial the fleet themselves.
    net.walls |= {(a, b) for a in ("one", "other") for b in ("c", "d")}
    for node in (c, d):
        node.cut()
    await until(lambda: served(other) == {c.did, d.did})
    for number in range(10):
        await asyncio.gather(
            *(
                node.groups.say(group, note(node, group, f"{node.name}{number}"))
                for node in (one, b, c, d)
            )
        )
    heard = [await texts(node, group, 40) for node in (one, b, c, d)]
    assert sorted(heard[0]) == sorted(f"{n}{i}" for n in "bcd" for i in range(10)) + [
        f"one{i}" for i in range(10)
    ]
    assert heard == [heard[0]] * 4
    # What the hub refuses is refused there, too.
    with pytest.raises(InteractionError, match="used before"):
        await c.groups.say(group, note(c, group, "c0"))
    # One that is removed hears of that, and of nothing after it.
    last = one.groups.known(group).last
    await one.groups.remove(group, d.did)
    await b.groups.say(group, note(b, group, "without d"))
    await until(lambda: c.groups.known(group).last == last + 2)
    await until(lambda: d.groups.known(group).state is MemberState.REMOVED)
    await d.groups._members[group].log.settle()
    assert d.groups.known(group).last == last + 1
    await c.groups.leave(group)
    await until(lambda: len(one.groups.known(group).group.members) == 2)


async def spread(net: FleetNet, nodes: list[Node]) -> None:
    """Have a sister dial the members that are its part."""
    one, other, *members = nodes
    group = (await one.groups.create(policy=FREE)).group.id
    for member in members:
        await join(one, group, member)
    assert served(other) == set()
    # It says that it lives, so that it gets its part.
    await settle(other)
    hub: Any = one.groups._hubs[group]
    await until(lambda: bool(hub.branches._alive()))
    everybody = {member.did: member.address for member in members}
    part = {did for did, url in everybody.items() if hub.branches.dial(did, url)}
    await until(lambda: served(other) == part)
    first, *others = members
    assert await first.groups.say(group, note(first, group, "first"))
    for node in (one, *others):
        assert await texts(node, group, 1) == ["first"]
    # When the sister is gone, they are the hub's again.
    await kill(other)
    await until(lambda: all(cursor.is_here for cursor in hub._cursors.values()))
    assert await first.groups.say(group, note(first, group, "second"))
    for node in (one, *others):
        assert await texts(node, group, 2) == ["first", "second"]


def served(node: Node) -> set[str]:
    """Return the members that a daemon serves for its sister."""
    return {did for branch in node.groups._sisters.branches for did in branch._served()}


async def go_on_after_kill(net: Net, nodes: list[Node]) -> None:
    """Kill the daemon that has the hub; its sister goes on with all that was said."""
    one, other, b, c = nodes
    group = (await one.groups.create()).group.id
    for member in (b, c):
        await join(one, group, member)
    for number in range(20):
        assert await b.groups.say(group, note(b, group, f"before {number}"))
    await settle(other)
    # It lives, and a sister leaves its group alone.
    assert other.groups.all() == []
    await kill(one)
    # Said while nobody has the hub: it waits at the member.
    assert await c.groups.say(group, note(c, group, "meanwhile"), timeout=0.05) is None
    lapse(one, group, other.store)
    await settle(other)
    assert other.groups.known(group).is_hub
    await until(lambda: other.groups.known(group).last >= 24)
    assert await b.groups.say(group, note(b, group, "after"))
    said = [f"before {number}" for number in range(20)] + ["meanwhile", "after"]
    for node in (other, b, c):
        assert await texts(node, group, 22) == said
    # The first one comes again, and finds that its group is elsewhere.
    again = await net.start("one")
    assert again.groups.all() == []
