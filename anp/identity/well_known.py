"""The document `/.well-known/anp`: who listens at an address (DESIGN.md, Identity)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from anp.errors import CallError, ErrorCode, PeerError
from anp.identity.address import normalise_url
from anp.identity.dids import check_did
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

MAX_WELL_KNOWN = 64 * 1024
"Largest document read, in bytes; a real one has about 150."

PATH = "/.well-known/anp"
"Where the document is, on the host and port of the WebSocket."

_MAX_VERSION = 64
_PATH = re.compile(r"/[A-Za-z0-9._~/-]{1,200}")


@dataclass(frozen=True, slots=True)
class WellKnown:
    """A daemon's description of itself; nothing in it is proved yet."""

    did: str
    "The DID it shows itself with."

    url: str
    "Its WebSocket URL as it knows it, normalised."

    version: str
    "Version of the daemon."

    protocols: str | None = None
    "Path of the list of protocols it publishes, on the same host and port (ANP-95)."


def make_well_known(document: WellKnown) -> bytes:
    """Return the document's bytes, JSON."""
    fields = {"did": document.did, "url": document.url, "version": document.version}
    if document.protocols is not None:
        fields["protocols"] = document.protocols
    return json.dumps(fields).encode("ascii")


def parse_well_known(data: bytes) -> WellKnown:
    """Read the document; further fields are ignored.

    Raises:
        PeerError: DID_NOT_FOUND if it is too large, no JSON, or does not fit.
    """
    try:
        # Our fields are flat; the depth is for fields of later versions.
        value = parse_json(data, max_size=MAX_WELL_KNOWN, max_depth=8)
    except JsonError as exc:
        raise _unfit(str(exc)) from None
    if not isinstance(value, dict):
        raise _unfit("is not an object")
    did, url, version = (value.get(name) for name in ("did", "url", "version"))
    if not (isinstance(did, str) and isinstance(url, str) and isinstance(version, str)):
        raise _unfit("needs the texts did, url and version")
    if len(version) > _MAX_VERSION or not version.isprintable():
        raise _unfit(f"has a version of more than {_MAX_VERSION} characters")
    protocols = value.get("protocols")
    if not isinstance(protocols, str) or not _PATH.fullmatch(protocols):
        # It may be absent, and a later version may mean something else by it.
        protocols = None
    try:
        return WellKnown(check_did(did), normalise_url(url), version, protocols)
    except CallError:
        raise _unfit("has a url that is not a WebSocket URL") from None


def well_known_url(url: str) -> str:
    """Return where the document of the daemon at the WebSocket URL `url` is."""
    parts = urlsplit(normalise_url(url))
    scheme = "https" if parts.scheme == "wss" else "http"
    return f"{scheme}://{parts.netloc}{PATH}"


def _unfit(reason: str) -> PeerError:
    return PeerError(ErrorCode.DID_NOT_FOUND, f"{PATH} {reason}"[:300])
