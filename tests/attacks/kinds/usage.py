"""Attacks over what a peer may use: calls, repairs, test runs, words."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import uuid
from abc import abstractmethod
from datetime import UTC, datetime
from typing import Any, ClassVar

from anp.protocols.envelope.messages import ENVELOPE_URI
from anp.wire.frames import ProtocolType
from tests.attacks.kinds.base import Attack, agree, document, open_channel, said
from tests.attacks.newcomer import ARGUMENTS, NEED
from tests.e2e.raw_peer import RawPeer


class Using(Attack):
    """The base of attacks over an agreement that each of some peers has."""

    places: ClassVar[int] = 10
    window: ClassVar[int] = 16
    "Messages of one peer that wait for an answer; 0 does not count them."

    need: ClassVar[str] = NEED
    arguments: ClassVar[dict[str, Any]] = ARGUMENTS

    async def run(self) -> None:
        """See `Attack`."""
        self._numbers = itertools.count()
        await self.many(self.places, self._place)

    async def begin(self, peer: RawPeer) -> None:
        """Agree with the daemon."""
        await agree(peer, document(self.need, self.arguments))

    @abstractmethod
    async def act(self, peer: RawPeer) -> None:
        """Send one message that costs the daemon something."""

    async def _place(self) -> None:
        async with self.link() as peer:
            await self.begin(peer)
            self.done["peers ready"] += 1
            room = asyncio.Semaphore(self.window)
            reading = asyncio.create_task(self._read(peer, room))
            try:
                while not reading.done():
                    if self.window:
                        await room.acquire()
                    await self.act(peer)
                    self.done["messages"] += 1
                    await asyncio.sleep(0)
            finally:
                reading.cancel()

    async def _read(self, peer: RawPeer, room: asyncio.Semaphore) -> None:
        async for _ in peer.connection:
            self.done["answers"] += 1
            room.release()
        for _ in range(self.window):
            room.release()

    def request(self, **changed: Any) -> bytes:
        """Return a request of the agreed document."""
        message_id = f"m{next(self._numbers)}"
        given = {**self.arguments, **changed}
        return json.dumps({"messageId": message_id, "input": given}).encode()


class CallFlood(Using):
    """Ten strangers that call as fast as they get answers, 16 calls at a time each."""

    name = "call-flood"

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        await peer.send_frame(ProtocolType.APPLICATION, self.request())


class OneCaller(CallFlood):
    """One stranger that calls as fast as it gets answers, 64 calls at a time."""

    name = "one-caller"
    places = 1
    window = 64
    addresses = 1


class SlowCalls(Using):
    """Strangers that fill all places of the good peers' attachment with slow calls."""

    name = "slow-calls"
    need = "good.wait"
    arguments: ClassVar[dict[str, Any]] = {"seconds": 30.0}

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        await peer.send_frame(ProtocolType.APPLICATION, self.request())


class LargeCalls(Using):
    """Strangers that call with texts of 500 KiB, which come back."""

    name = "large-calls"
    places = 4
    window = 4
    need = "good.echo"
    arguments: ClassVar[dict[str, Any]] = {"text": "x"}

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        data = self.request(text="x" * 500_000)
        await peer.send_frame(ProtocolType.APPLICATION, data)


class BrokenRequests(Using):
    """Strangers whose requests break the document, so that each asks for a repair."""

    name = "broken-requests"

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        data = self.request(number="two", text=os.urandom(60).hex())
        await peer.send_frame(ProtocolType.APPLICATION, data)


class Repairs(Using):
    """Strangers that report errors in good answers, so that the daemon repairs them."""

    name = "repairs"
    window = 2

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        envelope = await peer.send_frame(ProtocolType.APPLICATION, self.request())
        await peer.send_meta(
            said(
                "fixErrorNegotiation",
                errorDescription=f"messageId: {envelope}\nthe output is wrong",
                status="negotiating",
            )
        )


class Verification(Using):
    """Strangers that run test cases over PT=11 as fast as they get answers."""

    name = "verification"

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        await peer.send_frame(ProtocolType.VERIFICATION, self.request())


class Words(Using):
    """Strangers that call in natural language as fast as they get answers."""

    name = "words"
    window = 1

    async def begin(self, peer: RawPeer) -> None:
        """Words need no agreement."""
        await open_channel(peer)

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        text = "# Requirement\ngood.double\n\n# Input\n- number: 2\n- text: x\n"
        await peer.send_frame(ProtocolType.NATURAL_LANGUAGE, text.encode())


class Envelopes(Using):
    """Strangers that send requests over the envelope without waiting for answers."""

    name = "envelopes"
    window = 200

    async def begin(self, peer: RawPeer) -> None:
        """The built-in protocol needs no agreement."""
        await open_channel(peer, uris=(ENVELOPE_URI,))

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        number = next(self._numbers)
        action = ("discover", NEED, f"nothing.{number}", "register")[number % 4]
        parameters: dict[str, Any] = {} if action == "discover" else dict(ARGUMENTS)
        if action == "register":
            parameters = {"capabilities": [{"name": f"c{n}"} for n in range(250)]}
        message = {
            "protocol_version": "1.0",
            "message_id": str(uuid.uuid4()),
            "timestamp": datetime.now(UTC).isoformat(),
            "sender_id": peer.identity.did,
            "receiver_id": peer.peer_did,
            "message_type": "request",
            "payload": {"action": action, "parameters": parameters},
        }
        await peer.send_frame(ProtocolType.APPLICATION, json.dumps(message).encode())


class Events(Envelopes):
    """Strangers that send events and notices that the daemon keeps for its owner."""

    name = "events"
    window = 0  # An event has no answer to wait for.

    async def act(self, peer: RawPeer) -> None:
        """See `Using`."""
        message = {
            "protocol_version": "1.0",
            "message_id": str(uuid.uuid4()),
            "timestamp": datetime.now(UTC).isoformat(),
            "sender_id": peer.identity.did,
            "receiver_id": "broadcast",
            "message_type": "event",
            "payload": {
                "event_name": os.urandom(60).hex(),
                "event_data": {"text": "x" * 10_000},
            },
        }
        await peer.send_frame(ProtocolType.APPLICATION, json.dumps(message).encode())


ATTACKS = (
    CallFlood,
    OneCaller,
    SlowCalls,
    LargeCalls,
    BrokenRequests,
    Repairs,
    Verification,
    Words,
    Envelopes,
    Events,
)
