"""`did:web` and `did:wba`: how they are written, and where their documents are.

Pure. One name has one spelling here: host in lower case, port without leading zeros
and never 443, upper-case percent codes, and none where none is needed. Otherwise a
peer that the owner blocked would come back with another capital letter.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from anp.errors import ErrorCode, PeerError
from anp.identity.dids import MAX_DID, is_web_did

MAX_SEGMENTS = 16
"Path segments of one DID."

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SEGMENT = re.compile(r"(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+")
_WBA_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")
_PORT = re.compile(r"[0-9]{1,5}")
_BOUND = re.compile(r"(?P<profile>e1|k1)_(?P<thumbprint>[A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Binding:
    """The key that the last path segment of a `did:wba` names."""

    profile: str
    "`e1`: an Ed25519 key; `k1`: a secp256k1 key."

    thumbprint: str
    "Of that key, by RFC 7638; 43 characters."


@dataclass(frozen=True, slots=True)
class WebDid:
    """One DID of a web method, in parts."""

    method: str
    "`wba` or `web`."

    host: str
    "DNS name in lower case."

    port: int | None
    "TCP port, or None for 443."

    path: tuple[str, ...]
    "Path segments, percent-coded where needed; empty for the whole host."

    @property
    def text(self) -> str:
        """The DID in its one spelling."""
        port = "" if self.port is None else f"%3A{self.port}"
        return ":".join((f"did:{self.method}:{self.host}{port}", *self.path))

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    @property
    def document_path(self) -> str:
        """Path of the document on its server."""
        folder = "/".join(self.path) if self.path else ".well-known"
        return f"/{folder}/did.json"

    @property
    def document_url(self) -> str:
        """Where the document is."""
        return f"https://{self.authority}{self.document_path}"

    @property
    def binding(self) -> Binding | None:
        """To which key the path is bound; None if to none."""
        if self.method != "wba" or not self.path:
            return None
        match = _BOUND.fullmatch(self.path[-1])
        return Binding(match["profile"], match["thumbprint"]) if match else None


def parse_web_did(did: str) -> WebDid:
    """Read a `did:wba` or `did:web` in any spelling.

    Raises:
        PeerError: DID_NOT_FOUND, it is none, or names an address instead of a host.
    """
    parts = did.split(":")
    if len(did) > MAX_DID or not is_web_did(did) or len(parts) < 3:
        raise _not_found(did, "is not a did:wba or did:web")
    method = parts[1]
    host, port = _authority(did, parts[2])
    if len(parts) - 3 > MAX_SEGMENTS:
        raise _not_found(did, f"has more than {MAX_SEGMENTS} path segments")
    path = tuple(_segment(did, method, part) for part in parts[3:])
    found = WebDid(method, host, port, path)
    last = path[-1] if path else ""
    # A broken binding must not pass for none; "e1_" alone is nobody's name.
    if method == "wba" and last.startswith(("e1_", "k1_")) and found.binding is None:
        raise _not_found(did, "has a key segment that is not 43 characters long")
    return found


def _authority(did: str, text: str) -> tuple[str, int | None]:
    host, mark, port_text = re.sub("%3a", "%3A", text).partition("%3A")
    host = host.lower()
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _not_found(did, "has no host name")
    if labels[-1].isdigit() or labels[-1].startswith("0x") or _is_address(host):
        raise _not_found(did, "names an address, not a host")
    if not mark:
        return host, None
    port = int(port_text) if _PORT.fullmatch(port_text) else 0
    if not 0 < port < 65_536:
        raise _not_found(did, "has no port after %3A")
    return host, None if port == 443 else port


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _segment(did: str, method: str, text: str) -> str:
    grammar = _WBA_SEGMENT if method == "wba" else _SEGMENT
    if grammar.fullmatch(text) is None:
        raise _not_found(did, f"has a path segment that did:{method} does not know")
    data = unquote_to_bytes(text)
    # A slash or a dot segment would name a document of somebody else on that server.
    if data in (b".", b"..") or any(
        byte < 0x21 or byte == 0x7F or byte in b"/\\?#%:@" for byte in data
    ):
        raise _not_found(did, "has a path segment that leads elsewhere")
    try:
        return quote(data.decode("utf-8"), safe="-._")
    except UnicodeDecodeError:
        raise _not_found(did, "has a path segment that is not UTF-8") from None


def _not_found(did: str, reason: str) -> PeerError:
    return PeerError(ErrorCode.DID_NOT_FOUND, f"{did[:200]!r} {reason}")
