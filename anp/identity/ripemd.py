"""RIPEMD-160, which `did:all` addresses need (WIRE row 6).

OpenSSL 3 keeps it in its legacy provider, which many systems do not load; then the
plain version below is used. It is no secret's guardian: it shortens a public key.
"""

from __future__ import annotations

import hashlib
import struct

_WORD = 0xFFFFFFFF

# Per round: which word of the block each of the 16 steps takes, and by how many bits
# the sum is rotated; for the left and the right line.
_LEFT_WORDS = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8),
    (3, 10, 14, 4, 9, 15, 8, 1, 2, 7, 0, 6, 13, 11, 5, 12),
    (1, 9, 11, 10, 0, 8, 12, 4, 13, 3, 7, 15, 14, 5, 6, 2),
    (4, 0, 5, 9, 7, 12, 2, 10, 14, 1, 3, 8, 11, 6, 15, 13),
)
_RIGHT_WORDS = (
    (5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3, 12),
    (6, 11, 3, 7, 0, 13, 5, 10, 14, 15, 8, 12, 4, 9, 1, 2),
    (15, 5, 1, 3, 7, 14, 6, 9, 11, 8, 12, 2, 10, 0, 4, 13),
    (8, 6, 4, 1, 3, 11, 15, 0, 5, 12, 2, 13, 9, 7, 10, 14),
    (12, 15, 10, 4, 1, 5, 8, 7, 6, 2, 13, 14, 0, 3, 9, 11),
)
_LEFT_SHIFTS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (7, 6, 8, 13, 11, 9, 7, 15, 7, 12, 15, 9, 11, 7, 13, 12),
    (11, 13, 6, 7, 14, 9, 13, 15, 14, 8, 13, 6, 5, 12, 7, 5),
    (11, 12, 14, 15, 14, 15, 9, 8, 9, 14, 5, 6, 8, 6, 5, 12),
    (9, 15, 5, 11, 6, 8, 13, 12, 5, 12, 13, 14, 11, 8, 5, 6),
)
_RIGHT_SHIFTS = (
    (8, 9, 9, 11, 13, 15, 15, 5, 7, 7, 8, 11, 14, 14, 12, 6),
    (9, 13, 15, 7, 12, 8, 9, 11, 7, 7, 12, 7, 6, 15, 13, 11),
    (9, 7, 15, 11, 8, 6, 6, 14, 12, 13, 5, 14, 13, 13, 7, 5),
    (15, 5, 8, 11, 14, 14, 6, 14, 6, 9, 12, 9, 12, 5, 15, 8),
    (8, 5, 12, 9, 12, 5, 14, 6, 8, 13, 6, 5, 15, 13, 11, 11),
)
_LEFT_ADD = (0x00000000, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_RIGHT_ADD = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0x00000000)
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)


def ripemd160(data: bytes) -> bytes:
    """Return the 20-byte digest of `data`."""
    try:
        return hashlib.new("ripemd160", data, usedforsecurity=False).digest()
    except ValueError:  # OpenSSL without its legacy provider
        return plain_ripemd160(data)


def plain_ripemd160(data: bytes) -> bytes:
    """Return the same without OpenSSL."""
    padded = data + b"\x80" + bytes((55 - len(data)) % 64)
    padded += struct.pack("<Q", (8 * len(data)) & 0xFFFFFFFFFFFFFFFF)
    state = _START
    for offset in range(0, len(padded), 64):
        words = struct.unpack_from("<16I", padded, offset)
        left = right = state
        for turn in range(5):
            left = _run_round(
                left,
                [words[i] for i in _LEFT_WORDS[turn]],
                shifts=_LEFT_SHIFTS[turn],
                function=turn,
                add=_LEFT_ADD[turn],
            )
            right = _run_round(
                right,
                [words[i] for i in _RIGHT_WORDS[turn]],
                shifts=_RIGHT_SHIFTS[turn],
                function=4 - turn,
                add=_RIGHT_ADD[turn],
            )
        a, b, c, d, e = state
        state = (
            (b + left[2] + right[3]) & _WORD,
            (c + left[3] + right[4]) & _WORD,
            (d + left[4] + right[0]) & _WORD,
            (e + left[0] + right[1]) & _WORD,
            (a + left[1] + right[2]) & _WORD,
        )
    return struct.pack("<5I", *state)


_State = tuple[int, int, int, int, int]


def _run_round(
    state: _State, words: list[int], *, shifts: tuple[int, ...], function: int, add: int
) -> _State:
    a, b, c, d, e = state
    for word, shift in zip(words, shifts, strict=True):
        mixed = (a + _mix(function, b, c, d) + word + add) & _WORD
        a, e, d, c, b = e, d, _rotate(c, 10), b, (_rotate(mixed, shift) + e) & _WORD
    return a, b, c, d, e


def _mix(function: int, x: int, y: int, z: int) -> int:
    if function == 0:
        return x ^ y ^ z
    if function == 1:
        return (x & y) | (~x & _WORD & z)
    if function == 2:
        return (x | (~y & _WORD)) ^ z
    if function == 3:
        return (x & z) | (y & ~z & _WORD)
    return x ^ (y | (~z & _WORD))


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _WORD
