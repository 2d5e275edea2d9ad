"""The tasks of peers that are offered or at work here, and the room that each has."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from anp.channel.stranger_work import counted
from anp.interaction.elements import Message, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.plan import is_plan, loop_problem, visited_of
from anp.interaction.states import is_terminal
from anp.interaction.step import Step
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.files.call_folder import CallFolders
from anp.sidecar.offer.capability_calls import CapabilityCalls
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.tasks.leases import Leases
from anp.sidecar.tasks.sessions import Sessions
from anp.sidecar.tasks.skills import SkillChooser
from anp.sidecar.tasks.work.report import Room
from anp.sidecar.tasks.work.worker import Worker
from cache.errors import CacheError
from sandbox.pool.shares import Rank, Share, current_share

logger = logging.getLogger(__name__)

BURST = 200.0
"Operations that those who share a place may have stored at once."

RATE = 50.0
"Such operations in each second after that; who sends more is read more slowly."

OPENED_RATE = 0.5
"Sessions in each second that strangers at one address may open in the long run."

FULL = 5.0
"Seconds after which who has too many open tasks may try again; some may have ended."

MAX_PACES = 1_000
"Shares whose rate is remembered."


class StrangerPace:
    """The rate at which the operations of strangers are taken, by their share."""

    def __init__(
        self,
        *,
        burst: float = BURST,
        rate: float = RATE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._rate = rate
        self._clock = clock
        self._spent: OrderedDict[Share, tuple[float, float]] = OrderedDict()

    def wait(self, share: Share) -> float:
        """Count an operation; return the seconds until the next one may be taken."""
        if share.rank is not Rank.COMMON:
            return 0.0
        now = self._clock()
        spent, at = self._spent.pop(share, (0.0, now))
        spent = max(0.0, spent - (now - at) * self._rate) + 1
        over = max(0.0, spent - self._burst)
        # What was refused, or waits, is not counted against it without end.
        self._spent[share] = min(spent, self._burst + self._rate), now
        if len(self._spent) > MAX_PACES:
            self._spent.popitem(last=False)
        return over / self._rate


@dataclass(slots=True)
class _Place:
    """One task of a peer with its worker."""

    worker: Worker
    running: asyncio.Task[None]
    share: Share


class TaskDesk:
    """Has a worker for each task of a peer that has not ended."""

    def __init__(
        self,
        *,
        config: InteractionConfig,
        sessions: Sessions,
        capabilities: CapabilityCalls,
        policy: PeerPolicy,
        room: Room,
        folders: Callable[[], CallFolders],
        leases: Leases,
        skills: SkillChooser,
        is_own: Callable[[str], bool],
    ) -> None:
        """Begin without tasks.

        Args:
            is_own: Tells if a DID is one of ours.
        """
        self._is_own = is_own
        self._leases = leases
        self._config = config
        self._sessions = sessions
        self._capabilities = capabilities
        self._policy = policy
        self._room = room
        self._folders = folders
        self._places: dict[tuple[str, str], _Place] = {}
        self._used: Counter[Share] = Counter()
        self.skills = skills
        "Finds the capability of tasks that name none."

        self.plan_worker: Callable[..., Worker] = Worker
        "Makes the worker for a task whose parts are given to peers."

        self._opened = StrangerPace(burst=config.max_tasks_unlisted, rate=OPENED_RATE)

    @property
    def working(self) -> int:
        """Number of tasks that are offered or at work."""
        return len(self._places)

    def task_with(self, key: str) -> Task | None:
        """Return the task at work that an agent was given with a key, or None."""
        if not key:
            return None
        workers = (one.worker for one in self._places.values())
        return next((one.task for one in workers if one.key == key), None)

    def works_for(self, peer: str) -> bool:
        """Return whether a task of a peer has not ended; its DID is the canonical."""
        return any(one.worker.peer == peer for one in self._places.values())

    def check_room(self, share: Share) -> None:
        """Check that one more task may be taken.

        Raises:
            InteractionError: Those of this share have as many as they may.
        """
        listed = share.rank is not Rank.COMMON
        most = self._config.max_tasks if listed else self._config.max_tasks_unlisted
        if self._used[share] >= most:
            raise InteractionError(
                InteractionFault.TOO_MANY,
                f"at most {most} tasks may be open here; come again in {FULL:g} s or "
                "later",
                retry_after=FULL,
            )

    def check_sessions(self, share: Share) -> None:
        """Count a session that a peer opens.

        Raises:
            InteractionError: Those of this share opened too many of late.
        """
        wait = self._opened.wait(share) if share.rank is Rank.COMMON else 0.0
        if wait > 0:
            seconds = float(math.ceil(wait))
            raise InteractionError(
                InteractionFault.TOO_MANY,
                "too many sessions were opened of late; come again in "
                f"{seconds:g} s or later",
                retry_after=seconds,
            )

    def begin(self, log: str, task: Task) -> None:
        """Do a task, as work for the peer whose operation is at hand.

        After a restart there is none, and the share is found from the peer alone.
        """
        key = log, task.id
        if key in self._places:
            return
        share = current_share.get()
        self._used[share] += 1
        worker = (self.plan_worker if is_plan(task) else Worker)(
            log,
            task,
            sessions=self._sessions,
            capabilities=self._capabilities,
            room=self._room,
            folders=self._folders(),
            max_wait=self._config.max_wait,
            peer=task.requester,
            peer_did=task.requester,
            chooser=self.skills,
        )
        running = asyncio.create_task(counted(self._leased(key, worker, share)))
        self._places[key] = _Place(worker, running, share)
        running.add_done_callback(lambda _: self._end(key))

    async def _leased(self, key: tuple[str, str], worker: Worker, share: Share) -> None:
        """Do a task, unless another daemon of the fleet does it."""
        try:
            item = await self._sessions.item_of(*key)
        except InteractionError as exc:
            # The session was deleted before its task could begin.
            logger.info("task not begun session=%s reason=%s", key[0], exc.text)
            return
        if not await self._leases.take(item, key[0]):
            logger.info("task is done by a sister session=%s", key[0])
            return
        leave = self._leases.end
        try:
            await self._run(worker, share)
        except asyncio.CancelledError:
            leave = self._leases.leave
            raise
        finally:
            with contextlib.suppress(CacheError):
                await asyncio.shield(leave(item))

    def at_work(self, log: str) -> set[str]:
        """Return the ids on the wire of the tasks of a session that are here."""
        return {name for known, name in self._places if known == log}

    async def _run(self, worker: Worker, share: Share) -> None:
        known = await asyncio.to_thread(self._policy.known, worker.peer)
        if known:
            # The owner's words are kept under this form of the DID.
            worker.peer = known[0].did
        if share.rank is Rank.OWNER:
            found = await self._policy.share_of(worker.peer, address="")
            current_share.set(found)
        problem = loop_problem(visited_of(worker.task), self._is_own)
        if problem:
            await worker.hand_back("loop", problem)
        else:
            await worker.run()

    def _end(self, key: tuple[str, str]) -> None:
        place = self._places.pop(key)
        self._used[place.share] -= 1
        if not self._used[place.share]:
            del self._used[place.share]

    def follow(self, log: str, step: Step) -> None:
        """Do what a step asks of the tasks here."""
        for task in step.offered:
            self.begin(log, task)
        for message in step.whole:
            self._answer(log, message)
        for name in step.stop:
            place = self._places.get((log, name))
            if place is not None:
                place.worker.cancel(place.running)

    async def refresh(self, log: str) -> None:
        """End the work that its requester took back at another daemon of the fleet."""
        conversation = await self._sessions.refresh(log)
        for (known, name), place in list(self._places.items()):
            task = conversation.tasks.get(name) if known == log else None
            if task is not None and task.cancel_requested:
                place.worker.cancel(place.running)
        await self.end_finished(log, [*self.at_work(log)])

    async def end_finished(self, log: str, names: list[str]) -> None:
        """Stop the work on tasks that have ended by another's word than its own."""
        conversation = await self._sessions.conversation(log)
        for name in names:
            place = self._places.get((log, name))
            task = conversation.tasks.get(name)
            if place is not None and (task is None or is_terminal(task.state)):
                place.worker.drop(place.running)

    def _answer(self, log: str, message: Message) -> None:
        place = self._places.get((log, message.task))
        if place is not None:
            place.worker.answer(message)

    async def recheck(self) -> None:
        """End the tasks of the peers that the owner's policy lets in no more."""
        peers = {one.worker.peer for one in self._places.values()}
        states = await asyncio.to_thread(
            lambda: {peer: self._policy.state(peer) for peer in peers}
        )
        for place in list(self._places.values()):
            peer = place.worker.peer
            if peer not in states:
                continue
            problem = self._policy.problem(states[peer], peer)
            if problem is not None:
                logger.info("task ended by the owner's word peer=%s", peer)
                place.worker.forbid(place.running, "this peer is not allowed")

    def drop(self, log: str) -> None:
        """Stop the work on the tasks of a session that is deleted."""
        for (name, _), place in list(self._places.items()):
            if name == log:
                place.worker.drop(place.running)

    async def close(self) -> None:
        """End the work; the next start decides about it."""
        working = [one.running for one in self._places.values()]
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
