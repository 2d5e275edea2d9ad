"""Subscriptions that the executor watches, on both sides (GBZ-65).

They are carried in sessions of their own: the requester's wish, the reports on tasks
that were started, and the results are events of its log, and so outlive restarts. The
executor does each task as one of the session, through the same gate as all others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from anp.errors import CallError, ErrorKind
from anp.identity.dids import agent_name
from anp.interaction.elements import Part, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import SubscribeCancel, SubscribeCreate
from anp.interaction.triggers.schedule import Cron, Every
from anp.interaction.triggers.subscription import (
    POSITION,
    EventSource,
    EventTrigger,
    PlaceTrigger,
    Subscription,
    TimeTrigger,
    read_subscription,
)
from anp.interaction.triggers.watch import Ended, Happening, time_text
from anp.protocols.fields import Fields
from anp.protocols.gbz.reader import read_task
from anp.protocols.gbz.writer import written_task
from anp.protocols.line import FurtherFrame
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.subscriptions.kept import (
    Kept,
    KeptRun,
    Order,
    SubscriptionBook,
    Watcher,
)
from anp.sidecar.subscriptions.scheduler import Scheduler
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.known import Maker, new_id, receive, utc_now
from anp.sidecar.tasks.service import TaskService
from cache.errors import CacheError, LogConflict
from sandbox.pool.shares import current_share

logger = logging.getLogger(__name__)

FIELDS: Final = (
    *("triggers", "match", "window", "condition"),
    *("maxRuns", "expires", "debounce", "missed"),
)
"Fields of the object on the wire that say when the task starts."

OCCASION: Final = "occasion"
"Field that names the argument which gets the occasion."

FIRST_WORD: Final = 5.0
"Seconds for which the maker of a subscription waits for its peer's yes or no."

WORD_CHECK: Final = 0.05
"Seconds between two looks for that word; so long a refusal may take to be noted."

MAX_NAME: Final = 200
"Characters of that name."

NO_TASK_ID: Final = "-"
"Stands for the ids that the task of a subscription has not got yet."


class PeerSubscriptions:
    """Those of peers, which are watched here."""

    def __init__(
        self,
        *,
        book: SubscriptionBook,
        scheduler: Callable[[], Scheduler],
        tasks: TaskService,
        policy: PeerPolicy,
        gate: Gate,
        config: InteractionConfig,
        check_schemas: Callable[[Subscription], Any],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take them from now on.

        Args:
            check_schemas: Raises InteractionError if a JSON Schema is none.
        """
        self._book = book
        self._scheduler = scheduler
        self._tasks = tasks
        self._policy = policy
        self._gate = gate
        self._config = config
        self._check_schemas = check_schemas
        self._clock = clock
        tasks.lines.further[SubscribeCreate] = self._create
        tasks.lines.further[SubscribeCancel] = self._cancel

    def may_see(self, kept: Kept, happening: Happening) -> bool:
        """Tell whether an event is for the peer whose subscription it is."""
        match happening.source:
            case EventSource.LOCAL:
                return happening.type in self._config.events_for_peers
            case EventSource.PEER:
                return happening.peer == kept.order.peer
            case _:
                return False

    async def start(self, kept: Kept, run: KeptRun) -> str:
        """Begin the task of a run, unless it has begun; return our own id of it.

        Raises:
            CallError: It cannot be done any more; the subscription is over.
        """
        peer = kept.order.peer
        name = f"{kept.name}/{run.number}"
        try:
            if not await asyncio.to_thread(self._policy.is_listed, peer):
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "the peer is not on the owner's list"
                )
            share = await self._policy.share_of(peer, address="")
            self._tasks.desk.check_room(share)
            current_share.set(share)
            conversation = await self._tasks.sessions.conversation(kept.log)
            task = _task_of(kept.order.task or {}, name, conversation.session.id)
            if kept.order.give:
                task = _with_occasion(task, kept.order.give, run.occasion)
            task = replace(
                task,
                requester=conversation.session.requester.id,
                executor=conversation.own,
                trigger={"subscription": kept.name, "firing": time_text(run.at)},
            )
            await self._tasks.sessions.apply(
                kept.log, lambda c: c.trigger(task, wall_now=utc_now())
            )
            return await self._tasks.sessions.item_of(kept.log, name)
        except InteractionError as exc:
            raise CallError(ErrorKind.POLICY, exc.text) from exc

    async def _create(self, line: Line, frame: FurtherFrame) -> None:
        operation = frame.operation
        assert isinstance(operation, SubscribeCreate), "it is registered for these"
        log, sender = await self._tasks.session_of(line, operation.session)
        if self._known(log, operation.id) is None:
            kept = await self._checked(line, log, sender, operation)
            self._scheduler().add(await self._book.save(kept, now=self._clock()))
        act = receive(operation, sender=sender, ref=frame.ref, uri=line.uri)
        await self._tasks.sessions.apply(log, act)

    async def _cancel(self, line: Line, frame: FurtherFrame) -> None:
        operation = frame.operation
        assert isinstance(operation, SubscribeCancel), "it is registered for these"
        log, sender = await self._tasks.session_of(line, operation.session)
        known = self._known(log, operation.id)
        if known is not None:
            await self._scheduler().end(known.id, Ended.CANCELED)
        act = receive(operation, sender=sender, ref=frame.ref, uri=line.uri)
        await self._tasks.sessions.apply(log, act)

    def _known(self, log: str, name: str) -> Kept | None:
        found = self._scheduler().open(Watcher.FOR_PEER)
        return next((one for one in found if (one.log, one.name) == (log, name)), None)

    async def _checked(
        self, line: Line, log: str, sender: str, operation: SubscribeCreate
    ) -> Kept:
        """Return what is to be kept of a peer's subscription.

        Raises:
            InteractionError: The owner does not want it, or it is wrong.
        """
        peer, now = line.peer, self._clock()
        if not await asyncio.to_thread(self._policy.is_listed, peer):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "only listed peers may subscribe"
            )
        conversation = await self._tasks.sessions.conversation(log)
        if conversation.session.requester.id != sender:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "only the requester subscribes"
            )
        most = self._config.max_subscriptions_peer
        if len(self._scheduler().open(Watcher.FOR_PEER, peer=peer)) >= most:
            raise InteractionError(
                InteractionFault.TOO_MANY, f"at most {most} subscriptions may be open"
            )
        whole = operation.subscription
        given = {name: whole[name] for name in FIELDS if whole.get(name) is not None}
        found = read_subscription(given, created=now)
        await self._check_schemas(found)
        for trigger in found.triggers:
            self._check_trigger(trigger)
        task = _task_of(whole.get("task"), NO_TASK_ID, NO_TASK_ID)
        give = whole.get(OCCASION, "")
        if not isinstance(give, str) or len(give) > MAX_NAME:
            raise InteractionError(InteractionFault.INVALID, "occasion is no name")
        if task.capability and not self._gate.named(WayIn.TASK, peer, task.capability):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "no such capability for you here"
            )
        return Kept(
            id=new_id(Maker.PEER),
            created=now,
            watcher=Watcher.FOR_PEER,
            order=Order(
                peer=peer, capability=task.capability, give=give, task=whole.get("task")
            ),
            given=given,
            log=log,
            name=operation.id,
        )

    def _check_trigger(
        self, trigger: TimeTrigger | EventTrigger | PlaceTrigger
    ) -> None:
        """Check that a peer may have something watched; InteractionError if not."""
        least = self._config.min_interval_peer
        match trigger:
            case TimeTrigger(schedule=Every(seconds=seconds)) if seconds < least:
                raise InteractionError(
                    InteractionFault.TOO_MANY, f"every: has to be at least {least:g} s"
                )
            case TimeTrigger(schedule=Cron() as cron):
                if len(cron.expression.split()) != 5 or least > 60:
                    _check_gaps(cron, least, now=self._clock())
            case EventTrigger(source=EventSource.TASK):
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "tasks are not watched for peers"
                )
            case EventTrigger(source=EventSource.LOCAL, type=name):
                self._check_event(name)
            case PlaceTrigger():
                self._check_event(POSITION)

    def _check_event(self, name: str) -> None:
        if name not in self._config.events_for_peers:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "this event is not watched for peers"
            )


