"""Signatures of hellos."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from anp.errors import LocalError, PeerError
from anp.wire.handshake import Initiator
from anp.wire.messages import DestinationHello, SourceHello, canonical_bytes
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import HandshakeConfig
from anp.wire.proof import verify_hello
from tests.anp.wire.peers import (
    ALICE,
    EVE,
    VECTORS,
    WALL_NOW,
    FixedIdentity,
    fixed_random,
    sign_hello,
)
from tests.anp.wire.peers import read_message as read
from tests.clauses import clause


def hello_of(identity: FixedIdentity = ALICE, **changes: Any) -> dict[str, Any]:
    """Return a signed hello; `changes` are made before it is signed."""
    initiator = Initiator(
        HandshakeConfig(key_lifetime=60),
        identity=identity,
        peer_did="did:example:bob",
        meta=MetaProtocol(),
        now=Moment.at(0.0, WALL_NOW),
        random_bytes=fixed_random(),
    )
    [text] = initiator.messages_to_send()
    hello = {**json.loads(text), "sessionId": "s-1", "messageId": "m-1"}
    return resigned({**hello, **changes}, identity)


def resigned(
    hello: dict[str, Any],
    identity: FixedIdentity = ALICE,
    created: datetime = WALL_NOW,
) -> dict[str, Any]:
    """Return `hello` with a new proof."""
    bare = {k: v for k, v in hello.items() if k != "proof"}
    return sign_hello(bare, identity, created=created)


def with_proof(hello: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return `hello` with changes in its proof, signed again."""
    proof = {**hello["proof"], **changes}
    signature = ALICE.sign(canonical_bytes({**hello, "proof": proof}))
    value = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
    return {**hello, "proof": {**proof, "proofValue": value}}


def with_value(hello: dict[str, Any], value: str) -> dict[str, Any]:
    """Return `hello` with another `proofValue`."""
    return {**hello, "proof": {**hello["proof"], "proofValue": value}}


def verify(hello: dict[str, Any] | str, wall_now: datetime = WALL_NOW) -> bytes:
    message = read(hello if isinstance(hello, str) else json.dumps(hello))
    assert isinstance(message, SourceHello | DestinationHello)
    return verify_hello(message, now=Moment.at(0.0, wall_now))


def signature_of(hello: dict[str, Any]) -> bytes:
    return base64.urlsafe_b64decode(hello["proof"]["proofValue"] + "==")


@clause("WIRE row 8", "WIRE row 9", "WIRE row 10", "WIRE row 12")
@pytest.mark.parametrize("vector", VECTORS["handshakes"])
@pytest.mark.parametrize("kind", ["source_hello", "destination_hello"])
def test_hellos_of_the_sdk_verify(vector: dict[str, str], kind: str) -> None:
    key = verify(vector[kind], datetime.fromisoformat(vector["wall_now"]))
    addresses = {a["public_key_hex"]: a["address"] for a in VECTORS["addresses"]}
    assert addresses[key.hex()] in json.loads(vector[kind])["sourceDid"]


@clause("WIRE row 9")
@pytest.mark.parametrize("text", VECTORS["hellos_with_unknown_fields"])
def test_unknown_fields_of_the_sdk_are_signed_as_received(text: str) -> None:
    wall_now = datetime.fromisoformat(VECTORS["handshakes"][0]["wall_now"])
    verify(text, wall_now)
    with pytest.raises(PeerError, match="signature"):
        verify(json.dumps({**json.loads(text), "more": 0}), wall_now)


@clause("WIRE row 9")
def test_signed_bytes_are_sorted_compact_and_ascii() -> None:
    hello = {"b": {"z": "é", "a": [1, None]}, "proof": {"t": 1, "proofValue": "x"}}
    expected = b'{"b":{"a":[1,null],"z":"\\u00e9"},"proof":{"t":1}}'
    assert canonical_bytes(hello) == expected


