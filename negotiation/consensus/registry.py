"""The consensus protocols that this agent knows, by URI. Pure.

A consensus protocol is a document known under a URI of its own; every version has
another URI (ANP-91). Its code comes from us: written by hand, taken from a bundle of
the owner's, agreed on before, or generated from the document by our mind; never from a
peer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from negotiation.document.shape import MAX_DOCUMENT_SIZE, document_hash
from negotiation.errors import NegotiationError

__all__ = [
    "MAX_CANDIDATES",
    "MAX_PROTOCOLS",
    "MAX_URI",
    "CodeKind",
    "ConsensusProtocol",
    "Registry",
    "RegistryError",
    "check_uri",
]

MAX_URI: Final = 512
"Longest URI of a protocol, in characters."

MAX_PROTOCOLS: Final = 256
"Most protocols in one registry."

MAX_CANDIDATES: Final = 8
"Most URIs that one hello offers; a hello has 64 KiB, and one is enough as a rule."

MAX_SUMMARY: Final = 500
"Longest summary, in characters."

# RFC 3986: a scheme, and only characters that may stand in a URI; a fragment names a
# part of something, and a protocol is a whole.
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]{1,31}:[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class RegistryError(NegotiationError):
    """A consensus protocol cannot be taken in; the text says why in one line."""


class CodeKind(StrEnum):
    """Where the code that speaks a protocol comes from."""

    WRITTEN = "written"
    "Code of the daemon's own, with a wider interface than a module (DESIGN.md)."

    BUNDLE = "bundle"
    "The halves of a bundle that the owner put here."

    AGREED = "agreed"
    "The halves of an agreement that the owner published under a URI."

    GENERATED = "generated"
    "Our mind writes them from the document."


@dataclass(frozen=True, slots=True)
class ConsensusProtocol:
    """One version of one protocol."""

    uri: str
    "Its name on the wire, of this version alone (ANP-91)."

    version: str
    "For people, such as `1.0`."

    text: str
    "The document, byte for byte."

    code: CodeKind
    "Where the code that speaks it comes from."

    summary: str = ""
    "One line for people."

    published: bool = False
    "Whether it stands in our list (ANP-95) once it can be served."

    generic: bool = False
    "Whether it carries any capability, chosen by name, rather than one exchange."

    @property
    def hash(self) -> str:
        """SHA-256 of the document, as agreements name it (ANP-85, ANP-88)."""
        return document_hash(self.text)


class Registry:
    """What is known, by URI; later entries never replace earlier ones silently."""

    def __init__(
        self,
        protocols: Iterable[ConsensusProtocol] = (),
        *,
        order: Sequence[str] = (),
    ) -> None:
        """Make a registry.

        Args:
            order: URIs in the owner's order; those that are not named come after, as
                they were added, and generic ones last.

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
        """Take a protocol in; the very same one again changes nothing.

        Raises:
            RegistryError: The URI, version or text is unfit, there are too many, or
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
        """Forget a protocol and return it, or None if it was not known."""
        return self._known.pop(uri, None)

    def get(self, uri: str) -> ConsensusProtocol | None:
        """Return the protocol that a URI names, or None."""
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
        """Return the URIs of candidates as the owner prefers them (ANP-92).

        Those that the owner did not name keep their order; generic ones come last.

        Args:
            candidates: URIs, each with whether it is generic.
        """
        ordered = sorted(dict.fromkeys(candidates), key=lambda one: self._rank(*one))
        return [uri for uri, _ in ordered]

    def offered(self, uris: Sequence[str]) -> list[ConsensusProtocol]:
        """Return what is known of a peer's candidates, in the peer's order (ANP-93).

        The first of them that can be served is to be selected: the preference is the
        requester's (ANP-Q19). Only the first `MAX_CANDIDATES` are looked at.
        """
        known = (self._known.get(uri) for uri in uris[:MAX_CANDIDATES])
        return [one for one in known if one is not None]

    def _rank(self, uri: str, generic: bool) -> tuple[int, bool]:
        place = self._order.get(uri, len(self._order))
        # One exchange made for a task is better than one made for all, unless the owner
        # says otherwise.
        return place, generic and uri not in self._order


def check_uri(uri: str) -> str:
    """Return `uri` if it can be the name of a protocol.

    Raises:
        RegistryError: It is too long, or no URI without a fragment.
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
