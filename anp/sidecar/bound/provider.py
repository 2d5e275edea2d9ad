"""A bound channel as provider: requests, test cases and repairs of one peer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.channel.core.link_core import FrameTooLarge
from anp.identity.dids import canonical_did
from anp.sidecar.bound.cases import ProviderCases
from anp.sidecar.bound.dialogue import DialogueShell, ReportEnd
from anp.sidecar.bound.examiner import Examiner
from anp.sidecar.bound.exchanges import Exchange, Exchanges, KeptCall
from anp.sidecar.bound.natural import Listener
from anp.sidecar.bound.repairer import Repairer
from anp.sidecar.halves.loader import HalfLoader
from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.minds.afterwards import Afterwards, Bill, words_of
from anp.sidecar.offer.capability_calls import CapabilityCalls
from anp.sidecar.telemetry.usage import Way
from anp.wire.frames import ProtocolType
from cache.records.records import AgreementRecord, HalfRecord, State
from negotiation.errors import CapabilityFailed, HalfError, NegotiationError
from negotiation.exchange.dialogue import (
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    DialogueLimits,
    Fault,
    OurFault,
    PeerFault,
    describe_error,
    judge_fault,
)
from negotiation.mind import Offer
from negotiation.need import Role
from negotiation.runner import Validator

__all__ = ["Served", "ServedParts"]

logger = logging.getLogger(__name__)

OnCall = Callable[[str, Any], Awaitable[Any]]

MAX_REPAIRS = 10
"Repairs of our half on one channel (ANP-Q25)."


MAX_DRAIN = 30.0
"Seconds for which a channel that is to close still serves its calls."


@dataclass(frozen=True, slots=True)
class ServedParts:
    """What every served channel needs from the daemon."""

    capabilities: CapabilityCalls
    "Calls our agent."

    loader: HalfLoader
    "Loads halves into the sandbox."

    repairer: Repairer
    "Writes halves anew."

    validator: Validator
    "Judges values."

    afterwards: Afterwards
    "Gives minds, which answer questions and examine messages."

    offered: Callable[[], Offer]
    "What is exposed now."

    quarantined: Callable[[HalfRecord, str], str | None]
    "Why a half may not run for a peer any more, or None."

    limits: DialogueLimits
    "How long and how much may be said."

    max_calls: int
    "Requests of one channel that are worked on at a time."

    used: Callable[[Way, str, AgreementRecord | None], None]
    "Counts a call that was answered."


class Served:
    """One channel on which a peer's requests are answered."""

    def __init__(
        self,
        channel: Channel,
        half: HalfRecord,
        protocol: Protocol,
        parts: ServedParts,
        *,
        agreement: AgreementRecord | None,
        cases: ProviderCases,
        listener: Listener,
    ) -> None:
        self.half = half
        self._channel = channel
        self._protocol = protocol
        self._parts = parts
        self._agreement = agreement
        self._cases = cases
        self._listener = listener
        self._peer = canonical_did(channel.peer_did, channel.peer_key)
        self._exchanges = Exchanges()
        self._repairs = 0
        self._calls: set[asyncio.Task[None]] = set()
        # How our half failed an agreed case, in words; nothing runs after that.
        self._failed: str | None = None
        self._revoked = False
        self._examiner = Examiner(
            parts.afterwards,
            self._peer,
            self._negotiation_id,
            Bill(),
            limits=parts.limits,
        )
        self._dialogue = DialogueShell(channel, Role.PROVIDER, parts.limits, self)

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return any(not call.done() for call in self._calls)

    async def retire(self, reason: str) -> None:
        """Close the channel when the calls in flight on it have ended.

        Requests that come meanwhile are served too, for `MAX_DRAIN` seconds in all: a
        peer that goes on for ever would never come to the new code.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MAX_DRAIN):
                while self._calls:
                    await asyncio.wait(self._calls)
        await self._channel.close(reason)

    async def revoke(self) -> None:
        """Close the channel at once; nothing more is decoded (DESIGN.md, Revoked)."""
        self._revoked = True
        for call in list(self._calls):
            call.cancel()
        await self._channel.close("revoked")

    async def run(self, first: Sequence[FrameReceived] = ()) -> None:
        """Serve until the channel ends.

        Args:
            first: Frames that came before the channel was bound, oldest first.
        """
        free = asyncio.Semaphore(self._parts.max_calls)
        try:
            async with asyncio.TaskGroup() as calls:
                waiting = list(first)
                while True:
                    event = waiting.pop(0) if waiting else await self._channel.receive()
                    if self._revoked:
                        # What waited when it was taken back is not even read.
                        continue
                    match event.frame.protocol_type:
                        case ProtocolType.META:
                            await self._dialogue.receive(event.frame.data)
                        case ProtocolType.NATURAL_LANGUAGE:
                            self._listener.take(event)
                        case kind:
                            await free.acquire()
                            verification = kind is ProtocolType.VERIFICATION
                            task = calls.create_task(
                                self._request(event, verification=verification)
                            )
                            self._calls.add(task)
                            task.add_done_callback(self._calls.discard)
                            task.add_done_callback(lambda _: free.release())
        except* ChannelClosed:
            logger.debug("served channel ended peer=%s", self._channel.peer_did)
        finally:
            await self._listener.close()
            await self._dialogue.close()

    # Requests.

    async def _request(self, event: FrameReceived, *, verification: bool) -> None:
        observer = self._parts.capabilities.observer
        with observer.call_in(self._peer, source="agreement") as seen:
            exchange = await self._respond(event, verification=verification)
            seen.outcome = "unanswered" if exchange.response is None else "ok"

    async def _respond(self, event: FrameReceived, *, verification: bool) -> Exchange:
        """Answer one request; what cannot be answered is reported or refused."""
        await self._dialogue.wait_free()
        exchange = Exchange(
            event.frame.data,
            time.monotonic(),
            request_id=event.message_id,
            revision=self.half.revision,
            verification=verification,
        )
        if self._failed is not None:
            await self._channel.close(f"its test cases failed: {self._failed}"[:300])
            return exchange
        self._exchanges.keep(exchange, now=time.monotonic())
        try:
            findings = await self._protocol.judge("request", exchange.request)
        except NegotiationError as exc:
            await self._cannot(exchange, str(exc))
            return exchange
        if findings:
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
            logger.info("answer lost with its channel peer=%s", self._peer)
        except (NegotiationError, FrameTooLarge) as exc:
            if exchange.verification and isinstance(exc, HalfError):
                await self._case_failed(exchange, str(exc))
            await self._cannot(exchange, str(exc))
            problem = self._parts.quarantined(self.half, self._peer)
            if problem is not None:
                # Nothing more is decoded on it (DESIGN.md, Links and channels).
                await self._channel.close(f"quarantined: {problem}"[:300])

    async def _answer(self, exchange: Exchange, on_call: OnCall | None = None) -> None:
        """Make and send an answer; `on_call` replays the calls of a repair."""
        if exchange.verification:
            data = await self._cases.answer(exchange.request, self._protocol)
        else:
            data = await self._protocol.handle(
                exchange.request,
                on_call or (lambda name, args: self._call(exchange, name, args)),
                judge_request=False,
                # The peer judges what it gets and says so; others are spared it, and
                # so is everybody after a repair.
                judge_answer=on_call is not None or not self._dialogue.can_report,
            )
        exchange.response, exchange.revision = data, self.half.revision
        kind = (
            ProtocolType.VERIFICATION
            if exchange.verification
            else ProtocolType.APPLICATION
        )
        exchange.response_id = await self._channel.send(kind, data)
        if not exchange.verification and on_call is None:
            self._parts.used(Way.SERVED, self.half.hash, self._agreement)
        self._exchanges.keep(exchange, now=time.monotonic())

    async def _call(self, exchange: Exchange, name: str, arguments: Any) -> Any:
        kept = KeptCall(name, arguments)
        try:
            kept.output = await self._parts.capabilities.call(
                self.half,
                name,
                arguments,
                peer_did=self._channel.peer_did,
                max_payload=self._channel.max_payload,
            )
        except CapabilityFailed as exc:
            kept.failure = (exc.code, exc.message)
            raise
        finally:
            exchange.calls.append(kept)
        return kept.output

    async def _report(self, exchange: Exchange, findings: list[str]) -> None:
        """Tell the peer that its request breaks the protocol (ANP-56)."""
        detail = "; ".join(findings)[:200]
        logger.warning(
            "request breaks the protocol peer=%s reason=%r", self._peer, detail
        )
        if not self._dialogue.can_report:
            await self._channel.close(f"request not answered: {detail}")
            return
        report = await self._dialogue.report(
            exchange.request_id,
            describe_error(exchange.request_id, findings, exchange.request),
        )
        if report.end is not ReportEnd.REPAIRED:
            logger.info("request stays unanswered reason=%r", report.reason[:200])

    async def _cannot(self, exchange: Exchange, reason: str) -> None:
        """Tell the peer that a good request gets no answer."""
        logger.warning(
            "request not answered peer=%s reason=%r", self._peer, reason[:200]
        )
        if self._dialogue.can_report:
            await self._dialogue.refuse(exchange.request_id, reason[:300])
        else:
            await self._channel.close(f"request not answered: {reason[:300]}")

    # What the dialogue asks for.

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """See `Answers`."""

        async def by_rules(text: str) -> CasesVerdict:
            return await self._cases.judge(
                text, self.half, self._protocol, may_counter=may_counter
            )

        return await self._examiner.judge_cases(
            text, self._protocol, by_rules, ours=False, may_counter=may_counter
        )

    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        """Judge an answer of ours that the peer complains about (ANP-60)."""
        exchange = self._exchanges.find(reference or "", now=time.monotonic())
        if exchange is None or exchange.response is None:
            return PeerFault("the message in question is not, or no longer, kept")
        differences = (
            await self._cases.differences(exchange, self._protocol)
            if exchange.verification
            else []
        )
        fault: Fault
        by_words = False
        if differences:
            fault = OurFault(tuple(differences))
        else:
            fault = await judge_fault(
                "response",
                exchange.response,
                self._protocol.document,
                description,
                validator=self._parts.validator,
                read=self._protocol.reader,
            )
            by_words = isinstance(fault, PeerFault)
            fault = await self._examiner.judge_fault(
                "response",
                exchange.response,
                description,
                found=fault,
                protocol=self._protocol,
            )
        if isinstance(fault, PeerFault) or exchange.revision != self.half.revision:
            # Made by code that is repaired by now: only the answer comes anew.
            return fault
        try:
            await self._repair(fault.findings, by_words=by_words)
        except HalfError as exc:
            logger.warning("repair failed peer=%s reason=%r", self._peer, str(exc))
            if differences:
                await self._case_failed(exchange, "; ".join(differences))
            return PeerFault(f"the fault is ours, but it cannot be repaired: {exc}")
        return fault

    async def _case_failed(self, exchange: Exchange, detail: str) -> None:
        """Use our half no more for this peer: it fails what it was agreed to do."""
        self._failed = detail
        logger.warning("test case failed peer=%s reason=%r", self._peer, detail[:200])
        if self._agreement is not None:
            tests = self._cases.failed(
                exchange.request, detail, self._protocol.document
            )
            self._agreement = await asyncio.to_thread(
                self._parts.repairer.keep_tests, self._agreement, tests, State.FAILED
            )

    async def _repair(
        self, findings: tuple[str, ...], *, by_words: bool = False
    ) -> None:
        self._repairs += 1
        if self._repairs > MAX_REPAIRS:
            raise HalfError("rejected", f"over {MAX_REPAIRS} repairs on one channel")
        # An owner's hint may have chosen what the half calls; it stays chosen.
        offer = replace(self._parts.offered(), hints=tuple(self.half.capabilities))
        text = self._protocol.document.text
        repaired = await self._parts.repairer.repair(
            text,
            self.half,
            offer,
            peer_did=self._peer,
            agreement=self._agreement,
            findings=findings,
            by_words=by_words,
        )
        self._protocol = await self._parts.loader.protocol(
            repaired.half, text, peer_did=self._peer
        )
        self.half, self._agreement = repaired.half, repaired.agreement

    async def repaired(self, reference: str | None) -> None:
        """Encode an answer again, from the capabilities' answers that were kept."""
        exchange = self._exchanges.find(reference or "", now=time.monotonic())
        if exchange is None:
            return
        kept, exchange.calls = list(exchange.calls), []
        await self._try_answer(exchange, self._replay(exchange, kept))

    def _replay(self, exchange: Exchange, kept: list[KeptCall]) -> OnCall:
        """Answer the calls of a repaired half without calling anything twice."""

        async def on_call(name: str, arguments: Any) -> Any:
            call = kept.pop(0) if kept else None
            if call is None or (call.name, call.arguments) != (name, arguments):
                if not self._parts.capabilities.is_repeatable(name):
                    raise HalfError(
                        "error",
                        f"the repaired half calls {name} in another way than before, "
                        "and it may have side effects",
                    )
                return await self._call(exchange, name, arguments)
            exchange.calls.append(call)
            if call.failure is not None:
                raise CapabilityFailed(*call.failure)
            return call.output

        return on_call

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """Keep agreed test cases, with their fixtures."""
        if self._agreement is not None:
            self._agreement = await asyncio.to_thread(
                self._parts.repairer.keep_tests,
                self._agreement,
                self._cases.settled(settled),
            )

    def message_refused(self, reference: str, reason: str) -> None:
        """The requester does not answer a report about nothing; it is only noted."""
        logger.info("peer refuses a message reason=%r", reason[:200])

    async def answer(self, question: str) -> str:
        """See `Answers`."""
        async with self._parts.afterwards.think(
            self._peer, ours=False, negotiation_id=self._negotiation_id()
        ) as thinking:
            return await words_of(thinking.mind, question, self._parts.offered())

    def _negotiation_id(self) -> str | None:
        return self._agreement.negotiation_id if self._agreement is not None else None
