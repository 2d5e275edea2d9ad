"""The requester's wishes: news at an address, and subscriptions that a peer watches."""

from __future__ import annotations

from datetime import datetime

from anp.interaction.elements import Extra, Registration, SubscriptionWish, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    NotifyRegister,
    NotifyUnregister,
    SubscribeCancel,
    SubscribeCreate,
)
from anp.interaction.record import SessionRecord
from anp.interaction.step import Step

Wish = NotifyRegister | NotifyUnregister | SubscribeCreate | SubscribeCancel
"An operation that only the requester sends."


class Wishes(SessionRecord):
    """Keeps what the requester wants besides single tasks."""

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
            self._task(wish.task)
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
            return self._task(name)
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
