"""The way in which we take part in a group of another daemon's hub, as it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group
from anp.interaction.groups.hub_records import Ticket
from anp.interaction.groups.member_copy import GroupCopy
from anp.interaction.groups.member_state import MemberState, StoredMember, why_no_member
from anp.interaction.groups.operations import GroupAct, Membership
from anp.sidecar.groups.log import GroupLog

MAX_KNOWN: Final = 256
"Applications of one group that are known here; a hub has no more that wait."

MAX_AT_WORK: Final = 256
"Offers of a group at which an agent is; above it the oldest are not reported again."


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


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group as this daemon's agent sees it."""

    group: Group
    own: str
    "The DID under which the agent takes part."

    is_hub: bool
    "This daemon distributes its messages."

    state: MemberState
    last: int
    "Number of the newest event that is here."

    tickets: tuple[Ticket, ...] = ()
    "Open invitations and applications, for who may see them."

    invitation: StoredMember | None = None
    "About how we became, or may become, a member elsewhere."

    preset: tuple[str, ...] | None = None
    "DIDs that a `[[group]]` of our settings names as members, if it has one."

    preset_problems: tuple[str, ...] = ()
    "Parts of that `[[group]]` that are not in effect, with their reasons."

    sealing: dict[str, Any] | None = None
    "Members and alarms of a sealed group; see `SealedDesk.view`."


class MemberStanding:
    """The stored rows of a group besides its events, with our part in it."""

    log: GroupLog

    def __init__(
        self,
        head: StoredMember,
        *,
        last: int,
        is_own: Callable[[str], bool],
        changed: Callable[[], None],
    ) -> None:
        """Go on with a group; see `GroupMember`."""
        self.head = head
        self._copy = GroupCopy(head.group, last=last)
        self._is_own = is_own
        self._told = changed
        self.applications = Applications(head.applications)

    @property
    def group(self) -> Group:
        """The group, as far as we know."""
        return self._copy.group

    @property
    def own(self) -> str:
        """The DID under which the group knows us."""
        members = self.group.members
        return next((one.id for one in members if self._is_own(one.id)), self.head.own)

    @property
    def state(self) -> MemberState:
        """The way in which we take part."""
        return self.head.state

    def check_state(self) -> None:
        """Check that we are a member; InteractionError with the reason if not."""
        why = why_no_member(self.state)
        if why is not None:
            raise InteractionError(InteractionFault.NOT_ALLOWED, why)

    async def note_application(self, told: Membership) -> None:
        """Take what the hub tells an admin of an application, and store it."""
        self.applications.take(told)
        await self._store_head()

    async def put_preset(self, members: tuple[str, ...]) -> None:
        """Note whom our settings name as members."""
        self.head = replace(self.head, preset=members)
        await self._store_head()

    async def note_at_work(self, task: str, *, is_begun: bool) -> None:
        """Note that we are about to accept an offer, or that our work on it ended."""
        others = tuple(one for one in self.head.at_work if one != task)
        at_work = (*others, task) if is_begun else others
        self.head = replace(self.head, at_work=at_work[-MAX_AT_WORK:])
        await self._store_head()

    async def tell(self, head: StoredMember) -> None:
        """Take what the hub tells us of our invitation or application."""
        self.head = replace(head, queued=self.head.queued)
        self._copy.group = head.group
        await self._store_head()
        self._told()

    async def _store_head(self) -> None:
        self.log.put((), head=True)
        await self.log.durable()
