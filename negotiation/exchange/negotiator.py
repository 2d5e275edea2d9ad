"""The shell of one negotiation: it passes requests of the machine to a mind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeVar

from negotiation.errors import (
    FailureKind,
    HalfError,
    MindError,
    MisuseError,
    NegotiationError,
    TransportClosed,
    told_of,
)
from negotiation.exchange.events import (
    CodeGenerationSlow,
    Event,
    Ignored,
    NeedModule,
    NeedProposal,
    NeedSpokenAnswer,
    NeedVerdict,
    NegotiationAgreed,
    NegotiationFailed,
    QuestionAnswered,
    QuestionUnanswered,
)
from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import NegotiationState
from negotiation.mind import (
    Accept,
    Counter,
    Demand,
    HalfSource,
    Mind,
    Offer,
    Reject,
    Side,
    Verdict,
)
from negotiation.transcript import NegotiationEnded, Turn, calls_in_words

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_SEND = 10.0
"Seconds for sending one frame; the link counts as lost afterwards."

MAX_FAREWELL = 1.0
"Seconds for telling the peer that we were cancelled."

APPROVAL_MARGIN = 2.0
"Seconds of our time to answer that the owner does not get, for sending the answer."

Approve = Callable[[str, HalfSource | None, float], Awaitable[Verdict]]
"""Asks the owner about a document, before it can become an agreement (ANP-34).

Gets the document, our half for it (always for a provider, for a requester only with a
candidate of the peer) and the seconds left. Returns `Accept`, or the verdict to send
instead.
"""


class Start(Protocol):
    """Starts a task, as `asyncio.create_task` does."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> asyncio.Task[T]: ...


class Transport(Protocol):
    """Carries the PT=00 frames of one channel, without their header byte."""

    async def send(self, data: bytes) -> None:
        """Send one frame.

        Raises:
            TransportClosed: The channel is closed.
        """
        ...

    async def receive(self) -> bytes:
        """Wait for the next frame; cancelling the wait loses none.

        Raises:
            TransportClosed: The channel is closed.
        """
        ...


@dataclass(frozen=True, slots=True)
class NegotiationResult:
    """The result of a successful negotiation."""

    document: str
    "The agreed text (ANP-Q6)."

    hash: str
    "SHA-256 of its UTF-8 bytes, 64 hex characters (ANP-88)."

    half: HalfSource
    "Our half, which passed its checks."

    transcript: tuple[Turn, ...]
    "All turns, oldest first."

    messages_sent: int
    messages_received: int

    unread: bytes | None = None
    "A frame that arrived as the negotiation ended, for the channel to handle."


async def negotiate(
    machine: Machine,
    transport: Transport,
    *,
    mind: Mind,
    side: Side,
    prepare: Callable[[str], Awaitable[HalfSource]],
    approve: Approve | None = None,
    cancelled: asyncio.Future[str] | None = None,
    clock: Callable[[], float] = time.monotonic,
    on_turn: Callable[[Turn], None] | None = None,
    on_end: Callable[[NegotiationEnded], None] | None = None,
    start: Start = asyncio.create_task,
) -> NegotiationResult:
    """Drive `machine` to its end (ANP-3, ANP-7).

    Our half is prepared before a candidate is accepted (ANP-Q8), and while the peer
    judges a candidate of ours. When this coroutine is cancelled, the peer is told.

    Args:
        machine: A fresh machine, made with `clock`.
        mind: Proposes and judges.
        side: The side the mind works for; `Demand` when the machine is a requester's.
        prepare: Writes and checks our half for a document; raises `HalfError` after its
            attempts, or `MindError`. See `prepare_half`.
        approve: Asks the owner; without it the mind decides alone.
        cancelled: Gets a reason when the owner ends the negotiation.
        on_turn: Called with each new turn of the transcript, in order.
        on_end: Called at once when there is no agreement, even if this coroutine is
            cancelled before it can raise the error.
        start: Starts the tasks of the mind, whose work may be counted.

    Raises:
        NegotiationEnded: There is no agreement.
    """
    shell = _Negotiation(
        *(machine, transport, mind, side, prepare, approve, cancelled, clock, on_turn),
        start,
    )
    try:
        return await shell.run()
    except NegotiationEnded as exc:
        if on_end is not None:
            on_end(exc)
        raise
    except BaseException as exc:
        # Cancelled, or a bug of a mind: in both cases the peer should not have to wait.
        taken_back = isinstance(exc, asyncio.CancelledError)
        await shell.say_farewell(
            "the negotiation was cancelled" if taken_back else "an unexpected fault"
        )
        raise
    finally:
        await shell.stop()


