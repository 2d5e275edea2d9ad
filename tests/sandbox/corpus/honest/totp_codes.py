# kind: one-time codes with hmac and struct
"""One-time codes (HOTP and TOTP) that confirm a payment."""

import base64
import hashlib
import hmac
import struct
from typing import Literal
from urllib.parse import quote, urlencode

Algorithm = Literal["sha1", "sha256", "sha512"]
DIGITS: int = 6
PERIOD: int = 30
WINDOW: int = 1


class CodeRejected(Exception):
    pass


def _secret(text: str) -> bytes:
    text = text.replace(" ", "").upper()
    return base64.b32decode(text + "=" * (-len(text) % 8))


def hotp(secret: str, counter: int, digits: int = DIGITS, algorithm: Algorithm = "sha1") -> str:
    digest = hmac.new(_secret(secret), struct.pack(">Q", counter), getattr(hashlib, algorithm)).digest()
    offset = digest[-1] & 0x0F
    (number,) = struct.unpack_from(">I", digest, offset)
    return f"{(number & 0x7FFF_FFFF) % 10**digits:0{digits}d}"


def totp(secret: str, at: int, digits: int = DIGITS) -> str:
    return hotp(secret, at // PERIOD, digits)


def verify(secret: str, code: str, at: int) -> int:
    """Return the drift in steps."""
    for drift in sorted(range(-WINDOW, WINDOW + 1), key=abs):
        expected = hotp(secret, at // PERIOD + drift)
        if hmac.compare_digest(expected.encode(), code.encode()):
            return drift
    raise CodeRejected(f"{code[:2]}{'*' * (len(code) - 2)}")


def provisioning_uri(secret: str, account: str, issuer: str) -> str:
    label = quote(f"{issuer}:{account}", safe="")
    query = urlencode({"secret": secret, "issuer": issuer, "digits": DIGITS})
    return f"otpauth://totp/{label}?{query}"
