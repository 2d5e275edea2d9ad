"""The `metaProtocol` object of both hellos (ANP-76 to ANP-87).

It settles versions, capabilities, and the sizes of messages (WIRE row 34).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from anp.errors import ErrorCode, PeerError

OTHERS_MAX_TEXT: Final = 1024 * 1024
"Bytes of a text frame that every peer takes: the default of the WebSocket library."

_OVERHEAD: Final = 4096
"Bytes of a text frame beside the encrypted data, generously."

_HEADER: Final = 1
"Bytes of a frame in front of the protocol data (ANP-11)."


def text_size(plaintext: int) -> int:
    """Return how long the text frame for so many bytes of plaintext can get."""
    return 4 * -(-plaintext // 3) + _OVERHEAD


def plaintext_size(text: int) -> int:
    """Return how much plaintext fits a text frame of so many bytes for certain."""
    return (text - _OVERHEAD) // 4 * 3


MAX_PAYLOAD: Final = plaintext_size(OTHERS_MAX_TEXT) - _HEADER
"""Protocol data that fits a frame every peer takes: 765 KiB. With 768 KiB the text
would be over a MiB, and the peer would close the link with 1009."""

LEAST_MAX_MESSAGE: Final = 64 * 1024
"Least plaintext of a frame that a peer may agree to take; less is no offer."


META_PROTOCOL_VERSION = "1.0"
"The version of a hello that names none (ANP-78, ANP-Q15)."

META_PROTOCOL_VERSIONS = (META_PROTOCOL_VERSION,)
"Every version of the meta-protocol we speak (ANP-80)."

Capability = Literal[
    "naturalLanguageProtocol",
    "verificationProtocol",
    "naturalLanguageNegotiation",
    "testCasesNegotiation",
    "fixErrorNegotiation",
]
"An optional capability that has a meaning (ANP-79)."

CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
"All of them, in the order of the seed."

_HASH = re.compile(r"[0-9a-fA-F]{64}")
_HASH_PREFIX = "sha256:"


EXTENSION_MAX_MESSAGE = "maxMessage"
"Name of our extension for frames above the limit of others (WIRE row 34)."

EXTENSION_LIST = "list"
"Name of our extension for the list of protocols, asked over the verified link."

EXTENSION_RESUME = "resume"
"Name of our extension for keys that outlive their link (docs/decisions)."

EXTENSION_WORK = "work"
"Extension: signals about calls, and answers that are fetched after a lost link."

_KEY_ID = re.compile(r"[0-9a-f]{16}")
_MAX_NUMBER = 2**48


@dataclass(frozen=True, slots=True)
class LostKey:
    """A key that was not resumed: was anything accepted under it? (extension `resume`).

    An outer `response` that refuses a frame is not authenticated, so it is no proof
    that the frame was not acted upon. The hellos are signed: the requester names the
    key and the first counter in question, and the provider answers, for good.
    """

    key_id: str
    "The `secretKeyId`."

    counter: int
    "The first counter that the requester wants to know of."

    accepted: bool | None = None
    """In an answer: a frame with this or a later counter was accepted. If not, none
    ever will be."""

    def to_json(self) -> dict[str, Any]:
        """Return the object to send."""
        value: dict[str, Any] = {"secretKeyId": self.key_id, "counter": self.counter}
        if self.accepted is not None:
            value["accepted"] = self.accepted
        return value


@dataclass(frozen=True, slots=True)
class MetaProtocol:
    """One side of the meta-protocol, as its hello has it.

    The default is what a hello without `metaProtocol` means: version 1.0 with the
    basic capabilities only, and nothing agreed (ANP-77, ANP-Q16, WIRE row 23).
    """

    version: str = META_PROTOCOL_VERSION
    "Highest version spoken, or in an answer the version used (ANP-Q15)."

    supported_capabilities: tuple[str, ...] = ()
    "Optional capabilities, names of `CAPABILITIES` only."

    used_protocol_hash: str | None = None
    "SHA-256 of a document, 64 lower-case hex characters: offered or confirmed."

    candidate_protocols: tuple[str, ...] = ()
    "URIs of consensus protocols offered, best first."

    selected_protocol: str | None = None
    "In an answer, the URI confirmed."

    extensions: tuple[str, ...] = ()
    "Names of our own extensions; other implementations ignore them."

    max_message: int | None = None
    "Plaintext bytes of one frame the sender takes, with the extension `maxMessage`."

    lost_key: LostKey | None = None
    "A key the sender could not resume, or in an answer what became of it."

    remarks: tuple[str, ...] = field(default=(), compare=False)
    "Entries that were ignored while reading, for our log; without text of the peer."

    @classmethod
    def from_json(cls, value: Any) -> MetaProtocol:
        """Read a received `metaProtocol`; None means that the hello has none.

        null means absent, everywhere (WIRE row 22). Unknown fields and capability
        names are ignored (ANP-Q16), and so is a hash that is none (ANP-Q7).

        Raises:
            PeerError: A field has a wrong type.
        """
        if value is None:
            return cls()
        if not isinstance(value, dict):
            raise _wrong("metaProtocol is not an object")
        remarks: list[str] = []
        version = value.get("version")
        if version is None:
            version = META_PROTOCOL_VERSION
        elif not isinstance(version, str):
            raise _wrong("metaProtocol.version is not a string")
        capabilities = _strings(value, "supportedCapabilities")
        selected = value.get("selectedProtocol")
        if selected is not None and not (isinstance(selected, str) and selected):
            raise _wrong("metaProtocol.selectedProtocol is not a string with text")
        return cls(
            version=version,
            supported_capabilities=tuple(
                [n for n in CAPABILITIES if n in capabilities]
            ),
            used_protocol_hash=_read_hash(value, remarks),
            candidate_protocols=_strings(value, "candidateProtocols"),
            selected_protocol=selected,
            extensions=_read_extensions(value, remarks),
            max_message=_read_max_message(value, remarks),
            lost_key=_read_lost_key(value, remarks),
            remarks=tuple(remarks),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object to send; what is not there is left out (ANP-87).

        The alias `protocolHash` is never sent (ANP-Q1).
        """
        value: dict[str, Any] = {
            "version": self.version,
            "supportedCapabilities": list(self.supported_capabilities),
        }
        if self.used_protocol_hash is not None:
            value["usedProtocolHash"] = self.used_protocol_hash
        if self.candidate_protocols:
            value["candidateProtocols"] = list(self.candidate_protocols)
        if self.selected_protocol is not None:
            value["selectedProtocol"] = self.selected_protocol
        if self.extensions:
            value["extensions"] = list(self.extensions)
        if self.max_message is not None:
            value["maxMessage"] = self.max_message
        if self.lost_key is not None:
            value["lostKey"] = self.lost_key.to_json()
        return value

    def of_version(self, version: str) -> MetaProtocol:
        """Return the same of a version."""
        return self if version == self.version else replace(self, version=version)

    def common_capabilities(self, other: MetaProtocol) -> frozenset[str]:
        """Return the optional capabilities both sides listed (ANP-81)."""
        return frozenset(self.supported_capabilities) & frozenset(
            other.supported_capabilities
        )

    def common_extensions(self, other: MetaProtocol) -> frozenset[str]:
        """Return the extensions both sides listed; only these may be used."""
        return frozenset(self.extensions) & frozenset(other.extensions)

    def shares(self, extension: str, other: MetaProtocol) -> bool:
        """Say if both sides listed an extension."""
        return extension in self.extensions and extension in other.extensions

    def common_max_message(self, other: MetaProtocol) -> int | None:
        """Return the plaintext bytes of a frame that both take (WIRE row 34), or None.

        None: not both listed the extension `maxMessage`.
        """
        if not self.shares(EXTENSION_MAX_MESSAGE, other):
            return None
        if self.max_message is None or other.max_message is None:
            return None
        return min(self.max_message, other.max_message)

    def common_version(self, ours: Sequence[str] = META_PROTOCOL_VERSIONS) -> str:
        """Return the version to use with the sender of this offer (ANP-80, ANP-Q15).

        Raises:
            PeerError: `INVALID_ENCRYPTION_KEY`: there is none in common.
        """
        common = common_version(ours, self.version)
        if common is None:
            raise self._unspoken(ours)
        return common

    def check_answer(
        self, offer: MetaProtocol, ours: Sequence[str] = META_PROTOCOL_VERSIONS
    ) -> None:
        """Check an acceptor's answer against what was offered (ANP-Q15, ANP-Q19).

        Raises:
            PeerError: It confirms two things, or one that was not offered, or names a
                version that we do not speak or that is higher than the one offered.
        """
        # The answer names the version used, so here only an exact one will do.
        if self.version not in ours:
            raise self._unspoken(ours)
        if (read_version(self.version) or ()) > (read_version(offer.version) or ()):
            raise PeerError(
                ErrorCode.INVALID_ENCRYPTION_KEY,
                f"metaProtocol.version is {self.version[:40]!r}, "
                f"offered was {offer.version[:40]!r}",
            )
        if self.used_protocol_hash is not None and self.selected_protocol is not None:
            raise _wrong("the answer has usedProtocolHash and selectedProtocol")
        if self.used_protocol_hash not in (None, offer.used_protocol_hash):
            raise _wrong("the answer's usedProtocolHash was not offered")
        if self.selected_protocol not in (None, *offer.candidate_protocols):
            raise _wrong("the answer's selectedProtocol was not offered")

    def _unspoken(self, ours: Sequence[str]) -> PeerError:
        return PeerError(
            ErrorCode.INVALID_ENCRYPTION_KEY,
            f"metaProtocol.version is {self.version[:40]!r}, "
            f"we speak {', '.join(ours)}",
        )


