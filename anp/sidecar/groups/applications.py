"""Applications to a group of another daemon's hub, which an admin here may decide."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from anp.interaction.groups.hub_records import Ticket
from anp.interaction.groups.operations import GroupAct, Membership

__all__ = ["Applications"]

MAX_KNOWN: Final = 256
"Applications of one group that are known here; a hub has no more that wait."


class Applications:
    """The applications that the hub told us of, since we manage the group."""

    def __init__(self, known: Iterable[Ticket]) -> None:
        """Go on with those that were stored."""
        self._known = {one.id: one for one in known}

    @property
    def waiting(self) -> tuple[Ticket, ...]:
        """Those that nobody has decided, and that count still."""
        now = datetime.now(UTC)
        return tuple(one for one in self._known.values() if one.is_open(now))

    def find(self, ticket: str) -> Ticket | None:
        """Return an application by the id of its ticket, or None."""
        return self._known.get(ticket)

    def take(self, told: Membership) -> None:
        """Note a new application, or that one is decided or taken back."""
        if told.act is not GroupAct.APPLY:
            self._known.pop(told.ticket, None)
            return
        self._known = {one.id: one for one in self.waiting}
        if told.member is not None and len(self._known) < MAX_KNOWN:
            self._known[told.ticket] = Ticket(
                id=told.ticket,
                did=told.member.id,
                applied=True,
                expires=told.expires or datetime.now(UTC),
                address=told.member.address,
                text=told.text,
            )
