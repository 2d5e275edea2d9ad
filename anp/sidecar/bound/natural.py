"""Natural language between agents (PT=10): questions from peers, and to peers.

The text of a peer is data like any other. A capability that the owner marked as
conversational gets the whole of it; without one the rules look for a capability by its
name and for an input that fits (ANP-71 to ANP-74).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from anp.channel.channel import Channel, ChannelClosed, call_cut_off
from anp.channel.core.events import FrameReceived
from anp.channel.core.traffic import FrameTooLarge
from anp.channel.stranger_work import counted
from anp.errors import CallError, ErrorKind
from anp.identity.dids import canonical_did
from anp.phases import waits_for
from anp.sidecar.bound.work import CallTerms
from anp.sidecar.minds.minds import Think
from anp.sidecar.offer.capability_calls import CapabilityCalls, outcome_of
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.telemetry.observer import CallSeen
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import MAX_PAYLOAD
from negotiation.errors import NOT_RUN, CapabilityFailed, MindError
from negotiation.messages import cut_text
from negotiation.mind import Offer
from negotiation.natural import (
    MAX_NATURAL_SIZE,
    arguments_for,
    natural_refusal,
    read_natural_request,
    render_natural_answer,
    render_natural_refusal,
    text_argument,
)
from negotiation.rules.choice import NoChoice, choose_for_prose

logger = logging.getLogger(__name__)

MAX_ANSWER = MAX_NATURAL_SIZE // 4
"Longest answer in characters, so that its UTF-8 bytes fit."


class Spokesman:
    """Answers texts in the agent's name."""

    def __init__(self, capabilities: CapabilityCalls, think: Think) -> None:
        self._exposure = capabilities.gate.exposure
        self._capabilities = capabilities
        self._think = think
        self.observer = capabilities.observer
        "Counts questions and calls."

    async def answer(self, text: str, *, peer_did: str, canonical: str) -> str:
        """Return the answer to a peer's text; failures are told in words, too.

        Args:
            peer_did: The peer as it shows itself, for the agent.
            canonical: Its DID under which it is stored, for the gate and the budget.
        """
        conversational = self._exposure.conversational(canonical)
        if conversational is not None:
            name = text_argument(conversational)
            if name is not None:
                return await self._call(
                    conversational.name, {name: text}, peer_did, canonical
                )
        offered = self._exposure.offered(canonical)
        model = self._think(canonical, ours=False).model
        if model is not None:
            try:
                spoken = await model.serve_text(text, Offer(offered))
            except MindError as exc:
                # The rules still do what they can.
                logger.warning("model gave no answer reason=%r", str(exc)[:200])
            else:
                if not spoken.capability:
                    return f"# Output\n{spoken.reply}\n"
                return await self._call(
                    spoken.capability,
                    spoken.arguments,
                    peer_did,
                    canonical,
                    words=read_natural_request(text).requirement or text,
                )
        request = read_natural_request(text)
        chosen = choose_for_prose(request.requirement, offered)
        if isinstance(chosen, NoChoice):
            self._refused("no capability was chosen for these words")
            reason = f"this agent cannot serve that: {chosen.reason}"
            return render_natural_refusal(reason, ran=False)
        arguments = arguments_for(request, chosen)
        said = request.values is not None or bool(request.items)
        # A name that is only mentioned must not set anything off.
        if arguments is None or not (said or chosen.read_only):
            needed = ", ".join(_required(chosen.input_schema)) or "an input"
            self.observer.current().capability = chosen.name
            self._refused("the words have no input for the capability")
            return render_natural_refusal(
                f"`{chosen.name}` needs {needed}; write them under a heading `Input`, "
                "as list items `- name: value` or as JSON",
                ran=False,
            )
        return await self._call(
            chosen.name, arguments, peer_did, canonical, words=request.requirement
        )

    def _refused(self, reason: str) -> None:
        outcome = ErrorKind.APPLICATION_ERROR.value
        self.observer.current().refused(outcome, reason)

    async def _call(
        self,
        name: str,
        arguments: dict[str, Any],
        peer_did: str,
        canonical: str,
        *,
        words: str | None = None,
    ) -> str:
        """Call a capability; `words` are those that chose it, see `Gate.admit`."""
        self.observer.current().capability = name
        try:
            output = await self._capabilities.run(
                name,
                arguments,
                way=WayIn.NATURAL_LANGUAGE,
                peer=canonical,
                peer_did=peer_did,
                max_payload=MAX_PAYLOAD,
                words=words,
            )
        except ApprovalPending as exc:
            self.observer.current().refused(*outcome_of(exc))
            # The first line is what another daemon looks for.
            return f"{exc.code}\n# Output\n{exc.message}\n"
        except CapabilityFailed as exc:
            self.observer.current().refused(*outcome_of(exc))
            told = exc.told.removeprefix(NOT_RUN) if not exc.ran else exc.told
            reason = f"`{name}` failed: {exc.code} {told}"
            return render_natural_refusal(reason, ran=exc.ran)
        texts = list(output.values()) if isinstance(output, dict) else [output]
        if len(texts) == 1 and isinstance(texts[0], str):
            # The words of a tool or a conversation, without a label of ours.
            return render_natural_answer(texts[0])
        return render_natural_answer(output)


