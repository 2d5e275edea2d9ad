"""A bound channel on which a peer calls our agent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.channel.core.traffic import FrameTooLarge
from anp.channel.stranger_work import counted
from anp.sidecar.attachments.attachment import report_progress
from anp.sidecar.attachments.requester import current_requester, joins_updates
from anp.sidecar.bound.base import BoundChannel, BoundParts
from anp.sidecar.bound.cases import ProviderCases
from anp.sidecar.bound.dialogue import ReportEnd
from anp.sidecar.bound.exchanges import Exchange, RecordedCall
from anp.sidecar.bound.kept_answers import KeptAnswer
from anp.sidecar.bound.natural import Listener
from anp.sidecar.bound.updates import UpdateTeller
from anp.sidecar.bound.work import Refuser, ServedCall, ServedWork, WorkDesk, works
from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.offer.capability_calls import CapabilityCalls, outcome_of
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.telemetry.observer import CallSeen
from anp.sidecar.telemetry.usage import Way
from anp.wire.frames import ProtocolType
from cache.records.records import AgreementRecord, AgreementState, HalfRecord
from negotiation.errors import (
    NOT_RUN,
    CapabilityFailed,
    HalfError,
    NegotiationError,
    told_of,
)
from negotiation.exchange.dialogue.reports import describe_error
from negotiation.exchange.events import CasesAgreed, CasesSkipped, CasesVerdict
from negotiation.mind import Offer, OnStream
from negotiation.need import Role

logger = logging.getLogger(__name__)

OnCall = Callable[[str, Any], Awaitable[Any]]

MAX_DRAIN = 30.0
"Seconds for which a channel that is to close still serves its calls."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderParts:
    """The parts of the daemon that a bound channel as provider needs."""

    common: BoundParts
    "Parts that either role needs."

    capabilities: CapabilityCalls
    "Calls our agent."

    offered: Callable[[str], Offer]
    "Returns what is exposed now to the peer with a canonical DID."

    max_calls: int
    "Requests of one channel that are worked on at a time."

    work: WorkDesk
    "Keeps the calls of peers that may fetch their answers."

    used: Callable[[Way, str, AgreementRecord | None], None]
    "Counts a call that was answered."


class BoundProvider(BoundChannel):
    """A bound channel on which a peer's requests are answered."""

    role = Role.PROVIDER
    kind = "response"

    def __init__(
        self,
        channel: Channel,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord | None,
        parts: ProviderParts,
        *,
        listener: Listener,
    ) -> None:
        super().__init__(channel, protocol, half, agreement, parts.common)
        self._parts = parts
        self._cases = ProviderCases(self, self._side)
        self._listener = listener
        self._uri = channel.own_meta.selected_protocol
        self._way = WayIn.AGREEMENT if self._uri is None else WayIn.URI
        self._room = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._calls: dict[asyncio.Task[None], ServedCall | None] = {}
        "What works on each request that is not answered so far."
        # Tells how our half failed an agreed case; nothing runs after that.
        self._failed: str | None = None
        # Once the channel has ended, nothing tells it any more.
        self._max_payload = channel.max_payload
        self._work: ServedWork | None = None
        if works(channel):
            self._work = ServedWork(channel, half.hash, parts.work, self.dialogue)
            self.dialogue.on_signal = self._work.receive

    @property
    def busy(self) -> bool:
        """True while a request or a question is being answered."""
        return self._listener.busy or self.working

    @property
    def working(self) -> bool:
        """True while a request is being answered."""
        return any(not task.done() for task in self._calls)

    async def retire(self, reason: str, *, patient: bool = False) -> None:
        """Close the channel when the calls in flight on it have ended.

        Requests that come meanwhile are served too, for `MAX_DRAIN` seconds in all: a
        peer that goes on for ever would never come to the new code.

        Args:
            patient: True to give the calls that run now the time of their own deadlines
                before those seconds begin.
        """
        if patient and self._calls:
            await asyncio.wait({*self._calls})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_DRAIN):
                while self._calls:
                    await asyncio.wait(self._calls)
        await self.channel.close(reason)

    async def run(self, first: Sequence[FrameReceived] = ()) -> None:
        """Serve until the channel ends.

        Args:
            first: Frames that came before the channel was bound, oldest first.
        """
        context = copy_context()
        try:
            async with self._group:
                try:
                    # All that is done for a request is done as work of this task.
                    self.channel.take = lambda event: context.run(self._take_now, event)
                    await self._read(first)
                except ChannelClosed as exc:
                    if not (exc.link_lost and self._work is not None):
                        raise
                    # The calls go on: their answers are fetched over the next link.
        except* ChannelClosed:
            logger.debug("served channel ended peer=%s", self.channel.peer_did)
        finally:
            await self._listener.close()
            await self.dialogue.close()

    async def _take(self, event: FrameReceived) -> None:
        match event.frame.protocol_type:
            case ProtocolType.META:
                await self.dialogue.receive(event.frame.data)
            case ProtocolType.NATURAL_LANGUAGE:
                self._listener.take(event)
            case _:
                while len(self._calls) >= self._parts.max_calls:
                    self._room.clear()
                    await self._room.wait()
                self._begin(event)

    def _take_now(self, event: FrameReceived) -> bool:
        if event.frame.protocol_type is not ProtocolType.APPLICATION:
            return False
        if len(self._calls) >= self._parts.max_calls:
            return False
        self._begin(event)
        return True

    def _begin(self, event: FrameReceived) -> None:
        """Answer a request beside."""
        verification = event.frame.protocol_type is ProtocolType.VERIFICATION
        call = None
        if self._work is not None and not verification:
            call = self._work.begin(event.message_id)
        task = self._group.create_task(
            counted(self._request(event, call, verification=verification))
        )
        if call is not None:
            call.task = task
        self._calls[task] = call
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        call = self._calls.pop(task)
        if call is not None:
            call.close()
        self._room.set()
        if not task.cancelled() and task.exception() is not None:
            # The group ends with it, and takes no more.
            self.channel.take = lambda event: False

    # Requests.

    async def _request(
        self, event: FrameReceived, call: ServedCall | None, *, verification: bool
    ) -> None:
        observer = self._parts.capabilities.observer
        if call is not None:
            report_progress.set(call.progress)
        with observer.call_in(self._peer, source=self._source) as seen:
            seen.protocol, seen.uri = self.half.hash, self._uri
            seen.is_trial = verification
            if len(self.half.capabilities) == 1:
                seen.capability = next(iter(self.half.capabilities))
            responding = self._respond(event, call, verification=verification)
            del event
            exchange = await responding
            self._note(seen, exchange)

    @property
    def _source(self) -> str:
        if self._uri is not None:
            return "consensus"
        return "published" if self.agreement is None else "agreement"

    def _note(self, seen: CallSeen, exchange: Exchange) -> None:
        """Note the capability that ran for a request, and how that ended."""
        if exchange.calls:
            seen.capability = exchange.calls[-1].name
            failure = exchange.calls[-1].failure
            if failure is not None:
                seen.refused(*outcome_of(failure))
        if exchange.response is None:
            seen.refused("unanswered", seen.reason or exchange.problem)
        if self.agreement is not None:
            seen.negotiation_id = self.agreement.negotiation_id
        spent = self.bill.take()
        seen.llm_calls, seen.cost = spent.model_calls, spent.money

    async def _respond(
        self, event: FrameReceived, call: ServedCall | None, *, verification: bool
    ) -> Exchange:
        """Answer one request; what cannot be answered is reported or refused."""
        if not self.dialogue.free.is_set():
            await self.dialogue.free.wait()
        exchange = Exchange(
            event.frame.data,
            time.monotonic(),
            request_id=event.message_id,
            revision=self.half.revision,
            call=call,
            takes_updates=self._takes_updates(event.message_id),
            verification=verification,
        )
        del event
        exchange.lean = self._is_lean(exchange)
        if self._failed is not None:
            await self.channel.close(f"its test cases failed: {self._failed}"[:300])
            return exchange
        self._keep(exchange)
        try:
            exchange.values = self.protocol.read(exchange.request)
            findings = await self.protocol.judge(
                "request", exchange.request, exchange.values
            )
        except NegotiationError as exc:
            exchange.values = None
            await self._cannot(exchange, exc)
            return exchange
        if findings:
            exchange.values = None
            await self._report(exchange, findings)
        else:
            await self._try_answer(exchange)
        return exchange

    async def _try_answer(
        self, exchange: Exchange, on_call: OnCall | None = None
    ) -> None:
        try:
            await self._answer(exchange, on_call)
        except ChannelClosed:
            exchange.problem = "the channel ended before the answer"
            logger.info("answer lost with its channel peer=%s", self._peer)
        except (NegotiationError, FrameTooLarge) as exc:
            faulty = isinstance(exc, HalfError) and exc.outcome != "busy"
            if exchange.verification and faulty:
                await self._case_failed(exchange, str(exc))
            await self._cannot(exchange, exc)
            problem = self._common.workshop.quarantined(self.half, self._peer)
            if problem is not None:
                # Nothing more is decoded on it (DESIGN.md, Links and channels).
                await self.channel.close(f"quarantined: {problem}"[:300])

    async def _answer(self, exchange: Exchange, on_call: OnCall | None = None) -> None:
        """Make and send an answer; `on_call` replays the calls of a repair."""
        if exchange.verification:
            self._check_verification()
            send = partial(self._send_update, exchange)
            data = await self._cases.answer(
                exchange.request, send if exchange.takes_updates else None
            )
        else:
            data = await self.protocol.handle(
                *exchange.hand_over(),
                on_call or (lambda name, args: self._call(exchange, name, args)),
                on_stream=self._streaming(exchange) if on_call is None else None,
                judge_request=False,
                # The peer judges what it gets and says so; others are spared it, and
                # so is everybody after a repair.
                judge_answer=on_call is not None or not self.dialogue.can_report,
            )
            if exchange.claims_too_much(data):
                raise HalfError("error", "the answer says that nothing ran, but it did")
        exchange.response, exchange.revision = data, self.half.revision
        kind = (
            ProtocolType.VERIFICATION
            if exchange.verification
            else ProtocolType.APPLICATION
        )
        channel = self.channel
        if exchange.call is not None:
            channel = (await exchange.call.end(KeptAnswer(data))).channel
        exchange.response_id = await channel.send(kind, data)
        if not exchange.verification and on_call is None:
            self._parts.used(Way.SERVED, self.half.hash, self.agreement)
        self._keep(exchange)

    def _streaming(self, exchange: Exchange) -> OnStream | None:
        """Return what makes calls whose updates the peer takes; None if it does not."""
        if not exchange.takes_updates:
            return None
        send = partial(self._send_update, exchange)

        async def call(
            name: str, arguments: Any, write: Callable[[Any], Awaitable[bytes]]
        ) -> Any:
            teller = UpdateTeller(exchange.request_id, write, send)
            requester = current_requester.set(teller)
            joins = joins_updates.set(True)
            try:
                return await self._call(exchange, name, arguments)
            finally:
                joins_updates.reset(joins)
                current_requester.reset(requester)

        return call

    def _takes_updates(self, message_id: str) -> bool:
        if self._work is None or self.protocol.document.update_schema is None:
            return False
        return self._work.takes_updates(message_id)

    async def _send_update(self, exchange: Exchange, data: bytes) -> None:
        findings = await self.protocol.judge("update", data)
        if findings:
            raise HalfError("error", f"an update does not fit: {findings[0]}")
        kind, channel = ProtocolType.VERIFICATION, self.channel
        if exchange.call is not None:
            kind, channel = ProtocolType.APPLICATION, exchange.call.route.channel
        with contextlib.suppress(ChannelClosed):
            # The answer, which is kept, has everything.
            await channel.send(kind, data)

    def _check_verification(self) -> None:
        """Raise `CapabilityFailed` when the half may not be tried for this peer."""
        problem = self._parts.capabilities.gate.problem(
            WayIn.VERIFICATION, self._peer, self.half.capabilities
        )
        if problem is not None:
            raise CapabilityFailed("403", problem, ran=False)

    async def _call(
        self, exchange: Exchange, name: str, arguments: Any, *, way: WayIn | None = None
    ) -> Any:
        kept = RecordedCall(name, None if exchange.lean else arguments)
        ran, exchange.ran = exchange.ran, True
        try:
            output = await self._parts.capabilities.call(
                self.half,
                name,
                arguments,
                way=way or self._way,
                peer=self._peer,
                peer_did=self.channel.peer_did,
                max_payload=self._max_payload,
                asked=None if exchange.call is None else exchange.call.asked,
            )
        except CapabilityFailed as exc:
            exchange.ran = ran or exc.ran
            # Of several calls one that ran before counts for the whole request.
            exc.ran = exchange.ran
            kept.failure = exc
            raise
        finally:
            exchange.calls.append(kept)
        if not exchange.lean:
            kept.output = output
        return output

    async def _report(self, exchange: Exchange, findings: list[str]) -> None:
        """Tell the peer that its request breaks the protocol (ANP-56)."""
        exchange.problem = "the request breaks the protocol"
        detail = "; ".join(findings)[:200]
        logger.warning(
            "request breaks the protocol peer=%s reason=%r", self._peer, detail
        )
        if not self.dialogue.can_report:
            await self.channel.close(f"request not answered: {detail}")
            return
        report = await self.dialogue.report(
            exchange.request_id,
            describe_error(exchange.request_id, findings, exchange.request),
        )
        if report.end is not ReportEnd.REPAIRED:
            logger.info("request stays unanswered reason=%r", report.reason[:200])

    async def _cannot(self, exchange: Exchange, error: Exception) -> None:
        """Tell the peer that a good request gets no answer."""
        logger.warning(
            "request not answered peer=%s reason=%r", self._peer, str(error)[:200]
        )
        reason = told_of(error)
        # What follows the first colon may quote the data.
        exchange.problem = exchange.problem or reason.partition(": ")[0]
        if not exchange.ran:
            reason = NOT_RUN + reason
        dialogue: Refuser = self.dialogue
        if exchange.call is not None:
            route = await exchange.call.end(KeptAnswer(refusal=reason[:300]))
            dialogue = route.dialogue
        if dialogue.can_report:
            await dialogue.refuse(exchange.request_id, reason[:300])
        else:
            await self.channel.close(f"request not answered: {reason[:300]}")

    # Faults of ours.

    def _side(self) -> Offer:
        return self._parts.offered(self._peer)

    async def _ours(self, exchange: Exchange) -> bytes | None:
        return exchange.response

    async def _differences(self, exchange: Exchange) -> list[str]:
        return await self._cases.differences(exchange) if exchange.verification else []

    def _not_at_fault(self, exchange: Exchange, description: str) -> None:
        logger.info("peer complains about a good answer peer=%s", self._peer)

    async def _not_repaired(
        self,
        exchange: Exchange,
        error: HalfError,
        reason: str,
        differences: Sequence[str],
    ) -> None:
        logger.warning("repair failed peer=%s reason=%r", self._peer, str(error))
        if differences:
            await self._case_failed(exchange, "; ".join(differences))

    async def _case_failed(self, exchange: Exchange, detail: str) -> None:
        """Use our half no more for this peer: it fails what it was agreed to do."""
        self._failed = detail
        logger.warning("test case failed peer=%s reason=%r", self._peer, detail[:200])
        if self.agreement is not None:
            tests = self._cases.failed(exchange.request, detail)
            await self.keep_tests(tests, AgreementState.FAILED)

    # Decisions for the dialogue; see `Answers`.

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """Fill in the set that the requester proposes."""
        return await self._cases.judge(text, may_counter=may_counter)

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """Keep agreed test cases, with their fixtures."""
        await self.keep_tests(self._cases.settled(settled))

    async def repaired(self, reference: str | None) -> None:
        """Encode an answer again, from the capabilities' answers that were kept."""
        exchange = self._find(reference)
        if exchange is None:
            return
        kept, exchange.calls = list(exchange.calls), []
        await self._try_answer(exchange, self._replay(exchange, kept))

    def _replay(self, exchange: Exchange, kept: list[RecordedCall]) -> OnCall:
        """Answer the calls of a repaired half without calling anything twice."""

        async def on_call(name: str, arguments: Any) -> Any:
            call = kept.pop(0) if kept else None
            if call is None or (call.name, call.arguments) != (name, arguments):
                if not self._parts.capabilities.is_repeatable(name, self._peer):
                    raise HalfError(
                        "error",
                        f"the repaired half calls {name} in another way than before, "
                        "and it may have side effects",
                    )
                return await self._call(exchange, name, arguments, way=WayIn.REPAIR)
            exchange.calls.append(call)
            if call.failure is not None:
                raise call.failure
            return call.output

        return on_call

    def message_refused(self, reference: str | None, reason: str) -> None:
        """The requester does not answer a report about nothing; it is only noted."""
        logger.info("peer refuses a message reason=%r", reason[:200])
