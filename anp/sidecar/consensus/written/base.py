"""The base of both roles on a channel with a written protocol."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.errors import CallError, ErrorKind
from anp.identity.dids import canonical_did
from anp.sidecar.bound.dialogue import Answers, DialogueShell
from anp.sidecar.consensus.written.driver import Driver
from negotiation.consensus.written import (
    Broken,
    Deliver,
    Flagged,
    Parties,
    PeerSaid,
    WrittenCode,
    WrittenEvent,
    WrittenLimits,
    WrittenProtocol,
)
from negotiation.errors import MisuseError
from negotiation.exchange.events import (
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    Fault,
    PeerFault,
    RejectCases,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.mind import Validator
from negotiation.need import Role

logger = logging.getLogger(__name__)

MAX_FLAG_LINES: Final = 8
"Odd messages of one channel that the log shows; more only with debug."


@dataclass(frozen=True, slots=True)
class WrittenParts:
    """The parts of the daemon that every channel with a written protocol needs."""

    validator: Validator
    "Judges values."

    dialogue: DialogueLimits
    "Limits of the dialogue beside the protocol."

    limits: WrittenLimits
    "Limits of the protocol; a message is no larger than its channel takes, too."

    said: Callable[[str, str, PeerSaid], None]
    "Takes unasked messages of peers, given the canonical DID and the protocol's URI."

    aliases: Callable[[str], frozenset[str]] = lambda did: frozenset()
    "Names that the owner configured for a canonical DID (ENV-Q13)."


class WrittenChannel(Answers):
    """A channel with a written protocol, fed and emptied by a driver.

    In the dialogue beside the protocol the answers are fixed, because there is no half:
    our own code is neither negotiated, nor tested in cases, nor repaired on a channel.
    """

    def __init__(
        self,
        channel: Channel,
        uri: str,
        code: WrittenCode,
        role: Role,
        parts: WrittenParts,
    ) -> None:
        self.channel = channel
        self.uri = uri
        self._parts = parts
        self._peer = canonical_did(channel.peer_did, channel.peer_key)
        self._flags = 0
        self._closing: asyncio.Task[None] | None = None
        self._machine: WrittenProtocol = code(
            role,
            Parties(
                own_id=channel.local_did,
                peer_id=channel.peer_did,
                peer_aliases=parts.aliases(self._peer) | {self._peer},
            ),
            limits=replace(
                parts.limits,
                max_message=min(parts.limits.max_message, channel.max_payload),
            ),
            random_bytes=os.urandom,
        )
        self._driver = Driver(channel, self._machine, self._act)
        self.dialogue = DialogueShell(channel, role, parts.dialogue, self)
        channel.in_use = lambda: self.busy or self.dialogue.busy

    @property
    def peer(self) -> str:
        """The peer's DID in its canonical form."""
        return self._peer

    @property
    def busy(self) -> bool:
        """True while a call is under way."""
        return self._driver.busy

    def _act(self, event: WrittenEvent) -> None:
        """Carry out an event of the protocol; a role handles its own events before."""
        match event:
            case Deliver(said):
                self._parts.said(self._peer, self.uri, said)
            case Flagged(reason, fault):
                self._flags += 1
                level = (
                    logging.WARNING if self._flags <= MAX_FLAG_LINES else logging.DEBUG
                )
                logger.log(
                    level,
                    "odd message peer=%s fault=%s reason=%s",
                    self._peer,
                    fault,
                    reason,
                )
            case Broken(reason):
                logger.warning("protocol broken peer=%s reason=%s", self._peer, reason)
                # Its own task: what the driver runs ends with the channel.
                self._closing = asyncio.create_task(
                    self.channel.close(f"protocol broken: {reason}")
                )
            case _:
                raise MisuseError(f"{type(event).__name__} on this side of a channel")

    async def tell(
        self, name: str, data: dict[str, Any], *, message_id: str = ""
    ) -> None:
        """Tell the peer of something that happened.

        Args:
            message_id: As in `WrittenProtocol`.

        Raises:
            ChannelClosed: Nothing was sent.
            CallError: `usage`, it cannot be sent.
        """
        self._check_open()
        try:
            sent = self._driver.feed(
                lambda now, wall_now: self._machine.tell(
                    name, data, now=now, wall_now=wall_now, message_id=message_id
                )
            )
        except MisuseError as exc:
            raise CallError(ErrorKind.USAGE, str(exc)) from exc
        if sent is not None:
            await sent

    def _check_open(self) -> None:
        """Raise `ChannelClosed` when nothing can be sent any more."""
        if self.channel.ended is not None:
            raise self.channel.ended
        if self._closing is not None:
            raise ChannelClosed("protocol broken", by_peer=False)

    def _drop(self, event: FrameReceived) -> None:
        logger.warning(
            "frame dropped peer=%s type=%s", self._peer, event.frame.protocol_type.name
        )

    # Decisions for the dialogue; see `Answers`.

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """Reject the cases: a consensus protocol has none on a channel."""
        return RejectCases(f"{self.uri} is a consensus protocol; its text is its test")

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """Log it; no cases are ever agreed."""
        logger.info("test cases settled outcome=%s", type(settled).__name__)

    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        """Decline a report; faults are told in the protocol's own way."""
        logger.warning(
            "peer reports an error peer=%s text=%r", self._peer, description[:200]
        )
        return PeerFault(
            f"the code for {self.uri} is written by hand and not changed on a channel"
        )

    async def repaired(self, reference: str | None) -> None:
        """Log it; we report nothing, so nothing is repaired."""
        logger.info("peer repaired something peer=%s", self._peer)

    def message_refused(self, reference: str | None, reason: str) -> None:
        """Log it; the call ends by the protocol's own answer or its deadline."""
        logger.warning(
            "peer refuses a message peer=%s reason=%r", self._peer, reason[:200]
        )

    async def answer(self, question: str) -> str:
        """Answer a question about the protocol with a fixed text (ANP-64)."""
        return (
            f"This channel speaks {self.uri}. Its request with the action `discover` "
            "lists what there is."
        )

    async def _end(self) -> None:
        """Release everything after the channel has ended."""
        await self._driver.close()
        await self.dialogue.close()