class Listener:
    """Answers the questions of a peer on one channel, one at a time (ANP-Q26)."""

    def __init__(self, channel: Channel, spokesman: Spokesman) -> None:
        self._channel = channel
        self._spokesman = spokesman
        self._open: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """True while a text is being answered."""
        return self._open is not None and not self._open.done()

    def take(self, event: FrameReceived) -> None:
        """Answer a text, unless one is being answered."""
        if self.busy:
            logger.warning(
                "second question dropped peer=%s: one at a time", self._channel.peer_did
            )
            return
        data = event.frame.data
        try:
            if len(data) > MAX_NATURAL_SIZE:
                raise ValueError(f"over {MAX_NATURAL_SIZE} bytes")
            text = data.decode("utf-8")
        except ValueError as exc:
            logger.warning(
                "question dropped peer=%s reason=%r", self._channel.peer_did, str(exc)
            )
            return
        self._open = asyncio.create_task(counted(self._answer(text)))

    async def close(self) -> None:
        """Give up the answer that is being made."""
        if self._open is not None:
            self._open.cancel()
            await asyncio.gather(self._open, return_exceptions=True)

    async def _answer(self, text: str) -> None:
        channel, observer = self._channel, self._spokesman.observer
        peer = canonical_did(channel.peer_did, channel.peer_key)
        with observer.call_in(peer, source="natural_language") as seen:
            await self._respond(text, peer, seen)

    async def _respond(self, text: str, peer: str, seen: CallSeen) -> None:
        """Answer a text."""
        try:
            words = await self._spokesman.answer(
                text, peer_did=self._channel.peer_did, canonical=peer
            )
            data = cut_text(words, MAX_ANSWER).encode()
            await self._channel.send(ProtocolType.NATURAL_LANGUAGE, data)
        except ChannelClosed:
            logger.info("answer lost with its channel peer=%s", self._channel.peer_did)
            seen.refused("unanswered", "the channel ended before the answer")
        except Exception as exc:
            # A bug of ours or of an attachment must not leave the peer waiting.
            logger.exception("question not answered peer=%s", self._channel.peer_did)
            seen.failed(exc)
            await self._channel.close("the question could not be answered")


class Asker:
    """Asks a peer in words on a channel of its own, one question at a time."""

    def __init__(self, channel: Channel, *, timeout: float) -> None:
        self.channel = channel
        self._timeout = timeout
        self._turn = asyncio.Lock()
        channel.in_use = self._turn.locked

    async def ask(self, text: str, terms: CallTerms | None = None) -> str:
        """Send a text and return the answer's.

        Args:
            terms: Its deadline; without it the usual one.

        Raises:
            ChannelClosed: Nothing was sent.
            CallError: `usage` for a text too large; `application_error` for an answer
                that refuses; `timeout`; `peer_unreachable` when the channel ended. The
                last two may have had an effect.
        """
        data = text.encode()
        if len(data) > MAX_NATURAL_SIZE:
            raise CallError(
                ErrorKind.USAGE,
                f"the text has {len(data)} bytes, at most {MAX_NATURAL_SIZE} are sent",
            )
        waits_for("waiting for the peer's answer in words")
        async with self._turn:
            left = (terms or CallTerms()).remaining(self._timeout)
            try:
                await self.channel.send(ProtocolType.NATURAL_LANGUAGE, data)
            except FrameTooLarge as exc:
                raise CallError(ErrorKind.USAGE, str(exc)) from exc
            try:
                async with asyncio.timeout(left):
                    answer = await self._receive()
            except TimeoutError:
                # A late answer must never meet a later question.
                await self.channel.close("no answer in time")
                raise CallError(
                    ErrorKind.TIMEOUT,
                    f"no answer in {left:g} s (call.timeout)",
                    may_have_run=True,
                ) from None
            except ChannelClosed as exc:
                raise call_cut_off(exc) from exc
        refused = natural_refusal(answer)
        if refused is not None:
            raise CallError(
                ErrorKind.APPLICATION_ERROR,
                f"the peer answered: {refused}",
                may_have_run=not refused.startswith(NOT_RUN),
            )
        return answer

    async def _receive(self) -> str:
        while True:
            event = await self.channel.receive()
            data = event.frame.data
            if event.frame.protocol_type is not ProtocolType.NATURAL_LANGUAGE:
                logger.warning("answer to nothing dropped")
            elif len(data) > MAX_NATURAL_SIZE:
                logger.warning("answer over %d bytes dropped", MAX_NATURAL_SIZE)
            else:
                return data.decode("utf-8", errors="replace")


def _required(schema: object) -> list[str]:
    return list(schema.get("required", ())) if isinstance(schema, dict) else []
