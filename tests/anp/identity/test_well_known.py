"""The `/.well-known/anp` document."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, PeerError
from anp.identity.dids import did_key
from anp.identity.keys import PrivateKey
from anp.identity.well_known import (
    MAX_WELL_KNOWN,
    WellKnown,
    make_well_known,
    parse_well_known,
    well_known_url,
)

DID = did_key(PrivateKey.generate().public_bytes)
GOOD = {"did": DID, "url": "ws://127.0.0.1:8765/", "version": "0.1.0"}


def render(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_what_is_made_is_read_again() -> None:
    document = WellKnown(DID, "wss://a.example/", "0.1.0")
    assert parse_well_known(make_well_known(document)) == document
    assert json.loads(make_well_known(document)).keys() == GOOD.keys()


def test_further_fields_are_ignored() -> None:
    assert parse_well_known(render(more=[{"deep": [1]}])) == WellKnown(**GOOD)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b"{" * 50_000,
        render(did=None),
        render(did=1),
        render(did="did:key:z a"),
        render(did="d" * 5000),
        render(url=["ws://h/"]),
        render(url="file:///etc/passwd"),
        render(url="ws://user:pw@h/"),
        render(url=f"ws://h/#{DID}"),
        render(version=1),
        render(version="v" * 65),
        render(version="1\n2"),
        b'{"did": "%s", "did": "did:web:b", "url": "ws://h/", "version": "1"}'
        % DID.encode(),
    ],
)
def test_a_document_that_does_not_fit_is_the_peers_error(data: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse_well_known(data)
    assert caught.value.code is ErrorCode.DID_NOT_FOUND
    assert len(caught.value.detail) <= 300


def test_the_sizes_are_limited() -> None:
    padding = MAX_WELL_KNOWN - len(render(more=""))
    assert parse_well_known(render(more="x" * padding)).did == DID
    with pytest.raises(PeerError):
        parse_well_known(render(more="x" * (padding + 1)))
    assert parse_well_known(render(version="v" * 64)).version == "v" * 64


@given(st.binary(max_size=100))
def test_any_bytes_are_a_document_or_an_error(data: bytes) -> None:
    with pytest.raises(PeerError):
        parse_well_known(data)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("ws://h:1/some/path", "http://h:1/.well-known/anp"),
        ("wss://h/", "https://h/.well-known/anp"),
        ("ws://[::1]:1/", "http://[::1]:1/.well-known/anp"),
    ],
)
def test_the_document_is_on_the_same_host_and_port(url: str, where: str) -> None:
    assert well_known_url(url) == where