def _wrong(detail: str) -> PeerError:
    return PeerError(ErrorCode.NOT_ALLOWED, detail)


def _strings(value: dict[str, Any], name: str) -> tuple[str, ...]:
    found = value.get(name)
    if found is None:
        return ()
    if isinstance(found, list):
        for one in found:
            if not isinstance(one, str) or not one:
                break
        else:
            return tuple(dict.fromkeys(found))
    raise _wrong(f"metaProtocol.{name} is not an array of strings with text")


def _read_extensions(value: dict[str, Any], remarks: list[str]) -> tuple[str, ...]:
    # The field is ours alone: what another implementation may mean by the same name
    # must not end the handshake with it.
    try:
        return _strings(value, "extensions")
    except PeerError as exc:
        remarks.append(f"ignored: {exc.detail}")
        return ()


def _read_max_message(value: dict[str, Any], remarks: list[str]) -> int | None:
    found = value.get(EXTENSION_MAX_MESSAGE)
    if found is None:
        return None
    if type(found) is not int or not LEAST_MAX_MESSAGE <= found < _MAX_NUMBER:
        # Below that not even the last words of a channel might fit.
        remarks.append("ignored: metaProtocol.maxMessage is not a number of bytes")
        return None
    return found


def _read_lost_key(value: dict[str, Any], remarks: list[str]) -> LostKey | None:
    found = value.get("lostKey")
    if found is None:
        return None
    if isinstance(found, dict):
        key_id, counter = found.get("secretKeyId"), found.get("counter")
        accepted = found.get("accepted")
        if (
            isinstance(key_id, str)
            and _KEY_ID.fullmatch(key_id)
            and type(counter) is int
            and 0 <= counter < _MAX_NUMBER
            and (accepted is None or isinstance(accepted, bool))
        ):
            return LostKey(key_id, counter, accepted)
    remarks.append("ignored: metaProtocol.lostKey is not one")
    return None


