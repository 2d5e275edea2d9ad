# kind: base64, base64url without padding, hex and base32
"""A compact token of three base64url parts."""

import base64
import binascii
import json


class TokenError(ValueError):
    pass


def b64url_encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def b64url_decode(text: str) -> bytes:
    padding = "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text + padding, altchars=b"-_", validate=True)
    except binascii.Error as err:
        raise TokenError(f"bad base64: {text[:12]!r}") from err


def encode_token(header: dict, payload: dict, signature: bytes) -> str:
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (header, payload)]
    return ".".join(b64url_encode(part) for part in [*parts, signature])


def decode_token(token: str) -> dict:
    try:
        head, body, signature = token.split(".")
    except ValueError:
        raise TokenError(f"expected 3 parts, got {token.count('.') + 1}") from None
    header, payload = (json.loads(b64url_decode(part)) for part in (head, body))
    return {"header": header, "payload": payload, "signature": b64url_decode(signature).hex()}


def forms(data: bytes) -> dict[str, str]:
    return {
        "hex": data.hex(),
        "spaced": data.hex(" ", 2),
        "upper": binascii.hexlify(data).decode().upper(),
        "b16": base64.b16encode(data).decode(),
        "b32": base64.b32encode(data).decode(),
        "b85": base64.b85encode(data).decode(),
        "back": binascii.unhexlify(data.hex()).decode("latin-1"),
    }
