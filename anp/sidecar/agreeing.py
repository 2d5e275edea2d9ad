"""Negotiates on a channel and keeps what was agreed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.events import FrameReceived
from anp.errors import CallError, ErrorKind
from anp.identity.dids import canonical_did
from anp.sidecar.halves import load_half
from anp.wire.frames import ProtocolType
from cache.records import (
    AgreementRecord,
    DocumentRecord,
    HalfRecord,
    NegotiationRecord,
    Role,
    hash_text,
)
from cache.store import Store
from negotiation.acceptance import Validator, check_half
from negotiation.document import read_document
from negotiation.errors import FailureKind, NegotiationEnded, TransportClosed
from negotiation.limits import NegotiationLimits
from negotiation.machine import Machine
from negotiation.mind import HalfSource, Mind, Need, Side, Turn
from negotiation.negotiator import Outcome, negotiate, prepare_half
from negotiation.task import Role as NegotiationRole
from negotiation.task import schema_hash, task_key
from sandbox.pool import Sandbox

__all__ = ["Agreed", "Agreer"]

logger = logging.getLogger(__name__)

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
"How a negotiation's failure looks to a caller."


@dataclass(frozen=True, slots=True)
class Agreed:
    """The result of one negotiation, stored."""

    agreement: AgreementRecord
    "What was settled."

    half: HalfRecord
    "Our half."

    document: str
    "The agreed text."

    messages: int
    "Meta messages, both directions."

    rounds: int
    "Candidates that were on the table."

    held: tuple[FrameReceived, ...]
    "Application frames that came early, to be served now."


class _MetaFrames:
    """The PT=00 frames of a channel as a negotiation's transport."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.held: list[FrameReceived] = []

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
                return event.frame.data
            # Nothing of the application is processed before both sides announced
            # their code (ANP-42); the peer may have announced it in this very moment.
            if len(self.held) < MAX_HELD:
                self.held.append(event)


