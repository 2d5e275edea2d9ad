"""Identities, chance and whole handshakes for the tests of the wire."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from anp.errors import ErrorCode, PeerError
from anp.wire.encrypted import Envelope
from anp.wire.envelopes import EnvelopeWriter
from anp.wire.frames import FORMAT_1_0, open_sealed
from anp.wire.handshake import Initiator, Responder
from anp.wire.hellos import read_handshake
from anp.wire.keys import SessionKeys
from anp.wire.messages import (
    Message,
    Response,
    SourceHello,
    canonical_bytes,
    format_timestamp,
    parse_message,
)
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from anp.wire.moment import Moment, unix_ns
from anp.wire.outcome import (
    Event,
    HandshakeCompleted,
    HandshakeConfig,
    HandshakeFailed,
    NeedHelloReply,
    NeedKeyCheck,
)
from anp.wire.proof import Identity, proof_value, types_of
from anp.wire.side import HandshakeState

WALL_NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
MAX_SIZE = 64 * 1024
HASH = "0123456789abcdef" * 4
URI = "https://example.com/protocol/1.0"
OFFER = MetaProtocol(
    supported_capabilities=CAPABILITIES,
    used_protocol_hash=HASH,
    candidate_protocols=(URI,),
    extensions=("close",),
)
NOW = Moment.at(0.0, WALL_NOW)
VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "wire" / "sdk.json").read_text("utf-8")
)


class FixedIdentity:
    """An identity whose key follows from a number."""

    def __init__(self, did: str, scalar: int) -> None:
        self.did = did
        self.key_id = f"{did}#keys-1"
        self._key = ec.derive_private_key(scalar, ec.SECP256R1())
        self.public_key_hex = (
            self._key.public_key()
            .public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
            .hex()
        )

    def sign(self, data: bytes) -> bytes:
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


ALICE = FixedIdentity("did:example:alice", 0xA11CE)
BOB = FixedIdentity("did:example:bob", 0xB0B)
EVE = FixedIdentity("did:example:eve", 0xE7E)


def fixed_random(seed: str = "") -> Callable[[int], bytes]:
    """Return a source of bytes that is the same in every run."""
    numbers = count()

    def read(size: int) -> bytes:
        text = f"{seed} {next(numbers)}"
        return hashlib.shake_256(text.encode()).digest(size)

    return read


def read_message(text: str | bytes) -> Message:
    """Read a message as a link does."""
    return read_handshake(text) or parse_message(text, max_size=MAX_SIZE)


def events_of(side: Initiator | Responder) -> list[Event]:
    """Return all events not yet returned."""
    return list(iter(side.next_event, None))


def make_initiator(
    meta: MetaProtocol | None = None,
    config: HandshakeConfig | None = None,
    now: float = 0.0,
) -> Initiator:
    """Return Alice's side of a handshake with Bob."""
    return Initiator(
        config or HandshakeConfig(),
        identity=ALICE,
        peer_did=BOB.did,
        meta=meta or MetaProtocol(),
        now=Moment.at(now, WALL_NOW),
        random_bytes=fixed_random("alice"),
    )


def make_responder(
    hello: str | dict[str, Any],
    *,
    identity: FixedIdentity = BOB,
    config: HandshakeConfig | None = None,
    now: float = 0.0,
    wall_now: datetime = WALL_NOW,
) -> Responder:
    """Return Bob's side for a hello."""
    message = read_message(hello if isinstance(hello, str) else json.dumps(hello))
    assert isinstance(message, SourceHello)
    return Responder(
        config or HandshakeConfig(),
        identity=identity,
        hello=message,
        now=Moment.at(now, wall_now),
        random_bytes=fixed_random("bob"),
    )


@dataclass
class Pair:
    """Both sides of one handshake; `sent` is what the responder said."""

    initiator: Initiator
    responder: Responder
    source_hello: str
    sent: list[str]


def start_pair(
    *,
    offer: MetaProtocol | None = None,
    answer: MetaProtocol | None = None,
    initiator_config: HandshakeConfig | None = None,
    responder_config: HandshakeConfig | None = None,
) -> Pair:
    """Run a handshake up to the responder's two messages, which are in `sent`."""
    initiator = make_initiator(offer, initiator_config)
    [hello] = initiator.messages_to_send()
    responder = make_responder(hello, config=responder_config)
    assert isinstance(responder.next_event(), NeedKeyCheck)
    responder.key_checked(None, now=Moment.at(0.0, WALL_NOW))
    assert isinstance(responder.next_event(), NeedHelloReply)
    responder.answer(answer or MetaProtocol(), now=Moment.at(0.0, WALL_NOW))
    return Pair(initiator, responder, hello, responder.messages_to_send())


