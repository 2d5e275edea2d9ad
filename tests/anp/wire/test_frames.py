"""The header byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, PeerError
from anp.wire.frames import Frame, ProtocolType, decode_frame, encode_frame
from tests.clauses import clause


@clause("ANP-12", "ANP-13", "ANP-14")
@pytest.mark.parametrize(
    ("protocol_type", "header"),
    [
        (ProtocolType.META, 0x00),
        (ProtocolType.APPLICATION, 0x40),
        (ProtocolType.NATURAL_LANGUAGE, 0x80),
        (ProtocolType.VERIFICATION, 0xC0),
    ],
)
def test_each_protocol_type_has_its_header_byte(
    protocol_type: ProtocolType, header: int
) -> None:
    assert encode_frame(Frame(protocol_type, b"data")) == bytes([header]) + b"data"
    assert decode_frame(bytes([header])) == Frame(protocol_type, b"")


@clause("ANP-14", "WIRE row 36")
@pytest.mark.parametrize("header", range(256))
def test_reserved_bits_are_ignored_on_receipt(header: int) -> None:
    frame = decode_frame(bytes([header]) + b"x")
    assert frame == Frame(ProtocolType(header // 64), b"x")


@clause("WIRE row 36")
def test_json_without_a_header_reads_as_application_data() -> None:
    assert decode_frame(b'{"a":1}').protocol_type is ProtocolType.APPLICATION


@clause("ANP-12")
def test_a_frame_without_a_byte_is_the_peers_error() -> None:
    with pytest.raises(PeerError) as caught:
        decode_frame(b"")
    assert caught.value.code is ErrorCode.NOT_ALLOWED


@clause("ANP-12")
@given(st.sampled_from(ProtocolType), st.binary())
def test_what_is_encoded_is_decoded(protocol_type: ProtocolType, data: bytes) -> None:
    frame = Frame(protocol_type, data)
    assert decode_frame(encode_frame(frame)) == frame
