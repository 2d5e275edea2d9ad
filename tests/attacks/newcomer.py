"""A new good peer's way to its first answer, tried until it works."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.protocols.envelope.messages import ENVELOPE_URI
from anp.wire.frames import ProtocolType
from tests.attacks.kinds.base import agree, document, open_channel
from tests.e2e.raw_peer import MAX_SIZE, RawPeer

NEED = "good.double"
"The capability that good peers call."

ARGUMENTS = {"number": 21, "text": "same bytes both ways"}

RETRY = 0.25
"Seconds before a good peer that was refused tries again."

ONE_TRY = 10.0
"Seconds of one try; a person would have given up."

TROUBLE = (OSError, WebSocketException, TimeoutError, EOFError, ValueError, KeyError)


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a new peer came in."""

    way: str
    "`envelope` or `negotiation`."

    seconds: float
    "From its first try to its first answer, or until it was told to stop trying."

    served: bool
    "False if it never got an answer."

    tries: int
    "How often it had to try."

    trouble: str
    "What the last try that failed met."


async def by_envelope(peer: RawPeer) -> None:
    """Ask through the built-in protocol, without any negotiation."""
    await open_channel(peer, uris=(ENVELOPE_URI,))
    message = {
        "protocol_version": "1.0",
        "message_id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).isoformat(),
        "sender_id": peer.identity.did,
        "receiver_id": peer.peer_did,
        "message_type": "request",
        "payload": {"action": NEED, "parameters": ARGUMENTS},
    }
    await peer.send_frame(ProtocolType.APPLICATION, json.dumps(message).encode())
    while True:
        frame, _ = await peer.hear_frame()
        if frame.protocol_type is ProtocolType.APPLICATION:
            answer: Any = json.loads(frame.data)
            if answer["message_type"] == "response":
                _check(answer["payload"]["result"])
                return


async def by_negotiation(peer: RawPeer) -> None:
    """Agree on the document of rules, and call over it."""
    await agree(peer, document(NEED, ARGUMENTS), capabilities=())
    request = {"messageId": "m1", "input": ARGUMENTS}
    await peer.send_frame(ProtocolType.APPLICATION, json.dumps(request).encode())
    while True:
        frame, _ = await peer.hear_frame()
        if frame.protocol_type is ProtocolType.APPLICATION:
            _check(json.loads(frame.data)["output"])
            return


WAYS = {"envelope": by_envelope, "negotiation": by_negotiation}
"The two ways without a model."


async def arrive(
    url: str, did: str, way: str, key: PrivateKey, *, give_up: float
) -> dict[str, Any]:
    """Come in as a new peer; see `Arrival`.

    Args:
        give_up: Moment of `time.monotonic` after which it tries no more.
    """
    began = time.monotonic()
    tries, trouble = 0, ""
    while True:
        tries += 1
        try:
            async with asyncio.timeout(
                max(0.0, min(ONE_TRY, give_up - time.monotonic()))
            ):
                await _once(url, did, way, key)
            served = True
            break
        except TROUBLE as exc:
            trouble = f"{type(exc).__name__} {exc}"[:160]
        if time.monotonic() + RETRY >= give_up:
            served = False
            break
        await asyncio.sleep(RETRY)
    return asdict(Arrival(way, time.monotonic() - began, served, tries, trouble))


async def _once(url: str, did: str, way: str, key: PrivateKey) -> None:
    connection = await connect(
        url, proxy=None, compression=None, max_size=MAX_SIZE, close_timeout=0.5
    )
    try:
        peer = RawPeer(connection, did)
        peer.identity = Identities.of_method(key, "did:key").primary
        await WAYS[way](peer)
    finally:
        connection.transport.abort()


def _check(output: Any) -> None:
    if output.get("number") != "42":
        raise ValueError(f"a wrong answer: {str(output)[:80]}")
