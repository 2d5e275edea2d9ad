"""Negotiates on a channel and keeps what was agreed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.channel.stranger_work import counted
from anp.errors import CallError, ErrorKind
from anp.identity.dids import canonical_did
from anp.sidecar.agreement.case import Case, GuidedMind
from anp.sidecar.agreement.queue import OwnerDesk
from anp.sidecar.agreement.refusals import RefusingMind, refuses_text
from anp.sidecar.agreement.rulings import PEER_APPROVAL_PENDING, RETRY_AFTER, is_pending
from anp.sidecar.agreement.stored import negotiated
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.minds.accounts import Cost
from anp.sidecar.minds.minds import Think
from anp.sidecar.telemetry.observer import Observer
from anp.wire.frames import ProtocolType
from cache.errors import StoreUnavailable
from cache.records.negotiations import NegotiationRecord
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
)
from cache.store import Store
from negotiation.document.shape import document_hash
from negotiation.errors import APPROVAL_PENDING, FailureKind, HalfError, TransportClosed
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.negotiator import NegotiationResult, negotiate
from negotiation.mind import Demand, HalfSource, Side
from negotiation.need import Role as NegotiationRole
from negotiation.need import need_key
from negotiation.transcript import NegotiationEnded, calls_told, empty_told

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_HELD = 16
"Application frames that may arrive before both sides announced their code."

KINDS: Mapping[FailureKind, ErrorKind] = {
    FailureKind.REJECTED: ErrorKind.NEGOTIATION_REJECTED,
    FailureKind.ROUNDS: ErrorKind.NEGOTIATION_REJECTED,
    FailureKind.PROTOCOL_ERROR: ErrorKind.NEGOTIATION_REJECTED,
    FailureKind.MIND: ErrorKind.NEGOTIATION_REJECTED,
    FailureKind.TIMEOUT: ErrorKind.TIMEOUT,
    FailureKind.CODE_GENERATION: ErrorKind.GENERATED_CODE,
    FailureKind.CANCELLED: ErrorKind.INTERRUPTED,
    FailureKind.LINK_LOST: ErrorKind.PEER_UNREACHABLE,
}
"Kind of the caller's error for each failure of a negotiation."


@dataclass(frozen=True, slots=True)
class NewAgreement:
    """The result of one negotiation, stored."""

    agreement: AgreementRecord

    half: HalfRecord

    document: str
    "The agreed text."

    cost: Cost
    "Messages, rounds and model calls that it took."

    held: tuple[FrameReceived, ...]
    "Application frames that came early, to be served now."


Words = Callable[[FrameReceived], None]
"Answers a text of the peer in natural language."


class _MetaFrames:
    """The PT=00 frames of a channel as a negotiation's transport."""

    def __init__(self, channel: Channel, words: Words | None) -> None:
        self._channel = channel
        self._words = words
        self.held: list[FrameReceived] = []
        self.latest: FrameReceived | None = None

    async def send(self, data: bytes) -> None:
        try:
            await self._channel.send(ProtocolType.META, data)
        except ChannelClosed as exc:
            raise TransportClosed(exc.detail) from exc

    async def receive(self) -> bytes:
        while True:
            try:
                event = await self._channel.receive()
            except ChannelClosed as exc:
                raise TransportClosed(exc.detail) from exc
            if event.frame.protocol_type is ProtocolType.META:
                self.latest = event
                return event.frame.data
            if (
                event.frame.protocol_type is ProtocolType.NATURAL_LANGUAGE
                and self._words is not None
            ):
                # Words need no protocol, so they need not wait for one (ANP-72).
                self._words(event)
                continue
            # Nothing of the application is processed before both sides announced
            # their code (ANP-42); the peer may have announced it in this very moment.
            if len(self.held) < MAX_HELD:
                self.held.append(event)


