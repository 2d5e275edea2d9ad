"""The peer's operations on a session: who may do what, and what follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from anp.interaction.elements import (
    CancelRequest,
    Extra,
    Message,
    Registration,
    SenderRole,
    Session,
    SessionState,
    SubscriptionWish,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    RefusedOperation,
    Send,
    SessionClose,
    SessionOpen,
    SessionUpdate,
    SubscribeCancel,
    SubscribeCreate,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
    check_session,
    party_ids,
)
from anp.interaction.record import SessionRecord
from anp.interaction.states import (
    UNREPORTED,
    TaskState,
    check_change,
    is_legal,
    is_started,
    is_terminal,
    outlook,
    steps,
)
from anp.interaction.step import RefusedSend, Step
from anp.interaction.stored import fingerprint

# The requester's wishes: news at an address, and subscriptions that a peer watches.


Wish = NotifyRegister | NotifyUnregister | SubscribeCreate | SubscribeCancel
"An operation that only the requester sends."


MAX_TRIES = 8
"Refusals with `unknown_task` after which an operation is refused for good."

NOT_YET = frozenset({InteractionFault.UNKNOWN_SESSION, InteractionFault.UNKNOWN_TASK})
"""Refusals that end with the arrival of an operation that was lost before, or with
another line: the peer may not know the session on each of its channels."""

LOST = "the peer knows nothing of it any more"
"Reason for which a task fails of which its peer forgot everything."


class Receiver(SessionRecord):
    """Takes the operations of peers."""

    def receive(
        self,
        operation: Operation,
        *,
        sender: str,
        ref: int,
        now: float,
        wall_now: datetime,
    ) -> Step:
        """Take an operation of a peer; its answer is the last one of `Step.sends`.

        A repeated operation changes nothing and is acknowledged again.

        Args:
            sender: Id of the party, as the channel proved it.
            ref: The peer's number of the operation.
            now: Monotonic seconds.

        Raises:
            InteractionError: It is refused and changed nothing; send `refusal`.
        """
        step = Step()
        if sender not in self.peers():
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the sender is not in this session"
            )
        task: Task | None = None
        match operation:
            case Acknowledgement() | RefusedOperation():
                self._answered(step, operation, sender, wall_now=wall_now)
                return step
            case SessionOpen() | SessionUpdate() | SessionClose():
                self._on_session(step, operation, sender, ref=ref, wall_now=wall_now)
            case TaskCreate(task=new):
                self._create(step, new, sender, ref=ref, wall_now=wall_now)
            case TaskUpdate():
                self._reported_by(
                    step, operation, sender, ref=ref, now=now, wall_now=wall_now
                )
            case TaskCancel(task=name):
                self._cancel(step, name, sender, ref=ref, wall_now=wall_now)
            case TaskGet(task=name):
                task = self.readable(name, sender)
            case MessageSend(message=message):
                self._message(
                    step, message, sender, ref=ref, now=now, wall_now=wall_now
                )
            case (
                NotifyRegister()
                | NotifyUnregister()
                | SubscribeCreate()
                | SubscribeCancel()
            ):
                self._on_wish(step, operation, sender, ref, wall_now)
        ack = Acknowledgement(session=self.session.id, ref=ref, task=task)
        step.sends.append(Send(to=sender, ref=0, operation=ack))
        return step

    def _on_session(
        self,
        step: Step,
        operation: SessionOpen | SessionUpdate | SessionClose,
        sender: str,
        *,
        ref: int,
        wall_now: datetime,
    ) -> None:
        self._check_requester(sender)
        match operation:
            case SessionOpen(session=session):
                self._repeated_open(session)
            case SessionUpdate(session=session):
                self._update(step, session, sender, ref=ref, wall_now=wall_now)
            case SessionClose():
                self._close(step, sender, ref=ref, wall_now=wall_now)

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, in monotonic seconds, or None."""
        return self._chunks.next_expiry()

    def handle_timer(self, *, now: float) -> list[str]:
        """Give up the messages whose chunks are incomplete for too long.

        Returns:
            Their ids. What came of them stays in the log.
        """
        return self._chunks.expire(now=now)

    # Answers

    def _answered(
        self,
        step: Step,
        answer: Acknowledgement | RefusedOperation,
        sender: str,
        *,
        wall_now: datetime,
    ) -> None:
        if isinstance(answer, RefusedOperation):
            self._refused(step, answer, sender=sender, wall_now=wall_now)
        else:
            self._acknowledged(step, sender, answer.ref)

    def _acknowledged(self, step: Step, peer: str, number: int) -> None:
        waiting = self._unacknowledged.get(peer, {})
        waiting.pop(number, None)
        self._tries.pop((peer, number), None)
        self._handed_back.pop(number, None)
        early = self._early.get(peer)
        if early and (first := next(iter(waiting), None)) in early:
            # It was refused since this one had not arrived.
            del self._early[peer]
            step.resend.append((peer, first))

    def _refused(
        self, step: Step, refusal: RefusedOperation, *, sender: str, wall_now: datetime
    ) -> None:
        waiting = self._unacknowledged.get(sender, {})
        number = refusal.ref
        if number not in waiting:
            return
        if refusal.code in NOT_YET and self._may_come(sender, number, refusal.code):
            if next(iter(waiting)) == number:
                step.resend.append((sender, number))
            else:
                self._early.setdefault(sender, set()).add(number)
            return
        name = waiting.pop(number)
        step.refused.append(
            RefusedSend(
                peer=sender,
                number=number,
                code=refusal.code,
                text=refusal.text,
                retry_after=refusal.retry_after,
            )
        )
        if number == self._opened.get(sender):
            self._closed_to(step, sender, refusal, wall_now=wall_now)
            return
        handed_back = self._handed_back.pop(number, None)
        if handed_back is not None and refusal.code == InteractionFault.STATE:
            # An older daemon takes no task back that was at work; this it understands.
            change = replace(handed_back, state=TaskState.FAILED, at=wall_now)
            self._add(step, change, by=self.own, wall_now=wall_now)
        task = self.tasks.get(name or "")
        if task is None or is_terminal(task.state):
            return
        if refusal.code in NOT_YET:
            self._lose(step, task, wall_now=wall_now)
        elif task.state == TaskState.REQUESTED and number in self._sent:
            self._hand_back(step, task, refusal, wall_now=wall_now)

    def _closed_to(
        self, step: Step, peer: str, refusal: RefusedOperation, *, wall_now: datetime
    ) -> None:
        """Hand back the tasks for a peer that does not take part in the session.

        A later task asks it again.
        """
        del self._opened[peer]
        self._unacknowledged.pop(peer, None)
        step.is_head_changed = True
        for task in self.unfinished:
            if task.executor == peer and task.state == TaskState.REQUESTED:
                self._hand_back(step, task, refusal, wall_now=wall_now)

    def _may_come(self, peer: str, number: int, code: str) -> bool:
        """Return whether a peer may yet know what an operation is about.

        An operation before it was lost, and both are sent again; or it has come by now,
        and this refusal is older. A session may be known on another line, and `lose`
        gives up one that is not.
        """
        if code == InteractionFault.UNKNOWN_SESSION:
            return True
        if next(iter(self._unacknowledged[peer])) < number:
            return True
        tries = self._tries.get((peer, number), 0) + 1
        self._tries[peer, number] = tries
        return tries < MAX_TRIES

    def _lose(self, step: Step, task: Task, *, wall_now: datetime) -> None:
        """End a task of which its other side knows nothing any more."""
        for state in steps(task.state, TaskState.FAILED):
            change = TaskChange(task=task.id, state=state, at=wall_now)
            if state == TaskState.FAILED:
                change = replace(
                    change,
                    code=InteractionFault.UNKNOWN_SESSION,
                    reason=LOST,
                    may_have_run=True,
                )
            self._add(step, change, by=task.executor, wall_now=wall_now)
        self._follow(step, wall_now=wall_now)

    def _hand_back(
        self, step: Step, task: Task, refusal: RefusedOperation, *, wall_now: datetime
    ) -> None:
        change = TaskChange(
            task=task.id,
            state=TaskState.REJECTED,
            code=refusal.code,
            reason=refusal.text,
            at=wall_now,
        )
        self._add(step, change, by=task.executor, wall_now=wall_now)
        self._follow(step, wall_now=wall_now)

    # Sessions

    def _repeated_open(self, session: Session) -> None:
        mine = self.session
        same_parties = party_ids(session) == party_ids(mine)
        if session.requester.id != mine.requester.id or not same_parties:
            raise InteractionError(
                InteractionFault.CONFLICT, "the session was opened otherwise"
            )

    def _update(
        self, step: Step, session: Session, sender: str, *, ref: int, wall_now: datetime
    ) -> None:
        self._check_open(wall_now)
        if ref <= self._session_ref:
            return
        if session.requester.id != self.session.requester.id or not (
            party_ids(self.session) <= party_ids(session)
        ):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED,
                "an update changes no requester and takes out no participant",
            )
        check_session(session, self._limits.max_participants)
        session = replace(session, created=self.session.created)
        self._add(step, session, by=sender, ref=ref, wall_now=wall_now)

    def _close(self, step: Step, sender: str, *, ref: int, wall_now: datetime) -> None:
        if self.session.state is SessionState.CLOSED:
            return
        closed = replace(self.session, state=SessionState.CLOSED)
        self._add(step, closed, by=sender, ref=ref, wall_now=wall_now)
        for task in self.unfinished:
            if task.executor == self.own:
                self._stop(step, task, wall_now=wall_now)

    # Tasks

    def _create(
        self, step: Step, task: Task, sender: str, *, ref: int, wall_now: datetime
    ) -> None:
        self._check_requester(sender)
        known = self.tasks.get(task.id)
        # Not every protocol tells when; the same task may come again over another one.
        mark = fingerprint(replace(task, changed_at=None))
        if known is not None:
            # After a restart only its capability tells whether it is the same.
            if self._created.get(task.id, mark) != mark or (
                known.executor,
                known.capability,
            ) != (task.executor or self.own, task.capability):
                raise InteractionError(
                    InteractionFault.CONFLICT, "the id of the task was used before"
                )
            return
        self._check_open(wall_now)
        if task.executor not in ("", self.own):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the task is for another executor"
            )
        if task.state != TaskState.REQUESTED:
            raise InteractionError(
                InteractionFault.STATE, f"a new task is {TaskState.REQUESTED}"
            )
        self._check_room()
        for message in task.messages:
            self._check_sender(message, sender)
            if message.task != task.id or message.chunk is not None:
                raise InteractionError(
                    InteractionFault.INVALID,
                    "messages in a new task are its own, and whole",
                )
        task = replace(
            task, requester=sender, executor=self.own, cancel_requested=False
        )
        self._created[task.id] = mark
        self._add(step, task, by=sender, ref=ref, wall_now=wall_now)
        step.offered.append(task)

    def _reported_by(
        self,
        step: Step,
        update: TaskUpdate,
        sender: str,
        *,
        ref: int,
        now: float,
        wall_now: datetime,
    ) -> None:
        content = update.content
        task = self._reported_task(content.task, sender)
        if sender != task.executor:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "only the executor reports on a task"
            )
        # All that can be refused is looked at before anything changes.
        is_old = ref <= self._refs.get(task.id, 0)
        is_same = isinstance(content, TaskChange) and content.state == task.state
        if not (is_old or is_same):
            self._check_report(task, content)
        if len({one.id for one in update.messages}) < len(update.messages) or any(
            one.chunk is not None for one in update.messages
        ):
            raise InteractionError(
                InteractionFault.INVALID, "a report has whole messages, each once"
            )
        fresh = [
            message
            for message in update.messages
            if not self._check_message(message, sender, wall_now)
        ]
        if task.id not in self.tasks:
            self._add(step, task, by=sender, wall_now=wall_now)
        for message in fresh:
            self._message(step, message, sender, ref=ref, now=now, wall_now=wall_now)
        if is_old or is_same:
            # Nothing is stored, but what was told before it comes too late now.
            self._refs[task.id] = max(ref, self._refs.get(task.id, 0))
            return
        # A state in between may have been lost, or is not told in a remote call.
        if isinstance(content, TaskChange):
            passed = steps(task.state, content.state)[:-1]
        else:
            is_at_work = task.state == TaskState.WORKING
            passed = () if is_at_work else steps(task.state, TaskState.WORKING)
        for state in passed:
            change = TaskChange(task=task.id, state=state, at=update.at)
            self._add(step, change, by=sender, wall_now=wall_now)
        if isinstance(content, TaskChange):
            content = replace(content, at=update.at)
        self._add(step, content, by=sender, ref=ref, wall_now=wall_now)
        self._follow(step, wall_now=wall_now)

    def _check_report(self, task: Task, content: TaskChange | TaskProgress) -> None:
        if isinstance(content, TaskChange):
            if not is_legal(content.state) or content.state in UNREPORTED:
                raise InteractionError(InteractionFault.INVALID, "no state of a task")
            way = (task.state, *steps(task.state, content.state))
            check_change(
                way[-2],
                way[-1],
                by_executor=True,
                cancel_requested=task.cancel_requested,
            )
        elif is_terminal(task.state):
            raise InteractionError(
                InteractionFault.STATE, f"a task that is {task.state} makes no progress"
            )

    def _cancel(
        self, step: Step, name: str, sender: str, *, ref: int, wall_now: datetime
    ) -> None:
        self._check_requester(sender)
        task = self.task(name)
        # When the request crosses the result, the result stands.
        if is_terminal(task.state) or task.cancel_requested:
            return
        self._add(step, CancelRequest(task=name), by=sender, ref=ref, wall_now=wall_now)
        self._stop(step, self.tasks[name], wall_now=wall_now)

    def _stop(self, step: Step, task: Task, *, wall_now: datetime) -> None:
        """End a task of ours that has not begun; ask for the end of one at work."""
        if is_started(task.state):
            step.stop.append(task.id)
            return
        change = TaskChange(task=task.id, state=TaskState.CANCELED, at=wall_now)
        self._add(step, change, by=self.own, wall_now=wall_now)

    def readable(self, name: str, sender: str) -> Task:
        """Return a task that a peer may read; InteractionError for any other."""
        task = self.task(name)
        if sender not in (task.requester, task.executor):
            raise InteractionError(InteractionFault.UNKNOWN_TASK, "no such task here")
        return task

    def _outlook(self, task: Task) -> bool | None:
        """Return whether a task may start; see `outlook`."""
        states = [self.task(name).state for name in task.depends_on]
        return outlook(states, task.needs, any_of=task.needs_any)

    def _follow(self, step: Step, *, wall_now: datetime) -> None:
        """Find the held tasks for which something has changed."""
        for task in self.unfinished:
            if task.state != TaskState.HELD or task.cancel_requested:
                continue
            may_start = self._outlook(task)
            if may_start:
                step.ready.append(task.id)
            elif may_start is False:
                change = TaskChange(
                    task=task.id,
                    state=TaskState.CANCELED,
                    code="dependency_failed",
                    reason="a task that it depends on ended otherwise",
                    at=wall_now,
                )
                self._add(step, change, by=self.own, wall_now=wall_now)
                # Others may depend on this one.
                self._follow(step, wall_now=wall_now)
                return

    # Messages

    def _message(
        self,
        step: Step,
        message: Message,
        sender: str,
        *,
        ref: int,
        now: float,
        wall_now: datetime,
    ) -> None:
        if self._check_message(message, sender, wall_now):
            return
        if message.chunk is None:
            step.whole.append(message)
        else:
            whole = self._chunks.add(message, now=now)
            step.whole += [] if whole is None else [whole]
        self._add(step, message, by=sender, ref=ref, wall_now=wall_now)

    def _check_message(self, message: Message, sender: str, wall_now: datetime) -> bool:
        """Return whether a message is a repeat; InteractionError if it is refused."""
        self._check_sender(message, sender)
        if self._is_repeat(message):
            return True
        if message.task:
            self._check_message_of_task(message, sender)
        else:
            self._check_open(wall_now)
        return False

    def _check_sender(self, message: Message, sender: str) -> None:
        if message.sender != sender or message.session != self.session.id:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the message is of another sender"
            )
        is_requester = message.role is SenderRole.REQUESTER
        if is_requester != (sender == self.session.requester.id):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the sender has another role here"
            )
        if message.final and is_requester:
            raise InteractionError(
                InteractionFault.INVALID, "only a service has final results"
            )

    def _check_message_of_task(self, message: Message, sender: str) -> None:
        task = self.task(message.task)
        if sender not in (task.requester, task.executor):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "the task is not the sender's"
            )
        # A result may come late, also after the state that it belongs to; a question
        # to a task that has ended helps nobody.
        if is_terminal(task.state) and sender == task.requester:
            raise InteractionError(
                InteractionFault.STATE, f"the task is {task.state} already"
            )

    # Commands

    def subscribe(
        self, name: str, subscription: Extra | None, *, wall_now: datetime
    ) -> Step:
        """Have the executor watch triggers and do a task, or end that with None.

        The tasks that it starts come with its first report on each.
        """
        self._check_requester(self.own)
        self._check_open(wall_now)
        step = Step()
        wish = SubscriptionWish(id=name, subscription=subscription)
        self._add(step, wish, by=self.own, wall_now=wall_now)
        return step

    def trigger(self, task: Task, *, wall_now: datetime) -> Step:
        """Begin a task of ours to do that a subscription of the requester's started.

        One that is there already is left as it is.
        """
        step = Step()
        if task.id in self.tasks:
            return step
        if task.id.rpartition("/")[0] not in self.subscriptions:
            raise InteractionError(
                InteractionFault.UNKNOWN_SUBSCRIPTION, "no such subscription here"
            )
        self._check_open(wall_now)
        self._check_room()
        self._add(step, task, by=self.own, wall_now=wall_now)
        step.offered.append(task)
        return step

    # What a peer says

    def _on_wish(
        self, step: Step, wish: Wish, sender: str, ref: int, wall_now: datetime
    ) -> None:
        self._check_requester(sender)
        match wish:
            case NotifyUnregister(task=task):
                news = Registration(task=task, address="")
                self._wish(step, news, sender, ref, wall_now)
            case NotifyRegister(task=task, address=address, expires=expires):
                news = Registration(task=task, address=address, expires=expires)
                self._wish(step, news, sender, ref, wall_now)
            case SubscribeCreate(id=name, subscription=subscription):
                if name not in self.subscriptions:
                    made = SubscriptionWish(id=name, subscription=dict(subscription))
                    self._add(step, made, by=sender, ref=ref, wall_now=wall_now)
            case SubscribeCancel(id=name):
                self._add(
                    step,
                    SubscriptionWish(id=name),
                    by=sender,
                    ref=ref,
                    wall_now=wall_now,
                )

    def _wish(
        self, step: Step, wish: Registration, by: str, ref: int, wall_now: datetime
    ) -> None:
        """Keep a wish of the requester's for news, unless it stands already."""
        if wish.task:
            self.task(wish.task)
        before = self.registered.get(
            wish.task, Registration(address="", task=wish.task)
        )
        if wish != before:
            self._add(step, wish, by=by, ref=ref, wall_now=wall_now)

    def _reported_task(self, name: str, sender: str) -> Task:
        """Return a task that is reported on; one of a subscription may be new."""
        subscription, _, number = name.rpartition("/")
        is_run = number.isdecimal() and subscription in self.subscriptions
        if name in self.tasks or not is_run or not self.is_requester:
            return self.task(name)
        self._check_room()
        return Task(
            id=name,
            session=self.session.id,
            requester=self.own,
            executor=sender,
            capability=self.subscriptions[subscription],
            trigger={"subscription": subscription, "run": int(number)},
        )

    # Checks

    def _check_requester(self, sender: str) -> None:
        if sender != self.session.requester.id:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "only the requester manages the session"
            )

    def _check_open(self, wall_now: datetime) -> None:
        if not self.is_open(wall_now):
            raise InteractionError(InteractionFault.CLOSED, "the session is closed")

    def _check_room(self) -> None:
        if len(self.tasks) >= self._limits.max_tasks:
            raise InteractionError(
                InteractionFault.TOO_MANY,
                f"a session has at most {self._limits.max_tasks} tasks",
            )
