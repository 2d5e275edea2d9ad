"""Entries of the owner's consensus protocols, and their files. Pure.

One file `NAME.protocol.json` for each URI, in the folder of `consensus.directory`. It
names the document by its hash; the text and the code come from a bundle beside it, from
an agreement in the store, or from the URI itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from anp.errors import ConfigError
from negotiation.consensus.registry import RegistryError, check_uri
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

FORMAT: Final = "anpd-consensus"
VERSION: Final = 1
"Version of the format; raised when a field changes its meaning."

SUFFIX: Final = ".protocol.json"
"Suffix of the files of entries."

MAX_ENTRY: Final = 16 * 1024
"Largest file, in bytes."

_FIELDS: Final = {
    "format",
    "version",
    "uri",
    "protocol_version",
    "sha256",
    "summary",
    "bundle",
    "published",
}
_NEEDED: Final = {"format", "version", "uri", "protocol_version", "sha256"}
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_BUNDLE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,120}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusEntry:
    """One protocol that the owner put here."""

    uri: str
    "Its name, of this version alone (ANP-91)."

    version: str
    "For people."

    hash: str
    "SHA-256 of the document: pins what the URI, the bundle or the store may give."

    summary: str = ""
    "One line for people."

    bundle: str | None = None
    "File name of a bundle in the same folder."

    published: bool = True
    "True when it stands in our list (ANP-95)."


def entry_file_name(uri: str) -> str:
    """Return where the entry of a URI is written; no text of others names a file."""
    return f"{hashlib.sha256(uri.encode()).hexdigest()[:24]}{SUFFIX}"


def render_entry(entry: ConsensusEntry) -> bytes:
    """Return the file's bytes."""
    value: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "uri": entry.uri,
        "protocol_version": entry.version,
        "sha256": entry.hash,
        "summary": entry.summary,
        "published": entry.published,
    }
    if entry.bundle is not None:
        value["bundle"] = entry.bundle
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()


def read_entry(data: bytes, where: str) -> ConsensusEntry:
    """Read a file.

    Args:
        where: Its name in an error.

    Raises:
        ConfigError: It says something unfit; the text names the field.
    """
    try:
        value = parse_json(data, max_size=MAX_ENTRY, max_depth=4)
    except JsonError as exc:
        raise ConfigError(f"{where}: {exc}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ConfigError(f'{where}: an object with "format": "{FORMAT}"')
    if value.get("version") != VERSION or isinstance(value["version"], bool):
        raise ConfigError(f"{where}: this anpd reads version {VERSION}")
    missing = sorted(_NEEDED - value.keys())
    unknown = sorted(value.keys() - _FIELDS)
    if missing or unknown:
        raise ConfigError(f"{where}: missing fields {missing}, unknown {unknown}")
    uri, version = value["uri"], value["protocol_version"]
    summary, bundle = value.get("summary", ""), value.get("bundle")
    if not all(isinstance(one, str) for one in (uri, version, summary)):
        raise ConfigError(f"{where}: uri, protocol_version and summary are texts")
    if not isinstance(value["sha256"], str) or not _HASH.fullmatch(value["sha256"]):
        raise ConfigError(f"{where}: sha256 has 64 lower-case hex characters")
    if bundle is not None and not (
        isinstance(bundle, str) and _BUNDLE.fullmatch(bundle)
    ):
        raise ConfigError(f"{where}: bundle is the name of a .json file beside it")
    if not isinstance(value.get("published", True), bool):
        raise ConfigError(f"{where}: published is true or false")
    try:
        check_uri(uri)
    except RegistryError as exc:
        raise ConfigError(f"{where}: {exc}") from None
    return ConsensusEntry(
        uri=uri,
        version=version,
        hash=value["sha256"],
        summary=summary,
        bundle=bundle,
        published=value.get("published", True),
    )
