"""Base58: examples of the drafts of the format, and any bytes there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.identity.base58 import decode, decode_checked, encode, encode_checked


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
        (
            b"The quick brown fox jumps over the lazy dog.",
            "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z",
        ),
        (bytes.fromhex("0000287fb4cd"), "11233QC4"),
    ],
)
def test_the_examples_of_the_draft_fit(data: bytes, text: str) -> None:
    assert encode(data) == text
    assert decode(text) == data


def test_an_address_has_its_check_bytes() -> None:
    text = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"
    assert encode_checked(decode_checked(text)) == text
    with pytest.raises(ValueError, match="check bytes"):
        decode_checked(text[:-1] + "3")


@pytest.mark.parametrize("text", ["0", "O", "I", "l", "1 ", "é"])
def test_no_other_character_is_taken(text: str) -> None:
    with pytest.raises(ValueError, match="no character"):
        decode(text)


@given(st.binary(max_size=80))
def test_bytes_come_back(data: bytes) -> None:
    assert decode(encode(data)) == data
    assert decode_checked(encode_checked(data)) == data
