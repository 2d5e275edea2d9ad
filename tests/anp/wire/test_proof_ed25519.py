"""Hellos signed with an Ed25519 key, which `did:wba` binds paths to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from anp.errors import PeerError
from anp.wire.messages import DestinationHello, SourceHello
from anp.wire.moment import Moment
from anp.wire.proof import PROOF_TYPE, verify_hello
from tests.anp.wire.peers import ALICE, WALL_NOW, sign_hello
from tests.anp.wire.peers import read_message as read
from tests.anp.wire.test_proof import hello_of

KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
DID = "did:wba:alice.example"


@dataclass(frozen=True, slots=True)
class EdwardsIdentity:
    """A DID with an Ed25519 key."""

    did: str = DID
    key_id: str = f"{DID}#key-1"
    public_key_hex: str = PUBLIC.hex()

    def sign(self, data: bytes) -> bytes:
        return KEY.sign(data)


def hello(**method: Any) -> dict[str, Any]:
    """Return a signed hello of the identity, with changes in its method."""
    identity = EdwardsIdentity()
    bare = hello_of()
    del bare["proof"]
    bare["sourceDid"] = DID
    bare["verificationMethod"] = {
        "id": identity.key_id,
        "type": "Ed25519VerificationKey2020",
        "publicKeyHex": identity.public_key_hex,
        **method,
    }
    return sign_hello(bare, identity, created=WALL_NOW)


def verify(message: dict[str, Any]) -> bytes:
    parsed = read(json.dumps(message))
    assert isinstance(parsed, SourceHello | DestinationHello)
    return verify_hello(parsed, now=Moment.at(0.0, WALL_NOW))


def test_a_hello_signed_with_ed25519_verifies() -> None:
    message = hello()
    assert message["proof"]["type"] == "Ed25519Signature2020"
    assert verify(message) == PUBLIC


@pytest.mark.parametrize(
    "method",
    [
        {"type": "EcdsaSecp256r1VerificationKey2019"},
        {"type": "Multikey"},
        {"publicKeyHex": PUBLIC.hex()[:-2]},
        {"publicKeyHex": ALICE.public_key_hex},
        {"publicKeyHex": PUBLIC.hex().upper()},
        {"publicKeyHex": (b"\x01" + bytes(31)).hex()},
    ],
)
def test_the_key_has_to_be_what_its_type_says(method: dict[str, Any]) -> None:
    with pytest.raises(PeerError):
        verify(hello(**method))


def test_the_proof_has_to_be_of_the_type_of_the_key() -> None:
    message = hello()
    message["proof"]["type"] = PROOF_TYPE
    with pytest.raises(PeerError, match=r"proof\.type"):
        verify(message)


def test_a_changed_hello_does_not_verify() -> None:
    with pytest.raises(PeerError, match="does not fit"):
        verify({**hello(), "random": "11" * 32})
