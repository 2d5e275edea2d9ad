"""Keeps fetches for a peer away from inner URLs and addresses (DESIGN.md, Trust).

Pure. Whoever can make us fetch a URL can otherwise use us to reach what only this
machine can: services on loopback, the neighbours in a private network, and the metadata
services of clouds, which hand out credentials to any plain GET.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from anp.errors import AnpError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_URL = 2048
"Longest URL fetched, in characters."

MAX_ADDRESSES = 4
"Addresses of one host that are tried."

METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)
"Where clouds hand out credentials; some of these look like public addresses."

# Addresses that carry an IPv4 address, which is where a packet ends up.
_NAT64 = (
    ipaddress.IPv6Network("64:ff9b::/96"),
    ipaddress.IPv6Network("64:ff9b:1::/48"),
)
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# "127.1", "0x7f.1", "017700000001": hosts that resolvers read as numbers.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DEFAULT_PORT = {"http": 80, "https": 443}


class FetchError(AnpError):
    """A URL was not fetched; `reason` may go to logs and to the owner."""

    def __init__(
        self, reason: str, *, refused: bool = False, gone: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        # Whether we did not even ask: the URL or its address is forbidden.
        self.refused = refused
        # Whether the server said that there is nothing: 404 or 410.
        self.gone = gone


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """The owner's exceptions from https to public addresses."""

    allow: tuple[Network, ...] = ()
    "Networks that are not public and may be fetched from all the same."

    allow_http_loopback: bool = False
    "Plain http to loopback, where `allow` has it."

    ca_file: str | None = None
    "File with certificates (PEM) trusted besides the system's."

    max_redirects: int = 3
    "Redirects followed; each is checked like the first URL. 0 follows none."


@dataclass(frozen=True, slots=True)
class FetchUrl:
    """A URL that may be asked for, if its host's addresses pass too."""

    scheme: str
    "`https` or `http`."

    host: str
    "Name in lower case without final dot, or an address without brackets."

    port: int
    "TCP port."

    target: str
    "Path and query; begins with a slash."

    address: Address | None
    "The address, if the URL has one instead of a name."

    @property
    def authority(self) -> str:
        """Host and port as in a `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = self.port == _DEFAULT_PORT[self.scheme]
        return host if default else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        """The URL in its one form."""
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_fetch_url(url: str, policy: FetchPolicy) -> FetchUrl:
    """Read a URL that somebody else named.

    Raises:
        FetchError: `refused`, it is not one that may be fetched.
    """
    if len(url) > MAX_URL:
        raise _refused(f"a URL may have {MAX_URL} characters, not {len(url)}")
    # `urlsplit` drops tabs and newlines silently, and takes a backslash as it is.
    if _PRINTABLE.fullmatch(url) is None or "\\" in url:
        raise _refused(f"{url[:200]!r} holds characters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise _refused(f"{url[:200]!r} is not a URL: {exc}") from None
    if parts.scheme not in _DEFAULT_PORT:
        raise _refused(f"{url[:200]!r} is not an https URL")
    if "@" in parts.netloc:
        raise _refused("a URL with a user name or password is not fetched")
    if port == 0 or parts.netloc.endswith(":"):
        raise _refused(f"{url[:200]!r} has no usable port")
    host, address = _host(parts, url)
    if parts.scheme == "http":
        _check_http(host, address, policy)
    query = f"?{parts.query}" if parts.query else ""
    return FetchUrl(
        scheme=parts.scheme,
        host=host,
        port=_DEFAULT_PORT[parts.scheme] if port is None else port,
        target=f"{parts.path or '/'}{query}",
        address=address,
    )


def redirect_url(
    current: FetchUrl, location: str, policy: FetchPolicy, *, same_host: bool
) -> FetchUrl:
    """Return where a redirect leads, checked like a first URL.

    Raises:
        FetchError: `refused`; also when `same_host` and it leads elsewhere.
    """
    if len(location) > MAX_URL or _PRINTABLE.fullmatch(location) is None:
        raise _refused("a redirect to what is no URL")
    try:
        joined = urljoin(current.text, location)
    except ValueError as exc:
        raise _refused(f"a redirect to what is no URL: {exc}") from None
    target = parse_fetch_url(joined, policy)
    if current.scheme == "https" and target.scheme != "https":
        raise _refused(f"a redirect from https to {target.text[:200]!r}")
    if same_host and (target.host, target.port) != (current.host, current.port):
        raise _refused(f"a redirect to another host, {target.authority[:200]!r}")
    return target


def choose_addresses(found: Sequence[str], policy: FetchPolicy) -> list[str]:
    """Return the addresses of a host to connect to, in the order they came.

    One forbidden address refuses the host: a name that has a public and a private one
    is a name that tries.

    Raises:
        FetchError: `refused` for a forbidden address, otherwise there is none.
    """
    if not found:
        raise FetchError("the host has no address")
    chosen: list[str] = []
    for text in found:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise _refused(f"{text[:60]!r} is no address") from None
        reason = why_not(address, policy)
        if reason is not None:
            raise _refused(
                f"{address} is {reason}; fetch.allow names networks that are yours"
            )
        if address.compressed not in chosen:
            chosen.append(address.compressed)
    return chosen[:MAX_ADDRESSES]


def why_not(address: Address, policy: FetchPolicy) -> str | None:
    """Return what forbids an address, or None.

    A metadata address is allowed only by its own entry (`/32`, `/128`).
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return "an address with a zone"
        inside = _carried(address)
        if inside is not None:
            return why_not(inside, policy)
    allowed = any(
        network.version == address.version and address in network
        for network in policy.allow
    )
    if address in METADATA:
        alone = any(
            network.num_addresses == 1 and network.network_address == address
            for network in policy.allow
        )
        return None if alone else "the metadata service of a cloud"
    if address.is_unspecified or address.is_multicast:
        return "no address of one machine"
    if allowed:
        return None
    if address.is_loopback:
        return "on this machine"
    if address.is_link_local:
        return "link-local"
    if isinstance(address, ipaddress.IPv6Address) and address in _SITE_LOCAL:
        return "not public"
    if not address.is_global or address.is_reserved:
        return "not public"
    return None


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    small = int(address) & 0xFFFFFFFF
    if any(address in network for network in _NAT64):
        return ipaddress.IPv4Address(small)
    if address in _COMPATIBLE and small > 1:
        return ipaddress.IPv4Address(small)
    return None


def _host(parts: SplitResult, url: str) -> tuple[str, Address | None]:
    host = (parts.hostname or "").removesuffix(".")
    if "[" in parts.netloc or ":" in host:
        try:
            six = ipaddress.IPv6Address(host)
        except ValueError:
            raise _refused(f"{url[:200]!r} has no IPv6 address in its brackets") from (
                None
            )
        if six.scope_id is not None:
            raise _refused("an address with a zone is not fetched")
        return six.compressed, six
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused(f"{url[:200]!r} has no host name")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            four = ipaddress.IPv4Address(host)
        except ValueError:
            raise _refused(f"{url[:200]!r} has no address of four numbers") from None
        return four.compressed, four
    return host, None


def _check_http(host: str, address: Address | None, policy: FetchPolicy) -> None:
    is_loopback = host == "localhost" if address is None else address.is_loopback
    if not (policy.allow_http_loopback and is_loopback):
        raise _refused("only https URLs are fetched")


def _refused(reason: str) -> FetchError:
    return FetchError(reason, refused=True)
