"""A member's copy of a group: its events in the order of their numbers, each once.

The machine takes what the hub distributes, and answers about what the member said
itself; it returns what is new and in order. Gaps are held open until they are filled.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupState, Member
from anp.interaction.groups.operations import GroupAct, GroupPost, Membership

MAX_HELD: Final = 4096
"Events that wait for one before them; above it the hub sends again what came too soon."

RECENT: Final = 4096
"Messages of a member by whose ids a hub that repeats one is found out."


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyEvent:
    """One event of a group as a member has it."""

    number: int
    post: GroupPost
    "The operation, with the words of the hub."

    repeated: bool = False
    "Its sender said this before: the hub, or who has its key, repeats it."


class GroupCopy:
    """One group as one of its members knows it."""

    def __init__(self, group: Group, *, last: int = 0) -> None:
        """Begin, or go on after a number.

        Args:
            last: Number up to which everything is stored.
        """
        self.group = group
        self.last = last
        self._held: dict[int, GroupPost] = {}
        self._said: OrderedDict[tuple[str, str, int], None] = OrderedDict()

    @property
    def has_gap(self) -> bool:
        """True while events are held that wait for others."""
        return bool(self._held)

    def fetched(self, group: Group, after: int) -> Sequence[CopyEvent]:
        """Take the answer to `fetch`: the group, and where events go on."""
        if after > self.last:
            # The policy gives no more of the time before.
            self.last = after
        self.group = group
        return self._ready()

    def deliver(self, posts: Iterable[GroupPost]) -> Sequence[CopyEvent]:
        """Take events; return those that are new and in order.

        Raises:
            InteractionError: Too many wait for one that is missing.
        """
        for post in posts:
            if post.number > self.last:
                if len(self._held) >= MAX_HELD:
                    raise InteractionError(
                        InteractionFault.TOO_MANY, "too many events wait for another"
                    )
                self._held.setdefault(post.number, post)
        return self._ready()

    def _ready(self) -> Sequence[CopyEvent]:
        found: list[CopyEvent] = []
        while (post := self._held.pop(self.last + 1, None)) is not None:
            self.last += 1
            if isinstance(post.content, Membership):
                self._apply(post, post.content)
            found.append(
                CopyEvent(number=self.last, post=post, repeated=self._is_repeated(post))
            )
        for number in [one for one in self._held if one <= self.last]:
            del self._held[number]
        return found

    def _apply(self, post: GroupPost, change: Membership) -> None:
        # What the hub told since, in answer to a fetch, is newer.
        if post.number <= self.group.last:
            return
        members = self.group.members
        name = post.by if change.member is None else change.member.id
        match change.act:
            case GroupAct.ACCEPT | GroupAct.APPROVE:
                address = "" if change.member is None else change.member.address
                joined = Member(id=name, address=address, since=post.number)
                members = (*(one for one in members if one.id != name), joined)
            case GroupAct.LEAVE | GroupAct.REMOVE:
                members = tuple(one for one in members if one.id != name)
            case GroupAct.CLOSE:
                self.group = replace(self.group, state=GroupState.CLOSED)
        self.group = replace(
            self.group, members=members, epoch=post.epoch, last=post.number
        )

    def _is_repeated(self, post: GroupPost) -> bool:
        content = post.content
        name = getattr(content, "id", "")
        chunk = getattr(content, "chunk", None)
        if isinstance(content, Membership) or not name:
            return False
        place = post.by, str(name), -1 if chunk is None else chunk.index
        if place in self._said:
            return True
        self._said[place] = None
        if len(self._said) > RECENT:
            self._said.popitem(last=False)
        return False
