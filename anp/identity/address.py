"""Addresses of peers as people and programs write them: name, DID, URL, or URL#DID."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from anp.errors import CallError, ErrorKind, PeerError
from anp.identity.dids import check_owned_did, did_method, is_web_did, split_did_all
from anp.identity.web_dids import parse_web_did

MAX_URL = 2048
"Longest URL accepted, in characters."

WAYS = (
    "give a name from the address book, a DID, a URL such as ws://HOST:PORT/, "
    "or both as one word, ws://HOST:PORT/#did:key:z…, which `anpd up` prints"
)
"The forms of an address; ends every message about one that cannot be used."

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*)(\.[a-z0-9_-]+)*\.?")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_DEFAULT_PORT = {"ws": 80, "wss": 443}
_WEBSOCKET = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """A peer as somebody wrote it; an entry of the address book has all it knows."""

    name: str | None = None
    "Name in the address book."

    did: str | None = None
    "The DID it has to prove."

    url: str | None = None
    "WebSocket URL, normalised."


def parse_peer(text: str) -> PeerAddress:
    """Read an address as people write it.

    Raises:
        CallError: USAGE, with the ways an address can be given.
    """
    text = text.strip()
    if text.startswith("did:"):
        return PeerAddress(did=_given_did(text))
    if "://" in text:
        bare, mark, fragment = text.partition("#")
        did = _given_did(fragment) if mark else None
        return PeerAddress(did=did, url=normalise_url(bare))
    if _NAME.fullmatch(text):
        return PeerAddress(name=text)
    raise _usage(f"{text[:200]!r} is not an address of a peer")


def normalise_url(url: str) -> str:
    """Return a WebSocket URL in its one form: `http` is `ws`, `https` is `wss`, lower
    case host, no default port, a path of at least `/`.

    Raises:
        CallError: USAGE for anything that cannot be dialled, or holds a password.
    """
    if len(url) > MAX_URL:
        raise _usage(f"a URL may have {MAX_URL} characters, not {len(url)}")
    # `urlsplit` drops tabs and newlines silently, so they are refused before it.
    if _PRINTABLE.fullmatch(url) is None:
        raise _usage(f"{url[:200]!r} holds blanks or characters outside ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise _usage(f"{url[:200]!r} is not a URL: {exc}") from None
    scheme = _WEBSOCKET.get(parts.scheme)
    if scheme is None:
        raise _usage(f"{url[:200]!r} is not a ws, wss, http or https URL")
    if "@" in parts.netloc:
        raise _usage("a URL with a user name or password is not taken")
    if parts.fragment or port == 0:
        raise _usage(f"{url[:200]!r} cannot be dialled")
    host = _host(parts, url)
    suffix = "" if port is None or port == _DEFAULT_PORT[scheme] else f":{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{scheme}://{host}{suffix}{parts.path or '/'}{query}"


def is_name(text: str) -> bool:
    """Say whether a text can be a name in the address book."""
    return _NAME.fullmatch(text) is not None


def is_encrypted(url: str) -> bool:
    """Say whether a normalised URL is `wss`."""
    return urlsplit(url).scheme == "wss"


def is_loopback(url: str) -> bool:
    """Say whether a normalised URL surely stays on this machine.

    Only `localhost` and literal addresses do; what another name means is up to a DNS
    server.
    """
    host = urlsplit(url).hostname or ""
    return host.rstrip(".") == "localhost" or is_loopback_host(host)


def is_loopback_host(host: str) -> bool:
    """Say whether a host is `localhost` or a literal address of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url_of_did_all(did: str) -> str | None:
    """Return where `did:all:ADDRESS@host:port` says it can be reached, or None.

    Not in the seed: we take `wss` without a port or with 443, else `ws`. Who answers
    there has to prove the DID, so the way need not be trusted.
    """
    if did_method(did) != "all":
        return None
    _, hostport = split_did_all(did)
    if hostport is None:
        return None
    has_port = re.search(r":[0-9]+\Z", hostport.rpartition("]")[2]) is not None
    secure = not has_port or hostport.endswith(":443")
    return normalise_url(f"{'wss' if secure else 'ws'}://{hostport}/")


def known_did(did: str) -> str:
    """Return a DID in its one spelling, which is the one that its owner proves.

    Raises:
        PeerError: nobody can prove it to us: it is mistyped, or of an unknown method.
    """
    return parse_web_did(did).text if is_web_did(did) else check_owned_did(did)


def _given_did(did: str) -> str:
    try:
        return known_did(did)
    except PeerError as exc:
        raise _usage(exc.detail) from None


def _host(parts: SplitResult, url: str) -> str:
    host = parts.hostname or ""
    if "[" in parts.netloc:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise _usage(f"{url[:200]!r} has no IPv6 address in its brackets") from None
        if address.scope_id is not None:
            raise _usage(f"{url[:200]!r}: an address with a zone is not taken")
        # An IPv4 address in IPv6 clothes is the same host, so it has the same pins.
        mapped = address.ipv4_mapped
        return mapped.compressed if mapped else f"[{address.compressed}]"
    if _HOST.fullmatch(host) is None:
        raise _usage(f"{url[:200]!r} has no host; IPv6 addresses stand in brackets")
    # "127.1" and "0x7f.1" mean different hosts to different resolvers.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", host.rstrip(".").rpartition(".")[2]):
        try:
            return ipaddress.IPv4Address(host).compressed
        except ValueError:
            raise _usage(f"{url[:200]!r} has no IPv4 address of four numbers") from None
    return host


def _usage(reason: str) -> CallError:
    return CallError(ErrorKind.USAGE, f"{reason}; {WAYS}")
