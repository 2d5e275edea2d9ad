"""The owner's entries: what is written is read, and what is unfit is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ConfigError
from anp.sidecar.consensus.entries import (
    MAX_ENTRY,
    ConsensusEntry,
    entry_file_name,
    read_entry,
    render_entry,
)

ENTRY = ConsensusEntry(
    uri="https://protocols.example/weather/1.0",
    version="1.0",
    hash="ab" * 32,
    summary="Wetter für morgen",
    bundle="weather.json",
    published=False,
)


def test_an_entry_is_read_as_it_was_written() -> None:
    assert read_entry(render_entry(ENTRY), "here") == ENTRY
    plain = ConsensusEntry(uri="urn:x:y", version="2", hash="0" * 64)
    assert read_entry(render_entry(plain), "here") == plain


def test_no_part_of_a_uri_becomes_a_file_name() -> None:
    name = entry_file_name("https://a/../../etc/passwd")
    assert name.removesuffix(".protocol.json").isalnum()
    assert name != entry_file_name("https://a/")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"uri": "no uri"}, "cannot name"),
        ({"uri": 1}, "are texts"),
        ({"sha256": "AB" * 32}, "sha256"),
        ({"bundle": "../weather.json"}, "bundle"),
        ({"bundle": "/etc/x.json"}, "bundle"),
        ({"published": 1}, "published"),
        ({"version": 2}, "version 1"),
        ({"version": True}, "version 1"),
        ({"format": "other"}, "anpd-consensus"),
        ({"more": 1}, "unknown"),
    ],
)
def test_what_is_unfit_is_named_with_its_file(
    change: dict[str, Any], named: str
) -> None:
    value = json.loads(render_entry(ENTRY)) | change
    with pytest.raises(ConfigError, match=named) as caught:
        read_entry(json.dumps(value).encode(), "my.protocol.json")
    assert str(caught.value).startswith("my.protocol.json: ")


def test_a_file_over_the_limit_is_refused() -> None:
    with pytest.raises(ConfigError):
        read_entry(b" " * (MAX_ENTRY + 1), "here")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_entry(data, "here")
    except ConfigError:
        return
