"""URLs that the owner gave: what they have to look like, and which are one place.

Pure. What a document or a card says about further URLs is held against these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from anp.identity.address import is_loopback_host

MAX_URL = 2048
"Longest URL, in characters."

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_URL_BYTES = bytes(range(0x21, 0x7F))
"The bytes that stand in a URL as they are."

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https URL in its one form."""

    scheme: str
    "`http` or `https`."

    host: str
    "Name in lower case, or an address without brackets."

    port: int
    "TCP port."

    path: str
    "Begins with a slash."

    query: str
    "Without question mark; may be empty."

    @property
    def origin(self) -> str:
        """Scheme, host and port, as they are compared and shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def text(self) -> str:
        """The whole URL."""
        return f"{self.origin}{self.path}{f'?{self.query}' if self.query else ''}"


def parse_url(text: str) -> Url:
    """Read a URL.

    Raises:
        ValueError: It is none, or one that cannot be used; says what to write.
    """
    if len(text) > MAX_URL:
        raise ValueError(f"a URL may have {MAX_URL} characters, not {len(text)}")
    # `urlsplit` drops tabs and newlines silently, and takes a backslash as it is.
    if _PRINTABLE.fullmatch(text) is None or "\\" in text:
        raise ValueError("it holds characters that no URL has")
    parts = urlsplit(text)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("write a URL such as https://host/path")
    if "@" in parts.netloc:
        # Not repeated: what stands before the @ is a password.
        raise ValueError(
            "no user name or password belongs in a URL; give them with basic"
        )
    if parts.fragment:
        raise ValueError("a URL of a service has no #fragment")
    try:
        port = parts.port
    except ValueError:
        raise ValueError("its port is no number up to 65535") from None
    if port == 0:
        raise ValueError("its port is 0")
    return Url(
        parts.scheme,
        parts.hostname.lower().rstrip("."),
        port or _PORTS[parts.scheme],
        parts.path or "/",
        parts.query,
    )


def join_url(base: Url, text: str) -> Url:
    """Return what `text` means when it stands in something read from `base`.

    Raises:
        ValueError: It is no URL.
    """
    return parse_url(urljoin(base.text, _NOT_ASCII.sub(lambda m: quote(m[0]), text)))


def header_url(value: bytes) -> str:
    """Return the URL in a header, with `%` and digits for each byte that no URL has.

    Many services write a path or a name there as it is. The service gets the same bytes
    back, whatever its character set.
    """
    return quote(value.strip(), safe=_URL_BYTES)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    return host.endswith(".localhost") or is_loopback_host(host)
