"""A channel with a written protocol on which a peer calls our agent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.errors import ErrorKind
from anp.sidecar.attachments.attachment import report_progress
from anp.sidecar.bound.kept_answers import KeptAnswer
from anp.sidecar.bound.natural import Listener
from anp.sidecar.bound.work import ServedCall, ServedWork, WorkDesk, works
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
        work: WorkDesk,
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
                message.
            work: Keeps the calls of peers with the extension `work`.
            listener: Answers texts that come beside the protocol, if any may.
        """
        super().__init__(channel, uri, code, Role.PROVIDER, parts)
        self._capabilities = capabilities
        self._offered = offered
        self._listener = listener
        self._digest = digest
        self._used = used
        # Id of the envelope whose message is being taken in.
        self._request_id = ""
        self._told: Sequence[Capability] | None = None
        "What the protocol was told that the peer may use."
        self._work: ServedWork | None = None
        if works(channel):
            self._work = ServedWork(channel, uri, work, self.dialogue)
            self.dialogue.on_signal = self._work.receive

    async def run(self, first: Sequence[FrameReceived] = ()) -> None:
        """Serve until the channel ends.

        Args:
            first: Frames that came before the channel was bound, oldest first.
        """
        self._driver.start()
        self.update_offered()
        # All that is done for a request is done as work of this task.
        context = copy_context()
        self.channel.take = lambda event: context.run(self._take_now, event)
        try:
            for event in first:
                await self._take(event)
            while True:
                await self._take(await self.channel.receive())
        except ChannelClosed as exc:
            logger.debug("served channel ended peer=%s", self._peer)
            if exc.link_lost and self._work is not None:
                # The answers are fetched over the next link.
                await self._driver.wait_work()
        except Exception:
            # A bug of ours costs this channel and nothing else.
            logger.exception("serving failed peer=%s", self._peer)
            self._driver.give_up()
        finally:
            if self._listener is not None:
                await self._listener.close()
            await self._end()

    @property
    def working(self) -> bool:
        """True while a request is being answered."""
        return self._driver.working

    def update_offered(self) -> None:
        """Look again at what the peer may use, as when exposure has changed."""
        offered = self._offered()
        if offered is self._told:
            return
        self._told = offered
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
                self._receive(event)
            case ProtocolType.META:
                await self.dialogue.receive(event.frame.data)
            case ProtocolType.NATURAL_LANGUAGE if self._listener is not None:
                self._listener.take(event)
            case _:
                self._drop(event)

    def _take_now(self, event: FrameReceived) -> bool:
        is_message = event.frame.protocol_type is ProtocolType.APPLICATION
        if not (is_message and self._driver.has_room):
            return False
        self._receive(event)
        return True

    def _receive(self, event: FrameReceived) -> None:
        self.update_offered()
        self._request_id = event.message_id
        self._driver.receive(event.frame.data)

    def _act(self, event: WrittenEvent) -> None:
        match event:
            case CallCapability():
                call = None
                if self._work is not None:
                    call = self._work.begin(self._request_id)
                task = self._driver.spawn(self._call(event, call))
                if call is not None:
                    call.task = task
                    task.add_done_callback(lambda _: call.close())
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

    async def _call(self, event: CallCapability, call: ServedCall | None) -> None:
        observer = self._capabilities.observer
        if call is not None:
            report_progress.set(call.progress)
        with observer.call_in(self._peer, source="consensus") as seen:
            seen.uri, seen.protocol = self.uri, self._digest or None
            seen.capability = event.name
            await self._answer(event, call, seen)

    async def _answer(
        self, event: CallCapability, call: ServedCall | None, seen: CallSeen
    ) -> None:
        """Call a capability for the protocol."""
        try:
            output = await self._output(event, call)
            if call is not None:
                # It would be about nothing behind the answer.
                await call.tell_progress()
        except asyncio.CancelledError:
            # The protocol's place for the call is free again.
            self._failed(event, CapabilityFailed("499", "the call was cancelled"))
            raise
        except CapabilityFailed as exc:
            seen.refused(*outcome_of(exc))
            await self._keep(call, self._failed(event, exc))
            return
        except Exception as exc:
            # A bug of ours or of an attachment must not leave the peer waiting.
            logger.exception("capability call failed peer=%s", self._peer)
            seen.failed(exc)
            failure = CapabilityFailed("500", "the call failed")
            await self._keep(call, self._failed(event, failure))
            return
        said: list[bytes] = []
        self._driver.feed(
            lambda now, wall_now: self._machine.capability_answered(
                event.call_id, output, now=now, wall_now=wall_now
            ),
            into=said,
        )
        self._used(Way.SERVED, self._digest, None)
        await self._keep(call, said)

    async def _keep(self, call: ServedCall | None, said: list[bytes]) -> None:
        """Keep an answer that was said; say it where the peer waits for it."""
        if call is None or not said:
            return
        answer = KeptAnswer(said[-1])
        route = await call.end(answer)
        if route is not self._work:
            with contextlib.suppress(ChannelClosed):
                await route.give(call.name.message_id, answer)

    async def _output(self, event: CallCapability, call: ServedCall | None) -> Json:
        output: Json = await self._capabilities.run(
            event.name,
            event.arguments,
            way=WayIn.ENVELOPE,
            peer=self._peer,
            peer_did=self.channel.peer_did,
            max_payload=self.channel.max_payload,
            asked=None if call is None else call.asked,
        )
        return output

    def _failed(self, event: CallCapability, failure: CapabilityFailed) -> list[bytes]:
        """Tell of a failure; return what was said."""
        said: list[bytes] = []
        self._driver.feed(
            lambda now, wall_now: self._machine.capability_failed(
                event.call_id,
                failure.code,
                failure.message,
                ran=failure.ran,
                now=now,
                wall_now=wall_now,
            ),
            into=said,
        )
        return said
