"""Groups of a fleet: the daemons `one` and `other` have one identity and one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anp.identity.keys import PrivateKey
from anp.sidecar.peers.policy import agent_name
from cache.store import Store
from tests.anp.sidecar.groups.net import Net, Node, join, note, texts
from tests.waiting import until

__all__ = ["SharedStore", "fleet_in", "go_on_after_kill", "lapse", "settle"]


class SharedStore(Store):
    """A store on disk that says of itself that others use it, too."""

    is_shared = True  # type: ignore[assignment]  # a property there


class FleetNet(Net):
    """Daemons of which two are one agent; who dials it comes to one that is up."""

    def __init__(self, folder: Path, opened: Callable[[], Store]) -> None:
        super().__init__(folder)
        self._opened = opened
        self.keys["one"] = self.keys["other"] = PrivateKey.generate()

    def store(self, name: str) -> Store:
        return self._opened() if name in {"one", "other"} else super().store(name)


@asynccontextmanager
async def fleet_in(
    folder: Path, opened: Callable[[], Store], *members: str
) -> AsyncIterator[tuple[Net, list[Node]]]:
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
