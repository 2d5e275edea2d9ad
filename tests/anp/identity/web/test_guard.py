"""The guard decides on URLs and addresses that are fetched for a peer."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.identity.web.guard import (
    MAX_URL,
    FetchError,
    FetchPolicy,
    choose_addresses,
    parse_fetch_url,
    redirect_url,
    why_not,
)

PUBLIC = FetchPolicy()
LOOPBACK = FetchPolicy(
    allow=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")),
    allow_http_loopback=True,
)

HOSTILE_URLS = [
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript:alert(1)",
    "//example.com/",
    "example.com",
    "",
    "https://",
    "https:///path",
    "https://user@example.com/",
    "https://user:secret@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1\\@example.com/",
    "https://example.com\\@127.0.0.1/",
    "https://exam ple.com/",
    "https://example.com/a b",
    "https://example.com/\n",
    "https://exam\tple.com/",
    "https://example.com/\r\nHost: other",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:-1/",
    "https://example.com:http/",
    "https://example.com:/",
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://1.2.3.4.5/",
    "https://256.1.1.1/",
    "https://[::1/",
    "https://[::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[1.2.3.4]/",
    "https://[v1.x]/",
    "https://-example.com/",
    "https://example..com/",
    "https://.example.com/",
    f"https://{'a' * 64}.com/",
    f"https://{'a.' * 127}com/",
    "https://exämple.com/",
    "https://１２７.0.0.1/",
    "https://①②⑦.0.0.1/",
    f"https://example.com/{'a' * MAX_URL}",
]

HOSTILE_ADDRESSES = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "2001:db8::1",
    "100::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fe80::1%eth0",
]


@pytest.mark.parametrize("url", HOSTILE_URLS)
def test_a_hostile_url_is_not_even_asked_for(url: str) -> None:
    with pytest.raises(FetchError) as caught:
        parse_fetch_url(url, PUBLIC)
    assert caught.value.refused


@pytest.mark.parametrize("address", HOSTILE_ADDRESSES)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(FetchError) as caught:
        choose_addresses([address], PUBLIC)
    assert caught.value.refused


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"]
)
def test_a_public_address_is_taken(address: str) -> None:
    assert choose_addresses([address], PUBLIC) == [address]


def test_one_forbidden_address_refuses_the_host() -> None:
    with pytest.raises(FetchError):
        choose_addresses(["93.184.215.14", "10.0.0.1"], PUBLIC)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_the_owner_may_allow_a_network(address: str) -> None:
    assert why_not(ipaddress.ip_address(address), LOOPBACK) is None


@pytest.mark.parametrize(
    "network", ["169.254.0.0/16", "0.0.0.0/0", "169.254.169.254/31"]
)
def test_a_network_does_not_allow_the_metadata_service_in_it(network: str) -> None:
    policy = FetchPolicy(allow=(ipaddress.ip_network(network),))
    assert why_not(ipaddress.ip_address("169.254.169.254"), policy) is not None


def test_the_metadata_service_is_allowed_by_its_own_address() -> None:
    policy = FetchPolicy(allow=(ipaddress.ip_network("169.254.169.254/32"),))
    assert why_not(ipaddress.ip_address("169.254.169.254"), policy) is None


@pytest.mark.parametrize("url", ["http://localhost/", "http://127.0.0.1:80/x"])
def test_plain_http_is_for_loopback_only_where_allowed(url: str) -> None:
    assert parse_fetch_url(url, LOOPBACK).scheme == "http"
    with pytest.raises(FetchError):
        parse_fetch_url(url, PUBLIC)
    with pytest.raises(FetchError):
        parse_fetch_url("http://localhost.example.com/", LOOPBACK)


def test_a_url_has_one_form() -> None:
    url = parse_fetch_url("https://EXAMPLE.com.:443?q=1#part", PUBLIC)
    assert url.text == "https://example.com/?q=1"


@pytest.mark.parametrize(
    "location",
    [
        "http://example.com/",
        "http://127.0.0.1/",
        "https://127.1/",
        "file:///etc/passwd",
        "https://user@example.com/",
        "//[::1",
        "https://example.com/ x",
        "a" * (MAX_URL + 1),
    ],
)
def test_a_redirect_is_checked_like_the_first_url(location: str) -> None:
    start = parse_fetch_url("https://example.com/did.json", PUBLIC)
    with pytest.raises(FetchError):
        redirect_url(start, location, PUBLIC, same_host=False)


def test_a_redirect_may_have_to_stay_on_its_host() -> None:
    start = parse_fetch_url("https://example.com/did.json", PUBLIC)
    there = redirect_url(start, "/other.json", PUBLIC, same_host=True)
    assert there.text == "https://example.com/other.json"
    away = "https://www.example.com/did.json"
    assert redirect_url(start, away, PUBLIC, same_host=False).text == away
    for location in (away, "https://example.com:8443/"):
        with pytest.raises(FetchError):
            redirect_url(start, location, PUBLIC, same_host=True)


@given(st.text(max_size=80) | st.text(max_size=60).map(lambda text: f"https://{text}"))
def test_any_text_is_a_url_or_a_refusal(text: str) -> None:
    try:
        url = parse_fetch_url(text, PUBLIC)
    except FetchError:
        return
    assert url.scheme == "https"
    assert parse_fetch_url(url.text, PUBLIC) == url


@given(st.ip_addresses())
def test_no_address_that_is_private_passes(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if why_not(address, PUBLIC) is None:
        assert address.is_global or isinstance(address, ipaddress.IPv6Address)
        assert not address.is_loopback
        assert not address.is_link_local
        assert not address.is_multicast
        assert not address.is_unspecified