def test_our_own_hello_verifies() -> None:
    assert verify(hello_of()).hex() == ALICE.public_key_hex


@clause("WIRE row 10")
def test_the_signature_is_86_characters_without_padding() -> None:
    value = hello_of()["proof"]["proofValue"]
    assert len(value) == 86
    assert "=" not in value


@clause("WIRE row 10")
def test_padding_of_the_signature_is_accepted() -> None:
    hello = hello_of()
    verify(with_value(hello, hello["proof"]["proofValue"] + "=="))


@clause("WIRE row 10")
@pytest.mark.parametrize("padding", ["=", "===", "=A"])
def test_wrong_padding_is_refused(padding: str) -> None:
    hello = hello_of()
    with pytest.raises(PeerError, match="proofValue"):
        verify(with_value(hello, hello["proof"]["proofValue"] + padding))


@clause("WIRE row 10")
def test_a_signature_has_only_one_spelling() -> None:
    # The last of 86 characters has four bits that carry nothing.
    hello = hello_of()
    value = hello["proof"]["proofValue"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = value[:-1] + alphabet[alphabet.index(value[-1]) + 1]
    with pytest.raises(PeerError, match="canonical"):
        verify(with_value(hello, other))


@clause("WIRE row 10")
@pytest.mark.parametrize("size", [0, 1, 61, 62, 65, 66, 70, 72])
def test_signatures_of_another_size_are_refused(size: int) -> None:
    value = base64.urlsafe_b64encode(b"\x30" * size).rstrip(b"=").decode() or "="
    with pytest.raises(PeerError):
        verify(with_value(hello_of(), value))


@pytest.mark.parametrize(
    "value", ["A" * 86, "_" * 85 + "w", "+" * 86, "é" * 86, " " * 86, "A" * 50_000]
)
def test_numbers_outside_the_group_and_odd_texts_are_refused(value: str) -> None:
    with pytest.raises(PeerError):
        verify(with_value(hello_of(), value))


@clause("WIRE row 17")
@pytest.mark.parametrize("start", [0, 32])
def test_a_signature_without_a_leading_zero_verifies(start: int) -> None:
    # An older peer leaves the zero of r (the first half) or of s out.
    hellos = (hello_of(sessionId=f"s-{n}") for n in range(10_000))
    hello = next(h for h in hellos if signature_of(h)[start] == 0)
    signature = signature_of(hello)
    short = signature[:start] + signature[start + 1 :]
    value = base64.urlsafe_b64encode(short).rstrip(b"=").decode()
    assert len(short) == 63
    verify(with_value(hello, value))


@clause("WIRE row 8")
def test_the_type_of_the_spec_is_sent_and_both_are_accepted() -> None:
    hello = hello_of()
    assert hello["proof"]["type"] == "EcdsaSecp256r1Signature2019"
    verify(with_proof(hello, type="EcdsaSecp256k1Signature2019"))


@clause("WIRE row 8")
def test_another_proof_type_is_refused() -> None:
    with pytest.raises(PeerError, match=r"proof\.type"):
        verify(with_proof(hello_of(), type="Ed25519Signature2020"))


@clause("WIRE row 11")
@pytest.mark.parametrize(
    "created",
    [
        "2026-11-21T12:00:00.000Z",
        "2026-11-21T12:00:00+00:00",
        "2026-11-21T12:00:00",
        "2026-11-21t12:00:00z",
        "2026-11-21 12:00:00Z",
        "2026-13-21T12:00:00Z",
        "2026-11-21T12:00:61Z",
        "0000-00-00T00:00:00Z",
        "2026-11-21T12:00:00Z\n",
        "٢٠٢٦-11-21T12:00:00Z",
        "1795262400",
    ],
)
def test_only_one_form_of_created_is_accepted(created: str) -> None:
    with pytest.raises(PeerError, match="YYYY"):
        verify(with_proof(hello_of(), created=created))


@clause("WIRE row 11")
def test_created_is_sent_in_utc_with_whole_seconds() -> None:
    zone = timezone(timedelta(hours=2))
    local = datetime(2026, 11, 21, 14, 0, 0, 999_999, tzinfo=zone)
    [text] = Initiator(
        HandshakeConfig(),
        identity=ALICE,
        peer_did="did:example:bob",
        meta=MetaProtocol(),
        now=Moment.at(0.0, local),
        random_bytes=fixed_random(),
    ).messages_to_send()
    assert json.loads(text)["proof"]["created"] == "2026-11-21T12:00:00Z"


@clause("WIRE row 12")
@pytest.mark.parametrize("seconds", [-30, -28, 0, 28, 30])
def test_a_proof_of_up_to_30_seconds_is_accepted(seconds: int) -> None:
    verify(hello_of(), WALL_NOW + timedelta(seconds=seconds))


@clause("WIRE row 12")
@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (timedelta(seconds=31), "31 s behind"),
        (timedelta(seconds=-31), "31 s ahead of"),
        (timedelta(seconds=30, milliseconds=1), "30 s behind"),
        (timedelta(hours=1), "3600 s behind"),
        (timedelta(days=-365), "31536000 s ahead of"),
    ],
)
def test_a_stale_proof_names_the_difference_between_the_clocks(
    delta: timedelta, words: str
) -> None:
    with pytest.raises(PeerError, match=words):
        verify(hello_of(), WALL_NOW + delta)


