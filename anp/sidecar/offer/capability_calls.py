"""One call of a capability for a peer, judged by its schemas on both sides."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from anp.errors import ErrorKind
from anp.sidecar.attachments import Attachment, AttachmentError, HandedBack, ToolError
from anp.sidecar.attachments.requester import current_requester
from anp.sidecar.offer.call_times import CallTimes, TimeLimit
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.telemetry.observer import Observer
from cache.records.records import HalfRecord
from negotiation.errors import APPROVAL_PENDING, CapabilityFailed, JsonError
from negotiation.mind import Validator
from negotiation.need import Capability, schema_hash
from negotiation.strict_json import largest_json
from sandbox.pool.shares import Rank, current_share

logger = logging.getLogger(__name__)

MAX_VALUES = 4 * 1024 * 1024
"Largest values that a message is judged with, in bytes, whatever a channel carries."

LOST = "the capability's program was lost before it answered; the call may have run"
"The words for a call that had been handed over when its attachment died."

TOO_LATE = 504
"Code of a tool that was not ready in its time."

ROOM_FOR_FIELDS = 64 * 1024
"Bytes of a message for what a document adds to the output, where there is room."


def max_output(max_payload: int) -> int:
    """Return the bytes of JSON that an output may have to fit an answer's frame.

    Args:
        max_payload: Protocol data that one frame of the channel may have.
    """
    most = min(max_payload, MAX_VALUES)
    return most - min(ROOM_FOR_FIELDS, most // 8)


def outcome_of(failure: CapabilityFailed) -> tuple[str, str]:
    """Return the outcome and the reason of a failed call for the access log.

    The words of a tool, and findings about data, are part of what a call carried; only
    the gate's own words are told.
    """
    if failure.code == APPROVAL_PENDING:
        return ErrorKind.APPROVAL_PENDING.value, failure.message
    ours = not failure.ran and failure.__cause__ is None
    if ours and failure.code == "403":
        return ErrorKind.POLICY.value, f"403: {failure.message}"
    kind = ErrorKind.TIMEOUT if failure.code == "504" else ErrorKind.APPLICATION_ERROR
    if ours and failure.code == "503":
        return kind.value, f"503: {failure.message}"
    return kind.value, f"the capability answered {failure.code}"


def _withheld(name: str, words: str) -> str:
    """Log the words of an exception, and return those that a peer reads instead."""
    number = secrets.token_hex(4)
    logger.warning(
        "capability failed id=%s capability=%s reason=%r", number, name, words
    )
    return (
        f"the capability failed; its owner finds the reason in the log under {number}"
    )


def _failed(
    name: str,
    error: ToolError,
    attachment: Attachment,
    limit: TimeLimit,
    *,
    was_told: bool,
) -> CapabilityFailed:
    """Return the error of a tool as the peer reads it.

    Args:
        was_told: A part of the result was given before, so that nothing goes back.
    """
    words = error.message
    if error.code == TOO_LATE:
        words = f"{words} ({limit.name})"
    if error.private and not attachment.show_errors:
        words = _withheld(name, words)
    return CapabilityFailed(
        str(error.code),
        words,
        ran=error.may_have_run or was_told,
        handed_back=isinstance(error, HandedBack) and not was_told,
    )


class CapabilityCalls:
    """Calls the capabilities that the gate lets through, and no others."""

    def __init__(
        self,
        gate: Gate,
        validator: Validator,
        *,
        times: CallTimes,
        timeout: float,
        observer: Observer | None = None,
    ) -> None:
        """Make calls possible.

        Args:
            times: The time that a peer's call may take.
            timeout: Seconds of the owner's own calls.
        """
        self.observer = observer or Observer()
        self.gate = gate
        self._validator = validator
        self._times = times
        self._timeout = timeout
        self._running: dict[asyncio.Timeout, tuple[str, str]] = {}
        gate.exposure.watch(self._end_hidden)

    def is_repeatable(self, name: str, peer: str) -> bool:
        """True if a second call of `name` for a peer does no more than the first."""
        capability = self.gate.named(WayIn.REPAIR, peer, name)
        return capability is not None and (
            capability.read_only or capability.idempotent
        )

    async def call(
        self,
        half: HalfRecord,
        name: str,
        arguments: Any,
        *,
        way: WayIn,
        peer: str,
        peer_did: str,
        max_payload: int,
        asked: float | None = None,
    ) -> Any:
        """Call a capability that `half` was agreed with, for a peer; see `run`.

        Raises:
            CapabilityFailed: It is not part of the protocol, not available, or failed.
        """
        digest = half.capabilities.get(name)
        if digest is None:
            raise CapabilityFailed(
                "403", f"{name} is not part of this protocol", ran=False
            )
        return await self.run(
            name,
            arguments,
            digest=digest,
            way=way,
            peer=peer,
            peer_did=peer_did,
            max_payload=max_payload,
            asked=asked,
        )

    async def run(
        self,
        name: str,
        arguments: Any,
        *,
        way: WayIn,
        peer: str,
        peer_did: str,
        max_payload: int,
        asked: float | None = None,
        digest: str | None = None,
        begin: Callable[[], Awaitable[object]] | None = None,
        words: str | None = None,
    ) -> Any:
        """Call a capability that is exposed to a peer, if the gate lets it through.

        Args:
            words: See `Gate.admit`.
            begin: Called when everything allows the call, before the agent is asked.
            way: The way by which the call came.
            peer: DID of the peer in its canonical form, for the gate.
            peer_did: Its DID as it shows itself, for the agent.
            max_payload: Most bytes that one frame of the channel for the answer
                may carry.
            asked: Seconds for which the peer waits; None if it did not tell.
            digest: Hash that its schemas have to have; None takes any.

        Raises:
            CapabilityFailed: It is not available, is refused, failed, or the data does
                not fit.
            ApprovalPending: The owner has to approve it first; nothing ran.
        """
        capability = self.gate.find(way, peer, name)
        fits = capability is not None and digest in {None, schema_hash(capability)}
        if capability is None or not fits or not isinstance(arguments, dict):
            raise CapabilityFailed("503", "the capability is not available", ran=False)
        findings = await self._validator.validate(capability.input_schema, arguments)
        if findings:
            raise CapabilityFailed(
                "400", f"input: {'; '.join(findings)}"[:500], ran=False
            )
        await self.gate.admit(way, peer, capability, words=words)
        # Looked at again: both may be gone by now.
        attachment = self.gate.exposure.attachment_of(name)
        if attachment is None or self.gate.find(way, peer, name) is None:
            await self.gate.give_back(way, peer, capability)
            raise CapabilityFailed("503", "the capability is not available", ran=False)
        requester = current_requester.get()
        tells_begin = attachment.begins_itself and requester is not None
        if begin is not None and not tells_begin:
            try:
                await begin()
            except BaseException:
                await self.gate.give_back(way, peer, capability)
                raise
        whose = None if way is WayIn.OWNER else peer
        limit = self._limit(name, whose, asked, lasts=way is WayIn.TASK)
        try:
            output = await self._while_exposed(
                attachment, name, arguments, peer_did, limit.seconds, whose
            )
        except ToolError as exc:
            was_told = requester is not None and requester.was_told
            raise _failed(name, exc, attachment, limit, was_told=was_told) from exc
        except AttachmentError as exc:
            logger.warning("attachment failed capability=%s reason=%s", name, exc)
            if exc.may_have_run:
                raise CapabilityFailed("502", LOST) from exc
            await self.gate.give_back(way, peer, capability)
            raise CapabilityFailed(
                "503", "the capability is not available", ran=False
            ) from exc
        if requester is not None and requester.was_told:
            # Everything went to the requester while it was made.
            return None
        await self._check_output(capability, output, max_payload)
        return output

    async def _check_output(
        self, capability: Capability, output: Any, max_payload: int
    ) -> None:
        """Raise `CapabilityFailed` for an output that is too large or does not fit."""
        most = max_output(max_payload)
        try:
            large = largest_json(output) > most
        except JsonError as exc:
            findings = [str(exc)]
        else:
            if large and (size := len(json.dumps(output))) > most:
                raise CapabilityFailed(
                    "413", f"too_large: the output has {size} bytes, at most {most}"
                )
            findings = await self._validator.validate(capability.output_schema, output)
        if findings:
            logger.warning(
                "capability answered outside its schema capability=%s findings=%r",
                capability.name,
                "; ".join(findings)[:200],
            )
            raise CapabilityFailed("502", "the capability answered outside its schema")

    def _limit(
        self, name: str, peer: str | None, asked: float | None, *, lasts: bool
    ) -> TimeLimit:
        """Return the time that a call gets; see `run`.

        Args:
            peer: The peer for whom it is made; None for the owner's own calls.
            lasts: It is a task of a peer.
        """
        if peer is None:
            return TimeLimit(self._timeout, "call.timeout")
        listed = current_share.get().rank is not Rank.COMMON
        attachment, _, tool = name.partition(".")
        known = self.gate.exposure.attachments.get(attachment)
        of_tools = {} if known is None else known[0].max_timeout
        most = self._times.of_peer(peer, listed=listed, lasts=lasts)
        return self._times.granted(asked, most, of_tools, tool)

    async def _while_exposed(
        self,
        attachment: Attachment,
        name: str,
        arguments: dict[str, Any],
        caller: str,
        timeout: float,
        peer: str | None,
    ) -> Any:
        """Make a call, and give it up when the owner hides the capability.

        Args:
            peer: The peer for whom it is made; None for the owner's own calls.

        Raises:
            CapabilityFailed: The owner did.
        """
        exposure, limit = self.gate.exposure, asyncio.timeout(None)
        exposure.begin(attachment)
        try:
            with self.observer.tool(name):
                async with limit:
                    if peer is not None:
                        self._running[limit] = name, peer
                    return await attachment.call(
                        name, arguments, caller=caller, timeout=timeout
                    )
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise CapabilityFailed(
                "502", "the capability was taken back while it ran"
            ) from exc
        finally:
            self._running.pop(limit, None)
            exposure.end(attachment)

    def _end_hidden(self) -> None:
        """Give up the calls of capabilities that the owner hides from their callers."""
        for limit, (name, peer) in list(self._running.items()):
            if self.gate.exposure.hides(name, peer):
                # Out of the list first, since an expired limit cannot expire again.
                del self._running[limit]
                limit.reschedule(0)
