"""Loads stored halves into workers, each as the protocol that a channel speaks."""

from __future__ import annotations

from anp.sidecar.halves.loaded import load_half
from anp.sidecar.halves.protocol import Protocol
from cache.records.records import HalfRecord
from negotiation.document import read_document
from negotiation.trial.acceptance import Validator
from sandbox.pool.pool import Sandbox

__all__ = ["HalfLoader"]


class HalfLoader:
    """Makes a `Protocol` of a stored half; the worker is shared by equal loads."""

    def __init__(
        self, sandbox: Sandbox, validator: Validator, *, deadline: float
    ) -> None:
        self._sandbox = sandbox
        self._validator = validator
        self._deadline = deadline

    async def protocol(
        self, half: HalfRecord, document: str, *, peer_did: str
    ) -> Protocol:
        """Load a half for one peer.

        Args:
            document: The agreed text.
            peer_did: The peer in its canonical form.

        Raises:
            HalfError: The source was refused, is in quarantine, or did not load.
            DocumentError: The text cannot be read any more.
        """
        loaded = await load_half(
            self._sandbox,
            f"{half.role}:{peer_did}:{half.hash}:{half.revision}",
            half.source,
            origin=half.origin,
            protocol=half.hash,
            peer=peer_did,
            deadline=self._deadline,
        )
        return Protocol(half.hash, read_document(document), loaded, self._validator)
