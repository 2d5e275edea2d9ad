"""A channel with a written protocol on which a peer calls our agent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.errors import ErrorKind
from anp.sidecar.bound.natural import Listener
from anp.sidecar.consensus.written.base import WrittenChannel, WrittenParts
from anp.sidecar.offer.capability_calls import CapabilityCalls, outcome_of
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.telemetry.observer import CallSeen
from anp.sidecar.telemetry.usage import Way
from anp.wire.frames import ProtocolType
from negotiation.consensus.written import (
    CallCapability,
    Declined,
    WrittenCode,
    WrittenEvent,
)
from negotiation.errors import CapabilityFailed
from negotiation.need import Capability, Role
from negotiation.strict_json import Json

__all__ = ["WrittenProvider"]

logger = logging.getLogger(__name__)


class WrittenProvider(WrittenChannel):
    """A channel on which a peer calls our agent."""

    def __init__(
        self,
        channel: Channel,
        uri: str,
        code: WrittenCode,
        parts: WrittenParts,
        *,
        capabilities: CapabilityCalls,
        offered: Callable[[], Sequence[Capability]],
        listener: Listener | None = None,
        digest: str = "",
        used: Callable[[Way, str, None], None] = lambda way, digest, none: None,
    ) -> None:
        """Begin on a channel that is bound to the protocol; `run` does the work.

        Args:
            digest: Hash of the protocol's document.
            used: Counts a call that was answered.
            capabilities: Calls our agent, judged by the schemas on both sides.
            offered: Returns the capabilities that this peer may use now; asked for each
                message, and again before each call.
            listener: Answers texts that come beside the protocol, if any may.
        """
        super().__init__(channel, uri, code, Role.PROVIDER, parts)
        self._capabilities = capabilities
        self._offered = offered
        self._listener = listener
        self._digest = digest
        self._used = used

    async def run(self, first: Sequence[FrameReceived] = ()) -> None:
        """Serve until the channel ends.

        Args:
            first: Frames that came before the channel was bound, oldest first.
        """
        self._driver.start()
        self.update_offered()
        try:
            for event in first:
                await self._take(event)
            while True:
                await self._take(await self.channel.receive())
        except ChannelClosed:
            logger.debug("served channel ended peer=%s", self._peer)
        except Exception:
            # A bug of ours costs this channel and nothing else.
            logger.exception("serving failed peer=%s", self._peer)
            self._driver.give_up()
        finally:
            if self._listener is not None:
                await self._listener.close()
            await self._end()

    def update_offered(self) -> None:
        """Look again at what the peer may use, as when exposure has changed."""
        offered = self._offered()
        self._driver.feed(
            lambda now, wall_now: self._machine.offer(
                offered, now=now, wall_now=wall_now
            )
        )

    async def _take(self, event: FrameReceived) -> None:
        match event.frame.protocol_type:
            case ProtocolType.APPLICATION:
                # The peer is read no faster than it is served and takes answers.
                await self._driver.wait_room()
                self.update_offered()
                self._driver.receive(event.frame.data)
            case ProtocolType.META:
                await self.dialogue.receive(event.frame.data)
            case ProtocolType.NATURAL_LANGUAGE if self._listener is not None:
                self._listener.take(event)
            case _:
                self._drop(event)

    def _act(self, event: WrittenEvent) -> None:
        match event:
            case CallCapability():
                self._driver.spawn(self._call(event))
            case Declined(name, reason):
                self._capabilities.observer.call_refused(
                    self._peer,
                    outcome=ErrorKind.APPLICATION_ERROR.value,
                    reason=reason,
                    source="consensus",
                    capability=name,
                    protocol=self._digest or None,
                    uri=self.uri,
                )
            case _:
                super()._act(event)

    async def _call(self, event: CallCapability) -> None:
        observer = self._capabilities.observer
        with observer.call_in(self._peer, source="consensus") as seen:
            seen.uri, seen.protocol = self.uri, self._digest or None
            seen.capability = event.name
            await self._answer(event, seen)

    async def _answer(self, event: CallCapability, seen: CallSeen) -> None:
        """Call a capability for the protocol."""
        try:
            output = await self._output(event)
        except CapabilityFailed as exc:
            seen.refused(*outcome_of(exc))
            self._failed(event, exc)
            return
        except Exception as exc:
            # A bug of ours or of an attachment must not leave the peer waiting.
            logger.exception("capability call failed peer=%s", self._peer)
            seen.failed(exc)
            self._failed(event, CapabilityFailed("500", "the call failed"))
            return
        self._driver.feed(
            lambda now, wall_now: self._machine.capability_answered(
                event.call_id, output, now=now, wall_now=wall_now
            )
        )
        self._used(Way.SERVED, self._digest, None)

    async def _output(self, event: CallCapability) -> Json:
        if event.name not in {capability.name for capability in self._offered()}:
            raise CapabilityFailed("503", "the capability is not available", ran=False)
        output: Json = await self._capabilities.run(
            event.name,
            event.arguments,
            way=WayIn.ENVELOPE,
            peer=self._peer,
            peer_did=self.channel.peer_did,
            max_payload=self.channel.max_payload,
        )
        return output

    def _failed(self, event: CallCapability, failure: CapabilityFailed) -> None:
        self._driver.feed(
            lambda now, wall_now: self._machine.capability_failed(
                event.call_id,
                failure.code,
                failure.message,
                ran=failure.ran,
                now=now,
                wall_now=wall_now,
            )
        )
