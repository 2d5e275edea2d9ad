"""The bytes of a bundle: one agreed protocol in one JSON file. Pure.

Writing is deterministic, and only the very bytes that writing gives are read: whatever
else stands in a file was not written by `anpd protocols export`, or was damaged since.
The checksum shows damage, not who wrote it; nothing here is trusted (docs/bundles.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anp.errors import AnpError
from negotiation.document.reader import read_document
from negotiation.document.shape import Document, document_hash
from negotiation.errors import DocumentError, JsonError
from negotiation.need import Capability, Need, Role, Schema, schema_hash
from negotiation.strict_json import Json, canonical_json, parse_json

FORMAT: Final = "anpd-bundle"
VERSION: Final = 1
"Version of the format; raised when a field changes its meaning."

MAX_BUNDLE: Final = 2 * 1024 * 1024
"Largest bundle, in bytes."

MAX_SOURCE: Final = 64 * 1024
"Largest source of a half, in bytes of UTF-8; no worker takes a larger one."

MAX_CAPABILITIES: Final = 64
"Most capabilities of one half."

ORIGINS: Final = ("rules", "model", "imported", "hand-written")
"Possible authors of a half, as named by the daemon that exported it."

_LATEST: Final = 1e11
"Seconds since 1970 that no time of ours reaches."

_BUNDLE: Final = frozenset(
    {"format", "version", "document", "need", "halves", "provenance", "sha256"}
)
_DOCUMENT: Final = frozenset({"text", "sha256", "request_schema", "response_schema"})
_NEED: Final = frozenset({"requirement", "input_schema", "output_schema"})
_HALF: Final = frozenset(
    {"role", "origin", "source", "sha256", "capabilities", "tests"}
)
_CAPABILITY: Final = frozenset({"name", "sha256", "input_schema", "output_schema"})
_PROVENANCE: Final = frozenset({"created", "did"})


class BundleError(AnpError):
    """A bundle is refused; the text says in one line what does not fit."""


@dataclass(frozen=True, slots=True)
class BundledCapability:
    """A capability that a provider half calls."""

    name: str
    "Full name, `attachment.tool`."

    input_schema: Schema
    "Schema of its arguments."

    output_schema: Schema
    "Schema of its result."

    updates: Schema | None = None
    "Schema of each value that it gives before its result; None when it gives none."

    @property
    def schema_hash(self) -> str:
        """Hash of its schemas, as a stored half names it."""
        return schema_hash(
            Capability(
                self.name,
                "",
                self.input_schema,
                self.output_schema,
                updates=self.updates,
            )
        )


@dataclass(frozen=True, slots=True)
class BundledHalf:
    """One half, with what was found about it where it was exported."""

    role: Role

    source: str
    "Python source text."

    origin: str
    "Its author, as the exporting daemon says; an import does not believe it."

    capabilities: tuple[BundledCapability, ...] = ()
    "Capabilities that a provider half may call."

    tests: Mapping[str, Any] = field(default_factory=dict)
    "Findings, test cases and their results: the `tests` of the agreement."


@dataclass(frozen=True, slots=True)
class Bundle:
    """One agreed protocol, ready to be taken elsewhere."""

    text: str
    "The document, byte for byte."

    need: Need | None
    "The need it was settled for, or None; a provider never learned it."

    halves: tuple[BundledHalf, ...]
    "One or both."

    created: float
    "Time at which the newest half was made, in seconds since 1970."

    did: str | None = None
    "DID of the exporting daemon, if it is to be told; nothing proves it."

    @property
    def hash(self) -> str:
        """The document's hash (ANP-85)."""
        return document_hash(self.text)

    def half(self, role: Role) -> BundledHalf | None:
        """Return the half of a role, or None."""
        return next((half for half in self.halves if half.role is role), None)

    def with_source(self, role: Role, source: str) -> Bundle:
        """Return the bundle with another text for one half."""
        halves = tuple(
            replace(half, source=source) if half.role is role else half
            for half in self.halves
        )
        return replace(self, halves=halves)


