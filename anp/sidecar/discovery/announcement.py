"""The announcement of a daemon in a registry: signed, bounded, for a while. Pure.

It is a JSON object that its daemon signs with the key of its DID, so that a registry
can forge nothing and alter nothing; whoever reads it checks the signature again. The
signature is over the line `urn:anpd:registry:1` and the canonical JSON of all other
fields, so that it stands for nothing else that is signed with the key.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anp.errors import CallError, ErrorCode, PeerError
from anp.identity.address import normalise_url
from anp.identity.dids import LocalIdentity, check_did
from anp.identity.public_keys import KeyFormatError, key_of_multibase
from anp.identity.resolver import Resolver
from negotiation.errors import JsonError
from negotiation.need import Capability, schema_hash
from negotiation.rules.names import name_key, short_name
from negotiation.strict_json import canonical_json

PREFIX: Final = b"urn:anpd:registry:1\n"

MAX_SIZE: Final = 64 * 1024
"Largest announcement, in bytes of canonical JSON."

MAX_CAPABILITIES: Final = 256
"Most capabilities that one names."

MAX_LIFETIME: Final = 86_400
"Longest time for which one counts, in seconds."

MAX_SKEW: Final = 300
"Seconds by which the clocks of two daemons may differ."

MAX_TEXT: Final = 64
"Longest name and version, in characters."

_NAME: Final = re.compile(r"[^\x00-\x20\x7f]{1,200}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Announcement:
    """The words of one daemon about itself, for a while."""

    did: str
    url: str
    "WebSocket URL, normalised."

    name: str
    "For people; it may be anything, and nobody vouches for it."

    version: str
    capabilities: Mapping[str, str]
    "The hash of its schemas by the full name of each capability."

    issued: int
    "Seconds since 1970."

    expires: int
    "Time from which it counts no more."

    signed: Mapping[str, Any]
    "The object itself, as it was signed."

    size: int
    "Its bytes as canonical JSON."

    def names(self, capability: str) -> bool:
        """True if it names a capability, by its full or short name in any spelling."""
        wanted = name_key(capability)
        return bool(wanted) and any(
            wanted in {name_key(one), name_key(short_name(one))}
            for one in self.capabilities
        )


def announce(
    identity: LocalIdentity,
    *,
    url: str,
    name: str,
    version: str,
    capabilities: Sequence[Capability],
    now: float,
    lifetime: int,
) -> dict[str, Any]:
    """Return our announcement, signed.

    Args:
        now: Seconds since 1970.
        lifetime: Seconds for which it counts.
    """
    found = {one.name: schema_hash(one) for one in capabilities[:MAX_CAPABILITIES]}
    fields: dict[str, Any] = {
        "did": identity.did,
        "url": url,
        "name": name,
        "version": version,
        "capabilities": found,
        "issued": int(now),
        "expires": int(now) + lifetime,
        "key": identity.private_key.public_key.multibase,
        "key_id": identity.key_id,
    }
    signature = identity.sign(PREFIX + canonical_json(fields))
    return {**fields, "signature": base64.b64encode(signature).decode("ascii")}


def read_announcement(value: Any, *, now: float) -> Announcement:
    """Return an announcement whose form is right; its signature is not looked at.

    Args:
        now: Seconds since 1970.

    Raises:
        PeerError: It is none, is too large, or counts no more.
    """
    fields = value if isinstance(value, dict) else {}
    texts = [fields.get(name) for name in ("did", "url", "name", "version")]
    times = [fields.get(name) for name in ("issued", "expires")]
    listed = fields.get("capabilities")
    _check(all(isinstance(one, str) for one in texts), "lacks a text")
    _check(all(type(one) is int for one in times), "lacks a time")
    _check(isinstance(listed, dict), "lacks its capabilities")
    did, url, name, version = map(str, texts)
    issued, expires = (int(one or 0) for one in times)
    _check(len(name) <= MAX_TEXT and name.isprintable(), "has a name that is too long")
    _check(
        len(version) <= MAX_TEXT and version.isprintable(),
        "has a version that is too long",
    )
    _check(len(url) <= 2048, "has a URL that is too long")
    capabilities = dict(listed or {})
    _check(len(capabilities) <= MAX_CAPABILITIES, "names too many capabilities")
    _check(
        all(
            _NAME.fullmatch(key) and isinstance(one, str) and _HASH.fullmatch(one)
            for key, one in capabilities.items()
        ),
        "has a capability without a name or a hash",
    )
    _check(issued <= now + MAX_SKEW, "is of the future")
    _check(0 < expires - issued <= MAX_LIFETIME, "counts for too long")
    _check(now < expires, "has expired")
    try:
        size = len(canonical_json(fields))
    except JsonError:
        size = MAX_SIZE + 1
    _check(size <= MAX_SIZE, "is too large")
    try:
        where = normalise_url(url)
    except CallError as exc:
        raise _unfit(f"has no usable URL: {exc.detail}") from None
    return Announcement(
        check_did(did),
        where,
        name,
        version,
        capabilities,
        issued,
        expires,
        fields,
        size,
    )


async def verify(announcement: Announcement, resolver: Resolver) -> None:
    """Check that the key of its DID signed an announcement.

    Raises:
        PeerError: It did not, or the DID cannot be resolved.
    """
    fields = dict(announcement.signed)
    text, key_text = fields.pop("signature", None), fields.get("key")
    key_id = fields.get("key_id")
    try:
        signature = base64.b64decode(str(text), validate=True)
        _check(isinstance(key_text, str) and len(key_text) <= 256, "lacks its key")
        key = key_of_multibase(str(key_text))
    except (binascii.Error, ValueError, KeyFormatError):
        raise _unfit("has no readable signature") from None
    await resolver.check_key(announcement.did, str(key_id), key.data)
    _check(key.verifies(signature, PREFIX + canonical_json(fields)), "is forged")


def _check(good: bool, problem: str) -> None:
    if not good:
        raise _unfit(problem)


def _unfit(problem: str) -> PeerError:
    return PeerError(ErrorCode.NOT_ALLOWED, f"the announcement {problem}")
