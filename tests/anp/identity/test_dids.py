"""DIDs of a key: made, decoded, matched, and told apart."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ConfigError, ErrorCode, PeerError
from anp.identity import base58
from anp.identity.dids import (
    MAX_DID,
    Identities,
    LocalIdentity,
    canonical_did,
    check_did,
    check_key,
    did_all,
    did_key,
    did_method,
    key_id_of,
    key_of_did_key,
    matches_did_all,
    same_agent,
    split_did_all,
)
from anp.identity.keys import PrivateKey
from tests.clauses import clause

VECTORS = Path(__file__).parents[2] / "vectors" / "identity"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def vectors(name: str) -> list[dict[str, str]]:
    loaded: list[dict[str, str]] = json.loads((VECTORS / name).read_text())["vectors"]
    return loaded


def decode_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def public_of(scalar: int) -> bytes:
    key = ec.derive_private_key(scalar, ec.SECP256R1()).public_key()
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def code_of(function: Callable[[str], object], did: str) -> ErrorCode | None:
    try:
        function(did)
    except PeerError as exc:
        return exc.code
    return None


publics = st.integers(1, ORDER - 1).map(public_of)
OURS, OTHERS = public_of(7), public_of(8)


@pytest.mark.parametrize("vector", vectors("did_key.json"), ids=lambda v: v["did"][-6:])
def test_the_published_did_keys_hold_both_ways(vector: dict[str, str]) -> None:
    public = b"\x04" + decode_base64url(vector["x"]) + decode_base64url(vector["y"])
    assert did_key(public) == vector["did"]
    assert key_of_did_key(vector["did"]) == public


@clause("WIRE row 6")
@pytest.mark.parametrize("vector", vectors("did_all.json"), ids=lambda v: v["did"][-6:])
def test_the_official_sdk_makes_the_same_did_all(vector: dict[str, str]) -> None:
    public = bytes.fromhex(vector["public_key"])
    assert did_all(public) == vector["did"]
    assert matches_did_all(vector["did"], public)
    assert matches_did_all(f"{vector['did']}@example.com:8080", public)
    assert not matches_did_all(vector["did"], OURS)


@given(publics)
def test_a_did_key_gives_its_key_back(public: bytes) -> None:
    did = did_key(public)
    assert did.startswith("did:key:zDn")
    assert key_of_did_key(did) == public
    assert check_did(did) == did


@given(publics, publics)
def test_a_did_all_is_of_one_key_only(one: bytes, other: bytes) -> None:
    assert matches_did_all(did_all(one), one)
    assert matches_did_all(did_all(one), other) == (one == other)


@given(st.text(max_size=80))
def test_any_text_is_a_did_or_ends_in_the_documented_error(text: str) -> None:
    for did in (text, f"did:key:{text}", f"did:key:z{text}", f"did:all:{text}"):
        for attempt in (did_method, key_of_did_key, split_did_all):
            assert code_of(attempt, did) in {None, ErrorCode.DID_NOT_FOUND}
        assert matches_did_all(did, OURS) is False


@given(st.binary(min_size=30, max_size=40))
def test_any_bytes_in_a_did_key_are_a_point_or_an_error(data: bytes) -> None:
    did = f"did:key:z{base58.encode(data)}"
    code = code_of(key_of_did_key, did)
    assert code in {None, ErrorCode.DID_NOT_FOUND}
    assert code is not None or did_key(key_of_did_key(did)) == did


@pytest.mark.parametrize(
    "did",
    [
        # Ed25519, secp256k1 and P-384 keys of the same specification.
        "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
        "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
        "did:key:z82Lm1MpAkeJcix9K8TMiLd5NMAhnwkjjCBeWHXyu3U4oT2MVJJKXkcVBgjGhnLBn2Kaau9",
        "did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv ",
        "did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv\n",
        "did:key:z1DnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169",
        "did:key:mgCQC",
        "did:key:z",
    ],
)
def test_did_keys_of_other_kinds_and_spellings_are_refused(did: str) -> None:
    with pytest.raises(PeerError) as caught:
        key_of_did_key(did)
    assert caught.value.code is ErrorCode.DID_NOT_FOUND


def test_about_half_of_all_x_have_no_point_and_are_refused() -> None:
    refused = 0
    for x in range(1, 20):
        data = b"\x80\x24\x02" + x.to_bytes(32, "big")
        try:
            key_of_did_key(f"did:key:z{base58.encode(data)}")
        except PeerError:
            refused += 1
    assert 0 < refused < 19


@pytest.mark.parametrize(
    ("did", "method"),
    [
        ("did:web:example.com%3A3000:user:alice", "web"),
        ("did:wba:example.com:user:e1_abc-DEF", "wba"),
        ("did:all:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "all"),
        ("did:all:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2@example.com", "all"),
        ("did:all:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2@[::1]:80", "all"),
    ],
)
def test_the_method_of_a_did_is_read(did: str, method: str) -> None:
    assert did_method(did) == method


@pytest.mark.parametrize(
    "did",
    [
        "",
        "did",
        "did:",
        "did:key",
        "did:key:",
        "DID:key:zabc",
        "did:Key:zabc",
        "did:web:a b",
        "did:web:a/b",
        "did:web:a#keys-1",
        "did:web:a?b",
        "did:web:%zz",
        "did:web:ü",
        "did:web:a\n",
        "did:wba:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2@example.com",
        "did:all:short",
        "did:all:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2@",
        "did:all:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2@host:123456",
        "did:all:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2@host/path",
    ],
)
def test_what_is_not_written_like_a_did_is_refused(did: str) -> None:
    with pytest.raises(PeerError) as caught:
        check_did(did)
    assert caught.value.code is ErrorCode.DID_NOT_FOUND


def test_the_length_of_a_did_is_limited() -> None:
    start = "did:web:"
    longest = start + "a" * (MAX_DID - len(start))
    assert check_did(longest) == longest
    with pytest.raises(PeerError, match="1024 characters, not 1025"):
        check_did(longest + "a")


@pytest.mark.parametrize(
    "public",
    [b"", OURS[:64], OURS + b"\x00", b"\x02" + OURS[1:33], b"\x04" + bytes(64)],
)
def test_what_is_no_uncompressed_point_has_no_did(public: bytes) -> None:
    for make in (did_key, did_all):
        with pytest.raises(PeerError) as caught:
            make(public)
        assert caught.value.code is ErrorCode.NOT_ALLOWED


def test_a_did_all_can_say_where_it_is() -> None:
    did = did_all(OURS, "example.com:8080")
    assert split_did_all(did) == (did_all(OURS)[8:], "example.com:8080")
    assert split_did_all(did_all(OURS))[1] is None
    assert split_did_all(did_all(OURS, "[2001:db8::1]:80"))[1] == "[2001:db8::1]:80"
    with pytest.raises(ConfigError, match="HOST:PORT"):
        did_all(OURS, "a b")


@clause("WIRE row 4", "WIRE row 6")
@pytest.mark.parametrize(
    "did", [did_key(OURS), did_all(OURS), did_all(OURS, "example.com:1")]
)
def test_a_key_is_accepted_under_its_did_and_keys_1_only(did: str) -> None:
    check_key(did, f"{did}#keys-1", OURS)
    for key_id in ("", "#keys-1", f"{did}#keys-2", f"{did}#keys-1 ", f"{did}keys-1"):
        with pytest.raises(PeerError) as caught:
            check_key(did, key_id, OURS)
        assert caught.value.code is ErrorCode.NOT_ALLOWED
    with pytest.raises(PeerError, match="does not own the key") as caught:
        check_key(did, f"{did}#keys-1", OTHERS)
    assert caught.value.code is ErrorCode.NOT_ALLOWED


@clause("WIRE row 6")
@pytest.mark.parametrize("method", ["wba", "web", "other"])
def test_an_address_under_another_method_proves_nothing(method: str) -> None:
    did = f"did:{method}:{did_all(OURS)[8:]}"
    with pytest.raises(PeerError) as caught:
        check_key(did, key_id_of(did), OURS)
    assert caught.value.code is ErrorCode.DID_NOT_FOUND
    assert not matches_did_all(did, OURS)


def test_the_key_id_that_the_did_key_specification_has_is_accepted() -> None:
    did = did_key(OURS)
    name = did.removeprefix("did:key:")
    check_key(did, f"{did}#{name}", OURS)
    other = did_key(OTHERS).removeprefix("did:key:")
    for key_id in (f"{did}#{other}", f"{did}#{name}x", f"{did}#"):
        with pytest.raises(PeerError):
            check_key(did, key_id, OURS)
    address = did_all(OURS)
    with pytest.raises(PeerError):
        check_key(address, f"{address}#{address.removeprefix('did:all:')}", OURS)


def test_did_key_and_did_all_of_one_key_are_kept_as_one() -> None:
    key = did_key(OURS)
    assert canonical_did(key, OURS) == key
    assert canonical_did(did_all(OURS), OURS) == key
    assert canonical_did(did_all(OURS, "example.com:80"), OURS) == key
    assert canonical_did("did:wba:example.com", OURS) == "did:wba:example.com"


def test_nobody_is_kept_under_the_did_of_another() -> None:
    for did in (did_key(OURS), did_all(OURS)):
        with pytest.raises(PeerError) as caught:
            canonical_did(did, OTHERS)
        assert caught.value.code is ErrorCode.NOT_ALLOWED


def test_dids_of_one_key_are_recognised_as_the_same_agent() -> None:
    forms = [did_key(OURS), did_all(OURS), did_all(OURS, "a.example:1")]
    for one in forms:
        for other in forms:
            assert same_agent(one, other)
        assert not same_agent(one, did_key(OTHERS))
        assert not same_agent(one, did_all(OTHERS))
        assert not same_agent(one, "did:web:a.example")
    assert same_agent("did:web:a.example", "did:web:a.example")


@pytest.fixture
def key() -> PrivateKey:
    return PrivateKey(ec.derive_private_key(7, ec.SECP256R1()))


@clause("WIRE row 4", "WIRE row 5")
def test_an_identity_has_what_a_hello_needs(key: PrivateKey) -> None:
    identity = LocalIdentity(did_key(OURS), key)
    assert identity.key_id == f"{identity.did}#keys-1"
    assert identity.public_key_hex == OURS.hex()
    assert identity.public_key_hex.startswith("04")
    assert len(identity.public_key_hex) == 130
    assert len(identity.sign(b"data")) == 64


@clause("WIRE row 6")
def test_we_answer_under_the_did_we_were_addressed_by(key: PrivateKey) -> None:
    ours = Identities.of_method(key, "did:key")
    for did in (did_key(OURS), did_all(OURS), did_all(OURS, "example.com:80")):
        found = ours.for_did(did)
        assert found is not None
        assert found.did == did
    for did in (did_key(OTHERS), did_all(OTHERS), "did:web:a", "", "did:all:"):
        assert ours.for_did(did) is None


def test_we_speak_as_did_all_to_a_did_all_peer(key: PrivateKey) -> None:
    ours = Identities.of_method(key, "did:key")
    assert ours.speaking_to(did_key(OTHERS)).did == did_key(OURS)
    assert ours.speaking_to("did:web:example.com").did == did_key(OURS)
    assert ours.speaking_to(did_all(OTHERS, "example.com:80")).did == did_all(OURS)


def test_a_did_all_identity_keeps_its_address(key: PrivateKey) -> None:
    primary = did_all(OURS, "example.com:80")
    ours = Identities(key, primary)
    assert ours.primary.did == primary
    assert ours.canonical == did_key(OURS)
    assert ours.speaking_to(did_all(OTHERS)).did == primary
    assert ours.speaking_to(did_key(OTHERS)).did == primary
    assert Identities.of_method(key, "did:all").primary.did == did_all(OURS)


def test_a_primary_did_of_another_key_is_a_configuration_error(key: PrivateKey) -> None:
    with pytest.raises(ConfigError, match="does not belong to this home's key"):
        Identities(key, did_key(OTHERS))
    with pytest.raises(ConfigError, match="must be one of did:key, did:all"):
        Identities.of_method(key, "did:web")
