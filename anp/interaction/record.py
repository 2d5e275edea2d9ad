"""The state of a session on one side, made of its events; base of `Conversation`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from anp.errors import LocalError
from anp.interaction.chunks import ChunkAssembler, ChunkLimits
from anp.interaction.elements import (
    CancelRequest,
    EventContent,
    Message,
    Party,
    PartyMode,
    PushTarget,
    Registration,
    Session,
    SessionEvent,
    SessionHead,
    SessionState,
    SubscriptionWish,
    Task,
    TaskChange,
    TaskProgress,
    Unreadable,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    Send,
    SessionClose,
    SessionOpen,
    SessionUpdate,
    SubscribeCancel,
    SubscribeCreate,
    TaskCancel,
    TaskCreate,
    TaskUpdate,
)
from anp.interaction.states import TaskState, is_terminal
from anp.interaction.step import Step
from anp.interaction.stored import fingerprint

# Sets of numbers as runs: the first and the last number of each, in turn.


def runs_of(numbers: Iterable[int]) -> Iterable[int]:
    """Return the runs of some numbers: (3, 5, 9, 9) for 3, 4, 5 and 9."""
    first = before = None
    for number in sorted(numbers):
        if before is not None and number == before + 1:
            before = number
            continue
        if first is not None and before is not None:
            yield from (first, before)
        first = before = number
    if first is not None and before is not None:
        yield from (first, before)


def numbers_in(runs: tuple[int, ...]) -> Iterable[int]:
    """Return the numbers of some runs, in order."""
    for first, last in zip(runs[::2], runs[1::2], strict=True):
        yield from range(first, last + 1)


RECENT_EVENTS: Final = 8192
"Newest events of a session that `restore` needs, to know repeats of what they hold."

CALL_STYLE: Final = "call"
"""Value of `style` in a participant's `params`: it answers each task once, at its end.
With any other it reports as it works (GBZ-55)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionLimits:
    """Limits of one session."""

    max_tasks: int = 4096
    "Tasks in all; who needs more opens another session."

    max_participants: int = 64

    max_pushes: int = 10
    "Addresses that may be told of one task; so many that were told its end are kept."

    max_unacknowledged: int = 100_000
    "Events that one peer has not acknowledged; beyond it our own commands are refused."

    chunks: ChunkLimits = field(default_factory=ChunkLimits)


