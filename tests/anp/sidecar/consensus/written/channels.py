"""Two ends of a channel without a wire, and an attachment that is a function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from anp.channel.channel import Channel
from anp.channel.core.events import ChannelOpened, ChannelRole, FrameReceived
from anp.channel.core.traffic import EXTENSION_CLOSE
from anp.errors import ErrorCode
from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.config.settings import CallConfig
from anp.sidecar.offer.call_times import CallTimes
from anp.sidecar.offer.capability_calls import CapabilityCalls
from anp.sidecar.offer.exposure import Exposure
from anp.wire.frames import FORMAT_1_0, Frame
from anp.wire.meta_protocol import CAPABILITIES, MAX_PAYLOAD, MetaProtocol
from negotiation.need import Capability
from tests.anp.sidecar.offer.gates import gate_over
from tests.negotiation.inprocess import JsonschemaValidator

TIMES = CallTimes(CallConfig())
"The limits of calls as they are by default."

META = MetaProtocol(supported_capabilities=CAPABILITIES, extensions=(EXTENSION_CLOSE,))


class MemoryLink:
    """Hands the frames of one channel to its other end."""

    def __init__(self) -> None:
        self.ends: list[Channel] = []
        self.sent: list[tuple[int, Frame]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.max_payload = MAX_PAYLOAD

    def end_of(self, index: int) -> _End:
        """Return the link as one end sees it."""
        return _End(self, index)

    def cut(self, reason: str = "cut", *, unprocessed: bool = False) -> None:
        """Lose the link."""
        for channel in self.ends:
            channel.end(reason, by_peer=False, unprocessed=unprocessed)


@dataclass
class _End:
    link: MemoryLink
    index: int
    address: str = "127.0.0.1"

    def max_payload(self, channel_id: str) -> int:
        return self.link.max_payload

    async def wait_to_send(self, channel_id: str, frame: Frame) -> None:
        await self.link.gate.wait()

    def send_now(
        self, channel_id: str, frame: Frame, message_id: str | None = None
    ) -> str | None:
        if not self.link.gate.is_set():
            return None
        number = message_id or f"e{len(self.link.sent)}"
        self.link.sent.append((self.index, frame))
        other = self.link.ends[1 - self.index]
        # Not within the call that sends it, as over a wire.
        loop = asyncio.get_running_loop()
        loop.call_soon(other.deliver, FrameReceived(channel_id, frame, number))
        return number

    async def close_channel(
        self, channel_id: str, reason: str, *, code: ErrorCode
    ) -> None:
        self.link.ends[self.index].end(reason, by_peer=False)
        self.link.ends[1 - self.index].end(reason, by_peer=True)

    async def renew(self, channel: Channel, meta: MetaProtocol) -> Channel:
        raise AssertionError("these channels are not renewed and keep no key")

    async def keep_key(self, channel: Channel, binding: str) -> None:
        raise AssertionError("these channels are not renewed and keep no key")


def channel_pair() -> tuple[Channel, Channel, MemoryLink]:
    """Return requester's end, provider's end, and what is between them."""
    keys = PrivateKey.generate(), PrivateKey.generate()
    dids = [Identities.of_method(key, "did:key").primary.did for key in keys]
    link = MemoryLink()
    roles = (ChannelRole.REQUESTER, ChannelRole.PROVIDER)
    for index in range(2):
        opened = ChannelOpened(
            channel_id="k",
            session_id="s",
            role=roles[index],
            local_did=dids[index],
            peer_did=dids[1 - index],
            public_key=keys[1 - index].public_bytes,
            own_meta=META,
            peer_meta=META,
            version="1.0",
            frame_format=FORMAT_1_0,
            expires_at=1e9,
        )
        link.ends.append(Channel(opened, link.end_of(index)))
    return link.ends[0], link.ends[1], link


@dataclass(eq=False)
class Fake:
    """An attachment in this process."""

    run: Callable[[str, dict[str, Any]], Awaitable[Any]]
    tools: list[Capability]
    name: str = "shop"
    kind: str = "python"
    healthy: bool = True
    problem: str | None = None
    begins_itself: bool = False
    show_errors: bool = False
    skipped: tuple[str, ...] = ()
    calls: list[tuple[str, Any, str]] = field(default_factory=list)

    async def start(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""

    def capabilities(self) -> list[Capability]:
        return self.tools

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        self.calls.append((capability, arguments, caller))
        output: dict[str, Any] = await self.run(capability, arguments)
        return output


def capability_calls(
    fake: Fake, *, expose: tuple[str, ...]
) -> tuple[CapabilityCalls, Exposure]:
    """Return calls of a fake attachment as peers make them."""
    exposure = Exposure()
    spec = AttachmentSpec(kind="python", name=fake.name, target="x:y", expose=expose)
    exposure.put(spec, fake)
    return CapabilityCalls(
        gate_over(exposure), JsonschemaValidator(), times=TIMES, timeout=5.0
    ), exposure
