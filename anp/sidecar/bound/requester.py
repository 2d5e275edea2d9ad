"""A bound channel as requester: calls in flight, tests and repairs with one peer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.channel.core.link_core import FrameTooLarge
from anp.errors import CallError, ErrorKind
from anp.identity.dids import canonical_did
from anp.sidecar.bound.cases import RequesterCases
from anp.sidecar.bound.dialogue import DialogueShell, ReportEnd
from anp.sidecar.bound.examiner import Examiner
from anp.sidecar.bound.exchanges import Exchange, Exchanges
from anp.sidecar.bound.repairer import Repairer
from anp.sidecar.bound.verification import Verification
from anp.sidecar.halves.loader import HalfLoader
from anp.sidecar.halves.protocol import Answer, Protocol
from anp.sidecar.minds.afterwards import Afterwards, Bill, words_of
from anp.wire.frames import ProtocolType
from cache.records.records import AgreementRecord, HalfRecord, State
from negotiation.errors import HalfError, NegotiationError
from negotiation.exchange.dialogue import (
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    DialogueLimits,
    Fault,
    PeerFault,
    describe_error,
    judge_fault,
)
from negotiation.llm.asking.budget import BudgetExhausted
from negotiation.mind import Need
from negotiation.need import Role
from negotiation.runner import Validator

__all__ = ["Session", "SessionParts"]

logger = logging.getLogger(__name__)

MAX_REPAIRS = 10
"Repairs of either half on one channel (ANP-Q25)."


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What every session needs from the daemon."""

    loader: HalfLoader
    "Loads halves into the sandbox."

    repairer: Repairer
    "Writes halves anew."

    validator: Validator
    "Judges values."

    afterwards: Afterwards
    "Gives minds, which answer questions and examine messages."

    limits: DialogueLimits
    "How long and how much may be said."

    call_timeout: float
    "Seconds to wait for an answer."


@dataclass(slots=True)
class _Waiting:
    """A call in flight."""

    answer: asyncio.Future[Answer]
    exchange: Exchange