class GivenSubscriptions:
    """Ours, which peers watch."""

    def __init__(
        self,
        *,
        book: SubscriptionBook,
        tasks: TaskService,
        publish: Callable[[str, dict[str, Any]], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin without any; `note` tells of them."""
        self._publish = publish
        self._book = book
        self._tasks = tasks
        self._clock = clock
        self._by_log: dict[str, str] = {}
        self._agents: dict[str, str] = {}
        self._refusals: dict[str, str] = {}
        "Reasons by the sessions whose owner waits for the first word of the peer."

        self._lock = asyncio.Lock()

    @property
    def count(self) -> int:
        """Number of those that are open."""
        return len(self._by_log)

    async def note(self, kept: Kept) -> None:
        """Take note of one that is open."""
        session = (await self._tasks.sessions.conversation(kept.log)).session
        self._by_log[kept.log] = kept.id
        self._agents[kept.log] = agent_name(session.participants[0].id)

    def awaits(self, peer: str) -> bool:
        """Tell whether a peer is to bring us news of tasks that it starts."""
        return agent_name(peer) in self._agents.values()

    def is_carried(self, log: str) -> bool:
        """Tell whether a session carries one."""
        return log in self._by_log

    async def give(self, kept: Kept, task: Task, *, address: str) -> Kept:
        """Give a subscription to the peer; what it says of it comes later.

        Args:
            kept: It is stored, and its session is there.
            address: URL at which the peer brings its news.
        """
        whole = {"task": _written(task), **kept.given}
        if kept.order.give:
            whole[OCCASION] = kept.order.give
        await self.note(kept)
        for act in (
            lambda c: c.subscribe(kept.name, whole, wall_now=utc_now()),
            lambda c: c.register(address, wall_now=utc_now()),
        ):
            await self._tasks.sessions.apply(kept.log, act)
        return kept

    async def answered(self, kept: Kept) -> None:
        """Wait until the peer took one that was given, or is away for some seconds.

        Raises:
            CallError: `negotiation_rejected`, the peer refuses it; with the reason.
        """
        log, sessions = kept.log, self._tasks.sessions
        self._refusals[log] = kept.reason
        try:
            async with asyncio.timeout(FIRST_WORD):
                # Answers come in many places; no event tells of this one alone.
                while (await sessions.conversation(log)).has_untold:  # noqa: ASYNC110
                    await asyncio.sleep(WORD_CHECK)
            await asyncio.sleep(WORD_CHECK)
        except TimeoutError:
            logger.info("subscription not answered yet id=%s", kept.id)
        finally:
            reason = self._refusals.pop(log)
        if reason:
            raise CallError(
                ErrorKind.NEGOTIATION_REJECTED, f"the peer refuses it: {reason}"
            )

    async def cancel(self, kept: Kept) -> Kept:
        """End one here and at the peer."""
        act = partial(_unsubscribe, kept.name)
        await self._tasks.sessions.apply(kept.log, act)
        return await self._change(kept.id, ended=Ended.CANCELED) or kept

    async def refused(self, log: str, reason: str) -> None:
        """Take note that the peer refused what a session carries."""
        name = self._by_log.get(log)
        if log in self._refusals:
            self._refusals[log] = reason[:500]
        if name is not None:
            logger.info("subscription refused id=%s reason=%r", name, reason[:200])
            await self._change(name, ended=Ended.REFUSED, reason=reason[:500])

    async def came(self, log: str, item: str) -> None:
        """Take note of a task that the peer started."""
        name = self._by_log.get(log)
        known = await self._tasks.sessions.task(item)
        number = "" if known is None else known.task.id.rpartition("/")[2]
        if name is None or not number.isdecimal():
            return
        if await self._book.run(name, int(number)) is None:
            now = self._clock()
            run = KeptRun(number=int(number), key=f"peer/{number}", at=now, task=item)
            await self._change(name, run=run)

    async def _change(
        self,
        name: str,
        *,
        ended: str = "",
        reason: str = "",
        run: KeptRun | None = None,
    ) -> Kept | None:
        async with self._lock:
            while True:
                kept = await self._book.find(name)
                if kept is None:
                    return None
                runs = kept.runs + (run is not None)
                limit = kept.subscription.max_runs
                if not ended and limit is not None and runs >= limit:
                    ended = Ended.RUNS
                state: Mapping[str, Any] = {
                    **kept.state,
                    "runs": runs,
                    "ended": kept.ended or ended,
                }
                changed = replace(kept, state=state, reason=kept.reason or reason)
                try:
                    stored = await self._book.save(
                        changed, runs=() if run is None else (run,), now=self._clock()
                    )
                    self._tell(kept, stored, run)
                    return stored
                except LogConflict:
                    continue
                except CacheError as exc:
                    logger.warning("subscription not stored id=%s: %s", name, exc)
                    return None

    def _tell(self, before: Kept, after: Kept, run: KeptRun | None) -> None:
        told = {"subscription": after.id}
        if run is not None:
            more = {"number": run.number, "task": run.task}
            self._publish("subscription.started", told | more)
        if after.ended in (Ended.REFUSED, Ended.CANCELED):
            # Of others the last task may be at work yet.
            self._by_log.pop(after.log, None)
            self._agents.pop(after.log, None)
        if after.ended and not before.ended:
            self._publish("subscription.ended", told | {"reason": after.ended})


def _unsubscribe(name: str, conversation: Any) -> Any:
    return conversation.subscribe(name, None, wall_now=utc_now())


def _check_gaps(cron: Cron, least: float, *, now: float) -> None:
    """Check the next due times of a peer's cron; InteractionError if they are close."""
    before = None
    due = cron.next_due(now)
    for _ in range(100):
        if due is None:
            return
        if before is not None and due - before < least:
            raise InteractionError(
                InteractionFault.TOO_MANY, f"cron: at most once in {least:g} s"
            )
        before, due = due, cron.next_due(due)


def _task_of(value: object, name: str, session: str) -> Task:
    """Read the task of a peer's subscription, as the one of a run.

    Raises:
        InteractionError: It is none.
    """
    given = dict(value) if isinstance(value, Mapping) else value
    if isinstance(given, dict):
        messages = given.get("messages") or []
        if isinstance(messages, list):
            given["messages"] = [
                {**one, "taskId": name, "sessionId": session, "id": f"{name}/m{number}"}
                for number, one in enumerate(messages)
                if isinstance(one, dict)
            ]
        given |= {"id": name, "sessionId": session, "state": "x-requested"}
    return read_task(Fields(given, "task"))


def _with_occasion(task: Task, name: str, occasion: Mapping[str, Any]) -> Task:
    """Return a task whose arguments have the occasion, too."""
    parts = task.messages[0].parts if task.messages else ()
    found = {}
    if parts and isinstance(parts[0].content, Mapping):
        found, parts = dict(parts[0].content), parts[1:]
    given = Part.value({**found, name: dict(occasion)})
    if not task.messages:
        raise InteractionError(InteractionFault.INVALID, "the task has no arguments")
    first = replace(task.messages[0], parts=(given, *parts))
    return replace(task, messages=(first, *task.messages[1:]))


def _written(task: Task) -> dict[str, Any]:
    """Return a task by table 4, without what each run has of its own."""
    whole = written_task(replace(task, capability="", trigger=None))
    for name in ("id", "sessionId", "state"):
        del whole[name]
    return whole | {"capability": task.capability}
