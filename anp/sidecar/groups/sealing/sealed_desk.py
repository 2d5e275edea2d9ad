"""The seat of a member in a sealed group, between its log and its hub.

Whoever has the log calls `learn` when something comes, `take` for each event in order,
and stores the rows of each together with the event.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from anp.interaction.elements import Message
from anp.interaction.groups.elements import Group
from anp.interaction.groups.member_copy import CopyEvent
from anp.interaction.groups.operations import GroupPost, Membership
from anp.interaction.sealing.encoding import DidSigner, SealingMeans
from anp.protocols.gbz.group_writer import write_distributed
from anp.protocols.gbz.sealed_message import keys_of, sealed_of
from anp.protocols.gbz.writer import written_message
from anp.sidecar.groups.checked_keys import CheckedKeys, named_keys
from anp.sidecar.groups.sealing.seat import SealedSeat, SeatStep
from anp.sidecar.groups.shelf import LOCKED, SEALED, event_bytes

logger = logging.getLogger(__name__)

KEYS: Final = "keys"
"Mark of entries, packages and grants, which say nothing to people."

REFUSED: Final = "forged"
"Mark of what was not sealed, or could not be opened."

MAX_ALARMS: Final = 100
"Newest alarms of a group that are kept."

ALARMS: Final = "alarms"
"Name of the row with the alarms, besides those of the seat."

# Words of the hub about a frame, which stay when its content is replaced.
_OF_HUB: Final = frozenset({"op", "groupId"})


@dataclass(frozen=True, slots=True)
class TakenEvent:
    """One event, as it is to be stored."""

    data: bytes
    "The frame, in clear if it could be opened."

    mark: str
    "Empty if nothing is to be said about it beyond other marks."


class SealedDesk:
    """Our part in one sealed group."""

    def __init__(self, seat: SealedSeat, keys: CheckedKeys, group: str) -> None:
        """Go on with a seat."""
        self._seat = seat
        self._keys = keys
        self._group = group
        self.alarms: deque[dict[str, Any]] = deque(maxlen=MAX_ALARMS)
        """Signs that hub or members do what they should not, each as JSON: `at` in
        seconds since 1970, and the fields of `SeatAlarm`."""

        self._has_news = False

    @classmethod
    def open(
        cls,
        group: Group,
        rows: Mapping[str, bytes],
        *,
        signer: DidSigner,
        keys: CheckedKeys,
    ) -> SealedDesk:
        """Return the desk of a group; without rows it begins."""
        keys.trust(signer)
        means = SealingMeans(signer, keys, os.urandom)
        rest = {name: row for name, row in rows.items() if name != ALARMS}
        if rest:
            seat = SealedSeat.restore(rest, means)
        else:
            seat = SealedSeat(group.id, group.owner, means)
        seat.admins = frozenset(group.admins)
        found = cls(seat, keys, group.id)
        found.alarms += json.loads(rows.get(ALARMS, b"[]"))
        return found

    @property
    def view(self) -> dict[str, Any]:
        """The sealed state for people, as JSON."""
        return {
            "epoch": self._seat.epoch,
            "members": {did: str(one) for did, one in self._seat.members.items()},
            "alarms": [*self.alarms],
        }

    def found(self) -> list[Message]:
        """Return what founds the group, to be said first of all."""
        return self._seat.found(wall_now=datetime.now(UTC)).send

    def welcome(self, did: str) -> None:
        """Note that we let an agent in."""
        self._seat.welcome(did)

    def compare(self, members: Iterable[str]) -> list[Message]:
        """Return what is to be said after the hub named the members; see the seat."""
        return self._seat.compare(set(members), wall_now=datetime.now(UTC)).send

    def seal(self, message: Message, *, max_message: int) -> list[Message]:
        """Return what is to be said for a message, in order; see `SealedSeat.say`."""
        return self._seat.say(message, max_message=max_message)

    def refused(self, message: Message) -> None:
        """Note that the hub refused something of ours for good."""
        self._seat.refused(message)

    def rows(self) -> dict[str, bytes | None]:
        """Return the rows that changed since the last time."""
        rows = self._seat.changed_rows()
        if self._has_news:
            rows[ALARMS] = json.dumps([*self.alarms]).encode("utf-8")
            self._has_news = False
        return rows

    async def learn(self, post: GroupPost) -> None:
        """Check the keys of DIDs that something names, before it is taken."""
        if isinstance(post.content, Message):
            items = keys_of(post.content)
            if items is not None:
                await self._keys.learn(named_keys(items))

    def take(self, event: CopyEvent) -> tuple[TakenEvent, SeatStep]:
        """Take an event at its place.

        Returns:
            How it is to be stored, and what follows. What is opened late is in the
            step alone, under the number of its event.
        """
        post, content = event.post, event.post.content
        now = datetime.now(UTC)
        if isinstance(content, Membership):
            step = self._seat.changed(content, by=post.by, wall_now=now)
            return self._taken(event, step, None, "")
        if not isinstance(content, Message):
            return self._taken(event, SeatStep(), None, REFUSED)
        step = self._seat.take(content, by=post.by, number=event.number, wall_now=now)
        found = dict(step.opened).get(event.number)
        if keys_of(content) is not None:
            mark = KEYS
        elif found is not None:
            mark = SEALED
        elif sealed_of(content) is not None and not step.alarms:
            mark = LOCKED
        else:
            mark = REFUSED
        return self._taken(event, step, found, mark)

    def opened_frame(self, event: CopyEvent, message: Message) -> bytes:
        """Return the frame of an event with the content that its sender sealed."""
        post = event.post
        kept = {name: one for name, one in post.frame.items() if name in _OF_HUB}
        return write_distributed(
            {**kept, **written_message(message)},
            number=event.number,
            epoch=post.epoch,
            at=post.at or datetime.now(UTC),
            by=post.by,
            replayed=post.replayed,
        )

    def _taken(
        self, event: CopyEvent, step: SeatStep, found: Message | None, mark: str
    ) -> tuple[TakenEvent, SeatStep]:
        for one in step.alarms:
            self.alarms.append(
                {
                    "at": datetime.now(UTC).timestamp(),
                    "code": str(one.code),
                    "by": one.by,
                    "text": one.text,
                }
            )
            self._has_news = True
            logger.warning(
                "sealed group suspect group=%s number=%d by=%s code=%s: %s",
                self._group,
                event.number,
                one.by,
                one.code,
                one.text,
            )
        if found is not None:
            return TakenEvent(self.opened_frame(event, found), mark), step
        return TakenEvent(event_bytes(event), mark), step