def tell(side: Initiator | Responder, *texts: str, now: float = 0.0) -> None:
    """Give messages to one side."""
    for text in texts:
        side.receive(read_message(text), now=Moment.at(now, WALL_NOW))


def finish_pair(pair: Pair, *, now: float = 0.0) -> tuple[list[Event], list[Event]]:
    """Run the rest and return the last events of the initiator and the responder."""
    tell(pair.initiator, *pair.sent, now=now)
    assert isinstance(pair.initiator.next_event(), NeedKeyCheck)
    pair.initiator.key_checked(None, now=Moment.at(now, WALL_NOW))
    tell(pair.responder, *pair.initiator.messages_to_send(), now=now)
    return events_of(pair.initiator), events_of(pair.responder)


def resigned(text: str, signer: FixedIdentity, **changes: Any) -> str:
    """Return a hello with changes, signed again by `signer`."""
    hello = {**json.loads(text), **changes}
    del hello["proof"]
    return json.dumps(sign_hello(hello, signer, created=WALL_NOW))


def sign_hello(
    hello: dict[str, Any], signer: Identity, *, created: datetime
) -> dict[str, Any]:
    """Return a hello of any members with its proof."""
    proof = {
        "type": types_of(signer.public_key_hex)[1],
        "verificationMethod": signer.key_id,
        "created": format_timestamp(created, milliseconds=False),
    }
    value = proof_value(signer, canonical_bytes({**hello, "proof": proof}))
    return {**hello, "proof": {**proof, "proofValue": value}}


def failure_of(side: Initiator | Responder) -> HandshakeFailed:
    """Return the failure that is the side's only event."""
    [event] = events_of(side)
    assert isinstance(event, HandshakeFailed)
    assert side.state is HandshakeState.FAILED
    assert side.get_timer() is None
    assert side.secret_key_id is None
    return event


def completed(events: list[Event]) -> HandshakeCompleted:
    """Return the completion that is the only event."""
    [event] = events
    assert isinstance(event, HandshakeCompleted)
    return event


def response_of(side: Initiator | Responder) -> Response:
    """Return the `response` that is all the side wants to send."""
    [text] = side.messages_to_send()
    message = read_message(text)
    assert isinstance(message, Response)
    return message


def refused_hello(**changes: Any) -> Responder:
    """Return Bob's side after a hello of Alice's with changes."""
    [hello] = make_initiator().messages_to_send()
    return make_responder(resigned(hello, ALICE, **changes))


def after_answer(**changes: Any) -> Initiator:
    """Return Alice's side after a `destinationHello` of Bob's with changes."""
    pair = start_pair(offer=OFFER)
    pair.initiator.messages_to_send()
    tell(pair.initiator, resigned(pair.sent[0], BOB, **changes))
    return pair.initiator


def finished_with(
    change: Callable[[bytes, dict[str, Any]], dict[str, Any]],
) -> HandshakeFailed:
    """Return how the responder ends after a changed `finished`.

    `change` gets the initiator's send key and its message.
    """
    pair = start_pair()
    tell(pair.initiator, *pair.sent)
    pair.initiator.key_checked(None, now=NOW)
    keys = completed(events_of(pair.initiator)[1:]).keys
    finished = json.loads(pair.initiator.messages_to_send()[-1])
    tell(pair.responder, json.dumps(change(keys.send_key, finished)))
    failure = failure_of(pair.responder)
    response = response_of(pair.responder)
    assert response.code is failure.code
    assert response.original_type == "finished"
    return failure


def seal(
    keys: SessionKeys,
    plaintext: bytes,
    *,
    source_did: str,
    destination_did: str,
    message_id: str,
    iv: bytes,
    timestamp: datetime,
    version: str = FORMAT_1_0.version,
) -> str:
    """Return one `message` that carries `plaintext`, as JSON (ANP-11).

    Args:
        plaintext: A frame: header byte and protocol data.
        source_did: Our DID on the channel; the sender is always the source.
        iv: 12 bytes that this key never had before.
        version: That of the format `plaintext` was encoded with (ANP-15).

    Raises:
        LocalError: The iv does not have 12 bytes.
    """
    writer = EnvelopeWriter(
        keys,
        source_did=source_did,
        destination_did=destination_did,
        version=version,
        binary=False,
    )
    text = writer.write(
        plaintext, message_id=message_id, iv=iv, unix_ns=unix_ns(timestamp)
    )
    return text.decode()


def open_envelope(keys: SessionKeys, envelope: Envelope) -> bytes:
    """Return the plaintext of a `message`: a frame (ANP-11).

    Raises:
        PeerError: `INVALID_DECRYPTION_KEY` for another key's message, and
            `DECRYPTION_FAILED`.
    """
    if envelope.secret_key_id != keys.secret_key_id:
        raise PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "secretKeyId is not ours")
    return open_sealed(keys.receive_cipher, envelope.encrypted_data.sealed())
