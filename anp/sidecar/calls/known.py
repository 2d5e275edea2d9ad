"""The stored agreements that a call may go through."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

from anp.channel.channel import Channel
from anp.errors import CallError, ErrorKind
from anp.identity.dids import canonical_did
from anp.sidecar.agreement.outcomes import failed_texts, ruled_out
from anp.sidecar.agreement.stored import (
    DocumentCandidate,
    agreement_by_uri,
    agreement_with,
)
from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.halves.workshop import Workshop
from cache.errors import CacheError
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
)
from cache.store import Store
from negotiation.errors import DocumentError, HalfError, told_of
from negotiation.mind import Demand

logger = logging.getLogger(__name__)

_ACTIVE = frozenset({AgreementState.ACTIVE})
_FAILED = frozenset({AgreementState.FAILED})

MAX_SHARED_PEERS = 32
"Peers, the last seen ones, whose agreements are looked at for another peer."


class KnownAgreements:
    """Finds agreements for a need, loads their code, and keeps new ones."""

    def __init__(
        self,
        store: Store,
        own_did: str,
        workshop: Workshop,
        remember: Callable[[Channel], Awaitable[None]],
    ) -> None:
        """Make the finder.

        Args:
            remember: Notes the peer of a channel before something is kept for it.
        """
        self._store = store
        self._own_did = own_did
        self._workshop = workshop
        self._remember = remember

    def with_peer(
        self, peer_did: str, key: str, states: Collection[AgreementState] = _ACTIVE
    ) -> list[AgreementRecord]:
        """Return the agreements with a peer for a need, the newest first; it blocks.

        Only active ones are offered: stale and revoked ones never are (ANP-86).
        """
        return [
            agreement
            for peer in self._forms(peer_did)
            for agreement in self._store.agreements(
                self._own_did, peer, AgreementRole.REQUESTER, key, states=states
            )
        ]

    async def failure(self, peer_did: str, key: str) -> CallError | None:
        """Return why a negotiation would only fail again, at the owner's cost.

        It is `generated_code`, with what failed and what to do; None if nothing did.
        """
        known = await asyncio.to_thread(self.with_peer, peer_did, key, _FAILED)
        now = time.time()
        failed = ruled_out(failed_texts(known, now=now))
        return None if failed is None else failed.error(now=now)

    def with_others(self, peer_did: str, key: str) -> list[AgreementRecord]:
        """Return what was agreed with the peers seen last, for another one; it blocks.

        All peers are read, so this is asked only when no agreement of its own fits.
        """
        own = self._forms(peer_did)
        others = [peer.did for peer in self._store.peers() if peer.did not in own]
        return [
            agreement
            for peer in others[:MAX_SHARED_PEERS]
            for agreement in self._store.agreements(
                self._own_did, peer, AgreementRole.REQUESTER, key
            )
            # A text revoked for this peer is not borrowed from another one.
            if not any(self._store.is_revoked(agreement.hash, one) for one in own)
        ]

    def _forms(self, peer_did: str) -> list[str]:
        """Return the DIDs under which agreements with a peer may be stored."""
        return [*dict.fromkeys([peer_did, self._store.canonical_did(peer_did)])]

    async def keep(
        self, channel: Channel, selected: DocumentCandidate, demand: Demand
    ) -> tuple[AgreementRecord, HalfRecord]:
        """Store our half, so that the next call finds it by its hash."""
        document, half, agreement = agreement_by_uri(
            selected,
            demand.need,
            own_did=self._own_did,
            peer_did=canonical_did(channel.peer_did, channel.peer_key),
            created=time.time(),
        )
        stored = await asyncio.to_thread(
            self._store.save_agreement, document, half, agreement
        )
        return stored, replace(half, revision=stored.revision)

    async def own(
        self, channel: Channel, agreement: AgreementRecord, half: HalfRecord
    ) -> AgreementRecord:
        """Return the agreement with this peer; made when it is another peer's."""
        peer = canonical_did(channel.peer_did, channel.peer_key)
        if agreement.peer_did in {peer, channel.peer_did}:
            return agreement
        document = await asyncio.to_thread(self._store.document, agreement.hash)
        assert document is not None, "its half was just loaded"
        await self._remember(channel)
        ours = agreement_with(peer, agreement, created=time.time())
        return await asyncio.to_thread(self._store.save_agreement, document, half, ours)

    async def note(self, agreement: AgreementRecord, found: dict[str, str]) -> None:
        """Keep what was found out about an agreement; without a store it is lost."""
        try:
            await asyncio.to_thread(self._store.set_tests, agreement, found)
        except CacheError as exc:
            logger.info("not noted hash=%s reason=%s", agreement.hash[:12], exc)

    async def half(self, agreement: AgreementRecord) -> HalfRecord | None:
        """Return our half of an agreement, or None if it was not kept."""
        return await asyncio.to_thread(
            self._store.half,
            agreement.hash,
            AgreementRole.REQUESTER,
            agreement.revision,
        )

    async def protocol(
        self, half: HalfRecord, agreement: AgreementRecord, demand: Demand
    ) -> Protocol:
        """Load the half of an agreement, for calls with such a demand.

        Raises:
            HalfError: The code cannot be loaded.
            DocumentError: The document was not kept, or cannot be read any more.
        """
        document = await asyncio.to_thread(self._store.document, half.hash)
        if document is None:
            raise DocumentError(f"the text of {half.hash[:12]} was not kept")
        return await self._workshop.protocol(
            half, document.text, peer_did=agreement.peer_did, sides=[demand]
        )

    async def loaded(
        self, half: HalfRecord, agreement: AgreementRecord, demand: Demand
    ) -> Protocol:
        """Load a half as `protocol` does.

        Raises:
            CallError: `generated_code`, it cannot be loaded.
        """
        try:
            return await self.protocol(half, agreement, demand)
        except (HalfError, DocumentError) as exc:
            raise CallError(
                ErrorKind.GENERATED_CODE, f"our code cannot be loaded: {told_of(exc)}"
            ) from exc
