"""Fixed bytes of a small sealed group, and the same computed from plain primitives.

`tests/vectors/sealing/group.json` has the log of the hub: an entry, two packages, a
grant and two messages, and the secrets of Bob with which they are read here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.anp.interaction.sealing.circle import Circle, did_of, drawn, secret

FILE = Path(__file__).parents[3] / "vectors" / "sealing" / "group.json"
TEXTS = ["hello", "again, with more words"]


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def vector() -> Any:
    return json.loads(FILE.read_text("utf-8"))


def canonical(label: str, value: dict[str, Any]) -> bytes:
    plain = {name: one for name, one in value.items() if name != "signature"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return label.encode() + b"\0" + text.encode()


def check_ec(key: bytes, signature: bytes, data: bytes) -> None:
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    point.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))


def hkdf(shared: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, one block."""
    key = hmac.digest(salt, shared, "sha256")
    return hmac.digest(key, info + b"\x01", "sha256")


def written() -> Any:
    """Return what the vector has to be; `python -m` this module writes the file."""
    circle = Circle("ann", "bob")
    for text in TEXTS:
        circle.say("ann", text)
    return {
        "log": [
            {"message": base64.b64encode(one.data).decode()} if one.data else one.value
            for one in circle.log
        ],
        "texts": TEXTS,
        "bob_agreement_key": drawn("bob")(32).hex(),
    }


def test_the_log_of_the_vector_is_made_again() -> None:
    assert written() == vector()


def test_the_log_of_the_vector_is_read_by_plain_primitives() -> None:
    found = vector()
    by_kind: dict[str, list[Any]] = {}
    for item in found["log"]:
        ((kind, value),) = item.items()
        by_kind.setdefault(kind, []).append(value)
    (entry,) = by_kind["entry"]
    signed = canonical("anpd sealing entry 1", entry)
    secret("ann").public_key().verify(decoded(entry["signature"]), signed)
    epoch = hashlib.sha256(signed).digest()

    packages = {one["did"]: one for one in by_kind["package"]}
    for name in ("ann", "bob"):
        package = packages[did_of(name)]
        assert decoded(package["entry"]) == epoch
        signed = canonical("anpd sealing package 1", package)
        secret(name).public_key().verify(decoded(package["signature"]), signed)
    ann, bob = packages[did_of("ann")], packages[did_of("bob")]
    agreement = x25519.X25519PrivateKey.from_private_bytes(
        bytes.fromhex(found["bob_agreement_key"])
    )
    assert agreement.public_key().public_bytes_raw() == decoded(bob["agreement"])

    (grant,) = by_kind["grant"]
    signing = decoded(ann["signing"])
    check_ec(
        signing, decoded(grant["signature"]), canonical("anpd sealing grant 1", grant)
    )
    shared = agreement.exchange(
        x25519.X25519PublicKey.from_public_bytes(decoded(ann["agreement"]))
    )
    info = b"anpd sealing pair 1\0did:test:ann\0did:test:bob"
    wrapped, promise = (
        decoded(grant["keys"]["did:test:bob"]),
        decoded(grant["commitment"]),
    )
    chain = AESGCM(hkdf(shared, epoch, info)).decrypt(bytes(12), wrapped, promise)
    assert hashlib.sha256(b"anpd sealing commitment 1\0" + chain).digest() == promise

    texts = []
    # Ann had seen nothing when she sealed both: they have no place yet.
    seen = hashlib.sha256(b"anpd sealing transcript 1\0" + epoch).digest()
    for counter, text in enumerate(by_kind["message"], 1):
        data = base64.b64decode(text)
        header, content, signature = data[:91], data[91:-64], data[-64:]
        assert struct.unpack(">B32sHQQQ32s", header) == (
            1,
            epoch,
            0,
            counter,
            counter - 1,
            0,
            seen,
        )
        check_ec(signing, signature, b"anpd sealing message 1\0" + header + content)
        key = hmac.digest(chain, b"\x01", "sha256")
        chain = hmac.digest(chain, b"\x02", "sha256")
        texts.append(AESGCM(key).decrypt(bytes(12), content, header).decode())
    assert texts == found["texts"]


def test_the_transcript_of_the_vector_is_computed_by_hand() -> None:
    circle = Circle("ann", "bob")
    bodies = [circle.say("ann", text).data[:-64] for text in TEXTS]
    circle.settle()
    circle.say("bob", "seen")
    entry = circle.agents["ann"].member.chain.hash
    hashed = hashlib.sha256(b"anpd sealing transcript 1\0" + entry).digest()
    for body in bodies:
        hashed = hashlib.sha256(hashed + hashlib.sha256(body).digest()).digest()
    header = struct.unpack(">B32sHQQQ32s", circle.log[-1].data[:91])
    assert header[-2:] == (2, hashed)


if __name__ == "__main__":
    FILE.write_text(json.dumps(written(), indent=1) + "\n", "utf-8")
