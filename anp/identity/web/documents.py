"""DID documents of web methods: read, judged, and made.

Pure. A document comes from a server that may be hostile, or have been broken into. The
keys it lists are the DID's only as far as its method says; a path bound to a key
(`e1_`, `k1_`) is worth more than the server: that key has to have signed the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anp.errors import CallError, ErrorCode, PeerError
from anp.identity.address import normalise_url
from anp.identity.public_keys import KeyFormatError, KeyKind, PublicKey, key_of_method
from anp.identity.web.data_integrity import ProofError, verify_proof
from anp.identity.web_dids import WebDid
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

MAX_DOCUMENT = 256 * 1024
"Largest document read, in bytes; a real one has about 2 KiB."

MAX_DEPTH = 16
"Deepest nesting read."

MAX_METHODS = 128
"Verification methods of one document."

MAX_SERVICES = 64
"Services of one document that are looked at."

SERVICE_TYPE = "messageService"
"Type of the service whose endpoint is our WebSocket URL; the SDK's name for it."

HELLO_KINDS = frozenset({KeyKind.P256, KeyKind.ED25519})
"Kinds of keys that may sign hellos."

# A document of the SDK lists its key for end-to-end hellos, of this type, in no
# relationship at all.
_HELLO_TYPE = "EcdsaSecp256r1VerificationKey2019"
_RELATIONSHIPS = (
    "authentication",
    "assertionMethod",
    "keyAgreement",
    "capabilityInvocation",
    "capabilityDelegation",
)


@dataclass(frozen=True, slots=True)
class DidDocument:
    """The parts of a DID document that are used."""

    did: str
    "Whose it is."

    keys: Mapping[str, PublicKey]
    "Keys that may sign hellos, by their full ids."

    bound_key: PublicKey | None
    "The key in the path, which signed the whole document; None: the path has none."

    urls: tuple[str, ...]
    "WebSocket URLs of its services, normalised, in order."

    deactivated: bool = False
    "The owner has given this DID up."


def parse_document(data: bytes, did: WebDid) -> DidDocument:
    """Read the document of `did`.

    Raises:
        PeerError: DID_NOT_FOUND if it is not one, or of another DID; NOT_ALLOWED if the
            key in the path did not sign it.
    """
    try:
        value = parse_json(data, max_size=MAX_DOCUMENT, max_depth=MAX_DEPTH)
    except JsonError as exc:
        raise _unfit(did, str(exc)) from None
    if not isinstance(value, dict):
        raise _unfit(did, "is no object")
    # Not a canonical spelling of it: the same text.
    if value.get("id") != did.text:
        raise _unfit(did, f"is of {str(value.get('id'))[:200]!r}")
    if value.get("deactivated") is True:
        return DidDocument(did.text, {}, None, (), deactivated=True)
    methods = _methods(value, did)
    bound = _bound_key(value, did, methods)
    return DidDocument(
        did=did.text,
        keys=_hello_keys(value, did, methods),
        bound_key=bound,
        urls=tuple(_urls(value)),
    )


def _methods(value: Mapping[str, Any], did: WebDid) -> dict[str, Mapping[str, Any]]:
    """Return every verification method of the DID's own by its full id."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in ("verificationMethod", *_RELATIONSHIPS):
        entries = value.get(name, [])
        if not isinstance(entries, list) or len(entries) > MAX_METHODS:
            raise _unfit(did, f"has no {name} of at most {MAX_METHODS} entries")
        for entry in entries:
            if isinstance(entry, str):
                continue
            if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
                raise _unfit(did, f"has an entry in {name} that is no method")
            full = _full_id(entry["id"], did)
            # Of two keys under one id a reader may take either.
            if full in found:
                raise _unfit(did, "has two verification methods of one id")
            # A key that another controls signs for another.
            if full.startswith(f"{did.text}#") and entry.get("controller") == did.text:
                found[full] = entry
    return found


def _hello_keys(
    value: Mapping[str, Any], did: WebDid, methods: Mapping[str, Mapping[str, Any]]
) -> dict[str, PublicKey]:
    used = {
        _full_id(entry if isinstance(entry, str) else entry["id"], did): name
        for name in reversed(_RELATIONSHIPS)
        for entry in value.get(name, [])
    }
    keys: dict[str, PublicKey] = {}
    for full, method in methods.items():
        # In the order above `authentication` has the last word.
        relationship = used.get(full)
        is_for_hellos = relationship is None and method.get("type") == _HELLO_TYPE
        if relationship != "authentication" and not is_for_hellos:
            continue
        try:
            key = key_of_method(method)
        except KeyFormatError:
            continue  # of a later kind; others may serve
        if key.kind in HELLO_KINDS:
            keys[full] = key
    return keys


def _bound_key(
    value: Mapping[str, Any], did: WebDid, methods: Mapping[str, Mapping[str, Any]]
) -> PublicKey | None:
    """Check the key in the path, which has to have signed the document."""
    binding = did.binding
    if binding is None:
        return None
    proof = value.get("proof")
    named = proof.get("verificationMethod") if isinstance(proof, dict) else None
    if not isinstance(named, str):
        raise _refused(did, "has no proof, which its path demands")
    method = methods.get(_full_id(named, did))
    if method is None:
        raise _refused(did, "has a proof by a key that it does not list")
    try:
        key = key_of_method(method)
    except KeyFormatError as exc:
        raise _refused(did, f"has a proof by a key that cannot be read: {exc}") from exc
    kind = KeyKind.ED25519 if binding.profile == "e1" else KeyKind.SECP256K1
    if key.kind is not kind or key.thumbprint != binding.thumbprint:
        raise _refused(did, "has a proof by another key than the one in its path")
    try:
        verify_proof(value, key)
    except ProofError as exc:
        raise _refused(did, f"is not signed by the key in its path: {exc}") from exc
    return key


def _urls(value: Mapping[str, Any]) -> Iterable[str]:
    services = value.get("service", [])
    if not isinstance(services, list):
        return
    known = [entry for entry in services[:MAX_SERVICES] if isinstance(entry, dict)]
    # Ours first; other types may have a WebSocket for something else.
    known.sort(key=lambda entry: entry.get("type") != SERVICE_TYPE)
    for entry in known:
        endpoint = entry.get("serviceEndpoint")
        if isinstance(endpoint, str) and endpoint.startswith(("wss://", "ws://")):
            try:
                yield normalise_url(endpoint)
            except CallError:
                continue


def _full_id(text: str, did: WebDid) -> str:
    return f"{did.text}{text}" if text.startswith("#") else text


def _unfit(did: WebDid, reason: str) -> PeerError:
    return PeerError(
        ErrorCode.DID_NOT_FOUND, f"the document of {did.text} {reason}"[:500]
    )


def _refused(did: WebDid, reason: str) -> PeerError:
    return PeerError(
        ErrorCode.NOT_ALLOWED, f"the document of {did.text} {reason}"[:500]
    )