def _read_hash(value: dict[str, Any], remarks: list[str]) -> str | None:
    """Return the hash offered or confirmed, under either name (ANP-Q1)."""
    found: dict[str, str] = {}
    for name in ("usedProtocolHash", "protocolHash"):
        text = value.get(name)
        if text is None:
            continue
        # The SDK's code generator writes this prefix (WIRE row 24).
        bare = text.removeprefix(_HASH_PREFIX) if isinstance(text, str) else ""
        if _HASH.fullmatch(bare):
            found[name] = bare.lower()
        else:
            remarks.append(f"ignored: metaProtocol.{name} is not 64 hex characters")
    if len(set(found.values())) > 1:
        remarks.append("ignored: usedProtocolHash and protocolHash differ")
        return None
    return next(iter(found.values()), None)


# Each side names the highest version it speaks (ANP-80).
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


_LONGEST_VERSION = 19
"Characters of a version: two numbers and a point."


def read_version(text: str) -> tuple[int, int] | None:
    """Return major and minor number, or None for a text that is no version."""
    return _read_version(text) if len(text) <= _LONGEST_VERSION else None


@lru_cache(maxsize=64)
def _read_version(text: str) -> tuple[int, int] | None:
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def highest_version(versions: Sequence[str]) -> str:
    """Return the highest of our own versions; there has to be one."""
    return max(versions, key=_rank)


def common_version(ours: Sequence[str], theirs: str) -> str | None:
    """Return the highest version up to the peer's, or None (ANP-80, ANP-Q15).

    Args:
        ours: Every version we speak.
        theirs: The highest version the peer speaks. It can name only one and may speak
            ours, too, so one above ours is answered with the highest that we speak;
            the peer decides whether it goes on.
    """
    limit = read_version(theirs)
    if limit is None:
        return None
    return max((v for v in ours if _rank(v) <= limit), key=_rank, default=None)


def is_readable(ours: Sequence[str], theirs: str) -> bool:
    """Return whether a hello that is written in a message version can be read.

    Who writes a version also writes so that the lower minor versions of the same major
    version read it; another major version may mean other things by the same fields.
    """
    limit = read_version(theirs)
    return limit is not None and any(
        _rank(v)[0] == limit[0] and _rank(v) <= limit for v in ours
    )


@lru_cache(maxsize=64)
def _rank(version: str) -> tuple[int, int]:
    # What we speak is a constant of ours, so a malformed one is lower than all.
    return read_version(version) or (-1, -1)
