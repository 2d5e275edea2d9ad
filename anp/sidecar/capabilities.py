"""One call of a capability for a peer, judged by its schemas on both sides."""

from __future__ import annotations

import json
import logging
from typing import Any

from anp.sidecar.attachments import AttachmentError, CapabilityError
from anp.sidecar.exposure import Exposure
from cache.records import HalfRecord
from negotiation.acceptance import Validator
from negotiation.errors import CapabilityFailed

__all__ = ["CapabilityCalls"]

logger = logging.getLogger(__name__)

MAX_OUTPUT = 700 * 1024
"Largest output of a capability as JSON, in bytes, that still fits an answer's frame."


class CapabilityCalls:
    """Calls what is exposed, and nothing else."""

    def __init__(
        self, exposure: Exposure, validator: Validator, *, timeout: float
    ) -> None:
        self._exposure = exposure
        self._validator = validator
        self._timeout = timeout

    def is_repeatable(self, name: str) -> bool:
        """Whether a second call of `name` does no more than the first."""
        capability = self._exposure.capability(name)
        return capability is not None and (
            capability.read_only or capability.idempotent
        )

    async def call(
        self, half: HalfRecord, name: str, arguments: Any, *, peer_did: str
    ) -> Any:
        """Call a capability that `half` was agreed with, for a peer.

        Raises:
            CapabilityFailed: It is not part of the protocol, not available, or failed.
        """
        if name not in half.capabilities:
            raise CapabilityFailed("403", f"{name} is not part of this protocol")
        problem = self._exposure.fits({name: half.capabilities[name]})
        if problem is not None:
            raise CapabilityFailed("503", "the capability is not available")
        return await self.run(name, arguments, peer_did=peer_did)

    async def run(self, name: str, arguments: Any, *, peer_did: str) -> Any:
        """Call an exposed capability.

        Raises:
            CapabilityFailed: It is not available, failed, or the data does not fit.
        """
        capability = self._exposure.capability(name)
        attachment = self._exposure.attachment_of(name)
        if capability is None or attachment is None or not isinstance(arguments, dict):
            raise CapabilityFailed("503", "the capability is not available")
        findings = await self._validator.validate(capability.input_schema, arguments)
        if findings:
            raise CapabilityFailed("400", f"input: {'; '.join(findings)}"[:500])
        try:
            output = await attachment.call(
                name, arguments, caller=peer_did, timeout=self._timeout
            )
        except CapabilityError as exc:
            raise CapabilityFailed(str(exc.code), exc.message) from exc
        except AttachmentError as exc:
            logger.warning("attachment failed capability=%s reason=%s", name, exc)
            raise CapabilityFailed("503", "the capability is not available") from exc
        size = len(json.dumps(output))
        if size > MAX_OUTPUT:
            raise CapabilityFailed(
                "413", f"too_large: the output has {size} bytes, at most {MAX_OUTPUT}"
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
