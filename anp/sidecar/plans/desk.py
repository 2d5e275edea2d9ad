"""Begins the plans of local programs, and ends them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from functools import partial

from anp.errors import CallError, ConflictError, ErrorKind, UnknownError
from anp.identity.dids import Identities, agent_name
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    Party,
    SenderRole,
    Session,
    Task,
)
from anp.interaction.errors import InteractionError
from anp.interaction.operations import TaskCancel, TaskCreate
from anp.interaction.plan import (
    MAX_HOPS,
    TaskPlan,
    is_plan,
    loop_problem,
    planner,
    visited_of,
)
from anp.interaction.states import is_terminal
from anp.sidecar.discovery.dispatcher import Dispatcher
from anp.sidecar.groups.service import GroupService
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.plans.worker import PeerAccess, PlanWorker
from anp.sidecar.tasks.chronicle import created
from anp.sidecar.tasks.known import KnownTask, Maker, receive
from anp.sidecar.tasks.service import TaskService
from sandbox.pool.shares import current_share


class PlanDesk:
    """Has this daemon do the tasks that are made of others."""

    def __init__(
        self,
        *,
        tasks: TaskService,
        dispatcher: Dispatcher,
        finder: PeerFinder,
        identities: Identities,
        groups: GroupService,
    ) -> None:
        """Take the parts that give tasks to peers."""
        self._tasks = tasks
        self._identities = identities
        canonical = identities.canonical
        own = identities.primary.did, canonical, agent_name(canonical)
        parts = PeerAccess(
            tasks=tasks,
            candidates=dispatcher.candidates,
            finder=finder,
            reach=dispatcher.reach,
            own=tuple(dict.fromkeys(own)),
            groups=groups,
        )
        tasks.desk.plan_worker = partial(PlanWorker, parts_of_daemon=parts)

    async def visited(self, parent: str) -> tuple[str, ...]:
        """Return the way of the task for whose sake a plan is begun.

        Args:
            parent: Our own id of it, or the key with which our agent was given it.

        Raises:
            UnknownError: There is no such task, or it has ended.
            CallError: It came through as many daemons as it may.
        """
        found = self._tasks.desk.task_with(parent)
        if found is None:
            known = await self._tasks.sessions.task(parent)
            if known is None or is_terminal(known.task.state):
                raise UnknownError(f"there is no task {parent[:80]} at work")
            task = await created(self._tasks.sessions, known.log, known.task.id)
            found = known.task if task is None else task
        visited = (
            TaskPlan.read(found)[0].visited if is_plan(found) else visited_of(found)
        )
        if len(visited) >= MAX_HOPS:
            problem = loop_problem((*visited, "here"), lambda did: False)
            raise CallError(ErrorKind.POLICY, problem)
        return visited

    async def start(
        self, plan: TaskPlan, contents: Sequence[Part], *, maker: Maker
    ) -> KnownTask:
        """Begin a plan; return its task as soon as that is stored.

        Args:
            contents: Those of all its parts, one after the other.

        Raises:
            CallError: It is too large, or there is no room for it.
        """
        requester, name = planner(maker), str(uuid.uuid4())
        session = Session(
            id=str(uuid.uuid4()),
            requester=Party(id=requester, reads_log=True),
            participants=(Party(id=self._identities.canonical),),
        )
        message = Message(
            id=str(uuid.uuid4()),
            session=session.id,
            task=name,
            sender=requester,
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=plan.request(contents),
        )
        task = Task(
            id=name,
            session=session.id,
            requester=requester,
            executor=self._identities.canonical,
            messages=(message,),
        )
        self._tasks.check_size(task)
        try:
            self._tasks.desk.check_room(current_share.get())
            # The session and its task are one write.
            log = await self._tasks.sessions.join(
                session,
                own=self._identities.canonical,
                sender=requester,
                ref=_ref(),
                first=receive(TaskCreate(task=task), sender=requester, ref=_ref()),
                maker=maker,
            )
        except InteractionError as exc:
            raise CallError(ErrorKind.USAGE, exc.text) from exc
        return await self._tasks.task(await self._tasks.sessions.item_of(log, name))

    async def cancel(self, known: KnownTask) -> None:
        """Ask for the end of a plan, and so of all its parts."""
        task = known.task
        operation = TaskCancel(session=task.session, task=task.id)
        try:
            await self._tasks.sessions.apply(
                known.log, receive(operation, sender=task.requester, ref=_ref())
            )
        except InteractionError as exc:
            raise ConflictError(exc.text) from exc


def _ref() -> int:
    """Return the number of an operation; it grows also from one run to the next."""
    return time.time_ns() // 1_000
