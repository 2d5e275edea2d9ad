"""Offers to a group: tasks without an executor, of which the first to accept is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from anp.interaction.elements import Task, TaskProgress
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import TaskCancel, TaskUpdate
from anp.interaction.states import TaskState, check_change, is_terminal

MAX_OFFERS: Final = 1000
"Offers of a group that have not ended."

MAX_ENDED: Final = 100
"Ended ones that are kept, so that who comes late is told so."


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A task that is offered to a group."""

    id: str
    maker: str
    executor: str = ""
    "Empty until a member accepts it."

    state: str = TaskState.REQUESTED

    cancel_requested: bool = False
    "Its maker has asked for its end; the executor's first final state counts."


class GroupOffers:
    """The offers of one group."""

    def __init__(self, offers: Iterable[Offer] = ()) -> None:
        self._offers = {one.id: one for one in offers}

    @property
    def all(self) -> tuple[Offer, ...]:
        """All that are kept, ended ones too."""
        return tuple(self._offers.values())

    def find(self, name: str) -> Offer | None:
        """Return an offer, or None."""
        return self._offers.get(name)

    def take(self, content: Task | TaskUpdate | TaskCancel, sender: str) -> None:
        """Make, report or cancel one; InteractionError if that is out of turn."""
        match content:
            case Task():
                self._make(content, sender)
            case TaskUpdate(content=told):
                if isinstance(told, TaskProgress):
                    self._check_executor(self._known(told.task), sender)
                    return
                self._report(self._known(told.task), told.state, sender)
            case TaskCancel(task=name):
                self._cancel(self._known(name), sender)

    def _make(self, task: Task, sender: str) -> None:
        if task.id in self._offers:
            raise InteractionError(
                InteractionFault.CONFLICT, "the id of the task was used before"
            )
        if task.state != TaskState.REQUESTED:
            raise InteractionError(
                InteractionFault.INVALID, "an offer has the state x-requested"
            )
        ended = [one for one in self._offers.values() if is_terminal(one.state)]
        for one in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._offers[one.id]
        if len(self._offers) - len(ended) >= MAX_OFFERS:
            raise InteractionError(
                InteractionFault.TOO_MANY, "too many offers are open in this group"
            )
        self._offers[task.id] = Offer(id=task.id, maker=sender)

    def _report(self, offer: Offer, state: str, sender: str) -> None:
        if not offer.executor and not is_terminal(offer.state):
            if sender == offer.maker:
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "the offer is for the other members"
                )
            if state not in (TaskState.ACCEPTED, TaskState.WORKING):
                raise InteractionError(
                    InteractionFault.STATE, "an offer is accepted first"
                )
        else:
            self._check_executor(offer, sender)
        check_change(
            offer.state,
            state,
            by_executor=True,
            cancel_requested=offer.cancel_requested,
        )
        self._offers[offer.id] = replace(offer, executor=sender, state=state)

    def _cancel(self, offer: Offer, sender: str) -> None:
        if sender != offer.maker:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "only its maker cancels an offer"
            )
        if is_terminal(offer.state):
            raise InteractionError(InteractionFault.STATE, "the offer has ended")
        state = offer.state if offer.executor else str(TaskState.CANCELED)
        self._offers[offer.id] = replace(offer, state=state, cancel_requested=True)

    def _known(self, name: str) -> Offer:
        found = self._offers.get(name)
        if found is None:
            raise InteractionError(
                InteractionFault.UNKNOWN_TASK, "no such offer in this group"
            )
        return found

    def _check_executor(self, offer: Offer, sender: str) -> None:
        if offer.executor != sender:
            raise InteractionError(
                InteractionFault.TAKEN, "another member accepted it first"
            )
