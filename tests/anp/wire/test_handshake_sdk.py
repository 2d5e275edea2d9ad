"""The handshake against one recorded between two official SDKs."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from anp.wire.handshake import Initiator
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import HandshakeConfig, NeedKeyCheck
from tests.anp.wire.peers import (
    NOW,
    OFFER,
    VECTORS,
    FixedIdentity,
    completed,
    events_of,
    make_responder,
    read_message,
    tell,
)
from tests.clauses import clause


class Recorded:
    """Chance as the SDK had it in a recorded handshake."""

    def __init__(self, hello: str, ephemeral: str) -> None:
        value = json.loads(hello)
        self._session_id = bytes.fromhex(value["sessionId"])
        self._by_size = {
            # Our generator adds 1, so that 0 never comes out.
            48: (int(ephemeral, 16) - 1).to_bytes(48, "big"),
            32: bytes.fromhex(value["random"]),
            16: self._session_id,
            12: bytes(12),
        }

    def __call__(self, size: int) -> bytes:
        return self._by_size[size]


def recorded(vector: dict[str, str]) -> tuple[FixedIdentity, FixedIdentity]:
    """Return both identities of a recorded handshake."""
    return (
        FixedIdentity(vector["source_did"], 0xA11CE),
        FixedIdentity(vector["destination_did"], 0xB0B),
    )


@clause("WIRE row 18", "WIRE row 19", "WIRE row 21", "WIRE row 22")
@pytest.mark.parametrize("vector", VECTORS["handshakes"])
def test_as_responder_we_complete_with_the_recorded_sdk(vector: dict[str, str]) -> None:
    _, destination = recorded(vector)
    hello = vector["source_hello"]
    wall_now = datetime.fromisoformat(vector["wall_now"])
    responder = make_responder(hello, identity=destination, wall_now=wall_now)
    responder._random_bytes = Recorded(
        vector["destination_hello"], vector["destination_ephemeral"]
    )
    responder.key_checked(None, now=NOW)
    responder.answer(MetaProtocol(), now=NOW)
    assert responder.secret_key_id == vector["secret_key_id"]
    events_of(responder)
    tell(responder, vector["source_finished"])
    done = completed(events_of(responder))
    assert done.keys.send_key.hex() == vector["destination_key"]
    assert done.keys.receive_key.hex() == vector["source_key"]
    assert done.peer_meta == MetaProtocol()


@clause("WIRE row 18", "WIRE row 19", "WIRE row 21", "WIRE row 23")
@pytest.mark.parametrize("vector", VECTORS["handshakes"])
def test_as_initiator_we_complete_with_the_recorded_sdk(vector: dict[str, str]) -> None:
    source, destination = recorded(vector)
    wall_now = datetime.fromisoformat(vector["wall_now"])
    initiator = Initiator(
        HandshakeConfig(),
        identity=source,
        peer_did=destination.did,
        meta=OFFER,
        now=Moment.at(0.0, wall_now),
        random_bytes=Recorded(vector["source_hello"], vector["source_ephemeral"]),
    )
    for name in ("destination_hello", "destination_finished"):
        message = read_message(vector[name])
        initiator.receive(message, now=Moment.at(0.0, wall_now))
    assert isinstance(initiator.next_event(), NeedKeyCheck)
    initiator.key_checked(None, now=Moment.at(0.0, wall_now))
    done = completed(events_of(initiator))
    assert done.keys.secret_key_id == vector["secret_key_id"]
    assert done.keys.send_key.hex() == vector["source_key"]
    assert done.peer_meta == MetaProtocol()
