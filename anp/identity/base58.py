"""Base58 with Bitcoin's alphabet, as `did:key` and `did:all` write bytes.

Decoding takes quadratic time: callers bound the length before.
"""

from __future__ import annotations

import hashlib
from typing import Final

ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
VALUES: Final = {letter: value for value, letter in enumerate(ALPHABET)}


def encode(data: bytes) -> str:
    """Return bytes as base58; each leading zero byte is a `1`."""
    number, letters = int.from_bytes(data), []
    while number:
        number, value = divmod(number, 58)
        letters.append(ALPHABET[value])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(letters))


def decode(text: str) -> bytes:
    """Return the bytes that a text stands for.

    Raises:
        ValueError: It has a character that the alphabet does not have.
    """
    number = 0
    for letter in text:
        value = VALUES.get(letter)
        if value is None:
            raise ValueError(f"{letter!r} is no character of base58")
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)


def encode_checked(data: bytes) -> str:
    """Return bytes with four of their double SHA-256 behind them, as base58."""
    return encode(data + _check(data))


def decode_checked(text: str) -> bytes:
    """Return the bytes of a text that `encode_checked` made.

    Raises:
        ValueError: It is mistyped.
    """
    data = decode(text)
    data, check = data[:-4], data[-4:]
    if check != _check(data):
        raise ValueError("the check bytes differ")
    return data


def _check(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]
