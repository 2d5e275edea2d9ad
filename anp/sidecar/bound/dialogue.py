"""The shell of a `Dialogue`: carries its messages over a bound channel.

It sends what the machine wants said, arms its timer, takes its questions to `Answers`
and lets callers wait for the end of a test negotiation, a report or a question.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import string
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.stranger_work import counted
from anp.identity.dids import canonical_did
from anp.sidecar.bound.work import read_signal
from anp.wire.frames import ProtocolType
from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.events import (
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    DialogueBroken,
    DialogueEvent,
    Fault,
    Ignored,
    MessageRefused,
    NeedCasesVerdict,
    NeedFault,
    NeedRepair,
    NeedSpokenAnswer,
    PeerRepaired,
    PeerRepairs,
    QuestionAnswered,
    QuestionUnanswered,
    RefusalUnsent,
    RepairFailed,
    ReportRefused,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.messages import CallSignal
from negotiation.need import Role
from sandbox.pool.shares import OWNER, Rank, Share, current_share

logger = logging.getLogger(__name__)

GONE = "the channel ended"
"The reason given to those who still wait when the channel ends."

_LETTERS = string.ascii_letters + string.digits
_ID_LENGTH = 16


class ReportEnd(Enum):
    """The outcome of a report of ours."""

    REPAIRED = auto()
    "The peer changed its code; the message in question comes anew."

    REFUSED = auto()
    "The peer says that it is not at fault."

    FAILED = auto()
    "There will be no repair: silence, limits, or the channel is gone."


@dataclass(frozen=True, slots=True)
class Report:
    """The end of a report of ours."""

    end: ReportEnd
    "The outcome."

    reason: str
    "The reason in words; it may quote the peer."


class Answers(ABC):
    """The decisions that a dialogue leaves to its side of the channel."""

    @abstractmethod
    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """Judge a set of test cases of the peer."""

    @abstractmethod
    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """Take note of the outcome of test cases."""

    @abstractmethod
    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        """Judge an error that the peer reports; what is ours is repaired before."""

    @abstractmethod
    async def repaired(self, reference: str | None) -> None:
        """Send the message in question anew; the peer knows of our new code."""

    @abstractmethod
    def message_refused(self, reference: str | None, reason: str) -> None:
        """End the call whose request the peer cannot answer."""

    @abstractmethod
    async def answer(self, question: str) -> str:
        """Answer a question about the protocol in words (ANP-64)."""


class DialogueShell:
    """Drives one `Dialogue` until its channel ends."""

    def __init__(
        self,
        channel: Channel,
        role: Role,
        limits: DialogueLimits,
        answers: Answers,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channel = channel
        self._answers = answers
        self._clock = clock
        self._machine = Dialogue(role, limits, common=channel.capabilities, now=clock())
        self._turn = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._work: set[asyncio.Task[None]] = set()
        self.free = asyncio.Event()
        "Cleared while application data is held for a repair (ANP-Q25)."
        self.free.set()
        self.can_report = "fixErrorNegotiation" in channel.capabilities
        "True when errors may be reported to this peer (ANP-81)."
        self.messages = 0
        "Meta messages of this channel since it was bound, both directions."
        self.on_signal: Callable[[CallSignal], Awaitable[None]] | None = None
        "Takes signals about calls, where both sides listed the extension `work`."
        self._cases: asyncio.Future[CasesAgreed | CasesSkipped] | None = None
        self._reports: dict[str, asyncio.Future[Report]] = {}
        self._questions: dict[str, asyncio.Future[str]] = {}
        self._ignored = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """True while either side works on something or waits for the other."""
        waiting = self._cases is not None and not self._cases.done()
        return bool(
            self._work or self._reports or self._questions or self._turn.locked()
        ) or (waiting or not self.free.is_set())

    async def receive(self, data: bytes) -> None:
        """Take the Protocol Data of one PT=00 frame."""
        if self.on_signal is not None:
            signal = read_signal(data)
            if signal is not None:
                await self.on_signal(signal)
                return
        await self._step(lambda now: self._machine.receive_message(data, now=now))

    async def agree_cases(self, text: str) -> CasesAgreed | CasesSkipped:
        """Propose test cases and wait for the end of that (ANP-49, ANP-Q9)."""
        if self._closed:
            return CasesSkipped(GONE, by_peer=False)
        self._cases = asyncio.get_running_loop().create_future()
        await self._step(lambda now: self._machine.start_tests(text, now=now))
        return await self._cases

    async def report(self, reference: str, description: str) -> Report:
        """Tell the peer that its message is wrong, and wait for what it does."""
        if reference in self._reports:
            return Report(ReportEnd.FAILED, "this message was reported already")
        if self._closed:
            return Report(ReportEnd.FAILED, GONE)
        future: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._reports[reference] = future
        try:
            await self._step(
                lambda now: self._machine.report_error(reference, description, now=now)
            )
            return await future
        finally:
            self._reports.pop(reference, None)

    async def refuse(self, reference: str, reason: str) -> None:
        """Tell the peer that its message will not be answered."""
        await self._step(
            lambda now: self._machine.refuse_message(reference, reason, now=now)
        )

    async def ask(self, question: str) -> str | None:
        """Ask the peer something in words (ANP-66); None when it does not answer."""
        if self._closed:
            return None
        name = "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._questions[name] = future
        try:
            await self._step(lambda now: self._machine.ask(question, name, now=now))
            return await future or None
        finally:
            self._questions.pop(name, None)

    async def close(self) -> None:
        """End everything, and tell those who wait that the channel is gone."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        self.free.set()
        if self._cases is not None and not self._cases.done():
            self._cases.set_result(CasesSkipped(GONE, by_peer=False))
        for report in self._reports.values():
            _settle(report, Report(ReportEnd.FAILED, GONE))
        for question in self._questions.values():
            _settle(question, "")

    # Steps of the machine.

    async def _step(self, feed: Callable[[float], Any]) -> None:
        """Feed the machine, send what it says, and act on what it asks for."""
        events: list[DialogueEvent] = []
        async with self._turn:
            if self._closed:
                return
            feed(self._clock())
            try:
                for data in self._machine.messages_to_send():
                    await self._channel.send(ProtocolType.META, data)
            except ChannelClosed:
                self._machine.link_lost(now=self._clock())
            while (event := self._machine.next_event()) is not None:
                events.append(event)
            sent, received = (
                self._machine.messages_sent,
                self._machine.messages_received,
            )
            self.messages = sent + received
            if self._machine.holding:
                self.free.clear()
            else:
                self.free.set()
            self._arm()
        for event in events:
            self._act(event)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._machine.get_timer()
        if due is not None and not self._closed:
            wait = max(0.0, due - self._clock())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(wait, self._on_timer)

    def _on_timer(self) -> None:
        self.spawn(self._step(lambda now: self._machine.handle_timer(now=now)))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside; it ends with the channel at the latest."""
        if self._closed:
            work.close()
            return
        context = copy_context()
        if current_share.get() == OWNER:
            # What the peer starts on a channel of ours is not our own work.
            peer = canonical_did(self._channel.peer_did, self._channel.peer_key)
            context.run(current_share.set, Share(Rank.LISTED, peer))
        task = asyncio.create_task(counted(work), context=context)
        self._work.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A bug of ours; timers end whatever now gets no answer.
            logger.error("channel task failed", exc_info=error)

    # Events of the machine.

    def _act(self, event: DialogueEvent) -> None:
        match event:
            case NeedCasesVerdict() | NeedFault() | NeedSpokenAnswer() | NeedRepair():
                self.spawn(self._answer(event))
            case CasesAgreed() | CasesSkipped():
                _settle(self._cases, event)
                self.spawn(self._answers.cases_settled(event))
            case PeerRepairs(reference):
                logger.info("peer repairs its code reference=%r", reference)
            case PeerRepaired(reference):
                self._end_report(reference, ReportEnd.REPAIRED, "")
            case ReportRefused(reference, reason):
                self._end_report(reference, ReportEnd.REFUSED, reason)
            case RepairFailed(reference, reason, by_peer):
                if by_peer:
                    self._end_report(reference, ReportEnd.FAILED, reason)
                else:
                    logger.warning("our repair failed reason=%r", reason[:200])
            case MessageRefused(reference, reason):
                self._answers.message_refused(reference, reason)
            case QuestionAnswered(name, text):
                _settle(self._questions.get(name), text)
            case QuestionUnanswered(name):
                _settle(self._questions.get(name), "")
            case Ignored(reason):
                self._ignored += 1
                # One line for each channel; the machine counts and ends them.
                level = logging.WARNING if self._ignored == 1 else logging.DEBUG
                logger.log(level, "meta message ignored reason=%r", reason)
            case RefusalUnsent(_, reason):
                self.spawn(self._channel.close(f"not answered: {reason}"[:300]))
            case DialogueBroken(reason):
                self.spawn(self._channel.close(f"meta-protocol: {reason}"[:300]))

    async def _answer(
        self, event: NeedCasesVerdict | NeedFault | NeedSpokenAnswer | NeedRepair
    ) -> None:
        machine = self._machine
        match event:
            case NeedCasesVerdict(text=text, may_counter=may_counter):
                verdict = await self._answers.judge_cases(text, may_counter=may_counter)
                await self._step(lambda now: machine.cases_judged(verdict, now=now))
            case NeedFault(reference, description, _, number):
                fault = await self._answers.judge_fault(reference, description)
                await self._step(
                    lambda now: machine.fault_judged(fault, now=now, number=number)
                )
            case NeedRepair(reference=reference):
                # It was made before the fault was admitted, so nobody has to wait.
                await self._step(lambda now: machine.repair_ready(now=now))
                await self._answers.repaired(reference)
            case NeedSpokenAnswer(message_id=name, text=text):
                words = await self._answers.answer(text)
                await self._step(lambda now: machine.answer_ready(name, words, now=now))

    def _end_report(self, reference: str | None, end: ReportEnd, reason: str) -> None:
        # Without a reference only the one open report can be meant.
        if reference is None and len(self._reports) == 1:
            reference = next(iter(self._reports))
        if reference is not None:
            _settle(self._reports.get(reference), Report(end, reason))


def _settle(future: asyncio.Future[Any] | None, value: Any) -> None:
    if future is not None and not future.done():
        future.set_result(value)
