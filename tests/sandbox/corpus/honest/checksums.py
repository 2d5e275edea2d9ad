# kind: checksums, crc32, sha256, adler32
"""Integrity block around a payload: {payload, sha256, crc32, length}."""

import base64
import hashlib
import json
import zlib
from typing import TypedDict


class Sealed(TypedDict):
    payload: str
    sha256: str
    crc32: str
    length: int


class IntegrityError(Exception):
    """A digest did not match."""

    def __init__(self, which: str, expected: str, actual: str):
        self.which = which
        super().__init__(f"{which} mismatch: expected {expected[:8]}, got {actual[:8]}")


def _digests(payload: bytes) -> dict[str, str]:
    sha = hashlib.sha256()
    for start in range(0, len(payload), 64):
        sha.update(payload[start : start + 64])
    return {"sha256": sha.hexdigest(), "crc32": "%08x" % zlib.crc32(payload)}


def seal(payload: bytes) -> str:
    sealed: Sealed = {
        "payload": base64.b64encode(payload).decode("ascii"),
        "length": len(payload),
        **_digests(payload),
    }
    return json.dumps(sealed, sort_keys=True)


def unseal(text: str) -> bytes:
    sealed: Sealed = json.loads(text)
    payload = base64.b64decode(sealed["payload"], validate=True)
    if len(payload) != sealed["length"]:
        raise IntegrityError("length", str(sealed["length"]), str(len(payload)))
    for name, actual in _digests(payload).items():
        if (expected := sealed[name].lower()) != actual:
            raise IntegrityError(name, expected, actual)
    return payload


def fingerprint(items: list[str]) -> dict:
    combined = "\n".join(sorted(items)).encode()
    return {
        "md5": hashlib.md5(combined).hexdigest(),
        "sha1": hashlib.new("sha1", combined).hexdigest(),
        "blake2b": hashlib.blake2b(combined, digest_size=8).hexdigest(),
        "sha3": hashlib.sha3_256(combined).digest()[:4],
        "adler32": zlib.adler32(combined),
    }
