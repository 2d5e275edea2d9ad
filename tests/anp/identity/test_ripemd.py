"""RIPEMD-160 without OpenSSL gives what its authors published."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.identity.ripemd import plain_ripemd160, ripemd160

PUBLISHED = [
    (b"", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
    (b"a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
    (b"abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
    (b"message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
    (b"abcdefghijklmnopqrstuvwxyz", "f71c27109c692c1b56bbdceb5b9d2865b3708dbc"),
    (
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "12a053384a9c0c88e405a06c27dcf49ada62eb2b",
    ),
    (
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "b0e20b6e3116640286ed3a87a5713079b21f5189",
    ),
    (b"1234567890" * 8, "9b752e45573d4b39f4dbd3323cab82bf63326bfb"),
]


@pytest.mark.parametrize(("data", "digest"), PUBLISHED)
def test_the_published_vectors_hold(data: bytes, digest: str) -> None:
    assert plain_ripemd160(data).hex() == digest
    assert ripemd160(data).hex() == digest


def test_it_works_where_openssl_does_not_know_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(name: str, *_: object, **__: object) -> object:
        raise ValueError(f"unsupported hash type {name}")

    monkeypatch.setattr(hashlib, "new", refuse)
    assert ripemd160(b"abc").hex() == dict(PUBLISHED)[b"abc"]


@given(st.binary(max_size=300))
def test_both_ways_agree_where_openssl_knows_it(data: bytes) -> None:
    try:
        expected = hashlib.new("ripemd160", data, usedforsecurity=False).digest()
    except ValueError:
        pytest.skip("OpenSSL here has no RIPEMD-160")
    assert plain_ripemd160(data) == expected
