"""A channel with a written protocol on which our agent calls a peer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed, call_cut_off
from anp.channel.core.events import FrameReceived
from anp.errors import CallError, ErrorKind, no_answer, told_by_peer
from anp.protocols.envelope.discovery import read_page
from anp.protocols.envelope.messages import EnvelopeAction
from anp.sidecar.agreement.rulings import peer_pending
from anp.sidecar.bound.work import (
    LOST_FOR_GOOD,
    CallTerms,
    CutOff,
    render_signal,
    send_signal,
    works,
)
from anp.sidecar.consensus.written.base import WrittenChannel, WrittenParts
from anp.sidecar.halves.protocol import Answer
from anp.wire.frames import ProtocolType
from negotiation.consensus.written import (
    NOT_SERVED,
    NOTHING_SENT,
    Ask,
    CallAnswered,
    CallRefused,
    Progress,
    Refusal,
    WrittenCode,
    WrittenEvent,
)
from negotiation.errors import APPROVAL_PENDING
from negotiation.messages import CallSignal, SignalKind
from negotiation.need import Role, Schema
from negotiation.strict_json import Json

logger = logging.getLogger(__name__)

MAX_PAGES: Final = 64
"Pages of a peer's list that are asked for."

MAX_LISTED: Final = 1024
"Capabilities of a peer's list that are taken."


class NotServed(CallError):
    """The peer does not serve this action through this protocol; another may."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(ErrorKind.NEGOTIATION_REJECTED, detail)
        self.code = code


class InputRefused(CallError):
    """The peer does not take this data for the action, and did nothing with it."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorKind.APPLICATION_ERROR, detail)


class ResultUnfit(CallError):
    """The peer answered with what its published schema does not allow."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorKind.APPLICATION_ERROR, detail, may_have_run=True)


@dataclass(slots=True)
class _Request:
    """A call of ours, which may be waited for on several channels in turn."""

    action: str
    arguments: dict[str, Any]

    id: str = ""
    "Id of the envelope that carried it, where signals are common."

    reference: str | None = None
    "The protocol's own name for it, once it was sent."


@dataclass(slots=True)
class _Waiting:
    """A call in flight."""

    answer: asyncio.Future[Answer]
    request: _Request
    terms: CallTerms