class Agreer:
    """Runs negotiations, checks halves in the sandbox and stores agreements."""

    def __init__(
        self,
        *,
        store: Store,
        sandbox: Sandbox,
        validator: Validator,
        mind: Mind,
        limits: NegotiationLimits,
        half_deadline: float,
        own_did: str,
    ) -> None:
        self._own_did = own_did
        self._store = store
        self._sandbox = sandbox
        self._validator = validator
        self._mind = mind
        self._limits = limits
        self._half_deadline = half_deadline
        self.running: dict[str, NegotiationRecord] = {}

    async def agree(self, channel: Channel, side: Side) -> Agreed:
        """Negotiate on `channel` and store the agreement (ANP-84).

        Raises:
            CallError: There is no agreement; the kind and the reason say why.
        """
        role = Role.REQUESTER if isinstance(side, Need) else Role.PROVIDER
        peer = canonical_did(channel.peer_did, channel.peer_key)
        record = NegotiationRecord(
            id=secrets.token_hex(8),
            peer_did=peer,
            role=role,
            task=_task_json(side),
            turns=(),
            outcome="running",
            reason="",
            hash=None,
            started=time.time(),
            ended=None,
        )
        self.running[record.id] = record
        try:
            return await self._agree(channel, side, record)
        finally:
            del self.running[record.id]

    async def _agree(
        self, channel: Channel, side: Side, record: NegotiationRecord
    ) -> Agreed:
        transport = _MetaFrames(channel)
        samples: dict[str, str] = {}

        def on_turn(turn: Turn) -> None:
            known = self.running[record.id]
            self.running[record.id] = replace(
                known, turns=(*known.turns, _turn_json(turn))
            )

        async def check(half: HalfSource, text: str) -> tuple[str, ...]:
            problems, made = await self._check(half, text, side, record.id)
            samples[text] = made
            return problems

        async def prepare(text: str) -> HalfSource:
            return await prepare_half(text, side, mind=self._mind, check=check)

        machine = Machine(
            NegotiationRole(record.role.value), self._limits, now=time.monotonic()
        )
        try:
            outcome = await negotiate(
                machine,
                transport,
                mind=self._mind,
                side=side,
                prepare=prepare,
                on_turn=on_turn,
            )
        except NegotiationEnded as exc:
            await self._failed(record.id, exc)
            raise CallError(KINDS[exc.kind], _why(exc)) from exc
        except BaseException as exc:
            await self._finish(record.id, "cancelled", type(exc).__name__, None)
            raise
        agreement, half = await self._keep(
            channel, side, self.running[record.id], outcome, samples[outcome.document]
        )
        logger.info(
            "protocol agreed hash=%s role=%s peer=%s messages=%d",
            outcome.hash[:12],
            record.role,
            channel.peer_did,
            outcome.messages_sent + outcome.messages_received,
        )
        rounds = sum(turn.status == "negotiating" for turn in outcome.transcript)
        return Agreed(
            agreement,
            half,
            outcome.document,
            outcome.messages_sent + outcome.messages_received,
            rounds,
            tuple(transport.held),
        )

    async def _check(
        self, half: HalfSource, text: str, side: Side, negotiation_id: str
    ) -> tuple[tuple[str, ...], str]:
        """Try a half in a worker of its own; see `check_half`."""
        key = f"trial:{negotiation_id}:{secrets.token_hex(4)}"
        try:
            runner = await load_half(
                self._sandbox,
                key,
                half.text,
                origin=half.origin,
                # Apart from its use: a failed attempt must not quarantine the next.
                protocol=f"trial:{hash_text(text)}",
                peer=negotiation_id,
                deadline=self._half_deadline,
            )
            findings = await check_half(
                half,
                read_document(text),
                side,
                runner=runner,
                validator=self._validator,
            )
        finally:
            await self._sandbox.unload(key)
        return findings.problems, findings.samples

    async def _keep(
        self,
        channel: Channel,
        side: Side,
        record: NegotiationRecord,
        outcome: Outcome,
        samples: str,
    ) -> tuple[AgreementRecord, HalfRecord]:
        now = time.time()
        calls = (
            {
                capability.name: schema_hash(capability)
                for capability in side.capabilities
                if capability.name in outcome.half.capabilities
            }
            if not isinstance(side, Need)
            else {}
        )
        half = HalfRecord.from_json(
            {
                "hash": outcome.hash,
                "role": record.role.value,
                "revision": 0,
                "source": outcome.half.text,
                "origin": outcome.half.origin,
                "capabilities": calls,
                "created": now,
            }
        )
        agreement = AgreementRecord.from_json(
            {
                "own_did": self._own_did,
                "peer_did": record.peer_did,
                "role": record.role.value,
                "task_key": task_key(side.task) if isinstance(side, Need) else None,
                "hash": outcome.hash,
                "revision": 0,
                "task": record.task,
                "samples": samples,
                "tests": {"acceptance": "passed"},
                "negotiation_id": record.id,
                "created": now,
            }
        )
        stored = await asyncio.to_thread(
            self._store.save_agreement,
            DocumentRecord.of(outcome.document),
            half,
            agreement,
        )
        await self._finish(record.id, "agreed", "", outcome.hash)
        return stored, replace(half, revision=stored.revision)

    async def _failed(self, negotiation_id: str, exc: NegotiationEnded) -> None:
        await self._finish(negotiation_id, str(exc.kind), _why(exc), None)
        logger.warning(
            "negotiation failed id=%s kind=%s reason=%r",
            negotiation_id,
            exc.kind,
            exc.reason[:200],
        )

    async def _finish(
        self, negotiation_id: str, outcome: str, reason: str, digest: str | None
    ) -> None:
        record = replace(
            self.running[negotiation_id],
            outcome=outcome,
            reason=reason[:4096],
            hash=digest,
            ended=time.time(),
        )
        await asyncio.to_thread(self._store.save_negotiation, record)


def _why(exc: NegotiationEnded) -> str:
    who = "the peer" if exc.by_peer else "we"
    return f"{who} ended the negotiation ({exc.kind}): {exc.reason}"


def _task_json(side: Side) -> dict[str, Any] | None:
    if not isinstance(side, Need):
        return None
    return {
        "requirement": side.task.requirement,
        "input_schema": side.task.input_schema,
        "output_schema": side.task.output_schema,
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    return {
        key: str(value) if key in {"direction", "status"} else value
        for key, value in asdict(turn).items()
    }
