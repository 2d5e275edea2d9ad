# kind: Huffman codes with a heap and recursion over tuples
"""Huffman-coded text: a table and a bit string."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from itertools import count
from typing import Iterator, Union

Tree = Union[str, tuple["Tree", "Tree"]]


def _tree(text: str) -> Tree:
    order = count()
    heap: list[tuple[int, int, Tree]] = [
        (weight, next(order), symbol) for symbol, weight in sorted(Counter(text).items())
    ]
    heapq.heapify(heap)
    while len(heap) > 1:
        (w1, _, left), (w2, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (w1 + w2, next(order), (left, right)))
    return heap[0][2]


def _codes(tree: Tree, prefix: str = "") -> Iterator[tuple[str, str]]:
    match tree:
        case str(symbol):
            yield symbol, prefix or "0"
        case (left, right):
            yield from _codes(left, prefix + "0")
            yield from _codes(right, prefix + "1")


def encode(text: str) -> bytes:
    if not text:
        return b"{}\n\x00"
    table = dict(_codes(_tree(text)))
    bits = "".join(table[ch] for ch in text)
    padding = -len(bits) % 8
    packed = int(bits + "0" * padding, 2).to_bytes((len(bits) + padding) // 8, "big")
    return json.dumps(table, sort_keys=True).encode() + b"\n" + bytes([padding]) + packed


def decode(data: bytes) -> str:
    head, newline, body = data.partition(b"\n")
    if not newline or not body:
        raise ValueError("no table")
    symbols = {code: symbol for symbol, code in json.loads(head).items()}
    bits = "".join(f"{byte:08b}" for byte in body[1:])
    bits = bits[: len(bits) - body[0]]
    text, code = [], ""
    for bit in bits:
        code += bit
        if code in symbols:
            text.append(symbols[code])
            code = ""
    if code:
        raise ValueError(f"{len(code)} bits left over")
    return "".join(text)


def saving(text: str) -> float:
    lengths = {symbol: len(code) for symbol, code in _codes(_tree(text))}
    return round(1 - sum(lengths[ch] for ch in text) / (8 * len(text)), 3)
