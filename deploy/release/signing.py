"""The checksums of a release and their signature (Ed25519, as OpenSSL verifies it)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
PUBLIC = "release.pub"


def new_key() -> bytes:
    """Return a new private key, as PEM."""
    return Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )


def sign(folder: Path, names: Iterable[str], key: bytes) -> None:
    """Write checksums of files of a folder, their signature and the public key.

    Args:
        key: The private key, as PEM.
    """
    private = load_pem_private_key(key, None)
    if not isinstance(private, Ed25519PrivateKey):
        raise ValueError("the key is not Ed25519")
    lines = [f"{_digest(folder / name)}  {name}\n" for name in sorted(names)]
    text = "".join(lines).encode()
    (folder / SUMS).write_bytes(text)
    (folder / SIGNATURE).write_bytes(private.sign(text))
    public = private.public_key()
    (folder / PUBLIC).write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )


def verify(folder: Path, public: bytes) -> None:
    """Check the signature of a folder's checksums, and every file that they name.

    Raises:
        ValueError: One of them is not what was signed.
    """
    key = load_pem_public_key(public)
    text = (folder / SUMS).read_bytes()
    try:
        key.verify((folder / SIGNATURE).read_bytes(), text)  # type: ignore[union-attr, call-arg] # of Ed25519
    except InvalidSignature:
        raise ValueError(f"{SIGNATURE} is not of this key") from None
    for line in text.decode().splitlines():
        digest, _, name = line.partition("  ")
        if _digest(folder / name) != digest:
            raise ValueError(f"{name} is not what was signed")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