class WrittenRequester(WrittenChannel):
    """A channel on which our agent calls a peer."""

    def __init__(
        self,
        channel: Channel,
        uri: str,
        code: WrittenCode,
        parts: WrittenParts,
        *,
        on_end: Callable[[WrittenRequester], None],
    ) -> None:
        """Begin on a channel that is bound to the protocol.

        Args:
            on_end: Told once, when the channel has ended.
        """
        super().__init__(channel, uri, code, Role.REQUESTER, parts)
        self._on_end = on_end
        self._pending: dict[str, _Waiting] = {}
        self._calls = 0
        self._works = works(channel)
        if self._works:
            self.dialogue.on_signal = self._heard
        self._driver.start()
        self._reader = asyncio.create_task(self._read())
        channel.take = self._take_now

    @property
    def alive(self) -> bool:
        """True while requests can be sent."""
        return self.channel.open and self._closing is None

    @property
    def idle(self) -> bool:
        """True when nobody waits for an answer."""
        return not self._pending

    @property
    def busy(self) -> bool:
        """True while a call is under way."""
        return not self.idle or super().busy

    async def wait_idle(self) -> None:
        """Wait until every call in flight has ended, or the channel."""
        while self._pending and self.alive:
            await asyncio.wait([one.answer for one in self._pending.values()])

    async def call(
        self,
        action: str,
        arguments: dict[str, Any],
        *,
        output_schema: Schema | None = None,
        terms: CallTerms | None = None,
    ) -> Answer:
        """Ask the peer for something and return its answer; many may be in flight.

        Args:
            output_schema: Schema of the result, as the peer published it.
            terms: Its deadline; without it the limits of the protocol hold.

        Raises:
            ChannelClosed: Nothing was sent.
            NotServed: The peer does not serve the action at all.
            InputRefused: The peer does not take this data; it did nothing.
            ResultUnfit: The result does not fit `output_schema`.
            CallError: `usage` for data that cannot be sent, `timeout`,
                `peer_unreachable`, `application_error` for an answer that breaks the
                protocol or the schema; see `may_have_run`.
        """
        request = _Request(action, arguments)
        answer = await self._ask(request, terms or CallTerms())
        return await self._fitting(answer, output_schema)

    async def fetch(
        self, cut: CutOff, terms: CallTerms, *, output_schema: Schema | None = None
    ) -> Answer:
        """Return the answer of a call that was cut off; raises as `call`.

        Args:
            cut: The end of an earlier channel with this protocol.
            output_schema: As `call` has it.
        """
        assert isinstance(cut.call, _Request)
        answer = await self._ask(cut.call, terms)
        return await self._fitting(answer, output_schema)

    async def forget(self, cut: CutOff) -> None:
        """Tell the peer that nobody waits for a call that was cut off.

        Raises:
            ChannelClosed: Nothing was sent.
        """
        assert isinstance(cut.call, _Request)
        await send_signal(self.channel, cut.call.id, SignalKind.CANCEL)

    async def _fitting(self, answer: Answer, output_schema: Schema | None) -> Answer:
        """Return an answer that fits its schema."""
        if output_schema is not None and answer.error is None:
            findings = await self._parts.validator.validate(
                output_schema, answer.result
            )
            if findings:
                raise ResultUnfit(
                    "the result does not fit the schema that the peer published: "
                    f"{'; '.join(findings)}"[:500]
                )
        return answer

    async def discover(self) -> list[dict[str, Any]]:
        """Ask for the envelope's list of what the peer exposes to us; hostile data.

        Raises:
            ChannelClosed: Nothing was sent.
            CallError: As `call`; `application_error` for an answer that is no list.
        """
        entries: list[dict[str, Any]] = []
        offset: int | None = 0
        for _ in range(MAX_PAGES):
            answer = await self.call(EnvelopeAction.DISCOVER, {"offset": offset})
            if answer.error is not None:
                code, message = answer.error
                raise CallError(
                    ErrorKind.APPLICATION_ERROR, told_by_peer(code, message)
                )
            assert offset is not None
            try:
                page, offset = read_page(answer.result, offset)
            except ValueError as exc:
                raise CallError(
                    ErrorKind.APPLICATION_ERROR, f"the peer's list: {exc}"
                ) from exc
            entries += page
            if offset is None or len(entries) > MAX_LISTED:
                break
        return entries[:MAX_LISTED]

    async def _ask(self, request: _Request, terms: CallTerms) -> Answer:
        self._check_open()
        self._calls += 1
        left = terms.remaining(self._parts.limits.answer_timeout)
        call = Ask(
            call_id=str(self._calls),
            action=request.action,
            arguments=request.arguments,
            timeout=left if terms.given else None,
            reference=request.reference,
        )
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(answer, request, terms)
        self._pending[call.call_id] = waiting
        try:
            await self._send(call, request, left)
            return await answer
        finally:
            if self._pending.pop(call.call_id, None) is not None:
                abandon = self._machine.abandon
                self._driver.feed(lambda now, wall_now: abandon(call.call_id))
            if answer.done() and not answer.cancelled():
                answer.exception()
            elif request.id and self.alive:
                self._driver.spawn(self._tell_cancel(request.id))

    async def _send(self, call: Ask, request: _Request, left: float) -> None:
        """Send a request, or ask for the answer to one that was sent before."""
        announced = None
        known = request.id
        if self._works and not known:
            # Without the id of its envelope no signal would find the call.
            request.id = os.urandom(16).hex()
            deadline = None
            if call.timeout is not None:
                data = {"milliseconds": round(left * 1000)}
                deadline = render_signal(request.id, SignalKind.DEADLINE, data)
            announced = request.id, deadline
        sent = self._driver.feed(
            lambda now, wall_now: self._machine.ask(call, now=now, wall_now=wall_now),
            announced=announced,
        )
        request.reference = self._machine.reference(call.call_id)
        if sent is not None:
            await sent
        if known:
            await send_signal(self.channel, known, SignalKind.FETCH)

    async def _tell_cancel(self, request_id: str) -> None:
        with contextlib.suppress(ChannelClosed):
            await send_signal(self.channel, request_id, SignalKind.CANCEL)

    async def _heard(self, signal: CallSignal) -> None:
        """Take a signal of the peer's about a call of ours."""
        found = self._pending.values()
        waiting = next((w for w in found if w.request.id == signal.message_id), None)
        if waiting is None:
            return
        match signal.kind:
            case SignalKind.WORKING | SignalKind.PROGRESS:
                waiting.terms.sign(signal)
            case SignalKind.FETCH:
                kind = ErrorKind.PEER_UNREACHABLE
                lost = CallError(kind, LOST_FOR_GOOD, may_have_run=True)
                _fail(waiting.answer, lost)
            case _:
                pass

    def _take_now(self, event: FrameReceived) -> bool:
        """Take a message of the protocol; see `Channel.take`."""
        if event.frame.protocol_type is not ProtocolType.APPLICATION:
            return False
        self._driver.receive(event.frame.data)
        return True

    async def _read(self) -> None:
        """Take in what the peer sends, until the channel ends."""
        error = call_cut_off(ChannelClosed("the channel was given up", by_peer=False))
        lost = False
        try:
            while True:
                event = await self.channel.receive()
                match event.frame.protocol_type:
                    case ProtocolType.APPLICATION:
                        self._driver.receive(event.frame.data)
                    case ProtocolType.META:
                        await self.dialogue.receive(event.frame.data)
                    case _:
                        self._drop(event)
        except ChannelClosed as exc:
            # A request that the peer proved not to have acted on may be sent again.
            error = exc if exc.unprocessed else call_cut_off(exc)
            lost = exc.link_lost and not exc.unprocessed
        except Exception:
            # A bug of ours costs this channel and nothing else.
            logger.exception("session failed peer=%s", self._peer)
            self._driver.give_up()
        finally:
            await self._end()
            for one in list(self._pending.values()):
                fetched = lost and one.request.id and one.request.reference
                _fail(one.answer, CutOff(error, one.request) if fetched else error)
            self._on_end(self)

    def _act(self, event: WrittenEvent) -> None:
        match event:
            case CallAnswered(call_id, result, error):
                # The protocol has forgotten it as well.
                one = self._pending.pop(call_id, None)
                if one is not None and not one.answer.done():
                    one.answer.set_result(Answer(call_id, result, error))
            case CallRefused(call_id):
                one = self._pending.pop(call_id, None)
                self._refused(None if one is None else one.answer, event)
            case Progress(status=status):
                logger.debug("peer at work peer=%s status=%r", self._peer, status[:200])
            case _:
                super()._act(event)

    def _refused(
        self, answer: asyncio.Future[Answer] | None, refusal: CallRefused
    ) -> None:
        if answer is None or answer.done():
            return
        code, message = refusal.code, refusal.message[:500]
        if refusal.by_peer and _is_pending(refusal.details):
            _fail(answer, peer_pending(message))
            return
        if refusal.by_peer and code == Refusal.INVALID_PAYLOAD:
            if not refusal.may_have_run:
                _fail(answer, InputRefused(told_by_peer(code, message)))
                return
        elif refusal.by_peer and code not in NOT_SERVED and not refusal.may_have_run:
            # The peer's own words; the caller reads them like any other answer.
            said = Answer(refusal.call_id, None, (code, message), not_run=True)
            answer.set_result(said)
            return
        error: CallError
        if refusal.by_peer and code in NOT_SERVED:
            error = NotServed(code, told_by_peer(code, message))
        elif refusal.by_peer:
            error = CallError(
                ErrorKind.APPLICATION_ERROR,
                told_by_peer(code, message),
                may_have_run=True,
            )
        elif code == Refusal.TIMEOUT:
            seconds = self._parts.limits.answer_timeout
            error = CallError(
                ErrorKind.TIMEOUT, no_answer(seconds, "call.timeout"), may_have_run=True
            )
        elif code == Refusal.TOO_MANY:
            error = CallError(ErrorKind.LOCAL_RESOURCE, message)
        elif code in NOTHING_SENT:
            error = CallError(ErrorKind.USAGE, f"the input: {message}")
        else:
            error = CallError(ErrorKind.APPLICATION_ERROR, message, may_have_run=True)
        _fail(answer, error)


def _is_pending(details: Json) -> bool:
    return isinstance(details, dict) and details.get("reason") == APPROVAL_PENDING


def _fail(answer: asyncio.Future[Answer], error: CallError) -> None:
    if not answer.done():
        answer.set_exception(error)
