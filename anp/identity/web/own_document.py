"""Our own `did:wba`: the DID, its document, and which key signs our hellos.

Pure. The layout is that of the official SDK: `#key-1` is the DID's own key, `#key-2` a
P-256 key for end-to-end hellos. A path gets the thumbprint of an Ed25519 key as its
last segment (`e1_`), and the document is signed with that key. It may therefore stay
off the machine: it is needed to make or change the document only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from anp.errors import ConfigError, PeerError
from anp.identity.dids import LocalIdentity
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind, PublicKey
from anp.identity.web.data_integrity import add_proof
from anp.identity.web.documents import SERVICE_TYPE, parse_document
from anp.identity.web_dids import WebDid, parse_web_did

BINDING_KEY = "key-1"
HELLO_KEY = "key-2"

_CONTEXT = "https://www.w3.org/ns/did/v1"
_CONTEXTS = {
    KeyKind.ED25519: (
        "https://w3id.org/security/data-integrity/v2",
        "https://w3id.org/security/multikey/v1",
    ),
    KeyKind.P256: ("https://w3id.org/security/suites/jws-2020/v1",),
}


def make_web_did(
    host: str,
    *,
    port: int | None = None,
    path: str = "",
    binding_key: PublicKey | None = None,
) -> WebDid:
    """Return the `did:wba` of a host, or of a path on it.

    Args:
        path: Segments with colons between, such as `user:alice`; empty for the host.
        binding_key: Ed25519; a path gets its thumbprint as last segment. None makes a
            DID whose keys are whatever its server says.

    Raises:
        ConfigError: these are no parts of a DID.
    """
    suffix = "" if port is None else f"%3A{port}"
    segments = [segment for segment in path.strip(":/").split(":") if segment]
    if segments and binding_key is not None:
        segments.append(f"e1_{binding_key.thumbprint}")
    text = ":".join(("did", "wba", f"{host}{suffix}", *segments))
    try:
        return parse_web_did(text)
    except PeerError as exc:
        raise ConfigError(f"identity: {exc.detail}") from None


def make_document(
    did: WebDid,
    *,
    hello_key: PublicKey,
    binding_key: PrivateKey | None,
    url: str,
    created: datetime,
) -> dict[str, Any]:
    """Return the document of a `did:wba` of ours.

    Args:
        hello_key: P-256; signs our hellos.
        binding_key: Ed25519; signs the document, and may sign hellos too.
        url: Our WebSocket URL, so that the DID alone says where we are.
        created: When it is signed.
    """
    methods: list[dict[str, Any]] = []
    contexts = [_CONTEXT]
    if binding_key is not None:
        contexts += _CONTEXTS[KeyKind.ED25519]
        methods.append(
            {
                "id": f"{did.text}#{BINDING_KEY}",
                "type": "Multikey",
                "controller": did.text,
                "publicKeyMultibase": binding_key.public_key.multibase,
            }
        )
    contexts += _CONTEXTS[KeyKind.P256]
    methods.append(
        {
            "id": f"{did.text}#{HELLO_KEY if methods else BINDING_KEY}",
            "type": "EcdsaSecp256r1VerificationKey2019",
            "controller": did.text,
            "publicKeyJwk": hello_key.jwk,
        }
    )
    ids = [method["id"] for method in methods]
    document = {
        "@context": contexts,
        "id": did.text,
        "verificationMethod": methods,
        "authentication": ids,
        "assertionMethod": ids,
        "service": [
            {"id": f"{did.text}#anpd", "type": SERVICE_TYPE, "serviceEndpoint": url}
        ],
    }
    if binding_key is None:
        return document
    return add_proof(
        document,
        method_id=ids[0],
        created=created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        sign=binding_key.sign,
    )


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the document as a file to be published."""
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def identity_of_document(
    data: bytes, keys: tuple[PrivateKey, ...]
) -> tuple[WebDid, LocalIdentity, tuple[str, ...]]:
    """Return who we are by a document of ours.

    Args:
        keys: Keys we hold; the first that the document lists signs our hellos.

    Returns:
        The DID, the identity, and the WebSocket URLs that the document names.

    Raises:
        ConfigError: It is no document that others would accept, or of other keys.
    """
    try:
        fields = json.loads(data)
        did = parse_web_did(fields["id"])
        document = parse_document(data, did)
    except (PeerError, ValueError, TypeError, KeyError, AttributeError) as exc:
        raise ConfigError(
            f"identity: our DID document would be refused by others: {exc}; "
            "`anpd identity create` makes a new one"
        ) from exc
    for key in keys:
        for key_id, listed in document.keys.items():
            if listed == key.public_key:
                name = key_id.partition("#")[2]
                return did, LocalIdentity(did.text, key, name), document.urls
    raise ConfigError(
        "identity: our DID document lists none of the keys of this home; "
        "`anpd identity create` makes a new one"
    )
