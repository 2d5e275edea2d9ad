"""Calls in: peers use our agent's capabilities."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core import FrameTooLarge
from anp.channel.events import FrameReceived, NeedHelloAnswer
from anp.errors import CallError
from anp.identity.dids import canonical_did
from anp.sidecar.agreeing import Agreer
from anp.sidecar.attachments import AttachmentError, CapabilityError
from anp.sidecar.exposure import Exposure, PeerPolicy
from anp.sidecar.halves import load_half
from anp.sidecar.protocol import Protocol
from anp.wire.frames import ProtocolType
from anp.wire.messages import MetaProtocol
from cache.records import HalfRecord
from cache.store import Store
from negotiation.acceptance import Validator
from negotiation.document import read_document
from negotiation.errors import CapabilityFailed, NegotiationError
from negotiation.mind import Offer
from sandbox.pool import Sandbox

__all__ = ["Provider"]

logger = logging.getLogger(__name__)

MAX_OUTPUT = 700 * 1024
"Largest output of a capability as JSON, in bytes, that still fits an answer's frame."

MAX_NEGOTIATIONS = 8
"Negotiations that peers may have going on with us at once."


class Provider:
    """Decides what peers may open, negotiates with them and serves their requests."""

    def __init__(
        self,
        *,
        exposure: Exposure,
        policy: PeerPolicy,
        store: Store,
        agreer: Agreer,
        sandbox: Sandbox,
        validator: Validator,
        answer: Callable[[str | None], MetaProtocol],
        call_timeout: float,
        half_deadline: float,
        max_calls: int,
    ) -> None:
        self._exposure = exposure
        self._policy = policy
        self._store = store
        self._agreer = agreer
        self._sandbox = sandbox
        self._validator = validator
        self._answer = answer
        self._call_timeout = call_timeout
        self._half_deadline = half_deadline
        self._max_calls = max_calls
        self._negotiating = asyncio.Semaphore(MAX_NEGOTIATIONS)
        self._served: dict[Channel, HalfRecord] = {}
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
        """Negotiate if the channel is not bound yet, then answer requests."""
        peer = canonical_did(channel.peer_did, channel.peer_key)
        await self._policy.remember(peer, shown_did=channel.peer_did)
        digest = channel.own_meta.used_protocol_hash
        held: tuple[FrameReceived, ...] = ()
        if digest is not None:
            half = await self._half_for(digest, peer)
            record = await asyncio.to_thread(self._store.document, digest)
            if half is None or record is None:
                await channel.close("stale: the protocol is no longer served")
                return
            document = record.text
        else:
            try:
                async with self._negotiating:
                    agreed = await self._agreer.agree(
                        channel, Offer(self._exposure.offered())
                    )
            except CallError as exc:
                await channel.close(f"no agreement: {exc.kind}")
                return
            half, document, held = agreed.half, agreed.document, agreed.held
        await self._serve(channel, half, document, held)

    async def _half_for(self, digest: str, peer: str) -> HalfRecord | None:
        """Return the half that can serve `digest` to `peer` now, or None."""
        half = await asyncio.to_thread(self._store.provider_half, digest, peer)
        if half is None:
            return None
        problem = self._exposure.fits(half.capabilities) or self._sandbox.quarantined(
            digest, source=half.source, peer=peer
        )
        if problem is not None:
            logger.info("hash declined hash=%s reason=%s", digest[:12], problem)
            return None
        return half

    def _check_served(self) -> None:
        """Close the channels whose capabilities are gone or have changed."""
        for channel, half in list(self._served.items()):
            problem = self._exposure.fits(half.capabilities)
            if problem is not None:
                task = asyncio.create_task(channel.close(f"stale: {problem}"))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def _serve(
        self,
        channel: Channel,
        half: HalfRecord,
        document: str,
        held: tuple[FrameReceived, ...],
    ) -> None:
        loaded = await load_half(
            self._sandbox,
            f"provider:{channel.peer_did}:{half.hash}:{half.revision}",
            half.source,
            origin=half.origin,
            protocol=half.hash,
            peer=canonical_did(channel.peer_did, channel.peer_key),
            deadline=self._half_deadline,
        )
        protocol = Protocol(half.hash, read_document(document), loaded, self._validator)
        free = asyncio.Semaphore(self._max_calls)
        self._served[channel] = half
        try:
            async with asyncio.TaskGroup() as calls:
                for event in held:
                    calls.create_task(self._request(channel, half, protocol, event))
                while True:
                    event = await channel.receive()
                    if event.frame.protocol_type is not ProtocolType.APPLICATION:
                        continue
                    await free.acquire()
                    task = calls.create_task(
                        self._request(channel, half, protocol, event)
                    )
                    task.add_done_callback(lambda _: free.release())
        except* ChannelClosed:
            logger.debug("served channel ended peer=%s", channel.peer_did)
        finally:
            self._served.pop(channel, None)

    async def _request(
        self,
        channel: Channel,
        half: HalfRecord,
        protocol: Protocol,
        event: FrameReceived,
    ) -> None:
        """Answer one request; what cannot be answered closes the channel."""
        try:
            data = await protocol.handle(event.frame.data, self._caller(channel, half))
            await channel.send(ProtocolType.APPLICATION, data)
        except ChannelClosed:
            logger.info("answer lost with its channel peer=%s", channel.peer_did)
        except (NegotiationError, FrameTooLarge) as exc:
            # `fixErrorNegotiation` is not in use with this peer, so the channel ends
            # and the caller learns it at once (DESIGN.md, How a call flows).
            logger.warning(
                "request not answered peer=%s reason=%r",
                channel.peer_did,
                str(exc)[:200],
            )
            await channel.close(f"request not answered: {str(exc)[:300]}")

    def _caller(
        self, channel: Channel, half: HalfRecord
    ) -> Callable[[str, Any], Awaitable[Any]]:
        async def on_call(name: str, arguments: Any) -> Any:
            if name not in half.capabilities:
                raise CapabilityFailed("403", f"{name} is not part of this protocol")
            problem = self._exposure.fits({name: half.capabilities[name]})
            if problem is not None:
                raise CapabilityFailed("503", "the capability is not available")
            return await self._run(name, arguments, channel.peer_did)

        return on_call

    async def _run(self, name: str, arguments: Any, peer_did: str) -> Any:
        """Call one capability, with its input and output judged by its schemas."""
        capability = self._exposure.capability(name)
        attachment = self._exposure.attachment_of(name)
        if capability is None or attachment is None or not isinstance(arguments, dict):
            raise CapabilityFailed("503", "the capability is not available")
        findings = await self._validator.validate(capability.input_schema, arguments)
        if findings:
            raise CapabilityFailed("400", f"input: {'; '.join(findings)}"[:500])
        try:
            output = await attachment.call(
                name, arguments, caller=peer_did, timeout=self._call_timeout
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
