"""Our seat in one sealed group: what we say is sealed, what comes is opened.

Pure. The desk of members gives it everything in the order of the group, our own posts
at their place, too. Who is a member for the hub and who is one by the admins' word are
two things: an admin adds only agents that it let in itself, whatever the hub says.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from anp.interaction.elements import Message
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.operations import GroupAct, Membership
from anp.interaction.sealing.encoding import SealingMeans
from anp.interaction.sealing.errors import SealingError, SealingFault, Suspicion
from anp.interaction.sealing.member import SealedMember
from anp.interaction.sealing.membership import ChangeKind, MemberChange, MemberRank
from anp.interaction.sealing.message import OVERHEAD, SealedBytes
from anp.protocols.gbz.sealed_message import (
    content_bytes,
    keys_message,
    keys_of,
    read_content,
    sealed_message,
    sealed_of,
)

MAX_LOCKED: Final = 4096
"Most messages that wait for their sender's chain key; the oldest are dropped."

MAX_ITEMS: Final = 24 * 1024
"Bytes of keys in one message, which has to be below the group's `maxMessage`."

SEAT: Final = "seat"
SAID: Final = "said/"

# Repeats happen after each break, and a lost race of two admins is told by nobody.
_HARMLESS: Final = frozenset(
    {SealingFault.REPEATED, SealingFault.TAKEN, SealingFault.OLD}
)


@dataclass(frozen=True, slots=True)
class SeatAlarm:
    """A sign that the hub, or a member, does what it should not."""

    code: SealingFault | Suspicion
    by: str
    "DID in whose name the thing came."

    text: str


@dataclass(slots=True)
class SeatStep:
    """Everything that follows from one input."""

    send: list[Message] = field(default_factory=list)
    "Messages to post, in order, before anything else that is posted."

    opened: list[tuple[int, Message]] = field(default_factory=list)
    """Messages that can be read now, our own at their place, too, each with its number
    in the group. One whose sender's key came late comes after higher numbers."""

    alarms: list[SeatAlarm] = field(default_factory=list)


@dataclass(slots=True)
class _Seated:
    """The part of a seat that is not in `SealedMember`."""

    welcome: set[str] = field(default_factory=set)
    "Agents that we, as an admin, let in ourselves."

    wanted: dict[str, str] = field(default_factory=dict)
    "Changes that we have to sign, by DID: `add` or `remove`."

    proposed: int = 0
    "Epoch of our entry that has no place yet; 0 for none."

    locked: dict[int, list[str]] = field(default_factory=dict)
    "Sealed messages whose chain key is not here: number to id and base64."


