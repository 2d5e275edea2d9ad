"""Carries out one plan: gives its parts to peers, and gathers what comes of them.

After a restart it goes on where it was. The ids of everything that it starts follow
from its own, so that it finds again what it started, and starts nothing twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from anp.errors import AnpError, CallError, ErrorKind
from anp.identity.dids import agent_name
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Message, MessagePurpose, Part, SenderRole, Task
from anp.interaction.errors import InteractionError
from anp.interaction.plan import (
    MAX_CANDIDATES,
    VISITED,
    Subtask,
    TaskPlan,
    goes_on,
    loop_problem,
)
from anp.interaction.states import TaskState, is_started, is_terminal
from anp.interaction.step import Step
from anp.sidecar.discovery.candidates import Candidates
from anp.sidecar.groups.service import GroupService
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.plans.group_offer import GroupOffer
from anp.sidecar.plans.outcome import PartOffer, PartOutcome, contents_of
from anp.sidecar.tasks.chronicle import Chronicle, results
from anp.sidecar.tasks.known import KnownTask, Maker
from anp.sidecar.tasks.service import TaskService
from anp.sidecar.tasks.work.worker import Worker

logger = logging.getLogger(__name__)

LOOK: Final = 3_600.0
"Seconds for which one look waits for the end of a part; there is another one then."

SUBTASK: Final = "subtask"
"Entry in the metadata of a message: the number of the part that it is about."


@dataclass(frozen=True, slots=True)
class PeerAccess:
    """The parts of the daemon that carry out plans."""

    tasks: TaskService
    candidates: Candidates
    finder: PeerFinder

    reach: Callable[[str], Awaitable[None]]
    "Returns when the peer at an address is connected; CallError else."

    own: tuple[str, ...]
    "Our own DIDs, in every form."

    groups: GroupService


class PlanWorker(Worker):
    """One plan, from its beginning to its end."""

    def __init__(
        self, log: str, task: Task, *, parts_of_daemon: PeerAccess, **more: Any
    ) -> None:
        """Take a plan; `run` carries it out. See `Worker` for the arguments."""
        super().__init__(log, task, **more)
        self._daemon = parts_of_daemon
        self._plan, self._contents = TaskPlan.read(task)
        self._chronicle = Chronicle(self._sessions)
        self._begun: dict[int, tuple[int, KnownTask]] = {}
        "The newest task for each part, with the number of its candidate."

        self._offered: dict[int, GroupOffer] = {}
        self._starting: set[asyncio.Task[KnownTask]] = set()
        self._ran: set[int] = set()
        "Parts that somebody may have done of whom nothing more is heard or asked."

        self._told_parts: set[int] = set()

    async def _run(self) -> None:
        conversation = await self._sessions.conversation(self._log)
        task = conversation.task(self._task.id)
        if is_terminal(task.state):
            return
        if is_started(task.state):
            await self._find_begun(conversation)
            if task.cancel_requested:
                await self._cancel_rest()
                ran = self._is_given_away
                await self._over(TaskState.CANCELED, may_have_run=ran)
                return
        else:
            await self._report.change(TaskState.WORKING)
        try:
            await self._in_time()
        except BaseException as exc:
            # When the daemon stops, the parts go on, and so does the plan later.
            if self._ending is not None or not isinstance(exc, asyncio.CancelledError):
                self._started = self._is_given_away
                await self._cancel_rest()
            raise

    @property
    def _is_given_away(self) -> bool:
        """True if somebody may have done a part, or be at it."""
        offers = self._offered.values()
        said = any(one.is_said and not one.is_over for one in offers)
        return bool(self._begun or self._ran) or said

    async def _in_time(self) -> None:
        deadline = self._plan.deadline
        left = None if deadline is None else max(0.0, deadline - time.time())
        outcomes: dict[int, PartOutcome] = {}
        try:
            async with asyncio.timeout(left):
                state = await self._carry(outcomes)
        except TimeoutError:
            await self._cancel_rest()
            await self._over(
                TaskState.FAILED,
                code="deadline",
                reason="the time for the whole was over",
                may_have_run=self._is_given_away,
            )
            return
        # Before the end, so that a kill in between leaves nothing at work.
        await self._cancel_rest()
        if state == TaskState.COMPLETED:
            await self._over(TaskState.COMPLETED)
            return
        wrong = [
            (index, one)
            for index, one in sorted(outcomes.items())
            if one.state != TaskState.COMPLETED
        ]
        told = "; ".join(
            f"{f'part {index}: ' if len(self._contents) > 1 else ''}{one.reason}"
            for index, one in wrong
        )
        ran = bool(self._ran) or any(one.may_have_run for one in outcomes.values())
        # Every candidate said no, so whoever gave us the task may ask others.
        handed_back = not ran and all(one.is_handed_back for one in outcomes.values())
        await self._over(
            TaskState.REJECTED if handed_back else TaskState.FAILED,
            code=wrong[0][1].code[:64] or "subtask_failed",
            reason=told[:500],
            may_have_run=ran,
        )

    async def _carry(self, outcomes: dict[int, PartOutcome]) -> TaskState:
        """Give the parts away, and return how the whole ends.

        Args:
            outcomes: Filled in, by the numbers of the parts.
        """
        waiting = list(enumerate(self._plan.subtasks))
        states: list[str] = [TaskState.HELD for _ in waiting]
        running: dict[asyncio.Task[PartOutcome], int] = {}
        try:
            while True:
                while waiting and len(running) < self._plan.at_a_time:
                    index, one = waiting.pop(0)
                    work = asyncio.create_task(self._give_away(index, one))
                    running[work], states[index] = index, TaskState.WORKING
                done, _ = await asyncio.wait(
                    running, return_when=asyncio.FIRST_COMPLETED
                )
                for work in sorted(done, key=lambda one: running[one]):
                    index = running.pop(work)
                    outcomes[index] = work.result()
                    states[index] = outcomes[index].state
                    await self._tell_end(index, outcomes[index])
                    verdict = self._plan.verdict(states)
                    if verdict is not None:
                        return verdict
        except asyncio.CancelledError:
            if self._ending is None:
                # The daemon stops; what was stored is found again.
                for starting in self._starting:
                    starting.cancel()
            raise
        finally:
            for work in running:
                work.cancel()
            # What was being stored is known afterwards, and so can be cancelled.
            await asyncio.gather(*running, *self._starting, return_exceptions=True)

    async def _give_away(self, index: int, subtask: Subtask) -> PartOutcome:
        """Have the first candidate do a part that takes it (GBZ-62)."""
        if subtask.group:
            return await self._offer(index, subtask)
        offers = await self._offers(index, subtask)
        attempt, known = self._begun.get(index, (0, None))
        passed: list[dict[str, str]] = []
        outcome = PartOutcome(
            TaskState.REJECTED, "no_peer", await self._nobody(subtask)
        )
        while attempt < len(offers):
            offer = offers[attempt]
            try:
                if known is None:
                    known = await self._start(index, attempt, offer, len(offers) > 1)
            except AnpError as exc:
                code = exc.kind.value if isinstance(exc, CallError) else "unknown"
                reason = exc.detail if isinstance(exc, CallError) else str(exc)
                outcome = PartOutcome(TaskState.REJECTED, code, reason)
            else:
                known = await self._ended(known)
                task = known.task
                outcome = PartOutcome(task.state, task.code, task.reason, known)
                if not goes_on(task, repeatable=False) and (
                    not goes_on(task, repeatable=True)
                    or not await self._is_repeatable(subtask, offer, task)
                ):
                    break
            if outcome.may_have_run:
                self._ran.add(index)
            passed.append(outcome.passed_by(offer))
            attempt, known = attempt + 1, None
        if outcome.state == TaskState.COMPLETED or len(passed) < 2:
            return replace(outcome, passed=tuple(passed))
        reasons = "; ".join(
            f"{one['peer'][:80]}: {one['reason'][:120]}" for one in passed
        )
        if outcome.state == TaskState.REJECTED:
            outcome = replace(outcome, reason=f"nobody took it: {reasons}")
        return replace(outcome, passed=tuple(passed))

    async def _offer(self, index: int, subtask: Subtask) -> PartOutcome:
        """Have the first member of a group do a part that accepts it (GBZ-18)."""
        offer: GroupOffer | None = None
        key = f"offer/{index}"
        was_said = key in (await self._sessions.conversation(self._log)).threads
        try:
            self._offered[index] = offer = self._offer_of(index, subtask)
            newest = self._daemon.groups.known(subtask.group).last
            after = await self._kept(key, str(newest))
            await offer.run(after=int(after), patience=self._max_wait)
        except TimeoutError:
            return PartOutcome(TaskState.REJECTED, "no_peer", "no member accepted it")
        except (AnpError, InteractionError) as exc:
            if was_said or (offer is not None and offer.is_said):
                # A member may be at work, and nothing more is heard of it.
                self._ran.add(index)
                return PartOutcome(TaskState.FAILED, "lost", str(exc), offer=offer)
            return PartOutcome(TaskState.REJECTED, "no_peer", str(exc))
        end = offer.change
        assert end is not None, "it has ended"
        return PartOutcome(end.state, end.code, end.reason, offer=offer)

    def _offer_of(self, index: int, subtask: Subtask) -> GroupOffer:
        name, groups = self._names(index, 0)[1], self._daemon.groups
        own = groups.known(subtask.group).own
        message = Message(
            id=str(uuid.uuid4()),
            session=subtask.group,
            task=name,
            sender=own,
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=self._contents[index] or (Part.value({}),),
        )
        task = Task(
            id=name,
            session=subtask.group,
            requester=own,
            executor="",
            capability=subtask.capability,
            messages=(message,),
        )
        return GroupOffer(groups, subtask.group, task)

    async def _kept(self, key: str, value: str) -> str:
        """Return a value that stays as it was first, over restarts."""

        def keep(conversation: Conversation) -> Step:
            conversation.threads[key] = value
            return Step(is_head_changed=True)

        kept = (await self._sessions.conversation(self._log)).threads.get(key)
        if kept is None:
            await self._report.apply(keep)
        return kept or value

    async def _offers(self, index: int, subtask: Subtask) -> list[PartOffer]:
        """Return the candidates; those that were found stay the same ones."""
        if subtask.peers:
            return [PartOffer(one, subtask.capability) for one in subtask.peers]
        conversation = await self._sessions.conversation(self._log)
        key = f"candidates/{index}"
        kept = conversation.threads.get(key)
        if kept is None:
            found = await self._daemon.candidates.find(subtask.find)
            offers = [(one.address, one.capability) for one in found[:MAX_CANDIDATES]]
            if not offers:
                return []
            # So that other parts of the same kind go to others first.
            self._daemon.candidates.choose(found[0])
            # Before the first is asked: after a restart the order may be another.
            kept = await self._kept(key, json.dumps(offers))
        return [PartOffer(address, name) for address, name in json.loads(kept)]

    async def _nobody(self, subtask: Subtask) -> str:
        if not subtask.find:
            return "it has no candidates"
        return f"no allowed peer publishes {subtask.find[:80]!r} now"

    async def _is_repeatable(
        self, subtask: Subtask, offer: PartOffer, task: Task
    ) -> bool:
        """Tell if a second run of what may have run does no more than the first."""
        found = await self._daemon.candidates.find(offer.capability or subtask.find)
        agent = agent_name(task.executor)
        return any(one.repeatable for one in found if agent_name(one.did) == agent)

    # One part at one candidate

    async def _start(
        self, index: int, attempt: int, offer: PartOffer, is_one_of_many: bool
    ) -> KnownTask:
        target = await self._daemon.finder.find(offer.address, trust_first_use=False)
        problem = loop_problem(
            self._plan.visited, lambda did: agent_name(did) == agent_name(target.did)
        )
        if problem:
            raise CallError(ErrorKind.POLICY, problem)
        if is_one_of_many:
            # Until a peer is there nothing is sent, so that nothing can have run.
            await self._daemon.reach(offer.address)
        starting = asyncio.create_task(self._store(index, attempt, offer))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await asyncio.shield(starting)

    async def _store(self, index: int, attempt: int, offer: PartOffer) -> KnownTask:
        session, name = self._names(index, attempt)
        log = await self._log_of(session)
        if log is None:
            log = await self._daemon.tasks.open_session(
                offer.address, name=session, maker=Maker(self._log[-1])
            )
        conversation = await self._sessions.conversation(log)
        visited = (*self._plan.visited, conversation.own)
        message = Message(
            id=str(uuid.uuid4()),
            session=session,
            task=name,
            sender=conversation.own,
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=self._contents[index] or (Part.value({}),),
            metadata={VISITED: [*visited]},
        )
        task = Task(
            id=name,
            session=session,
            requester=conversation.own,
            executor=conversation.session.participants[0].id,
            capability=offer.capability,
            messages=(message,),
            parent=self._task.id,
        )
        await self._daemon.tasks.create(log, task)
        known = await self._known(log, name)
        self._begun[index] = attempt, known
        return known

    async def _ended(self, known: KnownTask) -> KnownTask:
        while True:
            done, (known,) = await self._chronicle.wait([known.id], timeout=LOOK)
            if done:
                return known

    def _names(self, index: int, attempt: int) -> tuple[str, str]:
        """Return the ids on the wire of the session and the task of a try."""
        begin = f"{self._task.session}/{self._task.id}/{index}/{attempt}"
        made = (uuid.uuid5(uuid.NAMESPACE_OID, f"{begin}/{one}") for one in "st")
        session, task = map(str, made)
        return session, task

    async def _log_of(self, session: str) -> str | None:
        for own in self._daemon.own:
            log = await self._sessions.find(own, session)
            if log is not None:
                return log
        return None

    async def _known(self, log: str, name: str) -> KnownTask:
        return await self._daemon.tasks.task(await self._sessions.item_of(log, name))

    # After a restart, and at the end

    async def _find_begun(self, conversation: Conversation) -> None:
        """Find what was started and told before a restart."""
        for index, subtask in enumerate(self._plan.subtasks):
            if subtask.group and f"offer/{index}" in conversation.threads:
                with contextlib.suppress(AnpError):
                    self._offered[index] = self._offer_of(index, subtask)
                    self._offered[index].is_said = True
            most = len(subtask.peers) or MAX_CANDIDATES
            for attempt in reversed(range(most)):
                session, name = self._names(index, attempt)
                log = await self._log_of(session)
                if log is None:
                    continue
                if name not in (await self._sessions.conversation(log)).tasks:
                    continue
                known = await self._known(log, name)
                if self._begun.setdefault(index, (attempt, known))[0] != attempt:
                    # The newest one was asked since this one did not do it.
                    self._ran |= {index} if known.task.may_have_run else set()
        for message in await self._chronicle.said(self._log, self._task.id):
            if SUBTASK in message.metadata:
                self._told_parts.add(message.metadata[SUBTASK])

    async def _cancel_rest(self) -> None:
        """Ask for the end of every part that has not ended."""
        for offer in self._offered.values():
            await offer.cancel()
        for _, known in self._begun.values():
            with contextlib.suppress(AnpError):
                await self._daemon.tasks.cancel(known.id)

    async def _tell_end(self, index: int, outcome: PartOutcome) -> None:
        """Tell the result of a part, or why there is none, with its executor."""
        if index in self._told_parts:
            return
        about: dict[str, Any] = {SUBTASK: index, "state": outcome.state}
        parts: Sequence[Part] = ()
        if outcome.known is not None:
            task = outcome.known.task
            about |= {"task": outcome.known.id, "executor": task.executor}
        elif outcome.offer is not None:
            about["executor"] = outcome.offer.executor
        if outcome.passed:
            about["passed"] = [*outcome.passed]
        is_done = outcome.state == TaskState.COMPLETED
        if outcome.offer is not None and is_done:
            parts = contents_of(outcome.offer.results)
        elif outcome.known is not None and is_done:
            log, name = outcome.known.log, outcome.known.task.id
            parts = contents_of(await results(self._sessions, log, name))
        else:
            about |= {"code": outcome.code, "reason": outcome.reason[:500]}
            parts = [Part.text(outcome.reason or f"{outcome.state}")]
        await self._report.post(
            parts or [Part.text("")],
            purpose=MessagePurpose.RESULT if is_done else MessagePurpose.COMMUNICATION,
            metadata=about,
            **({"final": False} if is_done else {}),
        )