class SessionRecord:
    """The state of a session on one side, and the way in which events change it."""

    def __init__(
        self, session: Session, *, own: str, limits: InteractionLimits | None = None
    ) -> None:
        self.session = session
        self.own = own
        self.protocol = ""
        self.tasks: dict[str, Task] = {}
        "All tasks by id, without messages and inputs."

        self.last = 0
        "Number of the newest event."

        self.registered: dict[str, Registration] = {}
        "The requester's wishes for news, by task; empty for the whole session."

        self.pushes: dict[tuple[str, str], PushTarget] = {}
        "Addresses that are told of a task, by the task and their own ids."
        self.subscriptions: dict[str, str] = {}
        "Capabilities of the subscriptions that it carries, by their ids."

        self.threads: dict[str, str] = {}
        "Names by which agents of ours know the session; stored with the next event."

        self._unfinished: dict[str, None] = {}
        "Ids of the tasks that have not ended."

        self._limits = limits or InteractionLimits()
        self._chunks = ChunkAssembler(self._limits.chunks)
        self._opened: dict[str, int] = {}
        self._unacknowledged: dict[str, dict[int, str | None]] = {}
        "Numbers of events that each peer has not acknowledged, with their tasks."

        self._early: dict[str, set[int]] = {}
        "Those of them that were refused while the peer had not one before them."

        self._seen: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._created: dict[str, bytes] = {}
        self._refs: dict[str, int] = {}
        "Highest number of a report on each task; a lower one is old."

        self._tries: dict[tuple[str, int], int] = {}
        self._session_ref = 0
        self._sent: dict[int, str] = {}
        "Tasks by the number of the event that created them."

        self._handed_back: dict[int, TaskChange] = {}
        "Rejections of ours by the number of the event."

    @property
    def is_requester(self) -> bool:
        """True when the session is ours."""
        return self.own == self.session.requester.id

    @property
    def is_busy(self) -> bool:
        """True while a restart has something to do for the session."""
        waits = any(not one.done for one in self.pushes.values())
        return waits or bool(self._unfinished) or self.has_untold

    @property
    def has_untold(self) -> bool:
        """True while a peer has not acknowledged all that it is to know."""
        return any(self._unacknowledged.values())

    @property
    def unfinished(self) -> list[Task]:
        """The tasks that have not ended, in the order in which they came."""
        return [self.tasks[name] for name in self._unfinished]

    @property
    def weight(self) -> int:
        """Number of entries that the state has in memory."""
        waiting = sum(map(len, self._unacknowledged.values()))
        return len(self._seen) + len(self.tasks) + waiting

    @property
    def held(self) -> int:
        """Bytes of incomplete messages that are in memory."""
        return self._chunks.size

    @property
    def head(self) -> SessionHead:
        """The state besides the tasks, to be stored."""
        return SessionHead(
            own=self.own,
            session=self.session,
            last=self.last,
            opened=dict(self._opened),
            unacknowledged={
                peer: tuple(runs_of(numbers))
                for peer, numbers in self._unacknowledged.items()
                if numbers
            },
            registered=tuple(self.registered.values()),
            pushes=tuple(self.pushes.values()),
            subscriptions=dict(self.subscriptions),
            threads=dict(self.threads),
            protocol=self.protocol,
        )

    def is_open(self, wall_now: datetime) -> bool:
        """Return whether the session takes new tasks and messages."""
        expires = self.session.expires
        is_over = expires is not None and expires <= wall_now
        return self.session.state is SessionState.OPEN and not is_over

    def peers(self) -> list[str]:
        """Return the ids of all parties but our own."""
        parties = [self.session.requester, *self.session.participants]
        return list(dict.fromkeys(one.id for one in parties if one.id != self.own))

    def unacknowledged(
        self, peer: str, *, after: int = 0, limit: int | None = None
    ) -> list[int]:
        """Return the numbers of the events that a peer has still to acknowledge.

        After a new connection their operations are sent again, in this order; see
        `operation_of`.

        Args:
            after: Only those above this number.
            limit: Only so many of the first; None for all.
        """
        # They were entered in this order.
        waiting = self._unacknowledged.get(peer, {})
        return list(islice((one for one in waiting if one > after), limit))

    def count_unacknowledged(self, peer: str) -> int:
        """Return the number of the events that a peer has still to acknowledge."""
        return len(self._unacknowledged.get(peer, ()))

    def operation_of(self, event: SessionEvent, peer: str) -> Send:
        """Return the operation that tells a peer of an event of ours."""
        return Send(to=peer, ref=event.number, operation=self._operation(event, peer))

    def news_address(self, wall_now: datetime) -> str:
        """Return where the requester wants news of the session, or nothing."""
        for one in self.registered.values():
            if one.expires is None or one.expires > wall_now:
                return one.address
        return ""

    # For the classes above.

    @property
    def _readers(self) -> set[str]:
        parties = (self.session.requester, *self.session.participants)
        return {one.id for one in parties if one.reads_log}

    def _restore(
        self,
        head: SessionHead,
        tasks: Iterable[Task],
        events: Iterable[SessionEvent],
        *,
        now: float,
    ) -> None:
        self.last = head.last
        self.tasks = {task.id: task for task in tasks}
        self._unfinished = dict.fromkeys(
            name for name, task in self.tasks.items() if not is_terminal(task.state)
        )
        self._opened = dict(head.opened)
        self._unacknowledged = {
            peer: dict.fromkeys(numbers_in(runs))
            for peer, runs in head.unacknowledged.items()
        }
        self.registered = {one.task: one for one in head.registered}
        self.pushes = {(one.task, one.id): one for one in head.pushes}
        self.threads = dict(head.threads)
        self.subscriptions = dict(head.subscriptions)
        self.protocol = head.protocol
        for event in events:
            self._remember(event)
            for waiting in self._unacknowledged.values():
                if event.number in waiting:
                    waiting[event.number] = _task_of(event.content)
            message = event.content
            if event.by == self.own or not isinstance(message, Message):
                continue
            if message.chunk is not None:
                # Of a message whose beginning is longer ago there is no whole any more.
                with suppress(InteractionError):
                    self._chunks.add(message, now=now)

    def _add(
        self,
        step: Step,
        content: EventContent,
        *,
        by: str,
        wall_now: datetime,
        ref: int = 0,
    ) -> None:
        """Make an event, change the state by it, and tell the peers."""
        event = SessionEvent(
            number=self.last + 1, at=wall_now, by=by, content=content, ref=ref
        )
        self.last = event.number
        step.events.append(event)
        self._apply(step, event)
        self._remember(event)
        if by != self.own:
            return
        for peer in self._targets(content):
            if peer in self._readers:
                continue
            waiting = self._unacknowledged.setdefault(peer, {})
            waiting[event.number] = _task_of(content)
            if isinstance(content, Session):
                self._opened.setdefault(peer, event.number)
            step.sends.append(self.operation_of(event, peer))

    def _apply(self, step: Step, event: SessionEvent) -> None:
        match event.content:
            case Session() as session:
                self.session = session
                if session.state is SessionState.CLOSED:
                    for task in self.unfinished:
                        self._set(step, task, cancel_requested=True)
            case Task() as task:
                # The event has its content; memory stays flat.
                self.tasks[task.id] = task
                self._unfinished[task.id] = None
                self._set(step, task, messages=(), said=(), inputs=())
            case TaskChange() as change:
                self._set(
                    step,
                    self.tasks[change.task],
                    state=change.state,
                    changed_at=change.at or event.at,
                    code=change.code,
                    reason=change.reason,
                    may_have_run=change.may_have_run,
                )
            case CancelRequest(task=name):
                self._set(step, self.tasks[name], cancel_requested=True)
            case Registration() | SubscriptionWish() as wish:
                self._keep(wish)
            case TaskProgress() | Message() | Unreadable():
                pass

    def _keep(self, wish: Registration | SubscriptionWish) -> None:
        match wish:
            case Registration(address=""):
                self.registered.pop(wish.task, None)
            case Registration():
                self.registered[wish.task] = wish
            case SubscriptionWish(id=name, subscription=wanted) if wanted is not None:
                self.subscriptions[name] = _capability_of(wanted)

    def _set(self, step: Step, task: Task, **fields: object) -> None:
        if is_terminal(task.state):
            return
        changed = replace(task, **fields)  # type: ignore[arg-type]  # fields of all types
        self.tasks[task.id] = changed
        if is_terminal(changed.state):
            self._unfinished.pop(task.id, None)
        step.tasks[task.id] = None

    def _remember(self, event: SessionEvent) -> None:
        """Note what tells repeats of an event's content."""
        match event.content:
            case Message() as message:
                self._note(message)
            case Session():
                self._session_ref = max(event.ref, self._session_ref)
            case Task() as task:
                self._sent[event.number] = task.id
                for message in task.messages:
                    self._note(message)
            case TaskChange(state=TaskState.REJECTED) as change if event.by == self.own:
                self._handed_back[event.number] = change
            case TaskChange(task=name) | TaskProgress(task=name) if event.ref:
                self._refs[name] = max(event.ref, self._refs.get(name, 0))

    def _note(self, message: Message) -> None:
        self._seen[_place(message)] = fingerprint(message)
        while len(self._seen) > RECENT_EVENTS:
            self._seen.popitem(last=False)

    def _is_repeat(self, message: Message) -> bool:
        """Return whether a message came before; another one with its id is refused."""
        known = self._seen.get(_place(message))
        if known is None:
            return False
        if known != fingerprint(message):
            raise InteractionError(
                InteractionFault.CONFLICT, "the id of the message was used before"
            )
        return True

    def _style(self, executor: str) -> str:
        found = self._party(executor)
        style = None if found is None else found.params.get("style")
        return style if isinstance(style, str) else ""

    def _party(self, name: str) -> Party | None:
        for party in self.session.participants:
            if party.id == name and party.mode is PartyMode.P2P:
                return party
        return None

    def task(self, name: str) -> Task:
        """Return a task by its id on the wire.

        Raises:
            InteractionError: This session has no such task, or lost it with its
                deletion.
        """
        if name not in self.tasks:
            raise InteractionError(InteractionFault.UNKNOWN_TASK, "no such task here")
        return self.tasks[name]

    def _targets(self, content: EventContent) -> list[str]:
        """Return the peers that have to know of an event of ours."""
        match content:
            case Session() | Registration() | SubscriptionWish():
                return self.peers() if self.is_requester else []
            case Task(state=TaskState.HELD) | Unreadable():
                return []
            case Task(executor=executor):
                return [executor] if executor != self.own else []
            case Message(task=""):
                requester = self.session.requester.id
                return self.peers() if self.is_requester else [requester]
            case CancelRequest(task=name):
                return [self.tasks[name].executor]
            case Message(task=name):
                return self._other_side(name)
            case TaskChange(task=name, state=state):
                return self._reported(name, is_terminal(state))
            case TaskProgress(task=name):
                return self._reported(name, False)

    def _other_side(self, name: str) -> list[str]:
        task = self.tasks[name]
        if task.state == TaskState.HELD:
            return []
        return [task.requester if self.own == task.executor else task.executor]

    def _reported(self, name: str, is_end: bool) -> list[str]:
        task = self.tasks[name]
        if self.own != task.executor:
            # Only for ourselves: the executor was asked by `CancelRequest`, or knows
            # nothing of the task.
            return []
        return [task.requester] if is_end or not self._is_call(task) else []

    def _is_call(self, task: Task) -> bool:
        return self._style(task.executor) == CALL_STYLE

    def _operation(self, event: SessionEvent, peer: str) -> Operation:
        match event.content:
            case Session() as session:
                is_first = self._opened.get(peer) == event.number
                return _told_of(session, is_first=is_first)
            case Task() as task:
                return TaskCreate(task=task)
            case CancelRequest(task=name):
                return TaskCancel(session=self.session.id, task=name)
            case Message() as message:
                return MessageSend(message=message)
            case Registration() | SubscriptionWish() as wish:
                return _wished(self.session.id, wish)
            case TaskChange(at=at) as change:
                return TaskUpdate(session=self.session.id, content=change, at=at)
            case TaskProgress() as progress:
                return TaskUpdate(session=self.session.id, content=progress)
            case Unreadable():
                raise LocalError("nothing can be told of a damaged event")


