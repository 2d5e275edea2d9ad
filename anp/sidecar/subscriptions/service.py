"""Creates and ends subscriptions, and starts their tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from anp.errors import UnknownError
from anp.identity.dids import Identities
from anp.interaction.elements import Message, MessagePurpose, Part, SenderRole, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.triggers.subscription import EventSource, read_subscription
from anp.interaction.triggers.watch import Ended, Happening, time_text
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.subscriptions.kept import (
    Kept,
    KeptRun,
    Order,
    SubscriptionBook,
    Watcher,
)
from anp.sidecar.subscriptions.scheduler import Scheduler
from anp.sidecar.tasks.known import Maker, maker_of, new_id
from anp.sidecar.tasks.service import TaskService
from sandbox.pool.validation import SchemaValidator

__all__ = ["SubscriptionService"]

logger = logging.getLogger(__name__)

MAX_OWN: Final = 1_000
"Open subscriptions of this agent."


class SubscriptionService:
    """The faces of the daemon call its methods."""

    def __init__(
        self,
        *,
        book: SubscriptionBook,
        tasks: TaskService,
        finder: PeerFinder,
        identities: Identities,
        validator: SchemaValidator,
        publish: Callable[[str, dict[str, Any]], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin; `resume` goes on with what is stored."""
        self._tasks = tasks
        self._finder = finder
        self._identities = identities
        self._validator = validator
        self._clock = clock
        self._publish = publish
        self.book = book
        self.scheduler = Scheduler(
            book, start=self._start, fits=self._fits, publish=publish, clock=clock
        )

    async def resume(self) -> None:
        """Watch what is stored."""
        await self.scheduler.load()
        self.scheduler.run()

    async def close(self) -> None:
        """Watch no more."""
        await self.scheduler.close()

    # Commands

    async def create(
        self,
        order: Order,
        given: Mapping[str, Any],
        *,
        maker: Maker,
        by_peer: bool = False,
    ) -> Kept:
        """Watch triggers, and send a task to a peer whenever they hold (GBZ-64).

        Args:
            given: The object with the triggers; see `read_subscription`.
            by_peer: The peer watches and does the task (GBZ-65).

        Raises:
            InteractionError: A field is wrong.
            CallError: The peer is not known.
        """
        now = self._clock()
        found = read_subscription(given, created=now)
        for schema in found.schemas:
            findings = await self._validator.check_schema(dict(schema))
            if findings:
                raise InteractionError(
                    InteractionFault.INVALID, f"schema: {findings[0][:200]}"
                )
        if found.expires is not None and found.expires <= now:
            raise InteractionError(InteractionFault.EXPIRED, "it has expired already")
        await self._finder.find(order.peer, trust_first_use=False)
        kept = Kept(
            id=new_id(maker),
            created=now,
            watcher=Watcher.HERE,
            order=order,
            given=given,
        )
        kept = await self.book.save(kept, now=now)
        self.scheduler.add(kept)
        return kept

    async def cancel(self, name: str) -> Kept:
        """End a subscription; tasks that it started go on."""
        ended = await self.scheduler.end(name, Ended.CANCELED)
        if ended is None:
            raise UnknownError(f"there is no subscription {name[:80]}")
        return ended

    async def find(self, name: str) -> Kept:
        """Return a subscription.

        Raises:
            UnknownError: There is none.
        """
        found = await self.book.find(name)
        if found is None:
            raise UnknownError(f"there is no subscription {name[:80]}")
        return found

    async def tell(
        self, type_: str, data: Mapping[str, Any], *, name: str
    ) -> list[str]:
        """Take an event of the local agent or its owner.

        Args:
            name: Its id; a repeat starts nothing.

        Returns:
            Ids of the subscriptions that it started; their firings are stored.
        """
        subject = data.get("subject")
        happening = Happening(
            id=name,
            source=EventSource.LOCAL,
            type=type_,
            at=self._clock(),
            data=data,
            subject=subject if isinstance(subject, str) else "",
        )
        return await self.scheduler.observe(happening)

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Tell who follows the daemon's events; states of tasks are events here."""
        self._publish(kind, data)

    # What a firing starts

    async def _fits(self, schema: Mapping[str, Any], value: Any) -> bool:
        return not await self._validator.validate(dict(schema), value)

    async def _start(self, kept: Kept, run: KeptRun) -> str:
        """Make the task of a run, unless it is made already; return our own id of it.

        The session has the name of the run, so that a second start finds the first.
        """
        sessions, peer = self._tasks.sessions, kept.order.peer
        name = f"{kept.id}/{run.number}"
        target = await self._finder.find(peer, trust_first_use=False)
        own = self._identities.speaking_to(target.did).did
        log = await sessions.find(own, name)
        if log is None:
            maker = maker_of(kept.id) or Maker.AGENT
            log = await self._tasks.open_session(peer, maker=maker, name=name)
        conversation = await sessions.conversation(log)
        if name not in conversation.tasks:
            task = task_of(kept, run, name=name, own=own, executor=target.did)
            await self._tasks.create(log, task)
        return await sessions.item_of(log, name)


def task_of(kept: Kept, run: KeptRun, *, name: str, own: str, executor: str) -> Task:
    """Return the task of a run, which is named like its session."""
    order = kept.order
    message = Message(
        id=f"{name}/0",
        session=name,
        task=name,
        sender=own,
        role=SenderRole.REQUESTER,
        purpose=MessagePurpose.COMMUNICATION,
        parts=tuple(_parts(order, run)),
    )
    return Task(
        id=name,
        session=name,
        requester=own,
        executor=executor,
        capability=order.capability,
        messages=(message,),
        trigger={"subscription": kept.id, "firing": time_text(run.at)},
    )


def _parts(order: Order, run: KeptRun) -> Sequence[Part]:
    found = []
    values = dict(order.input or {})
    if order.give:
        values[order.give] = dict(run.occasion)
    if values or order.text is None:
        found.append(Part.value(values))
    if order.text is not None:
        found.append(Part.text(order.text))
    return found
