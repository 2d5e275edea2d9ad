"""One session on one side: the machine of its tasks and messages.

Inputs are the commands of our own agent and the operations of peers; each returns a
`Step` with the events to store, what to send, and what else follows. The machine knows
no socket, file or clock. Its state is what `head` and `tasks` say; with the newest
events they bring it back after a restart.

    conversation, step = Conversation.begin(session, wall_now=now)
    step = conversation.create(task, wall_now=now)
    step = conversation.receive(operation, sender=peer, ref=4, now=0.0, wall_now=now)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Self

from anp.interaction.elements import (
    CancelRequest,
    Message,
    PushTarget,
    Registration,
    SenderRole,
    Session,
    SessionEvent,
    SessionHead,
    SessionState,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import Acknowledgement, Send, check_session
from anp.interaction.receiver import LOST, Receiver
from anp.interaction.record import InteractionLimits
from anp.interaction.states import (
    TaskState,
    check_change,
    is_pause,
    is_started,
    is_terminal,
    steps,
)
from anp.interaction.step import RefusedSend, Step

INTERRUPTED = "interrupted"
"Code of a task that was at work when the daemon ended."

NOT_CHOSEN = "not_chosen"
"Code of a pause in which the requester is asked what it wants; nothing has begun."


class Conversation(Receiver):
    """One session on one side; all methods but `begin`, `join` and `restore` need it.

    Commands raise `InteractionError` and change nothing when they are not allowed.
    """

    @classmethod
    def begin(
        cls,
        session: Session,
        *,
        wall_now: datetime,
        limits: InteractionLimits | None = None,
        protocol: str = "",
    ) -> tuple[Self, Step]:
        """Open a session of our own; its requester is who we are.

        Args:
            protocol: URI of the one that is to carry it; empty for the best.
        """
        limits = limits or InteractionLimits()
        check_session(session, limits.max_participants)
        session = replace(
            session, state=SessionState.OPEN, created=session.created or wall_now
        )
        made = cls(session, own=session.requester.id, limits=limits)
        made.protocol = protocol
        step = Step()
        made._add(step, session, by=made.own, wall_now=wall_now)
        return made, step

    @classmethod
    def join(
        cls,
        session: Session,
        *,
        own: str,
        sender: str,
        ref: int,
        wall_now: datetime,
        limits: InteractionLimits | None = None,
    ) -> tuple[Self, Step]:
        """Take a session that a peer opened, and that our policy lets in.

        Args:
            own: The id of ours that is among its participants.
            sender: Id of the peer, as the channel proved it.
            ref: The peer's number of the operation.

        Raises:
            InteractionError: It is refused; send `refusal`.
        """
        limits = limits or InteractionLimits()
        check_session(session, limits.max_participants)
        if session.requester.id != sender:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the sender is not the requester"
            )
        if own not in {party.id for party in session.participants}:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "this agent does not take part"
            )
        session = replace(session, state=SessionState.OPEN, created=wall_now)
        made = cls(session, own=own, limits=limits)
        made._check_open(wall_now)
        step = Step()
        made._add(step, session, by=sender, ref=ref, wall_now=wall_now)
        ack = Acknowledgement(session=session.id, ref=ref)
        step.sends.append(Send(to=sender, ref=0, operation=ack))
        return made, step

    @classmethod
    def restore(
        cls,
        head: SessionHead,
        tasks: Iterable[Task],
        events: Iterable[SessionEvent],
        *,
        now: float,
        limits: InteractionLimits | None = None,
    ) -> Self:
        """Bring a session back from what is stored.

        Args:
            tasks: All its tasks.
            events: Its newest `RECENT_EVENTS`, in order.
            now: Monotonic seconds.
        """
        made = cls(head.session, own=head.own, limits=limits)
        made._restore(head, tasks, events, now=now)
        return made

    # Commands of a requester

    def update(self, session: Session, *, wall_now: datetime) -> Step:
        """Add participants, or change expiry and context."""
        self._check_requester(self.own)
        self._check_open(wall_now)
        check_session(session, self._limits.max_participants)
        kept = {(one.id, one.mode) for one in self.session.participants}
        given = {(one.id, one.mode) for one in session.participants}
        if session.id != self.session.id or not kept <= given:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "an update takes out no participant"
            )
        step = Step()
        session = replace(session, created=self.session.created)
        self._add(step, session, by=self.own, wall_now=wall_now)
        return step

    def close(self, *, wall_now: datetime) -> Step:
        """End the session; every open task is asked to end, and reports how it did."""
        self._check_requester(self.own)
        step = Step()
        if self.session.state is SessionState.CLOSED:
            return step
        closed = replace(self.session, state=SessionState.CLOSED)
        self._add(step, closed, by=self.own, wall_now=wall_now)
        for task in self.unfinished:
            if task.state == TaskState.HELD:
                self._end_here(step, task, "", "", wall_now=wall_now)
        return step

    def create(self, task: Task, *, wall_now: datetime) -> Step:
        """Make a task; one that depends on others is held until these have ended."""
        self._check_requester(self.own)
        self._check_open(wall_now)
        self._check_room()
        if task.id in self.tasks:
            raise InteractionError(
                InteractionFault.CONFLICT, "the id of the task was used before"
            )
        if task.session != self.session.id or self._party(task.executor) is None:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the executor is not in this session"
            )
        self._check_unacknowledged(task.executor)
        if self._outlook(task) is False:
            raise InteractionError(
                InteractionFault.STATE, "a task that it depends on ended otherwise"
            )
        step = Step()
        self._open_again(step, task.executor, wall_now=wall_now)
        task = replace(
            task,
            requester=self.own,
            state=TaskState.HELD if task.depends_on else TaskState.REQUESTED,
            changed_at=wall_now,
        )
        self._add(step, task, by=self.own, wall_now=wall_now)
        self._follow(step, wall_now=wall_now)
        return step

    def release(
        self,
        task: Task,
        *,
        inputs: tuple[Message, ...] | tuple[Task, ...],
        wall_now: datetime,
    ) -> Step:
        """Send a held task with the results of those that it depends on.

        Args:
            task: The task as it was given to `create`, messages included.
        """
        known = self.task(task.id)
        if known.state != TaskState.HELD or not self._outlook(known):
            raise InteractionError(InteractionFault.STATE, "the task is not ready")
        step = Step()
        task = replace(
            task,
            requester=self.own,
            executor=known.executor,
            depends_on=known.depends_on,
            needs=known.needs,
            needs_any=known.needs_any,
            inputs=inputs,
            state=TaskState.REQUESTED,
            changed_at=wall_now,
        )
        self._open_again(step, task.executor, wall_now=wall_now)
        self._add(step, task, by=self.own, wall_now=wall_now)
        return step

    def _open_again(self, step: Step, peer: str, *, wall_now: datetime) -> None:
        """Open the session anew for a peer that refused it or knows it no more."""
        is_told = peer in self.peers() and peer not in self._readers
        if is_told and peer not in self._opened:
            self._add(step, self.session, by=self.own, wall_now=wall_now)

    def cancel(self, name: str, *, wall_now: datetime) -> Step:
        """Ask for the end of a task; how it ends is the executor's report."""
        self._check_requester(self.own)
        task = self.task(name)
        step = Step()
        if is_terminal(task.state) or task.cancel_requested:
            return step
        if task.state == TaskState.HELD:
            self._end_here(step, task, "", "", wall_now=wall_now)
            self._follow(step, wall_now=wall_now)
            return step
        self._add(step, CancelRequest(task=name), by=self.own, wall_now=wall_now)
        return step

    def give_up(self, name: str, *, reason: str, wall_now: datetime) -> Step:
        """End a task of ours although its executor said nothing, as after a deadline.

        It is canceled here and asked to end there; later reports are refused.
        """
        step = self.cancel(name, wall_now=wall_now)
        task = self.tasks[name]
        if not is_terminal(task.state):
            self._end_here(step, task, "no_answer", reason, wall_now=wall_now)
            self._follow(step, wall_now=wall_now)
        return step

    def _end_here(
        self, step: Step, task: Task, code: str, reason: str, *, wall_now: datetime
    ) -> None:
        change = TaskChange(
            task=task.id,
            state=TaskState.CANCELED,
            code=code,
            reason=reason,
            may_have_run=task.state != TaskState.HELD and bool(code),
            at=wall_now,
        )
        self._add(step, change, by=self.own, wall_now=wall_now)

    def register(
        self,
        address: str,
        *,
        task: str = "",
        expires: datetime | None = None,
        wall_now: datetime,
    ) -> Step:
        """Have news brought over connections that the services make (GBZ-58).

        Args:
            address: URL of our own daemon; empty takes the wish back.
            task: The only task that is meant; empty means all of the session.
        """
        self._check_requester(self.own)
        step = Step()
        wish = Registration(address=address, task=task, expires=expires)
        self._wish(step, wish, self.own, 0, wall_now)
        return step

    # Addresses that a local caller wants told

    def push(self, target: PushTarget) -> Step:
        """Keep an address; one of the same task and id is replaced by it."""
        task = self.task(target.task)
        key = target.task, target.id
        others = sum(
            one.task == target.task and not one.done for one in self.pushes.values()
        )
        if key not in self.pushes and others >= self._limits.max_pushes:
            raise InteractionError(
                InteractionFault.TOO_MANY, "the task has too many addresses to tell"
            )
        self.pushes[key] = replace(
            target, done=is_terminal(task.state) and target.told >= self.last
        )
        return Step(is_head_changed=True)

    def pushed(self, task: str, name: str, *, told: int, done: bool) -> Step:
        """Take note of how far an address is told; one taken back stays away."""
        known = self.pushes.get((task, name))
        if known is None:
            return Step()
        self.pushes[task, name] = replace(known, told=told, done=done)
        if done:
            # Each step stores the head, so it does not grow with every task.
            ended = [key for key, one in self.pushes.items() if one.done]
            for key in ended[: -self._limits.max_pushes]:
                del self.pushes[key]
        return Step(is_head_changed=True)

    def stop_push(self, task: str, name: str) -> Step:
        """Take an address back."""
        if self.pushes.pop((task, name), None) is None:
            return Step()
        return Step(is_head_changed=True)

    # Commands of both sides

    def post(self, message: Message, *, wall_now: datetime) -> Step:
        """Send a message of ours, or a chunk of it."""
        message = replace(
            message,
            sender=self.own,
            session=self.session.id,
            role=SenderRole.REQUESTER if self.is_requester else SenderRole.SERVICE,
        )
        step = Step()
        if self._check_message(message, self.own, wall_now):
            return step
        if message.task and self.tasks[message.task].state == TaskState.HELD:
            raise InteractionError(
                InteractionFault.STATE, "the executor does not know the task yet"
            )
        for peer in self._targets(message):
            self._check_unacknowledged(peer)
        self._add(step, message, by=self.own, wall_now=wall_now)
        return step

    def lose(self, peer: str, *, wall_now: datetime) -> Step:
        """End everything between us and a peer that does not know the session any more.

        Its tasks of ours and our tasks of its, as far as they have not ended, fail and
        may have run; it is told nothing more.
        """
        step = Step()
        for task in self.unfinished:
            is_between = peer in (task.requester, task.executor)
            if is_between and task.state != TaskState.HELD:
                self._lose(step, task, wall_now=wall_now)
        waiting = self._unacknowledged.pop(peer, {})
        self._early.pop(peer, None)
        self._opened.pop(peer, None)
        step.sends = [one for one in step.sends if one.to != peer]
        step.is_head_changed = True
        step.refused.append(
            RefusedSend(
                peer=peer,
                number=next(iter(waiting), self.last),
                code=InteractionFault.UNKNOWN_SESSION,
                text=LOST,
            )
        )
        return step

    def _check_unacknowledged(self, peer: str) -> None:
        most = self._limits.max_unacknowledged
        if len(self._unacknowledged.get(peer, ())) >= most:
            raise InteractionError(
                InteractionFault.TOO_MANY, "the peer has too much to acknowledge"
            )

    # Commands of an executor

    def report(
        self,
        name: str,
        state: str,
        *,
        code: str = "",
        reason: str = "",
        may_have_run: bool = False,
        wall_now: datetime,
    ) -> Step:
        """Set the state of a task that is ours to do; steps in between are inserted.

        `working` is stored before the agent is asked to start, so that it is asked
        once: see `recover`.
        """
        task = self._own_task(name)
        step = Step()
        if state == task.state:
            return step
        if is_pause(state) and self._is_call(task):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "nobody answers questions in a call"
            )
        way = steps(task.state, state)
        check_change(
            task.state if len(way) == 1 else way[-2],
            state,
            by_executor=True,
            cancel_requested=task.cancel_requested,
        )
        for one in way:
            change = TaskChange(task=name, state=one, at=wall_now)
            if one == state:
                change = replace(
                    change, code=code, reason=reason, may_have_run=may_have_run
                )
            self._add(step, change, by=self.own, wall_now=wall_now)
        return step

    def give(self, message: Message, *, wall_now: datetime) -> Step:
        """Post the last of a task's results and complete it, in one step."""
        task = self._own_task(message.task)
        # Judged before anything changes.
        steps(task.state, TaskState.COMPLETED)
        step = self.post(message, wall_now=wall_now)
        step.add(self.report(task.id, TaskState.COMPLETED, wall_now=wall_now))
        return step

    def progress(self, progress: TaskProgress, *, wall_now: datetime) -> Step:
        """Tell how far a task at work is; one that waits for its requester is not."""
        task = self._own_task(progress.task)
        if task.state != TaskState.WORKING:
            raise InteractionError(
                InteractionFault.STATE, f"a task that is {task.state} makes no progress"
            )
        step = Step()
        self._add(step, progress, by=self.own, wall_now=wall_now)
        return step

    def recover(
        self,
        *,
        may_repeat: Callable[[Task], bool],
        elsewhere: Collection[str] = (),
        wall_now: datetime,
    ) -> Step:
        """Decide after a restart about the tasks that are ours to do.

        Accepted ones were never started, so `Step.start` has them. One that was at work
        is failed, since its work may have been done, unless `may_repeat` says that a
        second start does no more than the first. One that waits for words about what it
        is to do (`NOT_CHOSEN`) was never started either.

        Args:
            may_repeat: See above.
            elsewhere: Ids of tasks on which another daemon of ours works.
        """
        step = Step()
        for task in self.unfinished:
            if task.executor != self.own or task.id in elsewhere:
                continue
            if task.state == TaskState.REQUESTED:
                step.offered.append(task)
            elif (
                not is_started(task.state)
                or task.code == NOT_CHOSEN
                or may_repeat(task)
            ):
                step.start.append(task.id)
            else:
                change = TaskChange(
                    task=task.id,
                    state=TaskState.FAILED,
                    code=INTERRUPTED,
                    reason="the daemon ended while the task was at work",
                    may_have_run=True,
                    at=wall_now,
                )
                self._add(step, change, by=self.own, wall_now=wall_now)
        self._follow(step, wall_now=wall_now)
        return step

    def _own_task(self, name: str) -> Task:
        task = self.task(name)
        if task.executor != self.own:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "another agent executes this task"
            )
        return task


def start_key(session: Session, task: Task) -> str:
    """Return the key by which an agent can drop a repeated start: 64 hex characters."""
    name = "\0".join((session.requester.id, session.id, task.id))
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
