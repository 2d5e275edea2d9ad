"""Public keys of DID documents, and the proofs inside these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.identity.dids import did_key
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import (
    KeyFormatError,
    KeyKind,
    PublicKey,
    key_of_bytes,
    key_of_jwk,
    key_of_method,
    key_of_multibase,
)
from anp.identity.web.data_integrity import (
    ProofError,
    add_proof,
    canonical,
    verify_proof,
)
from tests.clauses import clause

VECTORS = Path(__file__).parents[2] / "vectors" / "identity"
SIGNED = json.loads((VECTORS / "eddsa_jcs_2022.json").read_text())

P256 = PrivateKey.generate()
ED25519 = PrivateKey.generate(KeyKind.ED25519)


def test_the_thumbprint_is_that_of_rfc_8037() -> None:
    jwk = {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    }
    key = key_of_jwk(jwk)
    assert key.thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


@pytest.mark.parametrize("key", [P256, ED25519], ids=["P-256", "Ed25519"])
def test_a_key_is_the_same_in_every_form(key: PrivateKey) -> None:
    public = key.public_key
    assert key_of_multibase(public.multibase) == public
    assert key_of_jwk(public.jwk) == public
    assert public.verifies(key.sign(b"text"), b"text")
    assert not public.verifies(key.sign(b"text"), b"other")
    assert not public.verifies(key.sign(b"text")[:-1], b"text")


def test_multibase_is_the_id_of_the_did_key() -> None:
    assert did_key(P256.public_bytes) == f"did:key:{P256.public_key.multibase}"


@clause("WIRE row 7")
def test_hex_keys_of_the_sdk_have_a_byte_too_many() -> None:
    method = {
        "type": "EcdsaSecp256r1VerificationKey2019",
        "publicKeyHex": "04" + P256.public_bytes.hex(),
    }
    assert key_of_method(method) == P256.public_key
    method["publicKeyHex"] = P256.public_bytes.hex()
    assert key_of_method(method) == P256.public_key


@pytest.mark.parametrize(
    ("kind", "field", "value", "expected"),
    [
        ("Multikey", "publicKeyMultibase", P256.public_key.multibase, P256),
        ("Multikey", "publicKeyMultibase", ED25519.public_key.multibase, ED25519),
        ("JsonWebKey2020", "publicKeyJwk", P256.public_key.jwk, P256),
        ("JsonWebKey2020", "publicKeyJwk", ED25519.public_key.jwk, ED25519),
        (
            "EcdsaSecp256r1VerificationKey2019",
            "publicKeyJwk",
            {**P256.public_key.jwk, "kid": "1", "use": "sig"},
            P256,
        ),
        (
            "Ed25519VerificationKey2020",
            "publicKeyMultibase",
            ED25519.public_key.multibase,
            ED25519,
        ),
    ],
    ids=range(6),
)
def test_every_common_type_is_read(
    kind: str, field: str, value: Any, expected: PrivateKey
) -> None:
    assert key_of_method({"type": kind, field: value}) == expected.public_key


BAD_METHODS: list[dict[str, Any]] = [
    {},
    {"type": "Multikey"},
    {"type": 1, "publicKeyMultibase": ED25519.public_key.multibase},
    {"type": "X25519KeyAgreementKey2019", "publicKeyMultibase": "z6LS"},
    {"type": "Multikey", "publicKeyMultibase": "mAAAA"},
    {"type": "Multikey", "publicKeyMultibase": "z" + "1" * 300},
    {"type": "Multikey", "publicKeyMultibase": "z0OIl"},
    {"type": "Multikey", "publicKeyMultibase": None},
    {"type": "Multikey", "publicKeyHex": P256.public_bytes.hex()},
    {"type": "Multikey", "publicKeyJwk": {"kty": "RSA", "n": "AA", "e": "AQAB"}},
    {"type": "JsonWebKey2020", "publicKeyJwk": []},
    {"type": "JsonWebKey2020", "publicKeyJwk": {**ED25519.public_key.jwk, "d": "x"}},
    {"type": "JsonWebKey2020", "publicKeyJwk": {**P256.public_key.jwk, "x": "AA"}},
    {
        "type": "JsonWebKey2020",
        "publicKeyJwk": {**P256.public_key.jwk, "y": P256.public_key.jwk["x"]},
    },
    {
        "type": "Ed25519VerificationKey2020",
        "publicKeyMultibase": P256.public_key.multibase,
    },
    {
        "type": "EcdsaSecp256r1VerificationKey2019",
        "publicKeyJwk": ED25519.public_key.jwk,
    },
    {
        "type": "Multikey",
        "publicKeyMultibase": P256.public_key.multibase,
        "publicKeyJwk": ED25519.public_key.jwk,
    },
]


@pytest.mark.parametrize(
    "method", BAD_METHODS, ids=[str(n) for n in range(len(BAD_METHODS))]
)
def test_what_is_no_key_is_refused(method: dict[str, Any]) -> None:
    with pytest.raises(KeyFormatError):
        key_of_method(method)


@given(st.sampled_from(list(KeyKind)), st.binary(max_size=70))
def test_any_bytes_are_a_key_or_a_refusal(kind: KeyKind, data: bytes) -> None:
    try:
        assert isinstance(key_of_bytes(kind, data), PublicKey)
    except KeyFormatError:
        return


def test_the_proof_of_the_w3c_vector_fits() -> None:
    key = key_of_multibase(SIGNED["publicKeyMultibase"])
    verify_proof(SIGNED["document"], key)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Other"},
        {"more": 1},
        {"proof": None},
        {"proof": {**SIGNED["document"]["proof"], "created": "2024-01-01T00:00:00Z"}},
        {"proof": {**SIGNED["document"]["proof"], "proofPurpose": "authentication"}},
        {"proof": {**SIGNED["document"]["proof"], "cryptosuite": "none"}},
        {"proof": {**SIGNED["document"]["proof"], "proofValue": "z" + "1" * 64}},
        {"proof": {**SIGNED["document"]["proof"], "proofValue": "!"}},
        {"proof": {**SIGNED["document"]["proof"], "proofValue": 1}},
        {"proof": {**SIGNED["document"]["proof"], "@context": []}},
    ],
)
def test_a_proof_covers_everything(change: dict[str, Any]) -> None:
    key = key_of_multibase(SIGNED["publicKeyMultibase"])
    with pytest.raises(ProofError):
        verify_proof({**SIGNED["document"], **change}, key)


def test_a_proof_we_make_fits() -> None:
    document = {"@context": ["a"], "id": "did:wba:a.example", "名": [1, None, True]}
    signed = add_proof(
        document, method_id="#key-1", created="2026-11-21T00:00:00Z", sign=ED25519.sign
    )
    verify_proof(signed, ED25519.public_key)
    with pytest.raises(ProofError):
        verify_proof(signed, P256.public_key)


def test_canonical_json_sorts_by_utf_16_and_escapes_little() -> None:
    value = {
        "\ufb33": 1,
        "\U0001f600": 2,
        "\u20ac": 3,
        "\r": 4,
        "1": '\u007f\n/"\\\x0f',
    }
    assert canonical(value).decode() == (
        '{"\\r":4,"1":"\x7f\\n/\\"\\\\\\u000f","\u20ac":3,"\U0001f600":2,"\ufb33":1}'
    )


@pytest.mark.parametrize("value", [1.5, 2**53, {"a": [0.0]}])
def test_numbers_with_several_spellings_are_not_signed(value: Any) -> None:
    with pytest.raises(ProofError):
        canonical(value)
