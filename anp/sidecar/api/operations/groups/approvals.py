"""Invitations and applications of groups that wait for the owner's decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from anp.errors import UnknownError
from anp.sidecar.api.operations.groups.operations import done
from anp.sidecar.groups.service import GroupService
from anp.sidecar.groups.standing import KnownGroup

INVITATION: Final = "invitation-"
APPLICATION: Final = "application-"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupApproval:
    """An invitation of this agent, or an application to a group that it manages."""

    id: str
    kind: Literal["invitation", "application"]
    group: str
    "Id of the group."

    name: str
    "Name of the group."

    peer: str
    "DID of who invites, or applies."

    hub: str
    "DID of the daemon that distributes the group's messages."

    text: str
    "Words of the peer."

    stranger: bool
    "An invitation by a hub that the owner has not listed, so that only the owner may."

    sealed: bool
    expires: float | None
    "Seconds since 1970."


class GroupApprovals:
    """Finds what waits, and decides it."""

    def __init__(self, groups: GroupService) -> None:
        self._groups = groups

    @staticmethod
    def is_one(name: str) -> bool:
        """Tell whether an id is of an invitation or application."""
        return name.startswith((INVITATION, APPLICATION))

    def waiting(self) -> list[GroupApproval]:
        """Return everything that waits."""
        return [one for known in self._groups.all() for one in _of(known)]

    async def decide(self, name: str, *, accept: bool, note: str = "") -> None:
        """Carry out the owner's word.

        Raises:
            UnknownError: Nothing of this id waits.
        """
        found = next((one for one in self.waiting() if one.id == name), None)
        if found is None:
            raise UnknownError(f"no {name.partition('-')[0]} of this id waits")
        if found.kind == "application":
            ticket = name.removeprefix(APPLICATION)
            answer = self._groups.answer(found.group, ticket, approve=accept, text=note)
        elif accept:
            answer = self._groups.accept(found.group, is_owner=True)
        else:
            answer = self._groups.decline(found.group)
        await done(answer)


def _of(known: KnownGroup) -> list[GroupApproval]:
    group, about = known.group, known.invitation
    hub = known.own if about is None else about.hub
    found = [
        GroupApproval(
            id=f"{APPLICATION}{one.id}",
            kind="application",
            group=group.id,
            name=group.name,
            peer=one.did,
            hub=hub,
            text=one.text,
            stranger=False,
            sealed=group.sealed,
            expires=one.expires.timestamp(),
        )
        for one in known.tickets
        if one.applied
    ]
    if about is not None and known.state == "invited":
        found.append(
            GroupApproval(
                id=f"{INVITATION}{group.id}",
                kind="invitation",
                group=group.id,
                name=group.name,
                peer=about.invited_by or about.hub,
                hub=hub,
                text=about.text,
                stranger=about.stranger,
                sealed=group.sealed,
                expires=None if about.expires is None else about.expires.timestamp(),
            )
        )
    return found