def render_bundle(bundle: Bundle) -> bytes:
    """Return the bytes of `bundle`; the same for the same content.

    Raises:
        BundleError: It would be refused when read, for its size for example.
    """
    try:
        document = read_document(bundle.text)
        data = _sealed(_content(bundle, document))
    except (DocumentError, JsonError) as exc:
        raise BundleError(f"this cannot be a bundle: {exc}") from None
    read_bundle(data)
    return data


def read_bundle(data: bytes) -> Bundle:
    """Return the bundle in `data`.

    Raises:
        BundleError: It is none, is too large, or a byte of it is off.
    """
    try:
        value = parse_json(data, max_size=MAX_BUNDLE)
    except JsonError as exc:
        raise BundleError(f"no bundle: {exc}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise BundleError("no bundle: `anpd protocols export` writes them")
    version = value.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise BundleError(
            f"a bundle of version {version!r:.20}; this anpd reads version {VERSION}"
        )
    content = {name: part for name, part in value.items() if name != "sha256"}
    try:
        fits = value.get("sha256") == _checksum(content)
        same = fits and _sealed(content) == data
    except JsonError as exc:
        raise BundleError(f"no bundle: {exc}") from None
    if not fits:
        raise BundleError(
            "the bundle's checksum is wrong: it is damaged or edited; export it again"
        )
    if not same:
        raise BundleError(
            "the bundle is not written as export writes it: its blanks, line ends or "
            "order of fields were changed; export it again"
        )
    return _bundle(_object(value, _BUNDLE, "the bundle"))


def _checksum(content: Json) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()


def _sealed(content: dict[str, Json]) -> bytes:
    sealed = {**content, "sha256": _checksum(content)}
    # Lines for people and for diffs; sorted, so that the same content gives the same.
    text = json.dumps(
        sealed, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False
    )
    return f"{text}\n".encode()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Writing.


def _content(bundle: Bundle, document: Document) -> dict[str, Json]:
    need = bundle.need
    return {
        "format": FORMAT,
        "version": VERSION,
        "document": {
            "text": bundle.text,
            "sha256": bundle.hash,
            "request_schema": document.request_schema,
            "response_schema": document.response_schema,
        },
        "need": None
        if need is None
        else {
            "requirement": need.requirement,
            "input_schema": need.input_schema,
            "output_schema": need.output_schema,
        },
        "halves": [
            {
                "role": half.role.value,
                "origin": half.origin,
                "source": half.source,
                "sha256": _hash(half.source),
                "capabilities": [
                    {
                        "name": one.name,
                        "sha256": one.schema_hash,
                        "input_schema": one.input_schema,
                        "output_schema": one.output_schema,
                        **({} if one.updates is None else {"updates": one.updates}),
                    }
                    for one in sorted(half.capabilities, key=lambda one: one.name)
                ],
                "tests": dict(half.tests),
            }
            for half in sorted(bundle.halves, key=lambda half: half.role)
        ],
        "provenance": {"created": bundle.created, "did": bundle.did},
    }


# Reading; each function takes what is at one place, and says where that is.


def _bundle(value: dict[str, Any]) -> Bundle:
    text = _document(_object(value["document"], _DOCUMENT, "document"))
    halves = value["halves"]
    if not isinstance(halves, list) or not halves:
        raise BundleError("halves: there is none")
    found = tuple(
        _half(_object(half, _HALF, f"halves[{number}]"), f"halves[{number}]")
        for number, half in enumerate(halves)
    )
    roles = [half.role for half in found]
    if roles != sorted(set(roles)):
        raise BundleError("halves: each role stands there once, provider first")
    need = value["need"]
    origin = _object(value["provenance"], _PROVENANCE, "provenance")
    return Bundle(
        text=text,
        need=None if need is None else _need(_object(need, _NEED, "need")),
        halves=found,
        created=_seconds(origin["created"], "provenance.created"),
        did=None if origin["did"] is None else _did(origin["did"], "provenance.did"),
    )


def _document(value: dict[str, Any]) -> str:
    text = _text(value["text"], "document.text")
    if value["sha256"] != document_hash(text):
        raise BundleError("document.sha256 is not the hash of document.text")
    try:
        document = read_document(text)
    except DocumentError as exc:
        raise BundleError(f"the document cannot be used: {exc}") from None
    for name, schema in (
        ("request_schema", document.request_schema),
        ("response_schema", document.response_schema),
    ):
        # As text: `True == 1` and `1 == 1.0` are no equal schemas.
        if canonical_json(value[name]) != canonical_json(schema):
            raise BundleError(f"document.{name} is not what the document says")
    return text


def _need(value: dict[str, Any]) -> Need:
    schemas = value["input_schema"], value["output_schema"]
    if not all(one is None or isinstance(one, dict | bool) for one in schemas):
        raise BundleError("need: a schema is an object, true, false or null")
    requirement = _text(value["requirement"], "need.requirement")
    if not requirement.strip():
        raise BundleError("need.requirement is empty")
    return Need(requirement, *schemas)


def _half(value: dict[str, Any], where: str) -> BundledHalf:
    if value["role"] not in list(Role):
        raise BundleError(f"{where}.role: requester or provider")
    role = Role(value["role"])
    source = _text(value["source"], f"{where}.source")
    if len(source.encode("utf-8")) > MAX_SOURCE:
        raise BundleError(f"{where}.source: over {MAX_SOURCE} bytes")
    if value["sha256"] != _hash(source):
        raise BundleError(f"{where}.sha256 is not the hash of its source")
    if value["origin"] not in ORIGINS:
        raise BundleError(f"{where}.origin: one of {', '.join(ORIGINS)}")
    if not isinstance(value["tests"], dict):
        raise BundleError(f"{where}.tests: an object")
    capabilities = _capabilities(value["capabilities"], f"{where}.capabilities")
    if role is Role.REQUESTER and capabilities:
        raise BundleError(f"{where}.capabilities: a requester half calls none")
    return BundledHalf(role, source, value["origin"], capabilities, value["tests"])


def _capabilities(value: object, where: str) -> tuple[BundledCapability, ...]:
    if not isinstance(value, list) or len(value) > MAX_CAPABILITIES:
        raise BundleError(f"{where}: a list of at most {MAX_CAPABILITIES}")
    found = []
    for number, one in enumerate(value):
        streams = isinstance(one, dict) and "updates" in one
        known = _CAPABILITY | {"updates"} if streams else _CAPABILITY
        fields = _object(one, known, f"{where}[{number}]")
        schemas = [fields["input_schema"], fields["output_schema"]]
        schemas += [fields["updates"]] if streams else []
        if not all(isinstance(schema, dict | bool) for schema in schemas):
            raise BundleError(f"{where}[{number}]: a schema is an object or a boolean")
        name = _text(fields["name"], f"{where}[{number}].name")
        capability = BundledCapability(name, *schemas)
        if fields["sha256"] != capability.schema_hash:
            raise BundleError(f"{where}[{number}].sha256 is not that of its schemas")
        found.append(capability)
    names = [one.name for one in found]
    if names != sorted(set(names)):
        raise BundleError(f"{where}: each name stands there once, in order")
    return tuple(found)


def _object(value: object, names: frozenset[str], where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        raise BundleError(f"{where}: an object with {', '.join(sorted(names))}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BundleError(f"{where}: a text")
    return value


def _did(value: object, where: str) -> str:
    text = _text(value, where)
    if not text.startswith("did:") or len(text) > 1024 or not text.isprintable():
        raise BundleError(f"{where}: a DID or null")
    return text


def _seconds(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BundleError(f"{where}: seconds since 1970")
    if not 0 <= value < _LATEST:
        raise BundleError(f"{where}: seconds since 1970")
    # Not turned into a float: what is read has to give the same bytes again.
    return value
