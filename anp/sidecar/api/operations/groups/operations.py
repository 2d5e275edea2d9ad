"""Groups in the local API: made, joined, managed, spoken in and followed."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from anp.errors import BusyError, CallError, ConflictError, ErrorKind, UnknownError
from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.operations.groups.bodies import (
    ApplyBody,
    CreateBody,
    InviteBody,
    PostBody,
    RemoveBody,
    TicketBody,
)
from anp.sidecar.api.operations.groups.views import (
    GroupPage,
    GroupView,
    PostedMessage,
    event_of,
    group_view,
)
from anp.sidecar.api.operations.task_bodies import contents_of
from anp.sidecar.api.operations.tasks import LAST_EVENT_ID, after_of, check_room
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import EmptyBody
from anp.sidecar.api.table import LocalScope, get, post, scope_of
from anp.sidecar.daemon import Daemon
from anp.sidecar.groups.standing import KnownGroup

T = TypeVar("T")

_post_on_group = functools.partial(
    post, answer=GroupView, problems=(403, 404, 409), scope=LocalScope.AGENT
)
"Declares an operation that changes one group, and answers with the group."


@dataclass(frozen=True, slots=True)
class ForgottenGroup:
    """A group is deleted here; its members keep theirs."""

    id: str


class GroupOperations:
    """Operations on groups."""

    tag = "groups"

    def __init__(self, daemon: Daemon) -> None:
        self._groups = daemon.groups
        self._finder = daemon.finder

    @get("/v1/groups", GroupPage, scope=LocalScope.AGENT)
    async def list_groups(self, request: Request) -> GroupPage:
        """List the groups of this agent, invitations included."""
        return GroupPage([group_view(one) for one in self._groups.all()])

    @post(
        "/v1/groups",
        GroupView,
        body=CreateBody,
        problems=(400, 409, 429),
        scope=LocalScope.AGENT,
    )
    async def create_group(self, request: Request, body: CreateBody) -> GroupView:
        """Make a group, and invite peers into it."""
        for peer in body.invite:
            # A name that nobody has leaves no group behind.
            await self._finder.find(peer, trust_first_use=True)
        known = await done(
            self._groups.create(
                name=body.name,
                policy=body.policy.policy(),
                admins=body.admins,
                hub=body.hub or "",
                sealed=body.seal,
            )
        )
        for peer in body.invite:
            known = await done(self._groups.invite(known.group.id, peer))
        return group_view(known)

    @post(
        "/v1/groups/apply",
        GroupView,
        body=ApplyBody,
        problems=(400, 404, 409, 429),
        scope=LocalScope.AGENT,
    )
    async def apply_to_group(self, request: Request, body: ApplyBody) -> GroupView:
        """Ask to join a group of others."""
        return await self._view(
            self._groups.apply(body.hub, body.group, text=body.text)
        )

    @get("/v1/groups/{id}", GroupView, problems=(404,), scope=LocalScope.AGENT)
    async def get_group(self, request: Request) -> GroupView:
        """Give a group with its members, and what waits to be decided."""
        return group_view(self._groups.known(_id(request)))

    @get(
        "/v1/groups/{id}/events",
        EVENT_STREAM,
        problems=(404, 429),
        headers=LAST_EVENT_ID,
        scope=LocalScope.AGENT,
    )
    async def watch_group(self, request: Request) -> Response:
        """Stream the events of a group, those of before first."""
        name = _id(request)
        self._groups.known(name)
        check_room(request, self._groups.watchers)
        pages = self._groups.watch_pages(name, after=after_of(request), early=True)
        return event_stream([event_of(one) for one in page] async for page in pages)

    @post(
        "/v1/groups/{id}/messages",
        PostedMessage,
        body=PostBody,
        problems=(400, 404, 409, 429),
        scope=LocalScope.AGENT,
    )
    async def post_to_group(self, request: Request, body: PostBody) -> PostedMessage:
        """Say something to all other members of a group."""
        parts = contents_of(body)
        name, number = await done(
            self._groups.post(_id(request), parts, timeout=body.wait)
        )
        return PostedMessage(name, number)

    @_post_on_group(
        "/v1/groups/{id}/invite", body=InviteBody, problems=(400, 404, 409, 429)
    )
    async def invite_to_group(self, request: Request, body: InviteBody) -> GroupView:
        """Invite a peer into a group that this agent manages."""
        return await self._view(
            self._groups.invite(_id(request), body.peer, text=body.text)
        )

    @_post_on_group("/v1/groups/{id}/accept", body=EmptyBody)
    async def accept_group(self, request: Request, body: EmptyBody) -> GroupView:
        """Join a group that this agent is invited into; a stranger's: the owner."""
        is_owner = scope_of(request) is LocalScope.OWNER
        return await self._view(self._groups.accept(_id(request), is_owner=is_owner))

    @_post_on_group("/v1/groups/{id}/decline", body=EmptyBody, problems=(404, 409))
    async def decline_group(self, request: Request, body: EmptyBody) -> GroupView:
        """Refuse an invitation."""
        return await self._view(self._groups.decline(_id(request)))

    @_post_on_group("/v1/groups/{id}/approve", body=TicketBody)
    async def approve_applicant(self, request: Request, body: TicketBody) -> GroupView:
        """Let an applicant join a group that this agent manages."""
        return await self._view(
            self._groups.answer(_id(request), body.ticket, approve=True, text=body.text)
        )

    @_post_on_group("/v1/groups/{id}/deny", body=TicketBody)
    async def deny_applicant(self, request: Request, body: TicketBody) -> GroupView:
        """Refuse an applicant."""
        return await self._view(
            self._groups.answer(
                _id(request), body.ticket, approve=False, text=body.text
            )
        )

    @_post_on_group("/v1/groups/{id}/leave", body=EmptyBody, problems=(404, 409))
    async def leave_group(self, request: Request, body: EmptyBody) -> GroupView:
        """Leave a group; its owner closes it instead."""
        return await self._view(self._groups.leave(_id(request)))

    @_post_on_group("/v1/groups/{id}/remove", body=RemoveBody)
    async def remove_from_group(self, request: Request, body: RemoveBody) -> GroupView:
        """Remove a member of a group that this agent manages."""
        return await self._view(
            self._groups.remove(_id(request), body.member, text=body.text)
        )

    @_post_on_group("/v1/groups/{id}/close", body=EmptyBody)
    async def close_group(self, request: Request, body: EmptyBody) -> GroupView:
        """End a group that this agent manages."""
        return await self._view(self._groups.close_group(_id(request)))

    @post(
        "/v1/groups/{id}/delete",
        ForgottenGroup,
        body=EmptyBody,
        problems=(404, 409),
        scope=LocalScope.OWNER,
    )
    async def delete_group(self, request: Request, body: EmptyBody) -> ForgottenGroup:
        """Delete what is kept here of a group that this agent is not in any more."""
        await done(self._groups.forget(_id(request)))
        return ForgottenGroup(_id(request))

    async def _view(self, work: Awaitable[KnownGroup]) -> GroupView:
        return group_view(await done(work))


def _id(request: Request) -> str:
    return str(request.path_params["id"])


async def done(work: Awaitable[T]) -> T:
    """Return a result; what the group refuses becomes an error of the API's."""
    try:
        return await work
    except TimeoutError:
        raise CallError(ErrorKind.TIMEOUT, "the hub did not answer in time") from None
    except InteractionError as exc:
        raise _problem(exc) from None


def _problem(exc: InteractionError) -> CallError:
    match exc.code:
        case InteractionFault.UNKNOWN_GROUP | InteractionFault.UNKNOWN_TASK:
            return UnknownError(exc.text)
        case InteractionFault.NOT_ALLOWED:
            return CallError(ErrorKind.POLICY, exc.text)
        case InteractionFault.INVALID | InteractionFault.TOO_LARGE:
            return ApiError(400, exc.text)
        case InteractionFault.TOO_MANY:
            return BusyError(exc.text, retry_after=1)
    return ConflictError(exc.text)
