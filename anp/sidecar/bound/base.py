"""The base of both roles on a channel with a negotiated protocol.

Our half of the protocol speaks on such a channel. Both roles keep the last exchanges,
judge what the peer reports about our messages, and have our half repaired when it is
wrong.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from anp.channel.channel import Channel
from anp.channel.core.events import FrameReceived
from anp.identity.dids import canonical_did
from anp.sidecar.bound.dialogue import Answers, DialogueShell
from anp.sidecar.bound.examiner import Examiner
from anp.sidecar.bound.exchanges import LONG, Exchange, Exchanges
from anp.sidecar.bound.repairer import Repairer
from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.minds.afterwards import Afterwards, Bill, words_of
from anp.sidecar.minds.minds import Thinking
from cache.records.records import AgreementRecord, AgreementState, HalfRecord
from cache.store import Store
from negotiation.errors import HalfError
from negotiation.exchange.dialogue.reports import judge_fault
from negotiation.exchange.events import Fault, OurFault, PeerFault
from negotiation.exchange.limits import DialogueLimits
from negotiation.mind import Offer, Side
from negotiation.need import Role

logger = logging.getLogger(__name__)

MAX_REPAIRS = 10
"Repairs of our half, or reports about the peer's, on one channel (ANP-Q25)."


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundParts:
    """The parts of the daemon that every bound channel needs, in either role."""

    workshop: Workshop
    "Loads halves and judges values."

    store: Store
    "Keeps the outcome of test cases with the agreement."

    repairer: Repairer
    "Writes halves anew."

    afterwards: Afterwards
    "Gives minds, which answer questions and examine messages."

    limits: DialogueLimits
    "Limits on what is said beside the calls."


@dataclass(frozen=True, slots=True)
class RequesterParts:
    """The parts of the daemon that a bound channel as requester needs."""

    common: BoundParts
    "Parts that either role needs."

    call_timeout: float
    "Seconds to wait for an answer, for a call that was given no deadline."


class BoundChannel(Answers):
    """A channel, the protocol it is bound to, and our half of that."""

    role: ClassVar[Role]
    "Our role."

    kind: ClassVar[Literal["request", "response"]]
    "The messages that our half makes."

    def __init__(
        self,
        channel: Channel,
        protocol: Protocol,
        half: HalfRecord,
        agreement: AgreementRecord | None,
        parts: BoundParts,
    ) -> None:
        self.channel = channel
        self.protocol = protocol
        self.half = half
        self.agreement = agreement
        self.validator = parts.workshop.validator
        self._common = parts
        self._peer = canonical_did(channel.peer_did, channel.peer_key)
        self._exchanges = Exchanges()
        self._unnamed: Exchange | None = None
        "The exchange that the peer's last report without a reference is about."
        self._repairs = 0
        self.bill = Bill()
        "Costs of the model on this channel that no call has taken into account."
        self.examiner = Examiner(self._think, parts.limits)
        self.dialogue = DialogueShell(channel, self.role, parts.limits, self)
        channel.in_use = lambda: self.busy or self.dialogue.busy

    @property
    def peer(self) -> str:
        """The peer's DID in its canonical form."""
        return self._peer

    @property
    @abstractmethod
    def busy(self) -> bool:
        """True while a call is under way."""

    async def keep_tests(
        self, tests: Mapping[str, Any], state: AgreementState | None = None
    ) -> None:
        """Keep the outcome of test cases with the agreement, if there is one.

        Args:
            state: State of the agreement from now on; None leaves it.
        """
        if self.agreement is not None:
            self.agreement = await asyncio.to_thread(
                self._common.store.set_tests, self.agreement, tests, state=state
            )

    async def _read(self, first: Sequence[FrameReceived] = ()) -> None:
        """Take in what the peer sends.

        Args:
            first: Frames that came before the channel was bound, oldest first.

        Raises:
            ChannelClosed: The channel ended; nothing else ends this.
        """
        for event in first:
            await self._take(event)
        while True:
            await self._take(await self.channel.receive())

    @abstractmethod
    async def _take(self, event: FrameReceived) -> None:
        """Take in one frame of the peer."""

    # Exchanges.

    def _keep(self, exchange: Exchange) -> None:
        if self._is_lean(exchange):
            self._exchanges.drop(exchange)
        else:
            self._exchanges.keep(exchange, now=time.monotonic())

    def _is_lean(self, exchange: Exchange) -> bool:
        is_long = exchange.lean or exchange.size > LONG
        return is_long and self.protocol.is_plan and not exchange.verification

    def _find(self, reference: str | None) -> Exchange | None:
        if reference is None:
            return self._unnamed
        return self._exchanges.find(reference, now=time.monotonic())

    def _last_of_ours(self) -> Exchange | None:
        """Return the exchange that is meant by words about no message by name."""
        answered = self.kind == "response"
        return self._exchanges.latest(answered=answered, now=time.monotonic())

    # Decisions for the dialogue; see `Answers`.

    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        """Judge a message of ours that the peer complains about (ANP-60).

        A report that names none, such as the seed's example (ANP-62), is about the last
        message that we sent.
        """
        if reference is None:
            self._unnamed = self._last_of_ours()
        exchange = self._find(reference)
        data = None if exchange is None else await self._ours(exchange)
        if exchange is None or data is None:
            return PeerFault("the message in question is not, or no longer, kept")
        fault: Fault
        by_words = False
        differences = await self._differences(exchange)
        if differences:
            fault = OurFault(tuple(differences))
        else:
            fault = await judge_fault(
                self.kind,
                data,
                self.protocol.document,
                description,
                validator=self.validator,
                read=self.protocol.reader,
            )
            by_words = isinstance(fault, PeerFault)
            fault = await self.examiner.judge_fault(
                self.kind, data, description, found=fault, protocol=self.protocol
            )
        if isinstance(fault, PeerFault):
            self._not_at_fault(exchange, description)
        elif exchange.revision == self.half.revision:
            try:
                await self._repair(fault.findings, by_words=by_words)
            except HalfError as exc:
                reason = f"the fault is ours, but it cannot be repaired: {exc.told}"
                await self._not_repaired(exchange, exc, reason, differences)
                return PeerFault(reason)
        # Otherwise code that is repaired by now made it: only the message comes anew.
        return fault

    async def answer(self, question: str) -> str:
        """Answer a question about the protocol in words (ANP-64)."""
        async with self._think(ours=False) as thinking:
            return await words_of(thinking.mind, question, self._side())

    # Knowledge of each role.

    @abstractmethod
    def _side(self) -> Side:
        """Return the need or the offer that our half serves."""

    @abstractmethod
    async def _ours(self, exchange: Exchange) -> bytes | None:
        """Return the message that our half made in an exchange, or None."""

    async def _differences(self, exchange: Exchange) -> list[str]:
        """Return the differences of our message from an agreed test case."""
        return []

    @abstractmethod
    def _not_at_fault(self, exchange: Exchange, description: str) -> None:
        """Take note that the peer complains about a good message of ours."""

    @abstractmethod
    async def _not_repaired(
        self,
        exchange: Exchange,
        error: HalfError,
        reason: str,
        differences: Sequence[str],
    ) -> None:
        """Take note that a bad message of ours stays as it is."""

    # Repairs.

    async def _repair(
        self, findings: tuple[str, ...], *, by_words: bool = False
    ) -> None:
        """Use a new revision of our half from now on (DESIGN.md, Repairs).

        Args:
            findings: Faults of our half, in words.
            by_words: True when it breaks the words of the document, and no schema.

        Raises:
            HalfError: There is none that passes its checks.
        """
        self._repairs += 1
        if self._repairs > MAX_REPAIRS:
            raise HalfError("rejected", f"over {MAX_REPAIRS} repairs on one channel")
        side = self._side()
        if isinstance(side, Offer):
            # An owner's hint may have chosen what the half calls; it stays chosen.
            side = replace(side, hints=tuple(self.half.capabilities))
        text = self.protocol.document.text
        half, agreement = await self._common.repairer.repair(
            text,
            self.half,
            side,
            peer_did=self._peer,
            agreement=self.agreement,
            findings=findings,
            think=self._think,
            by_words=by_words,
        )
        self.protocol = await self._common.workshop.protocol(
            half, text, peer_did=self._peer, sides=[side]
        )
        self.half, self.agreement = half, agreement

    def _think(self, *, ours: bool) -> AbstractAsyncContextManager[Thinking]:
        agreement = self.agreement
        return self._common.afterwards.think(
            self._peer,
            ours=ours,
            negotiation_id=None if agreement is None else agreement.negotiation_id,
            bill=self.bill,
        )
