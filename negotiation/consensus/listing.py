"""The list of consensus protocols that an agent publishes (ANP-95). Pure.

It is served as JSON on the port that peers connect to. It has the exposed capabilities
with their schemas and the hash of the document that the rules make of each, and for
each protocol URI, version, hash, summary and its capabilities. A peer's list is hostile
data: sizes, depth and counts are limited, and schemas are only measured here. Only the
documents are fetched, by hash, from the list's place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jsonic.exact_numbers import write_json
from negotiation.consensus.registry import (
    MAX_PROTOCOLS,
    MAX_SUMMARY,
    ConsensusProtocol,
    RegistryError,
    check_uri,
)
from negotiation.errors import JsonError, NegotiationError, SchemaError
from negotiation.need import Capability
from negotiation.schema.intake import check_limits
from negotiation.strict_json import Json, parse_json

FORMAT: Final = "anpd-protocols"
VERSION: Final = 1
"Version of the format; raised when a field changes its meaning."

MAX_LIST: Final = 1024 * 1024
"Largest list, in bytes; when we write one, further entries are left out."

MAX_CAPABILITIES: Final = 512
"Largest number of capabilities that one list describes."

MAX_DEPTH: Final = 40
"Deepest nesting of containers: those of a schema and of the list around it."

MAX_NAME: Final = 200
"Longest name of a capability, in characters."

MAX_DESCRIPTION: Final = 8 * 1024
"Longest description of a capability, in characters; longer ones are shortened."

LIST_REQUEST: Final = b'{"action": "listRequest"}'
"Asks for the list as this peer may use it, with the extension `list` (WIRE)."

MAX_REQUEST: Final = 1024
"Largest request for the list, in bytes."

_ANSWER: Final = b'{"action": "list", "list": %s}'
_HASH: Final = re.compile(r"[0-9a-f]{64}")


class ListingError(NegotiationError):
    """A list cannot be read; the message quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One protocol of a list."""

    uri: str

    version: str
    "The version as shown to people."

    hash: str
    "SHA-256 of its document, 64 lower-case hex characters."

    summary: str = ""

    capabilities: tuple[Capability, ...] = ()
    "The capabilities that the protocol can call."

    generic: bool = False
    "True when a request names the capability; else the protocol is made for these."


@dataclass(frozen=True, slots=True)
class ProtocolListing:
    """The protocols that one agent publishes."""

    protocols: tuple[Listed, ...] = field(default=())
    "The protocols in the order of that agent's owner."

    capabilities: tuple[Capability, ...] = ()
    "Every capability that the list describes."

    documents: Mapping[str, str] = field(default_factory=dict)
    "Name of a capability → hash of the document under which anybody may call it."

    def get(self, uri: str) -> Listed | None:
        """Return the protocol with a URI, or None."""
        return next((one for one in self.protocols if one.uri == uri), None)


def render_listing(
    protocols: Iterable[tuple[ConsensusProtocol, Sequence[Capability]]],
    documents: Sequence[tuple[Capability, str]] = (),
    *,
    max_size: int = MAX_LIST,
) -> bytes:
    """Return the list of the given protocols; equal content gives equal bytes.

    A capability that would make the list too large is left out, together with the
    protocols that could call nothing else.

    Args:
        protocols: Each with the capabilities that it can call, in the owner's order.
        documents: Each exposed capability, with the hash of its own document.
    """
    wanted = list(protocols)[:MAX_PROTOCOLS]
    described: dict[str, dict[str, Any]] = {}
    # The rest of the list is small, as its parts have limits of their own.
    room = max_size - sum(_entry_size(one, reached) for one, reached in wanted) - 1024
    hashes = {capability.name: digest for capability, digest in documents}
    published = [capability for capability, _ in documents]
    for reached in (published, *(reached for _, reached in wanted)):
        for capability in reached:
            if capability.name in described or len(described) >= MAX_CAPABILITIES:
                continue
            shown = _describe(capability)
            if shown and capability.name in hashes:
                shown["sha256"] = hashes[capability.name]
            size = len(_dump(shown)) + len(capability.name) + 16
            if shown and size <= room:
                described[capability.name] = shown
                room -= size
    entries = []
    for one, reached in wanted:
        names = [each.name for each in reached if each.name in described]
        if names or not reached:
            entries.append(
                {
                    "uri": one.uri,
                    "version": one.version,
                    "sha256": one.hash,
                    "summary": one.summary,
                    "generic": one.generic,
                    "capabilities": names,
                }
            )
    return _dump(
        {
            "format": FORMAT,
            "version": VERSION,
            "capabilities": described,
            "protocols": entries,
        }
    )


def read_listing(data: bytes) -> ProtocolListing:
    """Read the list of a peer.

    An invalid protocol or capability is left out. Unknown fields are ignored, so that
    the known parts of later versions can be read.

    Raises:
        ListingError: The list is too large, not JSON, or in another format.
    """
    try:
        value = parse_json(data, max_size=MAX_LIST, max_depth=MAX_DEPTH)
    except JsonError as exc:
        raise ListingError(f"the list of protocols: {exc}") from None
    return _read(value)


def _read(value: Json) -> ProtocolListing:
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ListingError("this is no list of protocols")
    version = value.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise ListingError("a list of protocols of another version")
    described, entries = value.get("capabilities"), value.get("protocols")
    if not isinstance(described, dict) or not isinstance(entries, list):
        raise ListingError("the list of protocols lacks its parts")
    if len(described) > MAX_CAPABILITIES or len(entries) > MAX_PROTOCOLS:
        raise ListingError("the list of protocols has too many entries")
    capabilities = {
        name: found
        for name, one in described.items()
        if (found := _capability(name, one)) is not None
    }
    first: dict[str, Listed] = {}
    for entry in entries:
        listed = _entry(entry, capabilities)
        if listed is not None:
            first.setdefault(listed.uri, listed)
    documents = {
        name: digest
        for name in capabilities
        if isinstance(digest := described[name].get("sha256"), str)
        and _HASH.fullmatch(digest)
    }
    return ProtocolListing(
        tuple(first.values()), tuple(capabilities.values()), documents
    )


def is_list_request(data: bytes) -> bool:
    """Return whether a meta message asks for the list."""
    try:
        value = parse_json(data, max_size=MAX_REQUEST)
    except JsonError:
        return False
    return isinstance(value, dict) and value.get("action") == "listRequest"


def render_list_answer(listing: bytes) -> bytes:
    """Return the meta message that answers with a list."""
    return _ANSWER % listing


def read_list_answer(data: bytes) -> ProtocolListing | None:
    """Read the list in a meta message; None is another message.

    Raises:
        ListingError: It is an answer whose list cannot be used.
    """
    room = MAX_LIST + len(_ANSWER)
    try:
        value = parse_json(data, max_size=room, max_depth=MAX_DEPTH + 1)
    except JsonError as exc:
        raise ListingError(f"the list of protocols: {exc}") from None
    if not isinstance(value, dict) or value.get("action") != "list":
        return None
    return _read(value.get("list"))


def _dump(value: Any) -> bytes:
    return write_json(value, sort_keys=True, allow_nan=False).encode("ascii")


def _entry_size(protocol: ConsensusProtocol, reached: Sequence[Capability]) -> int:
    names = sum(len(_dump(one.name)) + 2 for one in reached)
    # An escaped character takes at most twelve bytes.
    return 256 + len(protocol.uri) + 12 * len(protocol.summary) + names


def _describe(capability: Capability) -> dict[str, Any]:
    """Return a capability as a list shows it; empty when its schemas are too large."""
    if not 0 < len(capability.name) <= MAX_NAME:
        return {}
    try:
        check_limits(capability.input_schema)
        check_limits(capability.output_schema)
        check_limits({} if capability.updates is None else capability.updates)
    except SchemaError:
        return {}
    return {
        "description": capability.description[:MAX_DESCRIPTION],
        "input_schema": capability.input_schema,
        "output_schema": capability.output_schema,
        "read_only": capability.read_only,
        "idempotent": capability.idempotent,
        **({} if capability.updates is None else {"updates": capability.updates}),
    }


def _capability(name: str, value: object) -> Capability | None:
    if not isinstance(value, dict) or not 0 < len(name) <= MAX_NAME:
        return None
    description = value.get("description", "")
    schemas = value.get("input_schema"), value.get("output_schema")
    flags = value.get("read_only", False), value.get("idempotent", False)
    if not isinstance(description, str):
        return None
    if not all(isinstance(schema, dict | bool) for schema in schemas):
        return None
    updates = value.get("updates")
    if not isinstance(updates, dict | bool | None):
        return None
    # Only `true` counts: the hint decides if a call needs the capability's name.
    return Capability(
        name,
        description[:MAX_DESCRIPTION],
        schemas[0],  # type: ignore[arg-type]  # checked above
        schemas[1],  # type: ignore[arg-type]  # checked above
        read_only=flags[0] is True,
        idempotent=flags[1] is True,
        updates=updates,
    )


def _entry(value: object, capabilities: dict[str, Capability]) -> Listed | None:
    if not isinstance(value, dict):
        return None
    uri, version, digest, summary, names = (
        value.get(name)
        for name in ("uri", "version", "sha256", "summary", "capabilities")
    )
    if not (
        isinstance(uri, str)
        and isinstance(version, str)
        and isinstance(digest, str)
        and isinstance(names, list)
        and len(version) <= 64
        and version.isprintable()
        and _HASH.fullmatch(digest)
    ):
        return None
    try:
        check_uri(uri)
    except RegistryError:
        return None
    if not isinstance(summary, str) or not summary.isprintable():
        summary = ""
    reached = dict.fromkeys(
        name for name in names if isinstance(name, str) and name in capabilities
    )
    return Listed(
        uri,
        version,
        digest,
        summary[:MAX_SUMMARY],
        tuple(capabilities[name] for name in reached),
        generic=value.get("generic") is True,
    )
