"""Members of a sealed group around a hub that does what a test wants.

Keys come from a counter, so that a circle is the same in every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519

from anp.interaction.sealing.encoding import DidSigner, SealingMeans
from anp.interaction.sealing.epoch import OpenedMessage
from anp.interaction.sealing.errors import SealingError, SealingFault, Suspicion
from anp.interaction.sealing.member import SealedMember
from anp.interaction.sealing.membership import ChangeKind, MemberChange, MemberRank

GROUP = "urn:group:1"
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def secret(name: str) -> ed25519.Ed25519PrivateKey:
    """Return the key of an agent's DID."""
    seed = hashlib.sha256(name.encode()).digest()
    return ed25519.Ed25519PrivateKey.from_private_bytes(seed)


def did_of(name: str) -> str:
    return f"did:test:{name}"


def signer(name: str) -> DidSigner:
    return DidSigner(did_of(name), f"{did_of(name)}#1", secret(name).sign)


def verifies(did: str, key: str, signature: bytes, data: bytes) -> bool:
    """Verify as if all DIDs were resolved."""
    if key != f"{did}#1":
        return False
    try:
        public = secret(did.removeprefix("did:test:")).public_key()
        public.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def drawn(name: str) -> Callable[[int], bytes]:
    """Return random bytes that are the same in every run."""
    count = 0

    def random_bytes(size: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.shake_256(f"{name} {count}".encode()).digest(size)

    return random_bytes


@dataclass(frozen=True)
class Item:
    """Something in the log of the hub: a message, or an entry, package or grant."""

    by: str
    value: Any = None
    data: bytes = b""
    epoch: int = 0
    counter: int = 0


@dataclass
class Agent:
    """One agent, with what it has read."""

    name: str
    member: SealedMember
    cursor: int = 0
    rows: dict[str, bytes] = field(default_factory=dict)
    opened: list[OpenedMessage] = field(default_factory=list)
    locked: list[bytes] = field(default_factory=list)
    suspicions: list[Suspicion] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [one.content.decode() for one in self.opened if one.content]

    def store(self) -> None:
        for name, row in self.member.changed_rows().items():
            if row is None:
                self.rows.pop(name, None)
            else:
                self.rows[name] = row

    def restart(self) -> None:
        """Go on from what was stored, as after a kill."""
        self.member = SealedMember.restore(
            self.rows,
            SealingMeans(
                signer(self.name),
                verifies,
                drawn(f"{self.name} again {len(self.opened)}"),
            ),
        )


class Circle:
    """A group with an honest hub, whose log tests change."""

    def __init__(self, owner: str, *others: str) -> None:
        self.owner = owner
        self.agents: dict[str, Agent] = {}
        self.log: list[Item] = []
        self.join(owner)
        for name in others:
            self.join(name)
        changes = [MemberChange(ChangeKind.ADD, did_of(name)) for name in others]
        self.post(owner, self.agents[owner].member.propose(changes, at=NOW))
        self.settle()

    def join(self, name: str) -> Agent:
        """Make an agent that reads the log and is no member yet."""
        member = SealedMember(
            GROUP,
            did_of(self.owner),
            SealingMeans(signer(name), verifies, drawn(name)),
        )
        self.agents[name] = Agent(name, member)
        return self.agents[name]

    def change(
        self,
        kind: ChangeKind,
        name: str,
        *,
        by: str = "",
        rank: MemberRank = MemberRank.MEMBER,
    ) -> None:
        """Have an admin change the members, and let everybody know."""
        by = by or self.owner
        change = MemberChange(kind, did_of(name), rank)
        self.post(by, self.agents[by].member.propose([change], at=NOW))
        self.settle()

    def post(self, by: str, value: Any) -> None:
        self.log.append(Item(by, value))

    def say(self, name: str, text: str) -> Item:
        """Seal a message; it is in the log, and delivered to nobody yet."""
        agent = self.agents[name]
        message, grants = agent.member.seal(text.encode())
        agent.store()
        for one in grants:
            self.post(name, one)
        item = Item(
            name, data=message.data, epoch=message.epoch, counter=message.counter
        )
        self.log.append(item)
        return item

    def deliver(self, name: str, upto: int | None = None) -> None:
        """Give an agent the log up to a place, from where it is."""
        agent = self.agents[name]
        while agent.cursor < (len(self.log) if upto is None else upto):
            item = self.log[agent.cursor]
            agent.cursor += 1
            self.feed(name, item)

    def feed(self, name: str, item: Item) -> OpenedMessage | None:
        """Give one item to an agent, which answers into the log."""
        agent = self.agents[name]
        found = None
        if item.data and item.by == name:
            agent.member.place(item.epoch, item.counter)
        elif item.data:
            try:
                found = agent.member.open(item.data)
            except SealingError as exc:
                # An honest hub delivers only to who was a member by its own list.
                if exc.code is not SealingFault.OLD and agent.member.is_member:
                    raise
                return None
            agent.opened.append(found)
            agent.suspicions += found.suspicions
            if found.content is None:
                agent.locked.append(item.data)
        else:
            self._take(agent, item)
        agent.store()
        return found

    def _take(self, agent: Agent, item: Item) -> None:
        try:
            step = agent.member.take(item.value)
        except SealingError as exc:
            is_own = item.by == agent.name and exc.code is SealingFault.REPEATED
            is_strange = not agent.member.is_member and exc.code in {
                SealingFault.OLD,
                SealingFault.FORK,
                SealingFault.GAP,
            }
            if not (is_own or is_strange or exc.code is SealingFault.OLD):
                raise
            return
        agent.suspicions += step.suspicions
        for one in step.send:
            self.post(agent.name, one)

    def settle(self) -> None:
        """Deliver everything to everybody, answers included."""
        while any(one.cursor < len(self.log) for one in self.agents.values()):
            for name in self.agents:
                self.deliver(name)
