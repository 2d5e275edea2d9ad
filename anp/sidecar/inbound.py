"""Channels in: peers use our agent's capabilities."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.events import FrameReceived, NeedHelloAnswer
from anp.errors import CallError
from anp.identity.dids import canonical_did
from anp.sidecar.agreeing import Agreer
from anp.sidecar.exposure import Exposure, PeerPolicy
from anp.sidecar.natural import Listener, Spokesman
from anp.sidecar.serving import Served, ServedParts
from anp.sidecar.testing import ProviderCases
from anp.wire.frames import ProtocolType
from anp.wire.messages import MetaProtocol
from cache.records import AgreementRecord, HalfRecord, Role
from cache.store import Store
from negotiation.errors import NegotiationError
from negotiation.mind import Offer
from sandbox.pool import Sandbox

__all__ = ["Provider"]

logger = logging.getLogger(__name__)

MAX_NEGOTIATIONS = 8
"Negotiations that peers may have going on with us at once."


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a channel was bound to."""

    half: HalfRecord
    document: str
    agreement: AgreementRecord | None
    first: Sequence[FrameReceived]


class Provider:
    """Decides what peers may open, negotiates with them and serves their channels."""

    def __init__(
        self,
        *,
        exposure: Exposure,
        policy: PeerPolicy,
        store: Store,
        agreer: Agreer,
        sandbox: Sandbox,
        parts: ServedParts,
        spokesman: Spokesman,
        answer: Callable[[str | None], MetaProtocol],
    ) -> None:
        self._exposure = exposure
        self._policy = policy
        self._store = store
        self._agreer = agreer
        self._sandbox = sandbox
        self._parts = parts
        self._spokesman = spokesman
        self._answer = answer
        self._negotiating = asyncio.Semaphore(MAX_NEGOTIATIONS)
        self._served: dict[Channel, Served] = {}
        self._closing: set[asyncio.Task[None]] = set()
        exposure.watch(self._check_served)

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        """Let a peer in and confirm the hash it offers, if we can (ANP-86, ANP-87).

        Raises:
            PeerError: 403, the policy does not admit the peer.
        """
        peer = canonical_did(hello.peer_did, hello.public_key)
        await self._policy.check(peer, shown_did=hello.peer_did)
        offered = hello.meta.used_protocol_hash
        if offered is not None and await self._half_for(offered, peer) is None:
            offered = None
        return self._answer(offered)

    async def serve_channel(self, channel: Channel) -> None:
        """Bind the channel if it is not bound yet, then answer what comes on it."""
        peer = canonical_did(channel.peer_did, channel.peer_key)
        await self._policy.remember(peer, shown_did=channel.peer_did)
        try:
            bound = await self._bind(channel, peer)
            if bound is not None:
                await self._serve(channel, peer, bound)
        except CallError as exc:
            # Of the channel itself when it ended; otherwise the peer learns why.
            kind = getattr(exc, "kind", "")
            await channel.close(f"no agreement: {kind}")
        except NegotiationError as exc:
            logger.warning("channel not served peer=%s reason=%r", peer, str(exc)[:200])
            await channel.close("the protocol cannot be served")

    async def retire(self, digest: str) -> None:
        """End the channels on a revision of `digest` that serves its peer no more.

        Each closes when the calls in flight on it have ended.
        """
        for channel, served in list(self._served.items()):
            if served.half.hash != digest:
                continue
            peer = canonical_did(channel.peer_did, channel.peer_key)
            half = await asyncio.to_thread(self._store.provider_half, digest, peer)
            if half is None or half.revision != served.half.revision:
                self._close_soon(served.retire("stale: another revision serves now"))

    async def _bind(self, channel: Channel, peer: str) -> _Bound | None:
        """Find or negotiate what the channel speaks; None when it speaks words.

        Raises:
            CallError: No protocol was agreed.
        """
        digest = channel.own_meta.used_protocol_hash
        if digest is not None:
            half = await self._half_for(digest, peer)
            record = await asyncio.to_thread(self._store.document, digest)
            if half is None or record is None:
                await channel.close("stale: the protocol is no longer served")
                return None
            agreement = await asyncio.to_thread(self._agreement, digest, peer)
            return _Bound(half, record.text, agreement, ())
        try:
            async with asyncio.timeout(self._parts.limits.message_timeout):
                first = await channel.receive()
        except TimeoutError:
            logger.warning("channel closed peer=%s: nothing was said on it", peer)
            await channel.close("nothing was said")
            return None
        if first.frame.protocol_type is ProtocolType.NATURAL_LANGUAGE:
            # Words need no protocol (ANP-72); the channel stays with them.
            await self._talk(channel, first)
            return None
        channel.put_back(first)
        async with self._negotiating:
            agreed = await self._agreer.agree(channel, Offer(self._exposure.offered()))
        return _Bound(agreed.half, agreed.document, agreed.agreement, agreed.held)

    def _agreement(self, digest: str, peer: str) -> AgreementRecord | None:
        return next(
            (
                agreement
                for agreement in self._store.agreements_of(digest)
                if agreement.role is Role.PROVIDER and agreement.peer_did == peer
            ),
            None,
        )

    async def _talk(self, channel: Channel, first: FrameReceived) -> None:
        listener = Listener(channel, self._spokesman)
        try:
            listener.take(first)
            while True:
                event = await channel.receive()
                if event.frame.protocol_type is ProtocolType.NATURAL_LANGUAGE:
                    listener.take(event)
        except ChannelClosed:
            logger.debug("talk ended peer=%s", channel.peer_did)
        finally:
            await listener.close()

    async def _serve(self, channel: Channel, peer: str, bound: _Bound) -> None:
        protocol = await self._parts.loader.protocol(
            bound.half, bound.document, peer_did=peer
        )
        served = Served(
            channel,
            bound.half,
            protocol,
            self._parts,
            agreement=bound.agreement,
            cases=ProviderCases(
                self._parts.validator, self._parts.offered, bound.agreement
            ),
            listener=Listener(channel, self._spokesman),
        )
        self._served[channel] = served
        try:
            await served.run(bound.first)
        finally:
            self._served.pop(channel, None)

    async def _half_for(self, digest: str, peer: str) -> HalfRecord | None:
        """Return the half that can serve `digest` to `peer` now, or None."""
        half = await asyncio.to_thread(self._store.provider_half, digest, peer)
        if half is None:
            return None
        problem = self._exposure.fits(half.capabilities) or self._sandbox.quarantined(
            digest, source=half.source, peer=peer
        )
        harmless = {one.name for one in self._exposure.offered() if one.read_only}
        if problem is None and not await self._agreer.desk.may_confirm(
            half, peer, side_effects=not harmless.issuperset(half.capabilities)
        ):
            problem = "the owner has to approve it for this peer"
        if problem is not None:
            logger.info("hash declined hash=%s reason=%s", digest[:12], problem)
            return None
        return half

    def _check_served(self) -> None:
        """Close the channels whose capabilities are gone or have changed."""
        for channel, served in list(self._served.items()):
            problem = self._exposure.fits(served.half.capabilities)
            if problem is not None:
                self._close_soon(channel.close(f"stale: {problem}"))

    def _close_soon(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
