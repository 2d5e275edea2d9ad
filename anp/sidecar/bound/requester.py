"""A bound channel on which our agent calls a peer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from anp.channel.channel import Channel, ChannelClosed, call_cut_off
from anp.channel.core.events import FrameReceived
from anp.channel.core.traffic import FrameTooLarge
from anp.errors import CallError, ErrorCode, ErrorKind, no_answer
from anp.sidecar.bound.base import MAX_REPAIRS, BoundChannel, RequesterParts
from anp.sidecar.bound.cases import RequesterCases
from anp.sidecar.bound.dialogue import ReportEnd
from anp.sidecar.bound.exchanges import Exchange
from anp.sidecar.bound.open_calls import WaitingCall, WaitingCalls
from anp.sidecar.bound.updates import UpdatesWrong, UpdateTaker
from anp.sidecar.bound.work import (
    LOST_FOR_GOOD,
    CallTerms,
    CutOff,
    announce,
    send_signal,
    works,
)
from anp.sidecar.halves.protocol import Answer, Protocol, Update, UpdateDoesNotFit
from anp.wire.frames import ProtocolType
from cache.records.records import AgreementRecord, HalfRecord
from negotiation.errors import NOT_RUN, HalfError, NegotiationError, told_of
from negotiation.exchange.dialogue.reports import describe_error
from negotiation.exchange.events import CasesAgreed, CasesSkipped, CasesVerdict
from negotiation.llm.asking.budget import BudgetExhausted
from negotiation.messages import CallSignal, SignalKind
from negotiation.mind import Demand
from negotiation.need import Role

logger = logging.getLogger(__name__)


_Send = Callable[[Exchange, CallTerms, float], Awaitable[None]]
"Sends what a call has to say, given its exchange, its terms and the seconds left."


class BoundRequester(BoundChannel):
    """A bound channel, and the calls of ours that wait for answers on it."""

    role = Role.REQUESTER
    kind = "request"
    agreement: AgreementRecord

    def __init__(
        self,
        channel: Channel,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord,
        demand: Demand,
        parts: RequesterParts,
        *,
        on_end: Callable[[BoundRequester], None],
    ) -> None:
        super().__init__(channel, protocol, half, agreement, parts.common)
        self._demand = demand
        self._call_timeout = parts.call_timeout
        self._on_end = on_end
        self._pending = WaitingCalls()
        # Held by the one call in flight of a protocol without message ids.
        self._single = asyncio.Lock()
        self._end_later: asyncio.Task[None] | None = None
        self._answered: deque[str] = deque(maxlen=64)
        self.cases = RequesterCases(self, demand)
        self._works = works(channel)
        if self._works:
            self.dialogue.on_signal = self._heard
        self.news: tuple[str, ...] = ()
        "Sentences for the caller of each call: changes at the peer since it agreed."
        self._reader = asyncio.create_task(self._run())
        channel.take = self._take_now

    @property
    def alive(self) -> bool:
        """True while requests can be sent."""
        return self.channel.open

    @property
    def busy(self) -> bool:
        """True while somebody waits for an answer, or test cases run."""
        return bool(self._pending) or self.cases.running

    async def revoke(self, reason: str, *, told: str, code: ErrorCode) -> None:
        """End the channel at once; nothing more is decoded (DESIGN.md, Revoked).

        Args:
            reason: For the calls in flight.
            told: For the peer, with `code`.
        """
        self._reader.cancel()
        for waiting in self._pending:
            waiting.fail(CallError(ErrorKind.POLICY, reason, may_have_run=True))
        await self.channel.cut(told, code=code)
        if self.channel.ended is not None:
            self.cases.verification.take(self.channel.ended)
        await asyncio.gather(self._reader, return_exceptions=True)

    async def wait_idle(self) -> None:
        """Wait until every call in flight has ended, or the channel."""
        while self._pending and self.alive:
            await asyncio.wait([waiting.answer for waiting in self._pending])

    async def exchange(
        self,
        message_id: str,
        data: bytes,
        arguments: dict[str, Any],
        terms: CallTerms | None = None,
    ) -> Answer:
        """Send one request and return its answer.

        Args:
            terms: Its deadline; without it the usual one.

        Raises:
            ChannelClosed: Nothing was sent.
            CutOff: The link was lost; see `fetch`.
            CallError: `timeout`, `usage` for a request that is too large, or what the
                channel ended with; see `may_have_run`.
        """
        exchange = Exchange(
            data,
            time.monotonic(),
            message_id=message_id,
            arguments=arguments,
            revision=self.half.revision,
        )
        # It may be long, and the answer may take long.
        del data
        exchange.lean = self._is_lean(exchange)
        return await self._exchange(exchange, terms or CallTerms(), self._send_request)

    async def fetch(self, cut: CutOff, terms: CallTerms) -> Answer:
        """Return the answer of a call that was cut off.

        Args:
            cut: The end of an earlier channel of this agreement.

        Raises:
            ChannelClosed: The peer was not asked.
            CutOff: The link was lost again.
            CallError: As `exchange`; also when the peer has nothing for it.
        """
        assert isinstance(cut.call, Exchange)
        if terms.updates is not None:
            terms.updates.lost = True
        return await self._exchange(cut.call, terms, self._send_fetch)

    async def forget(self, cut: CutOff) -> None:
        """Tell the peer that nobody waits for a call that was cut off.

        Raises:
            ChannelClosed: Nothing was sent.
        """
        assert isinstance(cut.call, Exchange)
        await send_signal(self.channel, cut.call.request_id, SignalKind.CANCEL)

    async def _exchange(
        self, exchange: Exchange, terms: CallTerms, send: _Send
    ) -> Answer:
        await self.dialogue.free.wait()
        if self.protocol.has_message_ids:
            return await self._wait_answer(exchange, terms, send)
        async with self._single:
            try:
                return await self._wait_answer(exchange, terms, send)
            except CallError as exc:
                # A late answer must never meet a later call.
                if exc.kind is ErrorKind.TIMEOUT:
                    await self.channel.close("no answer in time")
                raise
            except asyncio.CancelledError:
                self._end_later = asyncio.create_task(
                    self.channel.close("the call was cancelled")
                )
                raise

    # Answers.

    async def _wait_answer(
        self, exchange: Exchange, terms: CallTerms, send: _Send
    ) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        assert exchange.message_id is not None
        updates = UpdateTaker(terms.updates)
        left = terms.remaining(self._call_timeout)
        until = time.monotonic() + left
        waiting = WaitingCall(answer, exchange, terms, updates, until)
        self._pending.add(exchange.message_id, waiting)
        try:
            await send(exchange, terms, left)
            self._keep(exchange)
            self._pending.watch(until)
            return await answer
        except FrameTooLarge as exc:
            raise CallError(ErrorKind.USAGE, str(exc)) from exc
        except TimeoutError:
            self._tell(exchange, SignalKind.CANCEL)
            name = "the call's timeout" if terms.given else "call.timeout"
            raise CallError(
                ErrorKind.TIMEOUT, no_answer(left, name), may_have_run=True
            ) from None
        finally:
            self._pending.remove(exchange.message_id)
            if not answer.done() or answer.cancelled():
                # Nobody waits any more, so the peer need not go on.
                self._tell(exchange, SignalKind.CANCEL)
            else:
                answer.exception()

    async def _send_request(
        self, exchange: Exchange, terms: CallTerms, left: float
    ) -> None:
        announced = None
        if self._works:
            knows = self.protocol.document.update_schema is not None
            announced = await announce(self.channel, terms, left, knows_updates=knows)
        exchange.request_id = await self.channel.send(
            ProtocolType.APPLICATION, exchange.hand_over()[0], message_id=announced
        )

    async def _send_fetch(
        self, exchange: Exchange, terms: CallTerms, left: float
    ) -> None:
        await send_signal(self.channel, exchange.request_id, SignalKind.FETCH)

    def _tell(self, exchange: Exchange, kind: SignalKind) -> None:
        """Send a signal about a call beside, if the peer has the request."""
        if not (self._works and exchange.request_id and self.alive):
            return

        async def send() -> None:
            with contextlib.suppress(ChannelClosed):
                await send_signal(self.channel, exchange.request_id, kind)

        self.dialogue.spawn(send())

    async def _heard(self, signal: CallSignal) -> None:
        """Take a signal of the peer's about a call of ours."""
        waiting = self._pending.requested(signal.message_id)
        if waiting is None:
            # About a call that has ended.
            return
        match signal.kind:
            case SignalKind.WORKING | SignalKind.PROGRESS:
                waiting.terms.sign(signal)
            case SignalKind.FETCH:
                kind = ErrorKind.PEER_UNREACHABLE
                waiting.fail(CallError(kind, LOST_FOR_GOOD, may_have_run=True))

    def _find(self, reference: str | None) -> Exchange | None:
        # A long call outlives what is kept of those that have ended.
        waiting = self._pending.requested(reference) if reference else None
        return super()._find(reference) if waiting is None else waiting.exchange

    async def _run(self) -> None:
        """Take in what the peer sends, until the channel ends."""
        try:
            await self._read()
        except ChannelClosed as exc:
            self.cases.verification.take(exc)
            # A request that the peer proved not to have acted on may be sent again.
            for waiting in self._pending:
                waiting.fail(self._error_of(exc, waiting.exchange))
        except Exception:
            # Nobody reads their answers any more, and their timer ends here, too.
            words = "unexpected error; see the log"
            for waiting in self._pending:
                error = CallError(ErrorKind.UNEXPECTED, words, may_have_run=True)
                waiting.fail(error)
            raise
        finally:
            self._on_end(self)
            self._pending.unwatch()
            await self.dialogue.close()

    def _error_of(self, ended: ChannelClosed, exchange: Exchange) -> CallError:
        """Return the meaning of the channel's end for a call in flight."""
        if ended.unprocessed:
            return ended
        error = call_cut_off(ended)
        if self._works and ended.link_lost and exchange.request_id:
            return CutOff(error, exchange)
        return error

    async def _take(self, event: FrameReceived) -> None:
        match event.frame.protocol_type:
            case ProtocolType.APPLICATION:
                await self._deliver(event)
            case ProtocolType.META:
                await self.dialogue.receive(event.frame.data)
            case ProtocolType.VERIFICATION if self.cases.verification.take(event):
                pass
            case _:
                self._drop()

    def _take_now(self, event: FrameReceived) -> bool:
        """Take an answer in which nothing is unusual; see `Channel.take`."""
        if event.frame.protocol_type is not ProtocolType.APPLICATION:
            return False
        try:
            answer = self.protocol.decode_now(event.frame.data)
        except NegotiationError:
            # The reader meets it again, and acts on it.
            return False
        if answer is not None:
            self._settle(answer)
        return answer is not None

    async def _deliver(self, event: FrameReceived) -> None:
        try:
            answer = await self.protocol.decode(event.frame.data)
        except UpdateDoesNotFit as exc:
            self._spoiled(exc.message_id, f"an update breaks the protocol: {exc}")
            return
        except NegotiationError as exc:
            logger.warning(
                "answer does not fit peer=%s reason=%r", self._peer, str(exc)[:200]
            )
            self.dialogue.spawn(self._wrong(event, exc))
            return
        if isinstance(answer, Update):
            await self._updated(answer, len(event.frame.data))
        else:
            self._settle(answer)

    def _settle(self, answer: Answer | Update) -> None:
        waiting = self._pending.named(answer.message_id)
        if waiting is None or isinstance(answer, Update):
            self._drop()
            return
        waiting.answer.set_result(answer)
        self._answered.append(waiting.exchange.message_id or "")

    async def _updated(self, update: Update, size: int) -> None:
        """Pass on what comes before an answer."""
        waiting = self._pending.named(update.message_id)
        if waiting is None:
            if update.message_id in self._answered:
                # Its half does what no document allows; nobody knows what comes next.
                logger.warning("update after the answer peer=%s", self._peer)
                await self.channel.close("an update came after the answer")
            return
        try:
            await waiting.updates.take(update.value, size)
        except UpdatesWrong as exc:
            self._spoiled(update.message_id, str(exc))

    def _spoiled(self, key: str | None, reason: str) -> None:
        """End a call whose updates are not as they have to be."""
        logger.warning("update refused peer=%s reason=%r", self._peer, reason[:200])
        waiting = self._pending.named(key)
        if waiting is not None:
            kind = ErrorKind.GENERATED_CODE
            waiting.fail(CallError(kind, reason[:500], may_have_run=True))
            self._tell(waiting.exchange, SignalKind.CANCEL)

    def _drop(self) -> None:
        logger.warning("answer to nothing dropped peer=%s", self._peer)

    # Faults of the peer, and of ours.

    async def _wrong(self, event: FrameReceived, error: NegotiationError) -> None:
        """Find out why an answer cannot be used, and have it repaired (ANP-56)."""
        data, kind = event.frame.data, ErrorKind.GENERATED_CODE
        problem = told_of(error)
        findings = await self.protocol.judge("response", data)
        # With one call in flight it must be its answer; with more, nobody knows whose
        # it was, and each ends by its own deadline.
        pending = [*self._pending]
        waiting = pending[0] if len(pending) == 1 else None
        if not findings and self.dialogue.can_report:
            # Ours or theirs: the schemas do not tell (ANP-9).
            asked = await self._ours(waiting.exchange) if waiting is not None else None
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
                await self._repair((str(error),))
                self._settle(await self.protocol.decode(data))
                return
            except (HalfError, NegotiationError) as exc:
                problem = f"{problem}; {told_of(exc)}"
                kind = _kind_of(exc)
        if waiting is not None:
            reason = f"the answer breaks the protocol: {problem}"
            waiting.fail(CallError(kind, reason[:500], may_have_run=True))

    def _side(self) -> Demand:
        return self._demand

    async def _ours(self, exchange: Exchange) -> bytes | None:
        if exchange.request or exchange.revision != self.half.revision:
            return exchange.request or None
        # It was let go of when it was sent, and a plan makes the same message again.
        assert exchange.message_id is not None
        assert exchange.arguments is not None
        half = self.protocol.half
        return await half.encode_request(exchange.message_id, exchange.arguments)

    def _not_at_fault(self, exchange: Exchange, description: str) -> None:
        self._end_call(
            exchange,
            f"the peer finds fault with a request that fits: {description[:200]}",
        )

    async def _not_repaired(
        self,
        exchange: Exchange,
        error: HalfError,
        reason: str,
        differences: Sequence[str],
    ) -> None:
        self._end_call(exchange, reason, kind=_kind_of(error))

    def _end_call(
        self,
        exchange: Exchange,
        reason: str,
        *,
        kind: ErrorKind = ErrorKind.GENERATED_CODE,
        may_have_run: bool = True,
    ) -> None:
        waiting = self._pending.get(exchange.message_id)
        if waiting is not None:
            waiting.fail(CallError(kind, reason[:500], may_have_run=may_have_run))

    # Decisions for the dialogue; see `Answers`.

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """Judge the set that the provider filled in."""
        return await self.cases.judge(text, may_counter=may_counter)

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """Log it; the test run waits for this by itself."""
        logger.info("test cases settled outcome=%s", type(settled).__name__)

    async def repaired(self, reference: str | None) -> None:
        """Send a request again, as the repaired half encodes it."""
        exchange = self._find(reference)
        if exchange is None or self._pending.get(exchange.message_id) is None:
            return
        assert exchange.arguments is not None
        assert exchange.message_id is not None
        try:
            exchange.request = await self.protocol.encode(
                exchange.message_id, exchange.arguments
            )
            exchange.revision = self.half.revision
            exchange.request_id = await self.channel.send(
                ProtocolType.APPLICATION, exchange.request
            )
            self._keep(exchange)
        except ChannelClosed:
            logger.info("request lost with its channel peer=%s", self._peer)
        except (NegotiationError, FrameTooLarge) as exc:
            self._end_call(
                exchange, f"the repaired code cannot encode the input: {told_of(exc)}"
            )

    def message_refused(self, reference: str | None, reason: str) -> None:
        """End the call, or the test, whose request the peer cannot answer."""
        if reference is None:
            exchange = self._last_of_ours()
            reference = "" if exchange is None else exchange.request_id
        else:
            exchange = self._find(reference)
        self.cases.verification.refused(reference, reason)
        if exchange is not None:
            self._end_call(
                exchange,
                f"the peer cannot answer: {reason}",
                may_have_run=not reason.startswith(NOT_RUN),
            )


def _kind_of(exc: NegotiationError) -> ErrorKind:
    """Return `policy` when a budget of the owner's stood in the way of a repair."""
    if isinstance(exc.__cause__, BudgetExhausted):
        return ErrorKind.POLICY
    return ErrorKind.GENERATED_CODE
