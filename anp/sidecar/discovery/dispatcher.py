"""Calls and tasks for a capability, given to the best peer that takes them (A2A-26).

The next peer is tried only as long as nothing ran: one cannot be reached, refuses, or
says that it is too busy. What may have run is never given to another one.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from anp.errors import CallError, ErrorKind
from anp.interaction.elements import Part
from anp.interaction.states import TaskState
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.discovery.candidates import Candidate, Candidates
from anp.sidecar.peers.figures import Measures
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.known import KnownTask, Maker
from anp.sidecar.tasks.service import TaskService

FIRST_WORD: Final = 20.0
"Seconds for a peer's first word about a task; after that the task stays with it."

ELSEWHERE: Final = frozenset(
    {
        ErrorKind.PEER_UNREACHABLE,
        ErrorKind.IDENTITY_REFUSED,
        ErrorKind.NEGOTIATION_REJECTED,
        ErrorKind.APPROVAL_PENDING,
        ErrorKind.APPLICATION_ERROR,
        ErrorKind.POLICY,
        ErrorKind.TIMEOUT,
    }
)
"Errors after which another peer is tried, if nothing ran."

MAX_TRIED: Final = 8
"Peers that one call or task is offered to."

UNTAKEN: Final = frozenset({TaskState.REJECTED, TaskState.FAILED})
"Ends of a task after which another peer is tried, if nothing ran."

STARTED: Final = frozenset(
    {TaskState.ACCEPTED, TaskState.WORKING, TaskState.INPUT_REQUIRED}
)


class Dispatcher:
    """Finds a peer for a capability, and another one if that does not take it."""

    def __init__(
        self,
        *,
        candidates: Candidates,
        measures: Measures,
        tasks: TaskService,
        call: Callable[[CallRequest], Awaitable[CallResult]],
        reach: Callable[[str], Awaitable[None]],
    ) -> None:
        """Take the parts that carry calls and tasks.

        Args:
            reach: Returns when the peer at an address is connected and lets us in;
                CallError else.
        """
        self.candidates = candidates
        "Those among whom it chooses."

        self._measures = measures
        self._tasks = tasks
        self._call = call
        self.reach = reach
        self._chronicle = Chronicle(tasks.sessions)

    async def call(self, request: CallRequest) -> CallResult:
        """Carry a call to its peer, or to the best one if it names none.

        Raises:
            CallError: With the kind that programs read.
        """
        if request.peer:
            return await self._call(request)
        began = time.monotonic()
        untaken: list[tuple[Candidate, CallError]] = []
        wanted = request.need.requirement
        for one in await self._found(wanted):
            left = request.timeout
            if left is not None:
                left -= time.monotonic() - began
                if left <= 0:
                    break
            self.candidates.choose(one)
            need = replace(request.need, requirement=one.capability)
            try:
                return await self._call(
                    request._replace(peer=one.address, need=need, timeout=left)
                )
            except CallError as exc:
                if exc.may_have_run or exc.kind not in ELSEWHERE:
                    raise
                untaken.append((one, exc))
        raise await self._nobody(wanted, untaken)

    async def start_task(
        self, wanted: str, *, parts: Sequence[Part] = (), maker: Maker = Maker.AGENT
    ) -> KnownTask:
        """Start a task at the best peer that takes it.

        Returns:
            The task as soon as its peer has said something of it. The tasks that others
            did not take stay in the list as rejected.

        Raises:
            CallError: No peer took it.
        """
        untaken: list[tuple[Candidate, CallError]] = []
        for one in await self._found(wanted):
            self.candidates.choose(one)
            try:
                # Until a peer is there nothing is sent, so that nothing can have run.
                await self.reach(one.address)
                known = await self._tasks.start_task(
                    one.address, capability=one.capability, parts=parts, maker=maker
                )
            except CallError as exc:
                if exc.kind not in ELSEWHERE:
                    raise
                untaken.append((one, exc))
                continue
            _, (known,) = await self._chronicle.wait(
                [known.id], states=STARTED, timeout=FIRST_WORD
            )
            task = known.task
            if task.state not in UNTAKEN or task.may_have_run:
                return known
            self._measures.failed(one.did, one.capability)
            refusal = CallError(
                ErrorKind.NEGOTIATION_REJECTED, task.reason or task.code
            )
            untaken.append((one, refusal))
        raise await self._nobody(wanted, untaken)

    async def _found(self, wanted: str) -> list[Candidate]:
        return (await self.candidates.find(wanted))[:MAX_TRIED]

    async def _nobody(
        self, wanted: str, untaken: Sequence[tuple[Candidate, CallError]]
    ) -> CallError:
        if untaken:
            last = untaken[-1][1]
            reasons = "; ".join(
                f"{one.address[:80]}: {exc.detail[:120]}" for one, exc in untaken
            )
            return CallError(
                last.kind,
                f"no peer took {wanted[:80]!r}: {reasons}",
                retry_after=last.retry_after,
            )
        unlisted = await self.candidates.unlisted(wanted)
        more = f"; registries tell of {len(unlisted)}" if unlisted else ""
        return CallError(
            ErrorKind.PEER_UNREACHABLE,
            f"no allowed peer publishes {wanted[:80]!r} now{more}; "
            "`anpd peers find` shows who does, `anpd peers allow` lets one be chosen",
        )
