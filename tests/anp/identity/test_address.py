"""Addresses as people write them."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import CallError, ErrorKind
from anp.identity.address import (
    MAX_URL,
    PeerAddress,
    is_encrypted,
    is_loopback,
    normalise_url,
    parse_peer,
    url_of_did_all,
)
from anp.identity.dids import did_all, did_key
from anp.identity.keys import PrivateKey

# Fixed, so that every test process collects tests of the same names.
PUBLIC = PrivateKey(ec.derive_private_key(7, ec.SECP256R1())).public_bytes
DID = did_key(PUBLIC)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("shop", PeerAddress(name="shop")),
        ("  shop-2.eu_west\n", PeerAddress(name="shop-2.eu_west")),
        (DID, PeerAddress(did=DID)),
        ("did:wba:example.com:shop", PeerAddress(did="did:wba:example.com:shop")),
        ("ws://127.0.0.1:8765/", PeerAddress(url="ws://127.0.0.1:8765/")),
        ("ws://127.0.0.1:8765", PeerAddress(url="ws://127.0.0.1:8765/")),
        ("wss://A.Example/x", PeerAddress(url="wss://a.example/x")),
        (f"ws://h:1/#{DID}", PeerAddress(url="ws://h:1/", did=DID)),
        (f"https://h#{DID}", PeerAddress(url="wss://h/", did=DID)),
    ],
)
def test_each_way_to_give_an_address_is_read(text: str, address: PeerAddress) -> None:
    assert parse_peer(text) == address


@pytest.mark.parametrize(
    ("url", "normalised"),
    [
        ("http://h", "ws://h/"),
        ("https://h:443/", "wss://h/"),
        ("ws://h:80/", "ws://h/"),
        ("ws://h:443/", "ws://h:443/"),
        ("WSS://H.Example:8443/Path?q=1", "wss://h.example:8443/Path?q=1"),
        ("ws://[::1]:8765/", "ws://[::1]:8765/"),
        ("ws://[0:0:0:0:0:0:0:1]/", "ws://[::1]/"),
        ("ws://[2001:DB8::0:1]:80", "ws://[2001:db8::1]/"),
        ("ws://[::ffff:127.0.0.1]:9", "ws://127.0.0.1:9/"),
        ("ws://my_pod.ns.svc.:1/", "ws://my_pod.ns.svc.:1/"),
    ],
)
def test_a_url_has_one_form(url: str, normalised: str) -> None:
    assert normalise_url(url) == normalised
    assert normalise_url(normalise_url(url)) == normalise_url(url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-shop",
        "shop keeper",
        "example.com:8765",
        "[::1]:8765",
        "ftp://h/",
        "file:///etc/passwd",
        "://h",
        "ws://",
        "ws:///path",
        "ws://:80/",
        "ws://h:port/",
        "ws://h:0/",
        "ws://h:65536/",
        "ws://user@h/",
        "ws://user:secret@h/",
        "ws://::1/",
        "ws://[::1/",
        "ws://[nonsense]/",
        "ws://[127.0.0.1]/",
        "ws://[fe80::1%eth0]/",
        "ws://127.1/",
        "ws://2130706433/",
        "ws://0x7f.0.0.0x1/",
        "ws://127.0.0.01/",
        "ws://münchen.example/",
        "ws://h ost/",
        "ws://h\tost/",
        "ws://a..b/",
        "ws://-a/",
        "ws://h/#nonsense",
        "ws://h/#",
        "ws://h/#did:key:z x",
        "did:",
        "did:Key:z",
        "did:web:a/b",
    ],
)
def test_what_cannot_be_used_says_how_to_give_an_address(text: str) -> None:
    with pytest.raises(CallError, match="give a name from the address book") as caught:
        parse_peer(text)
    assert caught.value.kind is ErrorKind.USAGE
    assert "\n" not in caught.value.detail
    assert "ws://HOST:PORT/#did:key:z" in caught.value.detail


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(CallError) as caught:
        parse_peer("ws://user:secret@h/")
    assert "secret" not in caught.value.detail


def test_the_length_of_names_and_urls_is_limited() -> None:
    assert parse_peer("n" * 64) == PeerAddress(name="n" * 64)
    with pytest.raises(CallError):
        parse_peer("n" * 65)
    start = "ws://h/"
    longest = start + "p" * (MAX_URL - len(start))
    assert normalise_url(longest) == longest
    with pytest.raises(CallError, match="2048 characters, not 2049"):
        normalise_url(longest + "p")


def parse_or_none(text: str) -> PeerAddress | None:
    try:
        return parse_peer(text)
    except CallError as exc:
        kind = exc.kind
    assert kind is ErrorKind.USAGE
    return None


@given(st.text(max_size=60) | st.text("ws:/[]@#%?.:0129aé \t\n", max_size=40))
def test_any_text_is_an_address_or_a_usage_error(text: str) -> None:
    for candidate in (text, f"ws://{text}", f"ws://h/#{text}", f"did:{text}"):
        address = parse_or_none(candidate)
        if address is None:
            continue
        assert address.name or address.did or address.url
        if address.url is not None:
            assert normalise_url(address.url) == address.url
            assert urlsplit(address.url).hostname


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("ws://localhost/", True),
        ("ws://localhost.:1/", True),
        ("ws://127.0.0.1:1/", True),
        ("ws://127.9.9.9/", True),
        ("ws://[::1]/", True),
        ("ws://[::ffff:127.0.0.1]/", True),
        ("ws://[::ffff:10.0.0.1]/", False),
        ("ws://0.0.0.0/", False),
        ("ws://10.0.0.1/", False),
        ("ws://[::]/", False),
        ("ws://localhost.example/", False),
        ("ws://127.0.0.1.example/", False),
        ("ws://example.com/", False),
    ],
)
def test_only_what_surely_stays_here_is_loopback(url: str, loopback: bool) -> None:
    assert is_loopback(normalise_url(url)) is loopback


def test_only_wss_is_encrypted() -> None:
    assert is_encrypted(normalise_url("https://h/"))
    assert not is_encrypted(normalise_url("http://h/"))


@pytest.mark.parametrize(
    ("hostport", "url"),
    [
        ("a.example", "wss://a.example/"),
        ("a.example:443", "wss://a.example/"),
        ("a.example:8765", "ws://a.example:8765/"),
        ("[::1]:8765", "ws://[::1]:8765/"),
        ("[::1]", "wss://[::1]/"),
    ],
)
def test_a_did_all_with_an_address_says_where_to_dial(hostport: str, url: str) -> None:
    assert url_of_did_all(did_all(PUBLIC, hostport)) == url


def test_other_dids_do_not_say_where_to_dial() -> None:
    assert url_of_did_all(did_all(PUBLIC)) is None
    assert url_of_did_all(DID) is None
