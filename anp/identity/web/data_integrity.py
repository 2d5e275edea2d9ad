"""Proofs inside a DID document: W3C Data Integrity over canonical JSON (RFC 8785).

Pure. `eddsa-jcs-2022` is what `e1_` paths of `did:wba` need; the SDK writes its
signature in base64url and without the `@context`, which is read too, and has a suite of
its own for secp256k1, which `k1_` paths need.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from anp.errors import AnpError
from anp.identity import base58
from anp.identity.public_keys import KeyKind, PublicKey

PROOF_TYPE = "DataIntegrityProof"
EDDSA = "eddsa-jcs-2022"
SDK_SECP256K1 = "didwba-jcs-ecdsa-secp256k1-2025"
LEGACY_SECP256K1 = "EcdsaSecp256k1Signature2019"

MAX_VALUE = 128
"Longest `proofValue`, in characters; a real one has 88."

_SAFE_INTEGER = 2**53 - 1


class ProofError(AnpError):
    """The proof of a document is absent, of another kind, or wrong."""


def canonical(value: Any) -> bytes:
    """Return the bytes of a JSON value by RFC 8785.

    Raises:
        ProofError: it holds a fraction or a number above 2^53, which no DID document
            needs and which has its own ways of being written.
    """
    return _write(value).encode("utf-8")


def add_proof(
    document: Mapping[str, Any],
    *,
    method_id: str,
    created: str,
    sign: Callable[[bytes], bytes],
) -> dict[str, Any]:
    """Return `document` with an `eddsa-jcs-2022` proof.

    Args:
        method_id: Id of the Ed25519 verification method whose key signs.
        created: `YYYY-MM-DDTHH:MM:SSZ`.
        sign: Gives the Ed25519 signature, 64 bytes.
    """
    bare = {name: value for name, value in document.items() if name != "proof"}
    proof: dict[str, Any] = {
        "type": PROOF_TYPE,
        "cryptosuite": EDDSA,
        "created": created,
        "verificationMethod": method_id,
        "proofPurpose": "assertionMethod",
    }
    if "@context" in bare:
        proof["@context"] = bare["@context"]
    value = base58.encode(sign(_signed(bare, proof)))
    return {**bare, "proof": {**proof, "proofValue": f"z{value}"}}


def verify_proof(document: Mapping[str, Any], key: PublicKey) -> None:
    """Check that `key` signed `document`, all of it.

    Raises:
        ProofError: it did not, or there is no proof that says so.
    """
    proof = document.get("proof")
    if not isinstance(proof, dict):
        raise ProofError("the document has no proof")
    _check_kind(proof, key)
    value = proof.get("proofValue")
    if not isinstance(value, str) or len(value) > MAX_VALUE:
        raise ProofError("proofValue is no text, or too long")
    bare = {name: part for name, part in document.items() if name != "proof"}
    options = {name: part for name, part in proof.items() if name != "proofValue"}
    signature = _from_base58(value)
    if signature is not None:
        # The suite makes the document's context part of what is signed.
        if "@context" in bare:
            options.setdefault("@context", bare["@context"])
            if options["@context"] != bare["@context"]:
                raise ProofError("the proof has another @context")
    else:
        signature = _from_base64url(value)
    if not key.verifies(signature, _signed(bare, options)):
        raise ProofError("the proof does not fit the document and the key")


def _check_kind(proof: Mapping[str, Any], key: PublicKey) -> None:
    match proof.get("type"), proof.get("cryptosuite"), key.kind:
        case "DataIntegrityProof", "eddsa-jcs-2022", KeyKind.ED25519:
            purposes = {"assertionMethod"}
        case "DataIntegrityProof", suite, KeyKind.SECP256K1 if suite == SDK_SECP256K1:
            purposes = {"assertionMethod"}
        case kind, None, KeyKind.SECP256K1 if kind == LEGACY_SECP256K1:
            purposes = {"assertionMethod", "authentication"}
        case _:
            raise ProofError(f"the proof is not of a kind for {key.kind.value} keys")
    if proof.get("proofPurpose") not in purposes:
        raise ProofError("the proof is made for another purpose")


def _signed(bare: Mapping[str, Any], options: Mapping[str, Any]) -> bytes:
    return (
        hashlib.sha256(canonical(dict(options))).digest()
        + hashlib.sha256(canonical(dict(bare))).digest()
    )


def _from_base58(value: str) -> bytes | None:
    if not value.startswith("z"):
        return None
    try:
        data: bytes = base58.decode(value[1:])
    except (ValueError, UnicodeError):
        return None
    return data if len(data) == 64 else None


def _from_base64url(value: str) -> bytes:
    try:
        return base64.b64decode(
            value + "=" * (-len(value) % 4), altchars=b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        raise ProofError("proofValue is neither base58 nor base64url") from None


def _write(value: Any) -> str:
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            if abs(value) > _SAFE_INTEGER:
                raise ProofError("a signed document holds a number above 2^53")
            return str(value)
        case float():
            raise ProofError("a signed document holds a fraction")
        case list():
            return f"[{','.join(_write(item) for item in value)}]"
        case dict():
            members = (
                f"{_write(name)}:{_write(value[name])}"
                for name in sorted(value, key=lambda text: text.encode("utf-16-be"))
            )
            return f"{{{','.join(members)}}}"
        case _:
            raise ProofError("a signed document holds what is no JSON")
