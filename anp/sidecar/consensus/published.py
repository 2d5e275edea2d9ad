"""The documents of our exposed capabilities, under which anybody may call them.

Rules make each from the capability's name and schemas alone, so a caller that knows
these makes its own code, and both sides agree without a negotiation. Our code is made
when the first peer asks for a document, and kept like any other.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from weakref import WeakValueDictionary

from anp.sidecar.agreement.stored import hashes_of
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.offer.exposure import EVERYBODY, Exposure
from cache.parts.agreements import ImportPart
from cache.records.records import AgreementRole, DocumentRecord, HalfRecord, hash_text
from cache.store import Store
from negotiation.errors import DocumentError, HalfError, MindError
from negotiation.mind import Mind, Offer
from negotiation.need import Capability, schema_hash
from negotiation.rules.rules import RulesMind, published_document

logger = logging.getLogger(__name__)


async def save_provider_half(
    text: str,
    offered: tuple[Capability, ...],
    *,
    workshop: Workshop,
    store: Store,
    mind: Mind,
    origin: str,
) -> None:
    """Have a mind write our half of a document, try it, and keep it.

    Args:
        origin: The way by which the document came to us, for the record of its tests.

    Raises:
        HalfError: No half passed.
        MindError: The mind failed.
    """
    half = await workshop.prepare(
        text, Offer(offered), mind=mind, name=f"consensus:{secrets.token_hex(4)}"
    )
    record = HalfRecord.from_json(
        {
            "hash": hash_text(text),
            "role": AgreementRole.PROVIDER.value,
            "revision": 0,
            "source": half.text,
            "origin": half.origin,
            **hashes_of(one for one in offered if one.name in half.capabilities),
            "created": time.time(),
            "model": half.model,
        }
    )
    tests = {"acceptance": "passed", "consensus": origin}
    part = ImportPart(record, half.samples, tests)  # type: ignore[arg-type]  # checked
    await asyncio.to_thread(store.save_import, DocumentRecord.of(text), [part])


class PublishedDocuments:
    """Gives the document of each exposed capability, and our half of it."""

    def __init__(self, exposure: Exposure, workshop: Workshop, store: Store) -> None:
        self._exposure = exposure
        self._workshop = workshop
        self._store = store
        self._texts: dict[tuple[str, str, bool], str | None] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def all(self, peer: str | None = EVERYBODY) -> list[tuple[Capability, str]]:
        """Return what a peer may call, each with its document; it may take a while.

        Args:
            peer: Its DID; without it, what every peer may call.
        """
        shown = self._documents(self._exposure.offered_to_some())
        names = {one.name for one in self._exposure.offered(peer)}
        return [(one, text) for one, text in shown if one.name in names]

    def _documents(
        self, offered: tuple[Capability, ...]
    ) -> list[tuple[Capability, str]]:
        known, self._texts = self._texts, {}
        for one in offered:
            key = _key(one)
            self._texts[key] = known[key] if key in known else _text(one)
        return [(one, text) for one in offered if (text := self._texts[_key(one)])]

    async def make(self, digest: str) -> bool:
        """Make our half of the document with a hash, if it is one of these.

        Returns:
            True when there is one now.
        """
        # Also what only some peers may call; the gate decides who may.
        some = self._exposure.offered_to_some()
        shown = await asyncio.to_thread(self._documents, some)
        found = next(
            ((one, text) for one, text in shown if hash_text(text) == digest), None
        )
        if found is None:
            return False
        capability, text = found
        lock = self._locks.setdefault(digest, asyncio.Lock())
        try:
            async with lock:
                halves = await asyncio.to_thread(self._store.halves, digest)
                if any(half.role is AgreementRole.PROVIDER for half in halves):
                    return True
                await save_provider_half(
                    text,
                    (capability,),
                    workshop=self._workshop,
                    store=self._store,
                    mind=RulesMind(),
                    origin="published",
                )
        except (HalfError, MindError) as exc:
            logger.warning(
                "no code for a published protocol capability=%s reason=%r",
                capability.name,
                str(exc)[:200],
            )
            return False
        return True


def _key(capability: Capability) -> tuple[str, str, bool]:
    return capability.name, schema_hash(capability), capability.read_only


def _text(capability: Capability) -> str | None:
    """Return a capability's document, or None if its schemas cannot be put into one."""
    try:
        return published_document(capability)
    except DocumentError as exc:
        logger.info("not published capability=%s reason=%s", capability.name, exc)
        return None