class Session:
    """A channel, the protocol it is bound to, and who waits for answers on it."""

    def __init__(
        self,
        channel: Channel,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord,
        need: Need,
        parts: SessionParts,
        *,
        on_end: Callable[[Session], None],
    ) -> None:
        self.channel = channel
        self.protocol = protocol
        self.agreement = agreement
        self._half = half
        self._need = need
        self._parts = parts
        self._on_end = on_end
        self._peer = canonical_did(channel.peer_did, channel.peer_key)
        self._pending: dict[str, _Waiting] = {}
        # Held by the one call in flight of a protocol without message ids.
        self._single = asyncio.Lock()
        self._exchanges = Exchanges()
        self._repairs = 0
        self._work: set[asyncio.Task[None]] = set()
        self.verification = Verification(channel)
        self._cases: RequesterCases | None = None
        self.bill = Bill()
        "What the model cost on this channel and no call has taken into account."
        self.examiner = Examiner(
            parts.afterwards,
            self._peer,
            lambda: self.agreement.negotiation_id,
            self.bill,
            limits=parts.limits,
        )
        self.dialogue = DialogueShell(channel, Role.REQUESTER, parts.limits, self)
        self._reader = asyncio.create_task(self._read())

    @property
    def alive(self) -> bool:
        """Whether requests can still be sent."""
        return self.channel.open

    @property
    def half(self) -> HalfRecord:
        """Our half, as it is by now."""
        return self._half

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return not self._pending

    async def revoke(self, reason: str) -> None:
        """End the channel at once; nothing more is decoded (DESIGN.md, Revoked).

        Args:
            reason: For the calls in flight.
        """
        self._reader.cancel()
        for waiting in list(self._pending.values()):
            _fail(waiting, CallError(ErrorKind.POLICY, reason, may_have_run=True))
        await self.channel.close("revoked")
        if self.channel.ended is not None:
            self.verification.ended(self.channel.ended)
        await asyncio.gather(self._reader, return_exceptions=True)

    async def wait_idle(self) -> None:
        """Wait until every call in flight has ended, or the channel."""
        while self._pending and self.alive:
            await asyncio.wait([waiting.answer for waiting in self._pending.values()])

    async def exchange(
        self, message_id: str, data: bytes, arguments: dict[str, Any]
    ) -> Answer:
        """Send one request and return its answer.

        Raises:
            ChannelClosed: Nothing was sent.
            CallError: `timeout`, `usage` for a request that is too large, or what the
                channel ended with; see `may_have_run`.
        """
        await self.dialogue.wait_free()
        if self.protocol.has_message_ids:
            return await self._wait_answer(message_id, data, arguments)
        async with self._single:
            try:
                return await self._wait_answer(message_id, data, arguments)
            except CallError as exc:
                # A late answer must never meet a later call.
                if exc.kind is ErrorKind.TIMEOUT:
                    await self.channel.close("no answer in time")
                raise

    async def agree_cases(
        self, cases: RequesterCases, text: str
    ) -> CasesAgreed | CasesSkipped:
        """Propose test cases; `cases` judges what the peer makes of them."""
        self._cases = cases
        return await self.dialogue.agree_cases(text)

    async def tested(self, tests: dict[str, Any], state: State = State.ACTIVE) -> None:
        """Keep the outcome of the tests with the agreement, and what it is now."""
        self.agreement = await asyncio.to_thread(
            self._parts.repairer.keep_tests, self.agreement, tests, state
        )

    # Answers.

    async def _wait_answer(
        self, message_id: str, data: bytes, arguments: dict[str, Any]
    ) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        exchange = Exchange(
            data,
            time.monotonic(),
            message_id=message_id,
            arguments=arguments,
            revision=self._half.revision,
        )
        self._pending[message_id] = _Waiting(answer, exchange)
        timeout = self._parts.call_timeout
        try:
            exchange.request_id = await self.channel.send(
                ProtocolType.APPLICATION, data
            )
            self._exchanges.keep(exchange, now=time.monotonic())
            async with asyncio.timeout(timeout):
                return await answer
        except FrameTooLarge as exc:
            raise CallError(ErrorKind.USAGE, str(exc)) from exc
        except TimeoutError:
            raise CallError(
                ErrorKind.TIMEOUT,
                f"no answer in {timeout:g} s (call.timeout)",
                may_have_run=True,
            ) from None
        finally:
            self._pending.pop(message_id, None)
            if answer.done() and not answer.cancelled():
                answer.exception()

    async def _read(self) -> None:
        """Take in what the peer sends, until the channel ends."""
        try:
            while True:
                event = await self.channel.receive()
                match event.frame.protocol_type:
                    case ProtocolType.APPLICATION:
                        await self._deliver(event)
                    case ProtocolType.META:
                        await self.dialogue.receive(event.frame.data)
                    case ProtocolType.VERIFICATION if self.verification.take(event):
                        pass
                    case _:
                        self._drop()
        except ChannelClosed as exc:
            self.verification.ended(exc)
            for waiting in list(self._pending.values()):
                # What the peer proved it did not act on may be sent once more.
                _fail(
                    waiting,
                    exc
                    if exc.unprocessed
                    else CallError(
                        ErrorKind.PEER_UNREACHABLE,
                        f"link_lost: {exc.detail}",
                        may_have_run=True,
                    ),
                )
        finally:
            self._on_end(self)
            for task in self._work:
                task.cancel()
            await self.dialogue.close()

    async def _deliver(self, event: FrameReceived) -> None:
        try:
            answer = await self.protocol.decode(event.frame.data)
        except NegotiationError as exc:
            logger.warning(
                "answer does not fit peer=%s reason=%r", self._peer, str(exc)[:200]
            )
            self._start(self._wrong(event, str(exc)))
            return
        self._settle(answer)

    def _settle(self, answer: Answer) -> None:
        key = answer.message_id
        if key is None and len(self._pending) == 1:
            key = next(iter(self._pending))
        waiting = self._pending.get(key) if key is not None else None
        if waiting is None or waiting.answer.done():
            self._drop()
            return
        waiting.answer.set_result(answer)

    def _drop(self) -> None:
        logger.warning("answer to nothing dropped peer=%s", self._peer)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("session task failed", exc_info=error)

    # Faults of the peer, and of ours.

    async def _wrong(self, event: FrameReceived, problem: str) -> None:
        """Find out why an answer cannot be used, and have it repaired (ANP-56)."""
        data, kind = event.frame.data, ErrorKind.GENERATED_CODE
        findings = await self.protocol.judge("response", data)
        waiting = await self._whose(data)
        if not findings and self.dialogue.can_report:
            # Ours or theirs: the schemas do not tell (ANP-9).
            asked = waiting.exchange.request if waiting is not None else None
            doubts = await self.examiner.deviations(asked, data, self.protocol)
            findings = list(doubts)
        if findings and self.dialogue.can_report and self._repairs < MAX_REPAIRS:
            self._repairs += 1
            report = await self.dialogue.report(
                event.message_id, describe_error(event.message_id, findings, data)
            )
            if report.end is ReportEnd.REPAIRED:
                # The same answer comes anew and is decoded like any other.
                return
            problem = f"{problem}; {report.reason}"
        elif not findings:
            # A good answer that our own half cannot read.
            try:
                await self._repair((problem,))
                self._settle(await self.protocol.decode(data))
                return
            except (HalfError, NegotiationError) as exc:
                problem = f"{problem}; {exc}"
                kind = _kind_of(exc)
        if waiting is not None:
            _fail(
                waiting,
                CallError(
                    kind,
                    f"the answer breaks the protocol: {problem}"[:500],
                    may_have_run=True,
                ),
            )

    async def _whose(self, data: bytes) -> _Waiting | None:
        """Return the call that an unfit answer belongs to, if that is sure.

        With one call in flight it must be its answer; with more, nobody knows whose
        it was, and each ends by its own deadline.
        """
        if len(self._pending) == 1:
            return next(iter(self._pending.values()))
        return None

    async def _repair(
        self, findings: tuple[str, ...], *, by_words: bool = False
    ) -> None:
        self._repairs += 1
        if self._repairs > MAX_REPAIRS:
            raise HalfError("rejected", f"over {MAX_REPAIRS} repairs on one channel")
        text = self.protocol.document.text
        repaired = await self._parts.repairer.repair(
            text,
            self._half,
            self._need,
            peer_did=self._peer,
            agreement=self.agreement,
            findings=findings,
            bill=self.bill,
            by_words=by_words,
        )
        self.protocol = await self._parts.loader.protocol(
            repaired.half, text, peer_did=self._peer
        )
        self._half, self.agreement = repaired.half, repaired.agreement

    # What the dialogue asks for.

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """See `Answers`."""
        assert self._cases is not None, "only the requester starts test cases"
        return await self.examiner.judge_cases(
            text, self.protocol, self._cases.judge, ours=True, may_counter=may_counter
        )

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """The test run waits for this by itself."""
        logger.info("test cases settled outcome=%s", type(settled).__name__)

    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        """Judge a request of ours that the peer complains about (ANP-60)."""
        exchange = self._exchanges.find(reference or "", now=time.monotonic())
        if exchange is None:
            return PeerFault("the message in question is not, or no longer, kept")
        fault = await judge_fault(
            "request",
            exchange.request,
            self.protocol.document,
            description,
            validator=self._parts.validator,
            read=self.protocol.reader,
        )
        by_words = isinstance(fault, PeerFault)
        fault = await self.examiner.judge_fault(
            "request",
            exchange.request,
            description,
            found=fault,
            protocol=self.protocol,
        )
        if isinstance(fault, PeerFault):
            self._end_call(
                exchange,
                f"the peer finds fault with a request that fits: {description[:200]}",
            )
            return fault
        if exchange.revision == self._half.revision:
            try:
                await self._repair(fault.findings, by_words=by_words)
            except HalfError as exc:
                reason = f"the fault is ours, but it cannot be repaired: {exc}"
                self._end_call(exchange, reason, kind=_kind_of(exc))
                return PeerFault(reason)
        return fault

    async def repaired(self, reference: str | None) -> None:
        """Send a request again, as the repaired half encodes it."""
        exchange = self._exchanges.find(reference or "", now=time.monotonic())
        if exchange is None or exchange.message_id not in self._pending:
            return
        assert exchange.arguments is not None
        assert exchange.message_id is not None
        try:
            exchange.request = await self.protocol.encode(
                exchange.message_id, exchange.arguments
            )
            exchange.revision = self._half.revision
            exchange.request_id = await self.channel.send(
                ProtocolType.APPLICATION, exchange.request
            )
            self._exchanges.keep(exchange, now=time.monotonic())
        except ChannelClosed:
            logger.info("request lost with its channel peer=%s", self._peer)
        except (NegotiationError, FrameTooLarge) as exc:
            self._end_call(
                exchange, f"the repaired half cannot encode the input: {exc}"
            )

    def message_refused(self, reference: str, reason: str) -> None:
        """End the call, or the test, whose request the peer cannot answer."""
        self.verification.refused(reference, reason)
        exchange = self._exchanges.find(reference, now=time.monotonic())
        if exchange is not None:
            self._end_call(
                exchange, f"the peer cannot answer: {reason}", may_have_run=True
            )

    async def answer(self, question: str) -> str:
        """See `Answers`."""
        async with self._parts.afterwards.think(
            self._peer,
            ours=False,
            negotiation_id=self.agreement.negotiation_id,
            bill=self.bill,
        ) as thinking:
            return await words_of(thinking.mind, question, self._need)

    def _end_call(
        self,
        exchange: Exchange,
        reason: str,
        *,
        kind: ErrorKind = ErrorKind.GENERATED_CODE,
        may_have_run: bool = False,
    ) -> None:
        waiting = self._pending.get(exchange.message_id or "")
        if waiting is not None:
            _fail(waiting, CallError(kind, reason[:500], may_have_run=may_have_run))


def _kind_of(exc: NegotiationError) -> ErrorKind:
    """Return `policy` when a budget of the owner's stood in the way of a repair."""
    if isinstance(exc.__cause__, BudgetExhausted):
        return ErrorKind.POLICY
    return ErrorKind.GENERATED_CODE


def _fail(waiting: _Waiting, error: CallError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
