"""Announcements in a registry: their form, their signature, and their end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import PeerError
from anp.identity.dids import LocalIdentity, did_key
from anp.identity.keys import PrivateKey
from anp.identity.resolver import KeyResolver
from anp.sidecar.discovery.announcement import (
    MAX_CAPABILITIES,
    MAX_LIFETIME,
    announce,
    read_announcement,
    verify,
)
from negotiation.need import Capability
from tests.clauses import clause

NOW = 1_000_000.0


def identity() -> LocalIdentity:
    key = PrivateKey.generate()
    return LocalIdentity(did_key(key.public_bytes), key)


def made(**changed: Any) -> dict[str, Any]:
    capability = Capability("weather.now", "", {"type": "object"}, {"type": "object"})
    found = announce(
        identity(),
        url="wss://one.example/",
        name="the one",
        version="1.0",
        capabilities=[capability],
        now=NOW,
        lifetime=3_600,
    )
    return {**found, **changed}


@clause("ENV-25", "A2A-20")
async def test_an_announcement_is_read_and_its_signature_is_right() -> None:
    found = read_announcement(made(), now=NOW)
    await verify(found, KeyResolver())
    assert (found.url, found.name) == ("wss://one.example/", "the one")
    assert found.names("weather.now")
    assert found.names("Now")
    assert not found.names("later")
    assert not found.names("")


@clause("ENV-25")
@pytest.mark.parametrize(
    "changed",
    [
        {"url": "wss://evil.example/"},
        {"capabilities": {}},
        {"expires": int(NOW) + 3_601},
        {"more": 1},
        {"signature": ""},
        {"signature": "#"},
        {"key": identity().private_key.public_key.multibase},
        {"key": 1},
    ],
)
async def test_whatever_is_altered_is_found(changed: dict[str, Any]) -> None:
    found = read_announcement(made(**changed), now=NOW)
    with pytest.raises(PeerError):
        await verify(found, KeyResolver())


@clause("ENV-25")
@pytest.mark.parametrize(
    "changed",
    [
        {"did": "nobody"},
        {"did": 1},
        {"url": "ftp://one.example/"},
        {"url": "wss://me:secret@one.example/"},
        {"name": "x" * 65},
        {"name": "a\x1b[2J"},
        {"version": "1" * 65},
        {"issued": int(NOW) + 301},
        {"issued": True},
        {"expires": int(NOW) + MAX_LIFETIME + 1},
        {"capabilities": {"a": "0"}},
        {"capabilities": {"": "0" * 64}},
        {"capabilities": {f"a{n}": "0" * 64 for n in range(MAX_CAPABILITIES + 1)}},
        {"more": "x" * 70_000},
    ],
)
def test_a_bad_form_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(PeerError):
        read_announcement(made(**changed), now=NOW)


@clause("ENV-25")
def test_one_that_has_expired_counts_no_more() -> None:
    announcement = made()
    read_announcement(announcement, now=NOW + 3_599)
    with pytest.raises(PeerError, match="has expired"):
        read_announcement(announcement, now=NOW + 3_600)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(JSON, st.sampled_from([*made()]))
def test_anything_is_read_or_refused(value: Any, name: str) -> None:
    for one in (value, made(**{name: value})):
        try:
            read_announcement(one, now=NOW)
        except PeerError:
            continue