class _NotApproved(NegotiationError):
    """The owner did not approve our own proposal."""


@dataclass(slots=True, eq=False)
class _Negotiation:
    """Runs the tasks around one machine, at most one of each kind below."""

    _machine: Machine
    _transport: Transport
    _mind: Mind
    _side: Side
    _prepare: Callable[[str], Awaitable[HalfSource]]
    _approve: Approve | None
    _cancelled: asyncio.Future[str] | None
    _clock: Callable[[], float]
    _on_turn: Callable[[Turn], None] | None
    _start: Start
    _turns_told: int = 0
    _half: HalfSource | None = None
    # Our half as shown to the owner with a counter-proposal of ours, by document.
    _shown: dict[str, HalfSource] = field(default_factory=dict)
    _receiving: asyncio.Task[bytes] | None = None
    _proposing: asyncio.Task[str] | None = None
    _judging: asyncio.Task[tuple[Verdict, HalfSource | None]] | None = None
    # Prepares our half for a candidate of ours, while or after the peer judges it.
    _preparing: asyncio.Task[HalfSource] | None = None
    _preparing_for: str = ""
    _awaiting_half: bool = False
    _dropped: list[asyncio.Task[HalfSource]] = field(default_factory=list)
    # Questions of the peer that our mind is answering, by message id (ANP-64).
    _answering: dict[str, asyncio.Task[str]] = field(default_factory=dict)

    async def run(self) -> NegotiationResult:
        """Feed the machine until its last event."""
        while (outcome := await self._carry_out()) is None:
            await self._wait()
            self._collect()
            self._machine.handle_timer(now=self._clock())
        return outcome

    async def say_farewell(self, why: str) -> None:
        """Tell the peer that we end the negotiation, if that takes little time."""
        self._machine.cancel(why, now=self._clock())
        with contextlib.suppress(TransportClosed, TimeoutError):
            async with asyncio.timeout(MAX_FAREWELL):
                for data in self._machine.messages_to_send():
                    await self._transport.send(data)
        self._tell_turns()

    async def stop(self) -> None:
        """End every task that is still running."""
        tasks = [*self._tasks(), *self._dropped]
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(
                result, NegotiationError
            ):
                # The result is not needed any more, but the error is a bug of ours.
                logger.error("negotiation task failed late", exc_info=result)

    # Outputs of the machine: messages and events.

    async def _carry_out(self) -> NegotiationResult | None:
        """Send messages and handle events until there are no more.

        Raises:
            NegotiationEnded: The machine's last event is a failure.
        """
        while True:
            await self._send_all()
            self._tell_turns()
            match self._machine.next_event():
                case None:
                    return None
                case NegotiationAgreed(document, digest):
                    return self._outcome(document, digest)
                case NegotiationFailed(kind, reason, by_peer):
                    self._end(kind, reason, by_peer=by_peer)
                case event:
                    self._act(event)

    async def _send_all(self) -> None:
        for data in self._machine.messages_to_send():
            try:
                async with asyncio.timeout(MAX_SEND):
                    await self._transport.send(data)
            except (TransportClosed, TimeoutError):
                if self._machine.ready:
                    # The peer did not learn that our code is ready, so nothing is
                    # agreed.
                    reason = "the connection was lost with the last message"
                    self._end(FailureKind.LINK_LOST, reason, by_peer=False)
                self._machine.link_lost(now=self._clock())
                return

    def _tell_turns(self) -> None:
        turns = self._machine.transcript
        new, self._turns_told = turns[self._turns_told :], len(turns)
        if self._on_turn is not None:
            for turn in new:
                self._on_turn(turn)

    def _act(self, event: Event) -> None:
        match event:
            case NeedProposal():
                self._proposing = self._start(self._propose())
            case NeedVerdict(candidate):
                # The preparation was for a candidate that the peer has now countered.
                self._drop_preparation()
                self._judging = self._start(self._judge(candidate))
            case NeedModule(document):
                self._start_preparation(document)
                self._awaiting_half = True
            case NeedSpokenAnswer(message_id, text):
                self._answering[message_id] = self._start(
                    self._mind.answer(text, self._side)
                )
            case QuestionAnswered() | QuestionUnanswered():
                # Our side asks no questions: its documents contain all it has to say.
                logger.debug("negotiation question ended %s", type(event).__name__)
            case CodeGenerationSlow(waiting_for_peer):
                logger.info("code generation slow peer=%s", waiting_for_peer)
            case Ignored(reason):
                # One warning for each negotiation; the machine counts further ones.
                level = logging.WARNING if self._machine.ignored == 1 else logging.DEBUG
                logger.log(level, "negotiation message ignored reason=%r", reason)

    def _start_preparation(self, document: str) -> None:
        if self._preparing is None or self._preparing_for != document:
            self._drop_preparation()
            self._preparing_for = document
            self._preparing = self._start(self._prepared(document))

    def _drop_preparation(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
            self._dropped.append(self._preparing)
            self._preparing = None

    # The work of the tasks.

    async def _propose(self) -> str:
        if not isinstance(self._side, Demand):
            raise MisuseError("a requester's negotiation needs a Need")
        text = await self._mind.propose(self._side)
        if self._approve is None:
            return text
        match await self._approve(text, None, self._time_left()):
            case Accept():
                return text
            case Counter(document):
                return document
            case Reject(reason):
                raise _NotApproved(reason)

    async def _prepared(self, document: str) -> HalfSource:
        if (shown := self._shown.get(document)) is not None:
            return shown
        return await self._prepare(document)

    async def _judge(self, candidate: str) -> tuple[Verdict, HalfSource | None]:
        """Let the mind judge, and write our half before anything is accepted.

        Raises:
            HalfError: The candidate is acceptable but cannot be coded, and the mind has
                no better answer to that.
        """
        transcript = self._machine.transcript
        verdict = await self._mind.judge(candidate, self._side, transcript)
        if isinstance(verdict, Accept):
            try:
                half = await self._prepare(candidate)
            except HalfError as exc:
                verdict = await self._mind.judge(
                    candidate, self._side, transcript, findings=(exc.reason,)
                )
                if isinstance(verdict, Accept):
                    raise
            else:
                said = await self._owner_says(candidate, half)
                if not isinstance(said, Accept):
                    return said, None
                return Accept(calls_in_words(half.capabilities, half.empty)), half
        if isinstance(verdict, Counter):
            # The peer may accept it at once, so the owner is asked before it is sent.
            said = await self._owner_says(verdict.document, None)
            return (verdict if isinstance(said, Accept) else said), None
        return verdict, None

    async def _owner_says(self, document: str, half: HalfSource | None) -> Verdict:
        """Ask the owner before a message that could complete an agreement (ANP-34)."""
        if self._approve is None:
            return Accept()
        if half is None and isinstance(self._side, Offer):
            # The owner must see which capabilities the half may call.
            half = self._shown[document] = await self._prepare(document)
        return await self._approve(document, half, self._time_left())

    def _time_left(self) -> float:
        due = self._machine.get_timer()
        left = 0.0 if due is None else due - self._clock() - APPROVAL_MARGIN
        return max(0.0, left)

    # Inputs of the machine: results of finished tasks.

    def _tasks(self) -> list[asyncio.Task[Any]]:
        every = (self._receiving, self._proposing, self._judging, self._preparing)
        return [task for task in every if task is not None] + [
            *self._answering.values()
        ]

    async def _wait(self) -> None:
        if self._receiving is None:
            self._receiving = asyncio.create_task(self._transport.receive())
        tasks: list[asyncio.Future[Any]] = [*self._tasks()]
        if self._preparing is not None and not self._awaiting_half:
            # Otherwise a finished preparation that is not needed yet would end each
            # wait.
            tasks.remove(self._preparing)
        if self._cancelled is not None:
            tasks.append(self._cancelled)
        due = self._machine.get_timer()
        wait = None if due is None else max(0.0, due - self._clock())
        await asyncio.wait(tasks, timeout=wait, return_when=asyncio.FIRST_COMPLETED)

    def _collect(self) -> None:
        """Feed finished results to the machine, the peer's message first."""
        now = self._clock()
        if self._cancelled is not None and self._cancelled.done():
            self._machine.cancel(self._cancelled.result(), now=now)
        try:
            self._collect_message(now)
            self._collect_answers(now)
        except TransportClosed:
            self._machine.link_lost(now=now)
        except MindError as exc:
            self._machine.mind_failed(str(exc), now=now)
        except HalfError as exc:
            logger.info("half failed reason=%r", str(exc)[:200])
            self._machine.module_failed(told_of(exc), now=now)
        except _NotApproved as exc:
            self._machine.cancel(str(exc), now=now)

    def _collect_message(self, now: float) -> None:
        if (task := _finished(self._receiving)) is not None:
            self._receiving = None
            self._machine.receive_message(task.result(), now=now)

    def _collect_answers(self, now: float) -> None:
        for message_id, task in list(self._answering.items()):
            if task.done():
                del self._answering[message_id]
                self._machine.answer_ready(message_id, _words_of(task), now=now)
        if (proposing := _finished(self._proposing)) is not None:
            self._proposing = None
            candidate = proposing.result()
            self._machine.proposal_ready(candidate, now=now)
            self._prepare_ahead(candidate)
        if (judging := _finished(self._judging)) is not None:
            self._judging = None
            verdict, self._half = judging.result()
            if self._half is not None:
                self._machine.module_ready(now=now)
            self._machine.verdict_ready(verdict, now=now)
            if isinstance(verdict, Counter):
                self._prepare_ahead(verdict.document)
        if self._awaiting_half and (half := _finished(self._preparing)) is not None:
            self._preparing, self._awaiting_half = None, False
            self._half = half.result()
            self._machine.module_ready(now=now)

    def _prepare_ahead(self, candidate: str) -> None:
        """Prepare our half while the peer judges, if the candidate was really sent."""
        if self._machine.state is NegotiationState.EXPECT_ANSWER:
            self._start_preparation(candidate)

    # The end.

    def _outcome(self, document: str, digest: str) -> NegotiationResult:
        if self._half is None:
            raise MisuseError("the machine agreed without a half of ours")
        receiving = _finished(self._receiving)
        unread = None
        if receiving is not None and receiving.exception() is None:
            unread = receiving.result()
        return NegotiationResult(
            document,
            digest,
            self._half,
            self._machine.transcript,
            self._machine.messages_sent,
            self._machine.messages_received,
            unread,
        )

    def _end(self, kind: FailureKind, reason: str, *, by_peer: bool) -> NoReturn:
        transcript = self._machine.transcript
        raise NegotiationEnded(kind, reason, by_peer=by_peer, transcript=transcript)


def _finished(task: asyncio.Task[T] | None) -> asyncio.Task[T] | None:
    return task if task is not None and task.done() else None


def _words_of(task: asyncio.Task[str]) -> str:
    """Return an answer to a question, or none: its failure ends no negotiation."""
    try:
        return task.result()
    except MindError as exc:
        logger.info("question not answered reason=%r", str(exc)[:200])
        return ""
