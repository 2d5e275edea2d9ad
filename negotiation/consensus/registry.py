"""The consensus protocols that this agent knows, by URI. Pure.

A consensus protocol is a document with a URI of its own; every version has another URI
(ANP-91). Its code comes from our side: written by hand, imported in a bundle of the
owner, taken from an agreement, or generated from the document by our mind. It never
comes from a peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from negotiation.document.shape import MAX_DOCUMENT_SIZE, document_hash
from negotiation.errors import NegotiationError
from negotiation.late_patterns import late_pattern

MAX_URI: Final = 512
"Longest URI of a protocol, in characters."

MAX_PROTOCOLS: Final = 256
"Largest number of protocols in one registry."

MAX_CANDIDATES: Final = 8
"Largest number of URIs in one hello; it has 64 KiB, and usually one is enough."

MAX_SUMMARY: Final = 500
"Longest summary, in characters."

# RFC 3986: a scheme, and only characters that a URI may have. Fragments are excluded,
# as they name a part of something.
_URI: Final = late_pattern(r"[a-z][a-z0-9+.-]{1,31}:[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+")
_VERSION: Final = late_pattern(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class RegistryError(NegotiationError):
    """A consensus protocol cannot be added; the message gives the reason."""


class CodeKind(StrEnum):
    """The origin of the code that speaks a protocol."""

    WRITTEN = "written"
    "Code that is part of the daemon, with a wider interface than a module (DESIGN.md)."

    BUNDLE = "bundle"
    "The halves of a bundle that the owner imported."

    AGREED = "agreed"
    "The halves of an agreement that the owner published under a URI."

    GENERATED = "generated"
    "Halves that our mind writes from the document."


@dataclass(frozen=True, slots=True)
class ConsensusProtocol:
    """One version of one protocol."""

    uri: str
    "The name of this version on the wire (ANP-91)."

    version: str
    "The version as shown to people, such as `1.0`."

    text: str
    "The document, byte for byte."

    code: CodeKind
    summary: str = ""

    published: bool = False
    "True when our list (ANP-95) shows it, once it can be served."

    generic: bool = False
    "True when it calls any capability by name, rather than describing one exchange."

    @property
    def hash(self) -> str:
        """SHA-256 of the document, as in agreements (ANP-85, ANP-88)."""
        return _hash_of(self.text)


# A call by URI asks for the hash, and the text is one of few.
_hash_of = lru_cache(maxsize=64)(document_hash)


class Registry:
    """The known protocols by URI; an entry is never replaced silently."""

    def __init__(
        self, protocols: Iterable[ConsensusProtocol] = (), *, order: Sequence[str] = ()
    ) -> None:
        """Make a registry.

        Args:
            order: URIs in the owner's order; other protocols follow as they were added,
                generic ones last.

        Raises:
            RegistryError: See `add`.
        """
        self._known: dict[str, ConsensusProtocol] = {}
        self._order = {uri: place for place, uri in reversed([*enumerate(order)])}
        for protocol in protocols:
            self.add(protocol)

    def __len__(self) -> int:
        return len(self._known)

    def add(self, protocol: ConsensusProtocol) -> None:
        """Add a protocol; adding an identical one again changes nothing.

        Raises:
            RegistryError: The URI, version or text is invalid, there are too many, or
                the URI already names another text or version (ANP-91).
        """
        check_uri(protocol.uri)
        if not _VERSION.fullmatch(protocol.version):
            raise RegistryError(
                f"the version of {protocol.uri} has to be 1 to 64 of A-Z a-z 0-9 ._+-"
            )
        if len(protocol.summary) > MAX_SUMMARY or not protocol.summary.isprintable():
            raise RegistryError(
                f"the summary of {protocol.uri}: one line of at most {MAX_SUMMARY} "
                "characters"
            )
        _check_text(protocol)
        known = self._known.get(protocol.uri)
        if known is not None and (known.text, known.version) != (
            protocol.text,
            protocol.version,
        ):
            raise RegistryError(
                f"{protocol.uri} already names version {known.version} with hash "
                f"{known.hash[:12]}; every version needs a URI of its own"
            )
        if known is None and len(self._known) >= MAX_PROTOCOLS:
            raise RegistryError(f"more than {MAX_PROTOCOLS} consensus protocols")
        self._known[protocol.uri] = protocol

    def remove(self, uri: str) -> ConsensusProtocol | None:
        """Remove a protocol and return it, or None if it is unknown."""
        return self._known.pop(uri, None)

    def get(self, uri: str) -> ConsensusProtocol | None:
        """Return the protocol with a URI, or None."""
        return self._known.get(uri)

    def of_hash(self, digest: str) -> list[ConsensusProtocol]:
        """Return every protocol whose document has this hash."""
        return [one for one in self.all() if one.hash == digest]

    def all(self) -> list[ConsensusProtocol]:
        """Return every protocol in the owner's order."""
        return sorted(
            self._known.values(), key=lambda one: self._rank(one.uri, one.generic)
        )

    def in_order(self, candidates: Iterable[tuple[str, bool]]) -> list[str]:
        """Return the URIs of candidates in the owner's order of preference (ANP-92).

        Others keep their given order; generic ones come last.

        Args:
            candidates: URIs, each with true if the protocol is generic.
        """
        ordered = sorted(dict.fromkeys(candidates), key=lambda one: self._rank(*one))
        return [uri for uri, _ in ordered]

    def offered(self, uris: Sequence[str]) -> list[ConsensusProtocol]:
        """Return the known ones of a peer's candidates, in the peer's order (ANP-93).

        The first of them that can be served should be selected: the requester's
        preference counts (ANP-Q19). Only the first `MAX_CANDIDATES` are considered.
        """
        known = (self._known.get(uri) for uri in uris[:MAX_CANDIDATES])
        return [one for one in known if one is not None]

    def _rank(self, uri: str, generic: bool) -> tuple[int, bool]:
        place = self._order.get(uri, len(self._order))
        # An exchange made for one need is better than a generic protocol, unless the
        # owner ordered otherwise.
        return place, generic and uri not in self._order


def check_uri(uri: str) -> str:
    """Return `uri` if it is a valid name of a protocol.

    Raises:
        RegistryError: It is too long, or not a URI without a fragment.
    """
    if len(uri) > MAX_URI or not _URI.fullmatch(uri):
        raise RegistryError(
            f"{uri[:80]!r} cannot name a protocol: a URI of at most {MAX_URI} "
            "characters, with a scheme and without `#`, such as "
            "https://example.com/protocols/weather/1.0"
        )
    return uri


def _check_text(protocol: ConsensusProtocol) -> None:
    try:
        size = len(protocol.text.encode("utf-8"))
    except UnicodeEncodeError:
        raise RegistryError(
            f"the document of {protocol.uri} holds half of a character"
        ) from None
    if not 0 < size <= MAX_DOCUMENT_SIZE:
        raise RegistryError(
            f"the document of {protocol.uri} has {size} bytes; 1 to "
            f"{MAX_DOCUMENT_SIZE} are taken"
        )
