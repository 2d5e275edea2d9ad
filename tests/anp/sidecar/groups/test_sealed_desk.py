"""Members with real identities around the machine of a hub: a sealed group."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.interaction.elements import Message, Part, PartKind, Party, SenderRole
from anp.interaction.groups.elements import Group
from anp.interaction.groups.hub_records import Asked, GroupEvent
from anp.interaction.groups.member_copy import GroupCopy
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import GroupAct, GroupPost, Membership
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.gbz.group_writer import group_frame, write_distributed
from anp.protocols.gbz.writer import json_bytes
from anp.protocols.line import FurtherFrame
from anp.sidecar.groups.checked_keys import CheckedKeys, signer_of
from anp.sidecar.groups.sealing.sealed_desk import KEYS, SealedDesk
from anp.sidecar.groups.shelf import SEALED

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MAX = 1024 * 1024


def read(data: bytes) -> GroupPost:
    found = read_group_frame(data, max_size=MAX)
    assert isinstance(found, FurtherFrame)
    assert isinstance(found.operation, GroupPost)
    return found.operation


@dataclass
class Agent:
    """A member: its copy of the group, its desk, and what it has stored."""

    did: str
    desk: SealedDesk
    copy: GroupCopy
    keys: CheckedKeys
    stored: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    def texts(self) -> list[str]:
        return [
            one["dataItems"][0]["payload"]
            for _, mark, one in self.stored
            if mark == SEALED
        ]


class Hub:
    """The machine of a hub, and everything that it has ever seen."""

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.seen: list[bytes] = []
        self.refs, tickets = count(1), count(1)
        self.waiting: list[tuple[GroupEvent, bytes]] = []
        self.identities: dict[str, Any] = {}
        owner = self._identity("ann")
        group = Group(
            id="g", hub=Party(id="did:key:zHub"), owner=owner.did, sealed=True
        )
        self.machine, step = GroupMachine.create(
            group, wall_now=NOW, make_id=lambda: f"t{next(tickets)}"
        )
        self._enter("ann")
        self._put(step.events)

    def _identity(self, name: str) -> Any:
        made = Identities.of_method(PrivateKey.generate(), "did:key").primary
        self.identities[name] = made
        return made

    def _enter(self, name: str) -> Agent:
        identity, group = self.identities[name], self.machine.group
        keys = CheckedKeys(ChainResolver())
        desk = SealedDesk.open(group, {}, signer=signer_of(identity), keys=keys)
        last = self.machine.joined_at(identity.did) if name != "ann" else 0
        copy = GroupCopy(group, last=last)
        self.agents[name] = Agent(identity.did, desk, copy, keys)
        return self.agents[name]

    def _put(self, events: list[GroupEvent]) -> None:
        for one in events:
            frame = one.post.frame or group_frame(one.post, one.number)
            data = write_distributed(
                frame, number=one.number, epoch=one.epoch, at=one.at, by=one.by
            )
            self.seen.append(data)
            self.waiting.append((one, data))

    def post(self, name: str, content: Any) -> Any:
        """Send an operation as bytes, as over a wire."""
        ref = next(self.refs)
        data = json_bytes(group_frame(GroupPost(group="g", content=content), ref))
        self.seen.append(data)
        did = self.identities[name].did
        step = self.machine.take(Asked(read(data), did, ref, len(data), 0.0, NOW))
        self._put(step.events)
        return step

    async def join(self, name: str) -> None:
        """The owner invites an agent, which accepts."""
        did = self._identity(name).did
        self.agents["ann"].desk.welcome(did)
        invited = self.post(
            "ann", Membership(act=GroupAct.INVITE, member=Party(id=did))
        )
        ticket = invited.answer.ticket
        self.post(name, Membership(act=GroupAct.ACCEPT, ticket=ticket))
        self._enter(name)
        await self.settle()

    async def say(self, name: str, text: str) -> None:
        message = Message(
            id=f"m {text}",
            session="g",
            sender=self.identities[name].did,
            role=SenderRole.SERVICE,
            parts=(Part(kind=PartKind.TEXT, content=text),),
        )
        agent = self.agents[name]
        for one in agent.desk.seal(message, max_message=64 * 1024):
            self.post(name, one)
        await self.settle()

    async def settle(self) -> None:
        while self.waiting:
            event, data = self.waiting.pop(0)
            for name, agent in list(self.agents.items()):
                if agent.did in event.to or (
                    agent.did == event.by and agent.copy.last < event.number
                ):
                    await self._deliver(name, agent, data)

    async def _deliver(self, name: str, agent: Agent, data: bytes) -> None:
        post = read(data)
        await agent.desk.learn(post)
        for event in agent.copy.deliver([post]):
            taken, step = agent.desk.take(event)
            frame = json.loads(taken.data)
            agent.stored.append((event.number, taken.mark, frame))
            for one in step.send:
                self.post(name, one)


async def group(*names: str) -> Hub:
    hub = Hub()
    for one in hub.agents["ann"].desk.found():
        hub.post("ann", one)
    await hub.settle()
    for name in names:
        await hub.join(name)
    return hub


async def test_a_sealed_group_over_the_bytes_of_its_protocol() -> None:
    hub = await group("bob", "cyd")
    await hub.say("bob", "the plain words")
    await hub.say("ann", "other words")
    for agent in hub.agents.values():
        # Each has what it said itself at its place, too.
        assert agent.texts() == ["the plain words", "other words"]
        assert not agent.desk.alarms
    frames = [one for _, mark, one in hub.agents["cyd"].stored if mark == SEALED]
    assert [one["id"] for one in frames] == ["m the plain words", "m other words"]
    assert [one["by"] for one in frames] == [hub.agents[x].did for x in ("bob", "ann")]
    assert any(mark == KEYS for _, mark, _ in hub.agents["cyd"].stored)
    everything = b"".join(hub.seen) + repr(hub.machine.head).encode()
    assert b"words" not in everything


async def test_the_members_are_those_that_the_owner_let_in() -> None:
    hub = await group("bob", "cyd")
    hub.post("cyd", Membership(act=GroupAct.LEAVE))
    await hub.settle()
    await hub.say("bob", "without cyd")
    dids = [hub.agents[name].did for name in ("ann", "bob")]
    assert list(hub.agents["bob"].desk.view["members"]) == dids
    assert hub.agents["cyd"].texts() == []
    assert hub.agents["ann"].texts() == ["without cyd"]


async def test_words_of_the_hub_in_the_name_of_a_member_are_marked() -> None:
    hub = await group("bob")
    message = Message(
        id="m-1",
        session="g",
        sender=hub.agents["ann"].did,
        role=SenderRole.REQUESTER,
        parts=(Part(kind=PartKind.TEXT, content="pay the hub"),),
    )
    hub.post("ann", message)
    await hub.settle()
    assert hub.agents["bob"].stored[-1][1] == "forged"
    (alarm,) = hub.agents["bob"].desk.view["alarms"]
    assert alarm["by"] == hub.agents["ann"].did
    assert hub.agents["bob"].texts() == []
    # It is known after a restart, and stored only when there is a new one.
    desk, signer = hub.agents["bob"].desk, signer_of(hub.identities["bob"])
    rows = {name: row for name, row in desk.rows().items() if row is not None}
    again = SealedDesk.open(
        hub.machine.group, rows, signer=signer, keys=hub.agents["bob"].keys
    )
    assert again.view == desk.view
    assert "alarms" not in desk.rows()
