"""Encrypted messages, against vectors of the official SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import Envelope, decode_base64, encode_base64
from anp.wire.frames import (
    Frame,
    ProtocolType,
    check_envelope_dids,
    decode_frame,
    encode_frame,
)
from anp.wire.keys import SessionKeys
from tests.anp.wire.peers import VECTORS, WALL_NOW, open_envelope, read_message, seal
from tests.clauses import clause

SHAKEN = VECTORS["handshakes"][0]
SOURCE_KEYS = SessionKeys(
    SHAKEN["secret_key_id"],
    bytes.fromhex(SHAKEN["source_key"]),
    bytes.fromhex(SHAKEN["destination_key"]),
)
DESTINATION_KEYS = SessionKeys(
    SHAKEN["secret_key_id"],
    bytes.fromhex(SHAKEN["destination_key"]),
    bytes.fromhex(SHAKEN["source_key"]),
)
MESSAGE: dict[str, Any] = json.loads(VECTORS["envelopes"][3]["message"])


def read(value: dict[str, Any] | str) -> Envelope:
    message = read_message(value if isinstance(value, str) else json.dumps(value))
    assert isinstance(message, Envelope)
    return message


def sealed_text(plaintext: bytes, iv: bytes) -> str:
    return seal(
        SOURCE_KEYS,
        plaintext,
        source_did=SHAKEN["source_did"],
        destination_did=SHAKEN["destination_did"],
        message_id="m-1",
        iv=iv,
        timestamp=WALL_NOW,
    )


def sealed(plaintext: bytes, iv: bytes = bytes(12)) -> Envelope:
    return read(sealed_text(plaintext, iv))


def with_data(**changes: str) -> dict[str, Any]:
    return {**MESSAGE, "encryptedData": {**MESSAGE["encryptedData"], **changes}}


def flipped(text: str, bit: int) -> str:
    data = bytearray(decode_base64(text))
    data[bit // 8] ^= 1 << bit % 8
    return encode_base64(bytes(data))


@clause("ANP-11", "WIRE row 26")
@pytest.mark.parametrize("vector", VECTORS["envelopes"])
def test_messages_of_the_sdk_open(vector: dict[str, str]) -> None:
    envelope = read(vector["message"])
    assert open_envelope(DESTINATION_KEYS, envelope).hex() == vector["plaintext"]


@clause("WIRE row 26")
@pytest.mark.parametrize("vector", VECTORS["envelopes"])
def test_with_the_same_iv_we_make_the_bytes_of_the_sdk(vector: dict[str, str]) -> None:
    theirs = json.loads(vector["message"])
    iv = decode_base64(theirs["encryptedData"]["iv"])
    ours = json.loads(sealed_text(bytes.fromhex(vector["plaintext"]), iv))
    assert ours["encryptedData"] == theirs["encryptedData"]
    assert set(ours) == set(theirs)


@clause("ANP-11", "ANP-12")
@given(st.sampled_from(ProtocolType), st.binary(max_size=2000))
def test_a_frame_is_the_plaintext_of_a_message(
    protocol_type: ProtocolType, data: bytes
) -> None:
    frame = Frame(protocol_type, data)
    envelope = sealed(encode_frame(frame))
    assert decode_frame(open_envelope(DESTINATION_KEYS, envelope)) == frame


@clause("WIRE row 26")
@given(st.sampled_from(["iv", "tag", "ciphertext"]), st.integers(min_value=0))
def test_any_flipped_bit_is_found(name: str, position: int) -> None:
    text = MESSAGE["encryptedData"][name]
    bits = len(decode_base64(text)) * 8
    envelope = read(with_data(**{name: flipped(text, position % bits)}))
    with pytest.raises(PeerError) as caught:
        open_envelope(DESTINATION_KEYS, envelope)
    assert caught.value.code is ErrorCode.DECRYPTION_FAILED


@clause("WIRE row 26")
@pytest.mark.parametrize(
    ("name", "size"), [("iv", 11), ("iv", 13), ("iv", 0), ("tag", 15), ("tag", 17)]
)
def test_an_iv_has_12_bytes_and_a_tag_16(name: str, size: int) -> None:
    envelope = read(with_data(**{name: encode_base64(bytes(size))}))
    with pytest.raises(PeerError, match="expected 12 and 16") as caught:
        open_envelope(DESTINATION_KEYS, envelope)
    assert caught.value.code is ErrorCode.DECRYPTION_FAILED


@clause("WIRE row 26")
@given(st.sampled_from(["iv", "tag", "ciphertext"]), st.text())
def test_any_text_in_place_of_base64_is_refused(name: str, text: str) -> None:
    envelope = read(with_data(**{name: text}))
    with pytest.raises(PeerError) as caught:
        open_envelope(DESTINATION_KEYS, envelope)
    assert caught.value.code is ErrorCode.DECRYPTION_FAILED


@clause("WIRE row 26")
def test_base64_without_padding_is_refused() -> None:
    bare = MESSAGE["encryptedData"]["tag"].rstrip("=")
    with pytest.raises(PeerError):
        open_envelope(DESTINATION_KEYS, read(with_data(tag=bare)))


def test_the_key_of_the_other_direction_does_not_open() -> None:
    with pytest.raises(PeerError) as caught:
        open_envelope(SOURCE_KEYS, read(MESSAGE))
    assert caught.value.code is ErrorCode.DECRYPTION_FAILED


def test_a_message_of_another_key_names_it_unknown() -> None:
    with pytest.raises(PeerError) as caught:
        open_envelope(DESTINATION_KEYS, read({**MESSAGE, "secretKeyId": "00" * 8}))
    assert caught.value.code is ErrorCode.INVALID_DECRYPTION_KEY


@clause("WIRE row 26")
def test_the_dids_of_a_message_are_those_of_its_key() -> None:
    source, destination = SHAKEN["source_did"], SHAKEN["destination_did"]
    check_envelope_dids(read(MESSAGE), source_did=source, destination_did=destination)
    for one, other in (
        (destination, source),
        (source, source),
        (source + "@h:1", destination),
    ):
        with pytest.raises(PeerError) as caught:
            check_envelope_dids(read(MESSAGE), source_did=one, destination_did=other)
        assert caught.value.code is ErrorCode.NOT_ALLOWED


@pytest.mark.parametrize("size", [0, 11, 13])
def test_an_iv_of_ours_with_another_size_is_our_bug(size: int) -> None:
    with pytest.raises(LocalError):
        sealed(b"", bytes(size))