class Agreer:
    """Runs negotiations, has halves prepared for them and stores agreements."""

    def __init__(
        self,
        *,
        store: Store,
        workshop: Workshop,
        think: Think,
        limits: NegotiationLimits,
        own_did: str,
        desk: OwnerDesk,
        observer: Observer | None = None,
    ) -> None:
        """Make the part that negotiates.

        Args:
            desk: The owner's queue.
            think: Gives a mind for a role, a peer and a negotiation.
        """
        self._own_did = own_did
        self._observer = observer or Observer()
        self._store = store
        self._workshop = workshop
        self._think = think
        self._limits = limits
        self.published: Callable[[], Collection[str]] = tuple
        "Hashes of the texts that we publish, which stay in the store."
        self.desk = desk

    async def agree(
        self,
        channel: Channel,
        side: Side,
        *,
        begins: AgreementState = AgreementState.ACTIVE,
        words: Words | None = None,
    ) -> NewAgreement:
        """Negotiate on `channel` and store the agreement (ANP-84).

        Without an agreement the channel is closed, and the negotiation kept with its
        transcript and the reason (ANP-34).

        Args:
            begins: State of the agreement: `TESTING` when test cases are to follow, so
                that nothing is used before they passed, however they end.
            words: Answers what the peer says in natural language meanwhile.

        Raises:
            CallError: There is no agreement; the kind and the reason say why.
            StoreUnavailable: An agreement could not be kept.
        """
        is_need = isinstance(side, Demand)
        record = NegotiationRecord(
            id=secrets.token_hex(8),
            peer_did=canonical_did(channel.peer_did, channel.peer_key),
            role=AgreementRole.REQUESTER if is_need else AgreementRole.PROVIDER,
            need=_need_json(side),
            turns=(),
            outcome="running",
            reason="",
            hash=None,
            started=time.time(),
            ended=None,
            own_did=self._own_did,
            subject=need_key(side.need) if isinstance(side, Demand) else None,
        )
        case = self.desk.open_case(record, side)
        watched = self._observer.negotiation(record.peer_did, role=record.role.value)
        try:
            with watched as seen:
                try:
                    return await self._agree(channel, side, case, begins, words)
                finally:
                    turns, seen.outcome = case.record.turns, case.record.outcome
                    seen.rounds = sum(
                        one.get("status") == "negotiating" for one in turns
                    )
        except BaseException as exc:
            await case.give_back_after(exc)
            with contextlib.suppress(CallError):
                await channel.close(f"no agreement: {_kind_of(exc)}")
            raise
        finally:
            self.desk.close_case(case)

    async def _agree(
        self,
        channel: Channel,
        side: Side,
        case: Case,
        begins: AgreementState,
        words: Words | None,
    ) -> NewAgreement:
        # Before anything is asked, answered or paid for that could not be kept.
        await asyncio.to_thread(self._store.probe)
        transport = _MetaFrames(channel, words)
        record = case.record
        thinking = self._think(
            record.peer_did,
            ours=isinstance(side, Demand),
            negotiation_id=record.id,
            watch=case.exchanged,
        )
        mind = RefusingMind(
            GuidedMind(thinking.mind, case),
            record,
            self._store,
            note=case.note,
            validate=self._workshop.validator.validate,
        )

        async def prepare(text: str) -> HalfSource:
            revoked = await asyncio.to_thread(
                refuses_text, self._store, document_hash(text), record
            )
            if revoked:
                # Before it is accepted: what the owner took back is not agreed anew.
                raise HalfError("rejected", "the owner took this document back")
            return await self._workshop.prepare(text, side, mind=mind, name=record.id)

        machine = Machine(
            NegotiationRole(case.record.role.value),
            self._limits,
            now=time.monotonic(),
            common=channel.capabilities,
        )
        try:
            outcome = await negotiate(
                machine,
                transport,
                mind=mind,
                side=side,
                prepare=prepare,
                approve=case.approve if case.asks_owner else None,
                cancelled=case.cancelled,
                on_turn=case.turn,
                on_end=case.end,
                start=_start,
            )
        except BaseException as exc:  # noqa: BLE001 - it goes on below
            calls = thinking.cost().model_calls
            case.record = replace(case.record, model_calls=calls)
            failure = exc if isinstance(exc, NegotiationEnded) else case.failure
            error: CallError | None = None
            try:
                if failure is None:
                    await _finish_in_any_case(self._interrupted(case, channel, exc))
                    raise
                error = await _finish_in_any_case(self._failed(case, failure))
                if failure.kind is FailureKind.MIND and thinking.exhausted():
                    # The owner's own limit, not the peer and not the document.
                    error = CallError(ErrorKind.POLICY, thinking.exhausted())
                if mind.refused is not None:
                    # Our own mind ended it: its proposal, or the call's data.
                    error = mind.refused.error(now=time.time())
                if exc is failure:
                    raise error from exc
                raise
            finally:
                # Errors hold what they pass: this frame, which would hold them.
                case.failure = failure = error = None
        spent = thinking.cost()
        case.record = replace(
            case.record,
            model_calls=spent.model_calls,
            tests={"acceptance": "passed", "samples": outcome.half.samples},
        )
        agreement, half = await _finish_in_any_case(
            self._keep(side, case, outcome, begins)
        )
        if outcome.unread is not None and transport.latest is not None:
            # The peer went on at once: it belongs to what follows.
            channel.put_back(transport.latest)
        messages = outcome.messages_sent + outcome.messages_received
        logger.info(
            "protocol agreed hash=%s role=%s peer=%s capability=%s messages=%d",
            outcome.hash[:12],
            case.record.role,
            channel.peer_did,
            ",".join(half.capabilities) or agreement.tests.get("capability", "-"),
            messages,
        )
        rounds = sum(turn.status == "negotiating" for turn in outcome.transcript)
        return NewAgreement(
            agreement,
            half,
            outcome.document,
            spent + Cost(messages=messages, rounds=rounds),
            tuple(transport.held),
        )

    async def _keep(
        self, side: Side, case: Case, outcome: NegotiationResult, begins: AgreementState
    ) -> tuple[AgreementRecord, HalfRecord]:
        record = case.record
        document, half, agreement = negotiated(
            outcome.document,
            outcome.half,
            side,
            own_did=self._own_did,
            peer_did=record.peer_did,
            need=record.need,
            negotiation_id=record.id,
            begins=begins,
            created=time.time(),
            capability=", ".join(calls_told(outcome.transcript, outcome.document))
            or None,
            empty=empty_told(outcome.transcript),
        )
        stored = await asyncio.to_thread(
            partial(
                self._store.save_agreement,
                document,
                half,
                agreement,
                spare=self.published(),
            )
        )
        await self._finish(case, "agreed", "", outcome.hash)
        return stored, replace(half, revision=stored.revision)

    async def _interrupted(
        self, case: Case, channel: Channel, exc: BaseException
    ) -> None:
        """Keep the record of a negotiation that was broken off."""
        ended = channel.ended
        if ended is not None:
            # The link ends whoever serves on it.
            reason = f"the connection was lost: {ended.detail}"
            await self._finish(case, str(FailureKind.LINK_LOST), reason, None)
        else:
            await self._finish(case, "cancelled", _given_up(exc), None)

    async def _failed(self, case: Case, exc: NegotiationEnded) -> CallError:
        """Keep the record of a failed negotiation; return the error for the caller."""
        name = case.record.id
        # A stranger's question for which the queue has no room is not one of ours.
        is_ours = exc.by_peer or case.record.pending is not None
        pending = is_ours and is_pending(exc.reason)
        outcome, error = str(exc.kind), CallError(KINDS[exc.kind], _why(exc))
        if pending and exc.by_peer:
            outcome = PEER_APPROVAL_PENDING
            await case.offer_again(word_id=secrets.token_hex(8))
            error = CallError(
                ErrorKind.APPROVAL_PENDING,
                "the peer's owner has to approve this protocol first; call again "
                f"later, the same text is offered then (negotiation {name})",
                retry_after=RETRY_AFTER,
            )
        elif pending:
            outcome = APPROVAL_PENDING
            error = CallError(
                ErrorKind.APPROVAL_PENDING,
                f"approve = {self.desk.rule!r} needs your decision first: run `anpd "
                f"negotiations show {name}`, then `anpd negotiations decide {name} "
                "accept`, and call again",
                retry_after=RETRY_AFTER,
            )
        await self._finish(case, outcome, _why(exc), None)
        logger.warning(
            "negotiation failed id=%s outcome=%s reason=%r",
            name,
            outcome,
            exc.reason[:200],
        )
        return error

    async def _finish(
        self, case: Case, outcome: str, reason: str, digest: str | None
    ) -> None:
        if outcome == FailureKind.LINK_LOST and not case.record.turns:
            # Nobody proposed anything: a question in words, or a link that broke.
            return
        case.record = replace(
            case.record,
            outcome=outcome,
            reason=reason[:4096],
            hash=digest,
            ended=time.time(),
        )
        try:
            await asyncio.to_thread(self._store.save_negotiation, case.record)
        except StoreUnavailable as exc:
            # A record for people, which changes nothing about how it ended.
            logger.error("negotiation not kept id=%s reason=%s", case.record.id, exc)


async def _finish_in_any_case(work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work`, and let it end before a cancellation goes on.

    For what is kept on disk: the link may end, and cancel us, at that very moment.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _start(work: Coroutine[Any, Any, T], /) -> asyncio.Task[T]:
    """Start a task of a mind; what it does for a stranger is counted."""
    return asyncio.create_task(counted(work))


def _kind_of(exc: BaseException) -> str:
    if isinstance(exc, StoreUnavailable):
        return str(ErrorKind.LOCAL_RESOURCE)
    return str(exc.kind) if isinstance(exc, CallError) else "interrupted"


def _given_up(exc: BaseException) -> str:
    if isinstance(exc, asyncio.CancelledError):
        return "the call was given up, its time was over, or the daemon stopped"
    return "unexpected error; see the log"


def _why(exc: NegotiationEnded) -> str:
    who = "the peer" if exc.by_peer else "we"
    return f"{who} ended the negotiation ({exc.kind}): {exc.reason}"


def _need_json(side: Side) -> dict[str, Any] | None:
    if not isinstance(side, Demand):
        return None
    return {
        "requirement": side.need.requirement,
        "input_schema": side.need.input_schema,
        "output_schema": side.need.output_schema,
    }