class SealedSeat:
    """One member's seat in a sealed group."""

    def __init__(self, group: str, owner: str, means: SealingMeans) -> None:
        """Take a seat in a group that `owner` founded, which may be ourselves."""
        self.admins: frozenset[str] = frozenset()
        "Agents that become admins when we, as the owner, let them in."

        self._me = means.signer.did
        self._group = group
        self._seated = _Seated()
        self._said: dict[str, bytes] = {}
        "Our messages that have no place yet, in clear, by the id that the hub sees."

        self._said_changed: set[str] = set()
        self._is_changed = True
        self._member = SealedMember(group, owner, means)

    @property
    def members(self) -> Mapping[str, MemberRank]:
        """The members by the admins' word, with their ranks."""
        return self._member.chain.members

    @property
    def epoch(self) -> int:
        """The sealed epoch; 0 while the founding entry has not come."""
        return self._member.epoch

    def found(self, *, wall_now: datetime) -> SeatStep:
        """Found the group, whose only member we are."""
        step = SeatStep()
        self._send(step, [self._member.propose([], at=wall_now)])
        self._seated.proposed = 1
        return step

    def welcome(self, did: str) -> None:
        """Note that we, as an admin, invited an agent or approved its application."""
        self._seated.welcome.add(did)
        self._is_changed = True

    def say(self, message: Message, *, max_message: int) -> list[Message]:
        """Return what is to be posted for a message, in order.

        Raises:
            InteractionError: We are no member (yet), it is too large, or members were
                shown different messages, so that nothing is said in this epoch.
        """
        content = content_bytes(message)
        if (len(content) + OVERHEAD) * 4 // 3 + 1024 > max_message:
            raise InteractionError(
                InteractionFault.TOO_LARGE,
                f"sealed it is over the {max_message} bytes of this group",
            )
        try:
            sealed, grants = self._member.seal(content)
        except SealingError as exc:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, f"the group is sealed: {exc.text}"
            ) from None
        step = SeatStep()
        self._send(step, grants)
        outer = sealed_message(sealed.data, message)
        # Nobody can open it, not even we: its key is deleted.
        self._said[outer.id] = content
        self._said_changed.add(outer.id)
        return [*step.send, outer]

    def refused(self, message: Message) -> None:
        """Note that the hub refused a message of ours for good."""
        data = sealed_of(message)
        if data is not None:
            header = SealedBytes(data).header
            epoch = self._member.epoch_of(header.entry)
            self._member.withdraw(epoch, header.counter)
            self._own(message)

    def take(
        self, message: Message, *, by: str, number: int, wall_now: datetime
    ) -> SeatStep:
        """Take a message at its place, whoever said it."""
        step = SeatStep()
        items, data = keys_of(message), sealed_of(message)
        if items is not None:
            for item in items:
                self._take_item(step, item, by)
            self._propose(step, wall_now)
        elif data is not None:
            self._take_sealed(step, message, data, by, number)
        else:
            text = "it is not sealed, so the hub may have written it"
            step.alarms.append(SeatAlarm(SealingFault.INVALID, by, text))
        return step

    def changed(self, change: Membership, *, by: str, wall_now: datetime) -> SeatStep:
        """Take a change of members as the hub tells it."""
        step, seated = SeatStep(), self._seated
        did = change.member.id if change.member else by
        match change.act:
            case GroupAct.ACCEPT | GroupAct.APPROVE | GroupAct.APPLY:
                if did in seated.welcome:
                    seated.welcome.discard(did)
                    seated.wanted[did] = ChangeKind.ADD
            case GroupAct.LEAVE | GroupAct.REMOVE:
                is_mine = by == self._me or self._rank() is MemberRank.OWNER
                if is_mine and did != self._me:
                    seated.wanted[did] = ChangeKind.REMOVE
        self._is_changed = True
        self._propose(step, wall_now)
        return step

    def compare(self, members: Set[str], *, wall_now: datetime) -> SeatStep:
        """Catch up with the members that the hub names, for example after a kill."""
        step, seated = SeatStep(), self._seated
        if not self.epoch:
            return step
        for did in seated.welcome & members:
            seated.welcome.discard(did)
            seated.wanted[did] = ChangeKind.ADD
        if self._rank() is MemberRank.OWNER:
            gone = self.members.keys() - members - {self._me}
            seated.wanted |= dict.fromkeys(gone, ChangeKind.REMOVE)
        self._is_changed = True
        self._propose(step, wall_now)
        return step

    # Keys

    def _rank(self) -> MemberRank | None:
        return self.members.get(self._me)

    def _take_item(self, step: SeatStep, item: Any, by: str) -> None:
        try:
            found = self._member.take(item)
        except SealingError as exc:
            self._alarm(step, exc, by)
            return
        step.alarms += [SeatAlarm(one, by, str(one)) for one in found.suspicions]
        self._send(step, found.send)
        if found.unlocked:
            self._unlock(step)

    def _alarm(self, step: SeatStep, error: SealingError, by: str) -> None:
        # Until an admin has added us, others talk about epochs that are not ours.
        is_early = not self.epoch and error.code in {
            SealingFault.GAP,
            SealingFault.FORK,
        }
        if error.code not in _HARMLESS and not is_early:
            step.alarms.append(SeatAlarm(error.code, by, error.text))

    def _propose(self, step: SeatStep, wall_now: datetime) -> None:
        """Sign the changes that are wanted of us, one entry at a time."""
        seated, members = self._seated, self.members
        if seated.proposed > self.epoch:
            return
        seated.proposed = 0
        seated.wanted = {
            did: kind
            for did, kind in seated.wanted.items()
            if (kind == ChangeKind.ADD) is (did not in members)
        }
        rank = self._rank()
        if not seated.wanted or rank not in {MemberRank.OWNER, MemberRank.ADMIN}:
            return
        is_owner = rank is MemberRank.OWNER
        changes = [
            MemberChange(
                ChangeKind(kind),
                did,
                MemberRank.ADMIN
                if is_owner and did in self.admins and kind == ChangeKind.ADD
                else MemberRank.MEMBER,
            )
            for did, kind in seated.wanted.items()
        ]
        try:
            entry = self._member.propose(changes, at=wall_now)
        except SealingError as exc:
            step.alarms.append(SeatAlarm(exc.code, self._me, exc.text))
            seated.wanted.clear()
            return
        is_joining = any(one.kind is ChangeKind.ADD for one in changes)
        self._send(step, [*(self._member.history() if is_joining else ()), entry])
        seated.proposed = self.epoch + 1
        self._is_changed = True

    def _send(self, step: SeatStep, items: Iterable[Mapping[str, Any]]) -> None:
        page: list[Mapping[str, Any]] = []
        size = 0
        for item in items:
            length = len(json.dumps(item))
            if page and size + length > MAX_ITEMS:
                step.send.append(self._keys(page))
                page, size = [], 0
            page.append(item)
            size += length
        if page:
            step.send.append(self._keys(page))

    def _keys(self, items: list[Mapping[str, Any]]) -> Message:
        name = hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
        # Our own repeats are known by it, also after a restart.
        return keys_message(
            items, id=f"keys-{name[:32]}", group=self._group, sender=self._me
        )

    # Messages

    def _take_sealed(
        self, step: SeatStep, outer: Message, data: bytes, by: str, number: int
    ) -> None:
        try:
            if by == self._me:
                header = SealedBytes(data).header
                epoch = self._member.epoch_of(header.entry)
                self._member.place(epoch, header.counter)
                content = self._own(outer)
                if content is not None:
                    self._read(step, content, outer, by, number)
                return
            found = self._member.open(data)
        except SealingError as exc:
            self._alarm(step, exc, by)
            return
        step.alarms += [
            SeatAlarm(one, found.sender, str(one)) for one in found.suspicions
        ]
        if found.content is not None:
            self._read(step, found.content, outer, found.sender, number)
        elif Suspicion.UNREADABLE not in found.suspicions:
            self._lock(number, outer, found.sender, data)

    def _own(self, outer: Message) -> bytes | None:
        """Return what a message of ours says, and forget it here."""
        self._said_changed.add(outer.id)
        return self._said.pop(outer.id, None)

    def _read(
        self, step: SeatStep, content: bytes, outer: Message, sender: str, number: int
    ) -> None:
        try:
            step.opened.append((number, read_content(content, outer, sender=sender)))
        except InteractionError as exc:
            step.alarms.append(SeatAlarm(SealingFault.INVALID, sender, exc.text))

    def _lock(self, number: int, outer: Message, sender: str, data: bytes) -> None:
        text = base64.b64encode(data).decode("ascii")
        self._seated.locked[number] = [outer.id, sender, text]
        while len(self._seated.locked) > MAX_LOCKED:
            del self._seated.locked[min(self._seated.locked)]
        self._is_changed = True

    def _unlock(self, step: SeatStep) -> None:
        for number, (name, sender, text) in sorted(self._seated.locked.items()):
            data = base64.b64decode(text)
            try:
                content = self._member.unlock(data)
            except SealingError as exc:
                if exc.code is SealingFault.NO_KEY:
                    continue
                step.alarms.append(SeatAlarm(exc.code, sender, exc.text))
            else:
                outer = keys_message([], id=name, group=self._group, sender=sender)
                self._read(step, content, outer, sender, number)
            del self._seated.locked[number]
            self._is_changed = True

    # Stored state

    def changed_rows(self) -> dict[str, bytes | None]:
        """Return the rows that changed; see `SealedMember.changed_rows`."""
        rows = self._member.changed_rows()
        for name in self._said_changed:
            rows[f"{SAID}{name}"] = self._said.get(name)
        self._said_changed.clear()
        if self._is_changed:
            seated = self._seated
            value = {
                "group": self._group,
                "owner": self._member.chain.owner,
                "welcome": sorted(seated.welcome),
                "wanted": seated.wanted,
                "proposed": seated.proposed,
                "locked": [[one, *found] for one, found in seated.locked.items()],
            }
            rows[SEAT] = json.dumps(value).encode()
            self._is_changed = False
        return rows

    @classmethod
    def restore(cls, rows: Mapping[str, bytes], means: SealingMeans) -> SealedSeat:
        """Return the seat of its stored rows."""
        value = json.loads(rows[SEAT])
        found = cls(value["group"], value["owner"], means)
        found._seated = _Seated(
            welcome=set(value["welcome"]),
            wanted=value["wanted"],
            proposed=value["proposed"],
            locked={one: rest for one, *rest in value["locked"]},
        )
        found._said = {
            name.removeprefix(SAID): row
            for name, row in rows.items()
            if name.startswith(SAID)
        }
        rest = {
            name: row
            for name, row in rows.items()
            if name != SEAT and not name.startswith(SAID)
        }
        if rest:
            found._member = SealedMember.restore(rest, means)
        found._is_changed = False
        return found
