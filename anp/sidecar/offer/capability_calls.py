"""One call of a capability for a peer, judged by its schemas on both sides."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from collections.abc import AsyncIterator
from typing import Any

from anp.sidecar.attachments import AttachmentError, ToolError
from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.telemetry.observer import Observer
from cache.records.records import HalfRecord
from negotiation.errors import CapabilityFailed
from negotiation.mind import Validator

__all__ = ["MAX_VALUES", "CapabilityCalls", "max_output"]

logger = logging.getLogger(__name__)

MAX_VALUES = 4 * 1024 * 1024
"Largest values that a message is judged with, in bytes, whatever a channel carries."

LOST = "the capability's program was lost before it answered; the call may have run"
"The words for a call that had been handed over when its attachment died."

ROOM_FOR_FIELDS = 64 * 1024
"Bytes of a message for what a document adds to the output, where there is room."


def max_output(max_payload: int) -> int:
    """Return the bytes of JSON that an output may have to fit an answer's frame.

    Args:
        max_payload: Protocol data that one frame of the channel may have.
    """
    most = min(max_payload, MAX_VALUES)
    return most - min(ROOM_FOR_FIELDS, most // 8)


def _withheld(name: str, words: str) -> str:
    """Log the words of an exception, and return those that a peer reads instead."""
    number = secrets.token_hex(4)
    logger.warning(
        "capability failed id=%s capability=%s reason=%r", number, name, words
    )
    return (
        f"the capability failed; its owner finds the reason in the log under {number}"
    )


class CapabilityCalls:
    """Calls exposed capabilities, and no others."""

    def __init__(
        self,
        exposure: Exposure,
        validator: Validator,
        *,
        timeout: float,
        observer: Observer | None = None,
    ) -> None:
        self.observer = observer or Observer()
        self._exposure = exposure
        self._validator = validator
        self._timeout = timeout
        self._running: dict[asyncio.Timeout, str] = {}
        exposure.watch(self._end_hidden)

    def is_repeatable(self, name: str) -> bool:
        """True if a second call of `name` does no more than the first."""
        capability = self._exposure.capability(name)
        return capability is not None and (
            capability.read_only or capability.idempotent
        )

    async def call(
        self,
        half: HalfRecord,
        name: str,
        arguments: Any,
        *,
        peer_did: str,
        max_payload: int,
    ) -> Any:
        """Call a capability that `half` was agreed with, for a peer.

        Args:
            max_payload: See `run`.

        Raises:
            CapabilityFailed: It is not part of the protocol, not available, or failed.
        """
        if name not in half.capabilities:
            raise CapabilityFailed(
                "403", f"{name} is not part of this protocol", ran=False
            )
        problem = self._exposure.fits({name: half.capabilities[name]})
        if problem is not None:
            raise CapabilityFailed("503", "the capability is not available", ran=False)
        return await self.run(
            name, arguments, peer_did=peer_did, max_payload=max_payload
        )

    async def run(
        self, name: str, arguments: Any, *, peer_did: str, max_payload: int
    ) -> Any:
        """Call an exposed capability.

        Args:
            max_payload: Most bytes that one frame of the channel for the answer
                may carry.

        Raises:
            CapabilityFailed: It is not available, failed, or the data does not fit.
        """
        capability = self._exposure.capability(name)
        if capability is None or not isinstance(arguments, dict):
            raise CapabilityFailed("503", "the capability is not available", ran=False)
        findings = await self._validator.validate(capability.input_schema, arguments)
        if findings:
            raise CapabilityFailed(
                "400", f"input: {'; '.join(findings)}"[:500], ran=False
            )
        # Looked at again: both may be gone by now.
        attachment = self._exposure.attachment_of(name)
        if attachment is None or not self._exposure.exposes(name):
            raise CapabilityFailed("503", "the capability is not available", ran=False)
        try:
            with self.observer.tool(name):
                async with self._while_exposed(name):
                    output = await attachment.call(
                        name, arguments, caller=peer_did, timeout=self._timeout
                    )
        except ToolError as exc:
            words = exc.message
            if exc.private and not attachment.show_errors:
                words = _withheld(name, words)
            ran = exc.may_have_run
            raise CapabilityFailed(str(exc.code), words, ran=ran) from exc
        except AttachmentError as exc:
            logger.warning("attachment failed capability=%s reason=%s", name, exc)
            if exc.may_have_run:
                raise CapabilityFailed("502", LOST) from exc
            raise CapabilityFailed(
                "503", "the capability is not available", ran=False
            ) from exc
        size, most = len(json.dumps(output)), max_output(max_payload)
        if size > most:
            raise CapabilityFailed(
                "413", f"too_large: the output has {size} bytes, at most {most}"
            )
        findings = await self._validator.validate(capability.output_schema, output)
        if findings:
            logger.warning(
                "capability answered outside its schema capability=%s findings=%r",
                name,
                "; ".join(findings)[:200],
            )
            raise CapabilityFailed("502", "the capability answered outside its schema")
        return output

    @contextlib.asynccontextmanager
    async def _while_exposed(self, name: str) -> AsyncIterator[None]:
        """Give up a call when the owner hides the capability.

        Raises:
            CapabilityFailed: The owner did.
        """
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._running[limit] = name
                yield
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise CapabilityFailed(
                "502", "the capability was taken back while it ran"
            ) from exc
        finally:
            self._running.pop(limit, None)

    def _end_hidden(self) -> None:
        """Give up the calls of capabilities that are exposed no longer."""
        for limit, name in list(self._running.items()):
            if not self._exposure.exposes(name):
                # Out of the list first, since an expired limit cannot expire again.
                del self._running[limit]
                limit.reschedule(0)
