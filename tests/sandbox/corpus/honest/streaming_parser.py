# kind: streaming parser class fed in chunks
"""Parses frames '<length>:<payload>,' (netstrings) fed in arbitrary chunks."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto


class _State(Enum):
    LENGTH = auto()
    PAYLOAD = auto()
    COMMA = auto()
    FAILED = auto()


class FramingError(ValueError):
    def __init__(self, offset: int, message: str) -> None:
        super().__init__(f"at byte {offset}: {message}")
        self.offset = offset


class NetstringParser:
    """Feed bytes, then iterate over the complete payloads."""

    MAX_DIGITS = 6

    def __init__(self) -> None:
        self._state = _State.LENGTH
        self._digits = bytearray()
        self._payload = bytearray()
        self._missing = 0
        self._offset = 0
        self._ready: deque[bytes] = deque()

    def feed(self, chunk: bytes) -> None:
        if self._state is _State.FAILED:
            raise RuntimeError("the parser has failed before")
        for value in chunk:
            try:
                self._step(value)
            except FramingError:
                self._state = _State.FAILED
                raise
            self._offset += 1

    def _step(self, value: int) -> None:
        match self._state:
            case _State.LENGTH:
                if value == ord(":") and self._digits:
                    self._missing = int(self._digits)
                    self._digits.clear()
                    self._state = _State.PAYLOAD if self._missing else _State.COMMA
                elif 48 <= value <= 57 and len(self._digits) < self.MAX_DIGITS:
                    self._digits.append(value)
                else:
                    raise FramingError(self._offset, f"unexpected {chr(value)!r} in length")
            case _State.PAYLOAD:
                self._payload.append(value)
                self._missing -= 1
                if self._missing == 0:
                    self._state = _State.COMMA
            case _State.COMMA:
                if value != 0x2C:
                    raise FramingError(self._offset, "expected ','")
                self._ready.append(bytes(self._payload))
                self._payload = bytearray()
                self._state = _State.LENGTH

    def __iter__(self) -> NetstringParser:
        return self

    def __next__(self) -> bytes:
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    @property
    def idle(self) -> bool:
        return self._state is _State.LENGTH and not self._digits


def parse_chunks(chunks: list[bytes]) -> dict:
    parser, payloads = NetstringParser(), []
    for chunk in chunks:
        parser.feed(chunk)
        payloads += list(parser)
    return {"payloads": payloads, "complete": parser.idle}


def encode(payloads: list[bytes]) -> bytes:
    return b"".join(b"%d:%b," % (len(payload), payload) for payload in payloads)
