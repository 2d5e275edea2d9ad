"""A peer that says on the wire what a test wants: our handshake, then anything."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.protocol import State

from anp.identity.dids import Identities, LocalIdentity
from anp.identity.keys import PrivateKey
from anp.wire.encrypted import Envelope
from anp.wire.frames import (
    Frame,
    ProtocolType,
    decode_frame,
    encode_frame,
)
from anp.wire.handshake import Initiator
from anp.wire.keys import SessionKeys
from anp.wire.messages import parse_message
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import HandshakeCompleted, HandshakeConfig, NeedKeyCheck
from tests.anp.wire.peers import open_envelope, seal

MAX_SIZE = 16 * 1024 * 1024


class RawPeer:
    """One WebSocket to a daemon, and after `open` the keys of one channel."""

    def __init__(self, connection: ClientConnection, peer_did: str) -> None:
        self.connection = connection
        self.peer_did = peer_did
        identities = Identities.of_method(PrivateKey.generate(), "did:key")
        self.identity: LocalIdentity = identities.primary
        self.keys: SessionKeys | None = None

    def initiator(
        self,
        *,
        skew: float = 0.0,
        did: str | None = None,
        capabilities: tuple[str, ...] = (),
        candidates: tuple[str, ...] = (),
    ) -> Initiator:
        """Return a handshake to the daemon, or to `did`; its clock is off by `skew`."""
        return Initiator(
            HandshakeConfig(),
            identity=self.identity,
            peer_did=did or self.peer_did,
            meta=MetaProtocol(
                supported_capabilities=capabilities,
                candidate_protocols=candidates,
                extensions=("close",),
            ),
            now=Moment.at(
                time.monotonic(), datetime.now(UTC) + timedelta(seconds=skew)
            ),
            random_bytes=os.urandom,
        )

    async def say(self, *texts: str | bytes) -> None:
        """Send messages as they are."""
        for text in texts:
            await self.connection.send(text)

    async def hear(self) -> dict[str, Any]:
        """Return the next message."""
        value: dict[str, Any] = json.loads(await self.connection.recv())
        return value

    async def open(
        self,
        *,
        capabilities: tuple[str, ...] = (),
        candidates: tuple[str, ...] = (),
    ) -> None:
        """Open a channel."""
        initiator = self.initiator(capabilities=capabilities, candidates=candidates)
        while True:
            await self.say(*initiator.messages_to_send())
            match initiator.next_event():
                case NeedKeyCheck():
                    initiator.key_checked(
                        None, now=Moment(time.monotonic(), time.time_ns())
                    )
                case HandshakeCompleted(keys):
                    self.keys = keys
                    await self.say(*initiator.messages_to_send())
                    return
                case None:
                    message = parse_message(
                        await self.connection.recv(), max_size=MAX_SIZE
                    )
                    initiator.receive(
                        message, now=Moment(time.monotonic(), time.time_ns())
                    )
                case other:
                    raise AssertionError(other)

    def sealed(self, plaintext: bytes) -> dict[str, Any]:
        """Return an envelope around `plaintext`, header byte included."""
        assert self.keys is not None
        text = seal(
            self.keys,
            plaintext,
            source_did=self.identity.did,
            destination_did=self.peer_did,
            message_id=os.urandom(16).hex(),
            iv=os.urandom(12),
            timestamp=datetime.now(UTC),
        )
        value: dict[str, Any] = json.loads(text)
        return value

    async def send_frame(self, protocol_type: ProtocolType, data: bytes) -> str:
        """Send a frame and return the id of its envelope."""
        envelope = self.sealed(encode_frame(Frame(protocol_type, data)))
        await self.say(json.dumps(envelope))
        return str(envelope["messageId"])

    async def send_meta(self, data: bytes) -> None:
        """Send a meta message, whatever it is."""
        await self.send_frame(ProtocolType.META, data)

    async def hear_frame(self) -> tuple[Frame, str]:
        """Return the next frame and the id of its envelope."""
        assert self.keys is not None
        message = parse_message(await self.connection.recv(), max_size=MAX_SIZE)
        assert isinstance(message, Envelope), message
        return decode_frame(open_envelope(self.keys, message)), message.message_id

    async def hear_meta(self) -> dict[str, Any]:
        """Return the next meta message."""
        frame, _ = await self.hear_frame()
        assert frame.protocol_type is ProtocolType.META
        value: dict[str, Any] = json.loads(frame.data)
        return value


@asynccontextmanager
async def raw_peer(url: str, did: str) -> AsyncIterator[RawPeer]:
    """Connect to a daemon."""
    async with asyncio.timeout(60.0):
        connection = await connect(url, proxy=None, compression=None, max_size=MAX_SIZE)
        try:
            yield RawPeer(connection, did)
        finally:
            # A closed connection may not be closed once more: see `Link.close`.
            if connection.state is not State.CLOSED:
                await connection.close()
