"""Creates and ends subscriptions, and starts their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anp.errors import CallError, ErrorKind, UnknownError
from anp.identity.dids import Identities
from anp.interaction.elements import Message, MessagePurpose, Part, SenderRole, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.triggers.subscription import (
    EventSource,
    Subscription,
    read_subscription,
)
from anp.interaction.triggers.watch import Ended, Happening, time_text
from anp.protocols.gbz.words import GBZ_GROUPS_URI
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.consensus.written.heard import HeardEntry
from anp.sidecar.offer.gate import Gate
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.subscriptions.kept import (
    Kept,
    KeptRun,
    Order,
    SubscriptionBook,
    Watcher,
)
from anp.sidecar.subscriptions.peers import GivenSubscriptions, PeerSubscriptions
from anp.sidecar.subscriptions.scheduler import Scheduler
from anp.sidecar.tasks.known import Maker, maker_of, new_id
from anp.sidecar.tasks.service import TaskService
from sandbox.pool.validation import SchemaValidator

logger = logging.getLogger(__name__)

DAY = 86_400.0
"Seconds."


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
        policy: PeerPolicy,
        gate: Gate,
        config: InteractionConfig,
        publish: Callable[[str, dict[str, Any]], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin; `resume` goes on with what is stored."""
        self._tasks = tasks
        self._finder = finder
        self._identities = identities
        self._validator = validator
        self._config = config
        self._clock = clock
        self._publish = publish
        self._doing: set[asyncio.Task[None]] = set()
        self.book = book
        self.given = GivenSubscriptions(
            book=book, tasks=tasks, publish=publish, clock=clock
        )
        self.of_peers = PeerSubscriptions(
            book=book,
            scheduler=lambda: self.scheduler,
            tasks=tasks,
            policy=policy,
            gate=gate,
            config=config,
            check_schemas=self._check_schemas,
            clock=clock,
        )
        self.scheduler = Scheduler(
            book,
            start=self._start,
            fits=self._fits,
            may_see=self._may_see,
            publish=publish,
            clock=clock,
        )
        tasks.sessions.publish = self.publish
        tasks.sessions.refused = lambda log, reason: self._do(
            self.given.refused(log, reason)
        )

    async def resume(self) -> None:
        """Watch what is stored."""
        before = ""
        while page := await self.book.page(before=before):
            before = page[-1].id
            for kept in page:
                if kept.watcher is Watcher.PEER and not kept.ended:
                    with contextlib.suppress(InteractionError):
                        await self.given.note(kept)
        await self.scheduler.load()
        self.scheduler.run()

    async def close(self) -> None:
        """Watch no more."""
        await self.scheduler.close()
        await asyncio.gather(*self._doing, return_exceptions=True)

    # Commands

    async def prune(self) -> None:
        """Drop what ended longer ago than the owner wants to keep it."""
        before = self._clock() - self._config.keep_days * DAY
        if gone := await self.book.prune(older_than=before):
            logger.info("subscriptions dropped count=%d", gone)

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
            CallError: The peer is not known, or there are too many.
        """
        now = self._clock()
        found = read_subscription(given, created=now)
        await self._check_schemas(found)
        if found.expires is not None and found.expires <= now:
            raise InteractionError(InteractionFault.EXPIRED, "it has expired already")
        most = self._config.max_subscriptions
        if len(self.scheduler.open(Watcher.HERE)) + self.given.count >= most:
            raise CallError(
                ErrorKind.POLICY,
                f"at most {most} subscriptions may be open "
                "(interaction.max_subscriptions)",
            )
        name = new_id(maker)
        kept = Kept(
            id=name,
            name=name,
            created=now,
            watcher=Watcher.PEER if by_peer else Watcher.HERE,
            order=order,
            given=given,
        )
        if by_peer:
            return await self._give(kept, maker)
        await self._finder.find(order.peer, trust_first_use=False)
        kept = await self.book.save(kept, now=now)
        self.scheduler.add(kept)
        return kept

    async def _give(self, kept: Kept, maker: Maker) -> Kept:
        log = await self._tasks.open_session(
            kept.order.peer, maker=maker, protocol=GBZ_GROUPS_URI
        )
        kept = await self.book.save(replace(kept, log=log), now=self._clock())
        session = (await self._tasks.sessions.conversation(log)).session
        task = task_of(
            replace(kept.order, give=""),
            KeptRun(number=0, key="", at=kept.created),
            name=kept.name,
            own=session.requester.id,
            executor=session.participants[0].id,
        )
        return await self.given.give(kept, task, address=self._tasks.own_url())

    async def cancel(self, name: str) -> Kept:
        """End a subscription; tasks that it started go on."""
        kept = await self.find(name)
        if kept.ended:
            return kept
        if kept.watcher is Watcher.PEER:
            return await self.given.cancel(kept)
        return await self.scheduler.end(name, Ended.CANCELED) or kept

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

    def heard(self, entry: HeardEntry) -> None:
        """Take an event that a peer sent."""
        if entry.kind != "event" or not self.scheduler.is_watched(EventSource.PEER):
            return
        data = entry.data if isinstance(entry.data, dict) else {"value": entry.data}
        happening = Happening(
            id=str(uuid.uuid4()),
            source=EventSource.PEER,
            type=entry.name,
            at=self._clock(),
            data=data,
            subject=entry.peer_did,
            peer=entry.peer_did,
        )
        self._do(self._observe(happening))

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Tell who follows the daemon's events; states of tasks are events here."""
        self._publish(kind, data)
        if kind != "task.changed":
            return
        if self.given.is_carried(data["session"]):
            self._do(self.given.came(data["session"], data["task"]))
        if self.scheduler.is_watched(EventSource.TASK):
            self._do(self._task_changed(data["task"], data["state"]))

    async def _task_changed(self, item: str, state: str) -> None:
        task = (await self._tasks.task(item)).task
        happening = Happening(
            id=f"{item}/{state}",
            source=EventSource.TASK,
            type=state,
            at=self._clock(),
            data={
                "task": item,
                "state": state,
                "capability": task.capability,
                "requester": task.requester,
                "executor": task.executor,
            },
            subject=item,
            derived=task.trigger is not None,
        )
        await self._observe(happening)

    async def _observe(self, happening: Happening) -> None:
        await self.scheduler.observe(happening)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what follows from an event; what fails is logged."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                logger.exception("an event of a subscription was lost")

        task = asyncio.create_task(guarded(), context=contextvars.Context())
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    # What the scheduler asks

    def _may_see(self, kept: Kept, happening: Happening) -> bool:
        if kept.watcher is Watcher.FOR_PEER:
            return self.of_peers.may_see(kept, happening)
        return True

    async def _check_schemas(self, subscription: Subscription) -> None:
        for schema in subscription.schemas:
            findings = await self._validator.check_schema(dict(schema))
            if findings:
                raise InteractionError(
                    InteractionFault.INVALID, f"schema: {findings[0][:200]}"
                )

    async def _fits(self, schema: Mapping[str, Any], value: Any) -> bool:
        return not await self._validator.validate(dict(schema), value)

    async def _start(self, kept: Kept, run: KeptRun) -> str:
        """Make the task of a run, unless it is made already; return our own id of it.

        The session has the name of the run, so that a second start finds the first.
        """
        if kept.watcher is Watcher.FOR_PEER:
            return await self.of_peers.start(kept, run)
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
            task = replace(
                task_of(kept.order, run, name=name, own=own, executor=target.did),
                trigger={"subscription": kept.id, "firing": time_text(run.at)},
            )
            await self._tasks.create(log, task)
        return await sessions.item_of(log, name)


def task_of(order: Order, run: KeptRun, *, name: str, own: str, executor: str) -> Task:
    """Return the task of a run, which is named like its session."""
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