@clause("WIRE row 4")
def test_a_key_of_another_did_is_refused() -> None:
    method = {**hello_of(EVE)["verificationMethod"]}
    hello = hello_of(EVE, sourceDid=ALICE.did, verificationMethod=method)
    with pytest.raises(PeerError, match="begin with sourceDid"):
        verify(hello)


@clause("WIRE row 4")
@pytest.mark.parametrize(
    "change",
    [
        {"id": ALICE.did},
        {"id": ALICE.did + "x#keys-1"},
        {"id": ALICE.did + "#keys-2"},
        {"type": "EcdsaSecp256k1VerificationKey2019"},
    ],
)
def test_a_verification_method_that_does_not_belong_is_refused(
    change: dict[str, str],
) -> None:
    method = {**hello_of()["verificationMethod"], **change}
    with pytest.raises(PeerError):
        verify(hello_of(verificationMethod=method))


@clause("WIRE row 5")
@pytest.mark.parametrize(
    "public_key_hex",
    [
        "03" + ALICE.public_key_hex[2:66],
        "04" + ALICE.public_key_hex,
        ALICE.public_key_hex[:-2],
        "04" + "00" * 64,
        "04" + "ff" * 64,
        "04" + "zz" * 64,
        "0x04" + ALICE.public_key_hex[4:],
    ],
)
def test_only_uncompressed_points_are_keys(public_key_hex: str) -> None:
    method = {**hello_of()["verificationMethod"], "publicKeyHex": public_key_hex}
    with pytest.raises(PeerError, match="publicKeyHex"):
        verify(hello_of(verificationMethod=method))


def test_a_signature_of_another_key_is_refused() -> None:
    hello = hello_of()
    forged = EVE.sign(canonical_bytes(hello))
    value = base64.urlsafe_b64encode(forged).rstrip(b"=").decode()
    with pytest.raises(PeerError, match="signature does not fit"):
        verify(with_value(hello, value))


def test_a_signer_of_ours_that_gives_der_is_our_bug() -> None:
    class Der(FixedIdentity):
        def sign(self, data: bytes) -> bytes:
            return super().sign(data) + b"\x00"

    with pytest.raises(LocalError):
        hello_of(Der(ALICE.did, 0xA11CE))


def test_a_clock_without_a_zone_is_our_bug() -> None:
    with pytest.raises(LocalError):
        resigned(hello_of(), created=datetime.now(UTC).replace(tzinfo=None))