def _task_of(content: EventContent) -> str | None:
    match content:
        case Task(id=name):
            return name
        case TaskChange() | TaskProgress() | CancelRequest() | Message():
            return content.task
        case _:
            return None


def _told_of(session: Session, *, is_first: bool) -> Operation:
    if is_first:
        return SessionOpen(session=session)
    if session.state is SessionState.CLOSED:
        return SessionClose(session=session.id)
    return SessionUpdate(session=session)


def _wished(session: str, wish: Registration | SubscriptionWish) -> Operation:
    match wish:
        case Registration(task=task, address=""):
            return NotifyUnregister(session=session, task=task)
        case Registration(task=task, address=address, expires=expires):
            return NotifyRegister(
                session=session, task=task, address=address, expires=expires
            )
        case SubscriptionWish(id=name, subscription=None):
            return SubscribeCancel(session=session, id=name)
        case SubscriptionWish(id=name, subscription=wanted):
            whole = {**(wanted or {}), "id": name, "sessionId": session}
            return SubscribeCreate(session=session, id=name, subscription=whole)


def _capability_of(subscription: Mapping[str, Any]) -> str:
    task = subscription.get("task")
    found = task.get("capability") if isinstance(task, Mapping) else None
    return found if isinstance(found, str) else ""


def _place(message: Message) -> tuple[str, int]:
    return message.id, -1 if message.chunk is None else message.chunk.index
