"""One task that is offered to a group, whose first member to accept does it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final

from anp.errors import AnpError
from anp.interaction.elements import Message, MessagePurpose, Task, TaskChange
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import TaskCancel, TaskUpdate
from anp.interaction.states import TaskState, is_terminal
from anp.sidecar.groups.frames import work_of
from anp.sidecar.groups.service import GroupService
from anp.sidecar.groups.shelf import StoredEvent

SETTLING: Final = 10.0
"Seconds in which a group tells what became of an offer that was taken back."


@dataclass(slots=True)
class GroupOffer:
    """An offer, and what came of it so far.

    Its task and its results are said in the group. A second `run` of the same offer,
    after a restart, offers nothing twice.
    """

    groups: GroupService
    group: str
    task: Task
    "Without an executor; its id is the same after a restart."

    executor: str = ""
    "DID of the first member that accepted it."

    change: TaskChange | None = None
    "Its newest state; None while nobody accepted."

    results: list[Message] = field(default_factory=list)

    is_said: bool = False
    "The members of the group may have heard of it."

    @property
    def is_over(self) -> bool:
        """True when its executor reported a final state, or it was taken back."""
        return self.change is not None and is_terminal(self.change.state)

    async def run(self, *, after: int, patience: float) -> None:
        """Offer the task and follow it to its end.

        Args:
            after: Number of the newest event of the group before it was first offered.
            patience: Seconds for which somebody has to accept it.

        Raises:
            AnpError: The group is not there, or refuses the offer, or does not tell
                in time if somebody accepted it.
            TimeoutError: Nobody accepted it; it is taken back.
        """
        self.is_said = True
        try:
            await self.groups.say(self.group, self.task)
        except InteractionError as exc:
            # It was offered before a restart.
            if exc.code is not InteractionFault.CONFLICT:
                self.is_said = False
                raise
        if await self._follow(after, patience):
            return
        await self.cancel()
        # The hub's order says which was first: our word, or a member's acceptance.
        if not await self._follow(after, SETTLING):
            raise InteractionError(
                InteractionFault.CLOSED, "the hub does not say if somebody accepted it"
            )
        if not self.executor:
            raise TimeoutError

    async def _follow(self, after: int, patience: float) -> bool:
        """Follow the task to its end; False if nobody accepts it in time."""
        self.results.clear()
        events = self.groups.watch(self.group, after=after, wanted=self._wants)
        try:
            async with (
                contextlib.aclosing(events),
                asyncio.timeout(patience) as waiting,
            ):
                async for event in events:
                    self._take(event)
                    if self.executor:
                        waiting.reschedule(None)
                    if self.is_over:
                        return True
        except TimeoutError:
            return False
        raise InteractionError(InteractionFault.CLOSED, "the group is here no more")

    async def cancel(self) -> None:
        """Ask for the end of the task; its executor says how it ends."""
        if not self.is_over:
            wish = TaskCancel(session=self.task.session, task=self.task.id)
            with contextlib.suppress(AnpError, InteractionError):
                await self.groups.say(self.group, wish)

    def _wants(self, event: StoredEvent) -> bool:
        return self.task.id.encode("utf-8") in event.data

    def _take(self, event: StoredEvent) -> None:
        if event.mark not in ("", "signed"):
            return
        match work_of(event):
            case Message(task=self.task.id, purpose=MessagePurpose.RESULT) as said:
                if event.by == self.executor:
                    self.results.append(said)
            case TaskUpdate(content=TaskChange(task=self.task.id) as change):
                # The hub lets nobody but the first one report.
                self.executor, self.change = event.by, change
            case TaskCancel(task=self.task.id) if not self.executor:
                self.change = TaskChange(task=self.task.id, state=TaskState.CANCELED)
