"""Questions to a peer about protocols: for its list, and in words."""

from __future__ import annotations

import asyncio
import logging

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind
from anp.sidecar.bound.dialogue import Answers, DialogueShell
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.peers.lists import PeerLists
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import EXTENSION_LIST
from negotiation.consensus.listing import (
    LIST_REQUEST,
    ListingError,
    ProtocolListing,
    read_list_answer,
)
from negotiation.exchange.events import (
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    Fault,
    PeerFault,
    RejectCases,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.need import Role

LIST_TIMEOUT = 10.0
"Seconds for a peer to send its list."

logger = logging.getLogger(__name__)

CAPABILITY = "naturalLanguageNegotiation"
"The capability that both hellos have to list (ANP-81)."


async def ask_peer(channel: Channel, question: str, limits: DialogueLimits) -> str:
    """Ask what no predefined message can, on a channel without a protocol (ANP-64).

    The channel is closed afterwards.

    Raises:
        CallError: `policy` when one side does not offer this; `timeout` when the peer
            does not answer.
    """
    try:
        if CAPABILITY not in channel.capabilities:
            raise CallError(
                ErrorKind.POLICY, f"one of the two daemons does not offer {CAPABILITY}"
            )
        shell = DialogueShell(channel, Role.REQUESTER, limits, _Curious())
        reader = asyncio.create_task(_read(channel, shell))
        try:
            answer = await shell.ask(question)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            await shell.close()
        if answer is None:
            raise CallError(ErrorKind.TIMEOUT, "the peer has no answer to that")
        return answer
    finally:
        await channel.close("asked and answered")


async def ask_list(
    requesters: Requesters, lists: PeerLists, target: LinkTarget
) -> ProtocolListing | None:
    """Ask a peer that proves its DID for its list as we may use it.

    A peer without the extension `list` is read at its address, as by anybody.

    Returns:
        The list; None when the peer tells nobody.

    Raises:
        CallError: The peer cannot be reached or sends no list that can be used.
    """
    channel = await requesters.open(target, None)
    try:
        if EXTENSION_LIST not in channel.extensions:
            return await lists.listing(target)
        await channel.send(ProtocolType.META, LIST_REQUEST)
        async with asyncio.timeout(LIST_TIMEOUT):
            while True:
                frame = (await channel.receive()).frame
                if frame.protocol_type is not ProtocolType.META:
                    continue
                listing = read_list_answer(frame.data)
                if listing is not None:
                    return listing
    except TimeoutError:
        raise CallError(
            ErrorKind.TIMEOUT,
            f"the peer did not send its list within {LIST_TIMEOUT:g} s",
        ) from None
    except ListingError as exc:
        raise CallError(
            ErrorKind.APPLICATION_ERROR, f"the peer's list cannot be used: {exc}"
        ) from exc
    finally:
        await channel.close("asked and answered")


async def _read(channel: Channel, shell: DialogueShell) -> None:
    try:
        while True:
            event = await channel.receive()
            if event.frame.protocol_type is ProtocolType.META:
                await shell.receive(event.frame.data)
    except ChannelClosed:
        await shell.close()


class _Curious(Answers):
    """Refuses all requests of the peer: the channel is for our question alone."""

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        return RejectCases("there is no protocol on this channel")

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        logger.debug("test cases without a protocol")

    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        return PeerFault("there is no protocol on this channel")

    async def repaired(self, reference: str | None) -> None:
        logger.debug("repair without a protocol")

    def message_refused(self, reference: str | None, reason: str) -> None:
        logger.debug("refusal without a message")

    async def answer(self, question: str) -> str:
        return ""
