# kind: base58 with checksum, big integers
"""Base58Check addresses."""

from functools import reduce
from hashlib import sha256

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {character: value for value, character in enumerate(ALPHABET)}


class AddressError(ValueError):
    """Not an address."""


def _checksum(payload: bytes) -> bytes:
    return sha256(sha256(payload).digest()).digest()[:4]


def b58encode(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    encoded = ""
    while number > 0:
        number, remainder = divmod(number, 58)
        encoded = ALPHABET[remainder] + encoded
    leading = len(data) - len(data.lstrip(b"\0"))
    return ALPHABET[0] * leading + encoded


def b58decode(text: str) -> bytes:
    stripped = text.lstrip(ALPHABET[0])
    try:
        number = reduce(lambda total, ch: total * 58 + _VALUES[ch], stripped, 0)
    except KeyError as exc:
        raise AddressError(f"character {exc.args[0]!r} is not allowed") from exc
    size = (number.bit_length() + 7) // 8
    return b"\0" * (len(text) - len(stripped)) + number.to_bytes(size, "big")


def to_address(key_hash: bytes, version: int = 0) -> str:
    payload = bytes((version,)) + key_hash
    return b58encode(payload + _checksum(payload))


def from_address(address: str) -> dict:
    raw = b58decode(address.strip())
    payload, check = raw[:-4], raw[-4:]
    if not payload:
        raise AddressError("too short")
    if _checksum(payload) != check:
        raise AddressError(f"checksum {check.hex()} is wrong")
    version, *rest = payload
    return {"version": version, "hash": bytes(rest).hex(), "length": len(rest)}
