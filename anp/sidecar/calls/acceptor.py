"""Accepts channels from peers, over which they call our agent's capabilities."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived, NeedHelloAnswer
from anp.errors import CallError, ErrorCode, ErrorKind, PeerError
from anp.identity.dids import canonical_did
from anp.protocols.a2a.words import A2A_URIS
from anp.protocols.envelope import ENVELOPE_TASKS_URI
from anp.protocols.envelope.session_reader import is_of_session
from anp.protocols.gbz import GBZ_URIS
from anp.sidecar.agreement.agreement import Agreer
from anp.sidecar.bound.natural import Listener, Spokesman
from anp.sidecar.bound.provider import BoundProvider, ProviderParts
from anp.sidecar.bound.work import works
from anp.sidecar.calls.enforcer import Enforcer
from anp.sidecar.calls.places import NegotiationPlaces
from anp.sidecar.consensus.registry import ConsensusDesk, WrittenEntry
from anp.sidecar.consensus.written import WrittenParts, WrittenProvider
from anp.sidecar.offer.exposure import STRANGER
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.telemetry.observer import Observer
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import EXTENSION_LIST, MetaProtocol
from anp.wire.proof import MAX_PROOF_AGE
from cache.records.records import AgreementRecord, HalfRecord, hash_text
from cache.store import Store
from negotiation.consensus.listing import MAX_LIST, is_list_request, render_list_answer
from negotiation.errors import NegotiationError
from negotiation.mind import Offer
from sandbox.pool.shares import current_share

KEEP_HELLOS = 2 * MAX_PROOF_AGE + 60.0
"""Seconds for which a fleet remembers a hello: as long as its proof could be accepted
again, and a minute for the clocks of its machines."""

MAX_OUTLIVING = 256
"Channels with lost links whose calls are still worked on."

logger = logging.getLogger(__name__)


class MetaAnswer(Protocol):
    """Makes our `metaProtocol` of a `destinationHello`."""

    def __call__(
        self, digest: str | None, *, selected: str | None = None
    ) -> MetaProtocol: ...


@dataclass(frozen=True, slots=True)
class _Bound:
    """A half and its document, found or agreed for a channel."""

    half: HalfRecord
    document: str
    agreement: AgreementRecord | None
    first: Sequence[FrameReceived]


class Acceptor:
    """Admits peers, negotiates with them and serves their channels."""

    def __init__(
        self,
        *,
        policy: PeerPolicy,
        enforcer: Enforcer,
        store: Store,
        agreer: Agreer,
        parts: ProviderParts,
        spokesman: Spokesman,
        consensus: ConsensusDesk,
        written: WrittenParts,
        answer: MetaAnswer,
    ) -> None:
        self._gate = parts.capabilities.gate
        self._exposure = self._gate.exposure
        self._policy = policy
        self._store = store
        self._agreer = agreer
        self._parts = parts
        self._spokesman = spokesman
        self._consensus = consensus
        self._written = written
        self._answer = answer
        self.negotiations = NegotiationPlaces(policy.is_listed)
        "The places of the negotiations that peers begin."
        self._served: dict[Channel, BoundProvider] = {}
        self._written_served: dict[Channel, WrittenProvider] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._outliving: set[asyncio.Task[None]] = set()
        "Each works on the calls of a channel whose link is lost."
        self._enforcer = enforcer
        self.tasks: Callable[[Channel, str], Awaitable[None]] | None = None
        "Serves a channel that carries tasks over the protocol of a URI."
        consensus.wire(self._half_for)

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        """Let a peer in, and confirm a hash or URI that it offers, if we can.

        The hash comes first, then the URIs in the peer's order; neither means:
        negotiate (ANP-86, ANP-87, ANP-93, ANP-Q19).

        Raises:
            PeerError: 403, the policy does not admit the peer, or the hello came before
                to another daemon with our identity.
        """
        peer = canonical_did(hello.peer_did, hello.public_key)
        await self._policy.check(peer, shown_did=hello.peer_did)
        await self._refuse_repeated(hello)
        offered = hello.meta.used_protocol_hash
        if (
            offered is not None
            and not self._consensus.serves_written(offered, peer)
            and await self._half_for(offered, peer) is None
        ):
            offered = None
        selected = None
        if offered is None and hello.meta.candidate_protocols:
            candidates = hello.meta.candidate_protocols
            selected = await self._consensus.select(candidates, peer)
        return self._answer(offered, selected=selected)

    async def _refuse_repeated(self, hello: NeedHelloAnswer) -> None:
        """Refuse a hello that another daemon of our fleet was sent before.

        That this one was not is known already. A session id is signed with the rest.
        """
        if not self._store.is_shared:
            return
        name = hash_text(json.dumps([hello.peer_did, hello.session_id]))
        is_new = await asyncio.to_thread(
            self._store.first_time, [name], keep=KEEP_HELLOS
        )
        if not is_new:
            raise PeerError(ErrorCode.NOT_ALLOWED, "this hello came before")

    async def serve_channel(self, channel: Channel) -> None:
        """Bind the channel if it is not bound yet, then answer what comes on it.

        Calls whose link is lost are worked on after that, if the peer may fetch their
        answers over its next link.
        """
        if not works(channel):
            await self._serve_judged(channel)
            return
        task = asyncio.create_task(self._serve_judged(channel))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._outlives(channel):
                self._outliving.add(task)
                task.add_done_callback(self._outlived)
            else:
                task.cancel()
                await asyncio.wait({task})
            raise

    def _outlives(self, channel: Channel) -> bool:
        """Return whether calls go on although the link of their channel is lost."""
        served = self._served.get(channel) or self._written_served.get(channel)
        ended = channel.ended
        if served is None or ended is None or not ended.link_lost:
            return False
        return served.working and len(self._outliving) < MAX_OUTLIVING

    def _outlived(self, task: asyncio.Task[None]) -> None:
        self._outliving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("calls without a link failed", exc_info=error)

    async def close(self) -> None:
        """End the calls whose links are lost; the daemon stops."""
        outliving = set(self._outliving)
        for task in outliving:
            task.cancel()
        await asyncio.gather(*outliving, return_exceptions=True)

    async def _serve_judged(self, channel: Channel) -> None:
        peer = canonical_did(channel.peer_did, channel.peer_key)
        with self._enforcer.served(channel, peer):
            # The owner's word may have changed since the hello was answered.
            if await self._enforcer.admits(channel):
                await self._policy.note_seen(peer, shown_did=channel.peer_did)
                # All that follows in this task is work for the peer.
                share = await self._policy.share_of(peer, address=channel.address)
                current_share.set(share)
                await self._serve_admitted(channel, peer)

    async def _serve_admitted(self, channel: Channel, peer: str) -> None:
        try:
            bound = await self._bind(channel, peer)
            if bound is not None:
                await self._serve(channel, peer, bound)
        except CallError as exc:
            # Of the channel itself when it ended; otherwise the peer learns why.
            kind = getattr(exc, "kind", "")
            if not isinstance(exc, ChannelClosed):
                self._parts.capabilities.observer.call_refused(
                    peer, outcome=exc.kind.value, reason=exc.detail
                )
            await channel.close(f"no agreement: {kind}")
        except NegotiationError as exc:
            logger.warning("channel not served peer=%s reason=%r", peer, str(exc)[:200])
            await channel.close("the protocol cannot be served")

    @property
    def hashes(self) -> frozenset[str]:
        """Hashes of the documents that are served at this moment."""
        return frozenset(served.half.hash for served in self._served.values())

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
        uri = channel.own_meta.selected_protocol
        if uri is not None:
            entry = self._consensus.written(uri)
            if entry is not None:
                await self._serve_written(channel, peer, entry)
                return None
            known = self._consensus.registry.get(uri)
            digest = known.hash if known is not None else None
            if digest is None:
                await channel.close("stale: the protocol is no longer known")
                return None
        entry = None if digest is None else self._consensus.written_of(digest)
        if entry is not None:
            await self._serve_written(channel, peer, entry)
            return None
        if digest is not None:
            half = await self._half_for(digest, peer)
            record = await asyncio.to_thread(self._store.document, digest)
            if half is None or record is None:
                await channel.close("stale: the protocol is no longer served")
                return None
            agreement = await asyncio.to_thread(
                self._store.provider_agreement, digest, peer
            )
            return _Bound(half, record.text, agreement, ())
        # Until the peer says something this channel may make room for another.
        channel.in_use = lambda: False
        try:
            async with asyncio.timeout(self._parts.common.limits.message_timeout):
                first = await channel.receive()
                if _asks_for_list(channel, first):
                    await self._send_list(channel, peer)
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
        channel.in_use = lambda: True
        listener = Listener(channel, self._spokesman)
        try:
            agreed = await self.negotiations.run(
                channel,
                peer,
                lambda: self._agreer.agree(
                    channel,
                    Offer(
                        self._gate.offered(WayIn.AGREEMENT, peer),
                        # A peer without the extension cannot ask for them.
                        updates=works(channel),
                    ),
                    words=listener.take,
                ),
                timeout=self._parts.common.limits.message_timeout,
            )
        finally:
            await listener.close()
        await channel.keep(agreed.half.hash)
        return _Bound(agreed.half, agreed.document, agreed.agreement, agreed.held)

    async def _send_list(self, channel: Channel, peer: str) -> None:
        """Tell a peer what it may call (extension `list`); once on a channel."""
        most = min(MAX_LIST, channel.max_payload) - len(render_list_answer(b""))
        listing = await self._consensus.list_for(peer, max_size=most)
        await channel.send(ProtocolType.META, render_list_answer(listing))

    async def _talk(self, channel: Channel, first: FrameReceived) -> None:
        listener = Listener(channel, self._spokesman)
        channel.in_use = lambda: listener.busy
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

    def _side_of(self, half: HalfRecord, peer: str) -> Offer:
        """Return the side that a half was written for, as far as it is there now."""
        offered = self._gate.offered(WayIn.AGREEMENT, peer)
        ours = tuple(one for one in offered if one.name in half.capabilities)
        # It was chosen then, so it is not chosen anew among all there are by now.
        return Offer(ours, hints=tuple(half.capabilities))

    async def _serve(self, channel: Channel, peer: str, bound: _Bound) -> None:
        protocol = await self._parts.common.workshop.protocol(
            bound.half,
            bound.document,
            peer_did=peer,
            sides=[self._side_of(bound.half, peer)],
        )
        served = BoundProvider(
            channel,
            protocol,
            bound.half,
            bound.agreement,
            self._parts,
            listener=Listener(channel, self._spokesman),
        )
        if not await self._enforcer.admits(
            channel,
            hash=bound.half.hash,
            capabilities=bound.half.capabilities,
            retire=partial(served.retire, patient=True),
        ):
            # Taken back since the peer was told that it is served.
            return
        self._served[channel] = served
        try:
            await served.run(bound.first)
        finally:
            self._served.pop(channel, None)

    async def _serve_written(
        self, channel: Channel, peer: str, entry: WrittenEntry
    ) -> None:
        """Speak a protocol of the daemon's own until the channel ends (ANP-94)."""
        logger.info(
            "protocol selected uri=%s peer=%s", entry.protocol.uri, channel.peer_did
        )
        uri = entry.protocol.uri
        if self.tasks is not None and await self._carries_tasks(channel, uri):
            await self.tasks(channel, uri)
            return
        served = WrittenProvider(
            channel,
            entry.protocol.uri,
            entry.code,
            self._written,
            capabilities=self._parts.capabilities,
            offered=partial(self._gate.offered, WayIn.ENVELOPE, peer),
            digest=entry.protocol.hash,
            used=self._parts.used,
            work=self._parts.work,
        )
        self._written_served[channel] = served
        try:
            await served.run()
        finally:
            del self._written_served[channel]

    async def _carries_tasks(self, channel: Channel, uri: str) -> bool:
        """Return whether a channel carries sessions; its first message may tell."""
        if uri != ENVELOPE_TASKS_URI:
            return uri in GBZ_URIS or uri in A2A_URIS
        channel.in_use = lambda: False
        first = await channel.receive()
        channel.put_back(first)
        channel.in_use = lambda: True
        is_data = first.frame.protocol_type is ProtocolType.APPLICATION
        return is_data and is_of_session(
            first.frame.data,
            max_size=self._written.limits.max_message,
            wall_now=datetime.now(UTC),
        )

    async def _half_for(self, digest: str, peer: str | None) -> HalfRecord | None:
        """Return the half that can serve `digest` to `peer` now, or None.

        Without a peer: to one that we never agreed on anything with.
        """
        known = peer or STRANGER
        half = await asyncio.to_thread(self._store.provider_half, digest, known)
        if half is None and await self._consensus.published.make(digest):
            half = await asyncio.to_thread(self._store.provider_half, digest, known)
        if half is None:
            return None
        problem = await self._gate.half_problem(half, peer)
        if problem is not None:
            logger.info("hash declined hash=%s reason=%s", digest[:12], problem)
            return None
        return half

    def close_idle(self, reason: str) -> None:
        """Close the channels on which nothing is being answered; the daemon stops.

        One whose key is kept ends with its link alone, and its peer goes on later.
        """
        for channel, served in list(self._served.items()):
            if not served.busy and not channel.kept:
                self._served.pop(channel)
                self._close_soon(channel.close(reason))

    def _close_soon(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _asks_for_list(channel: Channel, first: FrameReceived) -> bool:
    return (
        EXTENSION_LIST in channel.extensions
        and first.frame.protocol_type is ProtocolType.META
        and is_list_request(first.frame.data)
    )


@dataclass(slots=True)
class LateAcceptor:
    """Passes hellos to the acceptor, which is built only after the links."""

    observer: Observer
    acceptor: Acceptor | None = None

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        """See `Acceptor.answer_hello`; a daemon that stops gives no answer."""
        assert self.acceptor is not None
        if self.observer.flights.closed:
            # Unanswered until its link ends: to the peer we are away, not unwilling.
            await asyncio.Event().wait()
        try:
            return await self.acceptor.answer_hello(hello)
        except PeerError as exc:
            self.observer.handshake("provider", "refused")
            self.observer.call_refused(
                canonical_did(hello.peer_did, hello.public_key),
                outcome=ErrorKind.IDENTITY_REFUSED.value,
                reason=exc.detail,
            )
            raise

    async def serve_channel(self, channel: Channel) -> None:
        """See `Acceptor.serve_channel`."""
        assert self.acceptor is not None
        if not channel.resumed:
            self.observer.handshake("provider", "ok")
        await self.acceptor.serve_channel(channel)
