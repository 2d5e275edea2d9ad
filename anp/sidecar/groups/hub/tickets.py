"""News of tickets: agents are told until they acknowledge what became of theirs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

from anp.interaction.groups.hub_records import GroupTell
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import GroupAct, GroupPost, Membership
from anp.sidecar.groups.hub.branches import Branches
from anp.sidecar.groups.wires import GroupWires, next_ref
from anp.sidecar.tasks.delivery.line import Line


@dataclass(slots=True)
class _Untold:
    """Something about a ticket that its agent has not acknowledged."""

    tell: GroupTell
    ref: int = field(default_factory=next_ref)


class TicketNews:
    """Everything about tickets of one group that agents may not know."""

    def __init__(self, group: str, wires: GroupWires, branches: Branches) -> None:
        """Begin without news; `branches` are the sisters that serve members."""
        self._group = group
        self._wires = wires
        self._branches = branches
        self._untold: dict[tuple[str, str], _Untold] = {}

    def restore(self, machine: GroupMachine, own: Callable[[str], bool]) -> None:
        """Tell again after a restart what agents may not know.

        Args:
            own: Tells if a DID is one of this daemon's own, which sees the tickets.
        """
        tells: list[GroupTell] = []
        for one in machine.tickets:
            if not one.is_open(datetime.now(UTC)):
                continue
            if one.applied:
                tells += machine.tells_of(one)
                continue
            content = Membership(
                act=GroupAct.INVITE,
                ticket=one.id,
                by=one.by,
                group=machine.group,
                expires=one.expires,
                text=one.text,
            )
            tells.append(GroupTell(to=one.did, address=one.address, content=content))
        self._untold |= {
            (tell.to, tell.content.ticket): _Untold(tell)
            for tell in tells
            if not own(tell.to)
        }

    def tell(self, tell: GroupTell) -> None:
        """Tell an agent something, now and until it knows."""
        one = self._untold[tell.to, tell.content.ticket] = _Untold(tell)
        line = self._wires.find(tell.to)
        if line is not None:
            line.say(self._post(one), one.ref)
        if self._branches.serves(tell.to):
            self._branches.tell(tell.to, self._post(one), one.ref)
        else:
            self._wires.want(tell.to, tell.address)

    def waits_for(self, did: str) -> bool:
        """Return whether an agent has to be told something."""
        return any(name == did for name, _ in self._untold)

    def known(self, did: str, ticket: str) -> None:
        """Note that an agent knows of its ticket."""
        self._untold.pop((did, ticket), None)

    def joined(self, did: str) -> None:
        """Note that an agent knows of being a member."""
        self._untold = {
            key: one
            for key, one in self._untold.items()
            if key[0] != did or one.tell.content.act is not GroupAct.APPROVE
        }

    def drop(self, did: str) -> None:
        """Tell an agent nothing more."""
        for key in [one for one in self._untold if one[0] == did]:
            del self._untold[key]

    def opened(self, did: str, line: Line) -> None:
        """Tell an agent that is there again."""
        for (name, _), one in self._untold.items():
            if name == did:
                line.say(self._post(one), one.ref)

    def came(self, dids: Collection[str]) -> None:
        """Tell agents that are at a sister now."""
        for (did, _), one in self._untold.items():
            if did in dids:
                self._branches.tell(did, self._post(one), one.ref)

    def wake(self) -> None:
        """Dial those who have to be told something, after a restart."""
        for one in self._untold.values():
            self._wires.want(one.tell.to, one.tell.address)

    def _post(self, one: _Untold) -> GroupPost:
        return GroupPost(group=self._group, content=one.tell.content)
