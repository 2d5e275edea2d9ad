# kind: run-length coding with groupby
"""Run-length coding of pixel rows and of text."""

import re
from itertools import chain, groupby, repeat, starmap


def encode_text(text: str) -> str:
    runs = ((key, sum(1 for _ in group)) for key, group in groupby(text))
    return "".join(f"{count if count > 1 else ''}{key}" for key, count in runs)


def decode_text(text: str) -> str:
    if text and text[-1].isdigit():
        raise ValueError("count without a character")
    return re.sub(r"(\d+)(\D)", lambda m: m.group(2) * int(m.group(1)), text)


def encode_row(row: list[int]) -> list[list[int]]:
    return [[value, len(list(group))] for value, group in groupby(row)]


def decode_row(runs: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(starmap(repeat, runs)))


def pack_bits(data: bytes) -> bytes:
    """PackBits: n >= 0 literal bytes, n < 0 a run of 1 - n."""
    out = bytearray()
    literal = bytearray()

    def flush() -> None:
        nonlocal literal
        while literal:
            head, literal = literal[:128], literal[128:]
            out.append(len(head) - 1)
            out.extend(head)

    for value, group in groupby(data):
        count = len(tuple(group))
        if count < 3:
            literal += bytes([value]) * count
            continue
        flush()
        while count > 0:
            size = min(count, 128)
            out += (1 - size & 0xFF).to_bytes(1, "big") + bytes((value,))
            count -= size
    flush()
    return bytes(out)


def unpack_bits(data: bytes) -> bytes:
    out, it = bytearray(), iter(data)
    for n in it:
        if n < 128:
            out.extend(next(it) for _ in range(n + 1))
        else:
            out.extend(bytes([next(it)]) * (257 - n))
    return bytes(out)
