# kind: bencode encoder and decoder
"""Bencoded messages: integers, byte strings, lists and dictionaries."""

from io import BytesIO
from typing import Union

Value = Union[int, bytes, str, list["Value"], dict[str, "Value"]]


class BencodeError(ValueError):
    pass


def encode(value: Value) -> bytes:
    match value:
        case bool():
            raise BencodeError("booleans are not allowed")
        case int(number):
            return b"i%de" % number
        case str():
            return encode(value.encode("utf-8"))
        case bytes() | bytearray():
            return str(len(value)).encode() + b":" + value
        case list() | tuple():
            return b"l" + b"".join(map(encode, value)) + b"e"
        case dict():
            items = sorted((key.encode(), item) for key, item in value.items())
            return b"d" + b"".join(encode(k) + encode(v) for k, v in items) + b"e"
        case _:
            raise BencodeError(f"cannot encode {value!r}")


class Decoder:
    def __init__(self, data: bytes) -> None:
        self._stream = BytesIO(data)

    def _until(self, end: bytes) -> bytes:
        out = b""
        while (ch := self._stream.read(1)) != end:
            if not ch:
                raise BencodeError("unexpected end")
            out += ch
        return out

    def decode(self) -> Value | None:
        """Return the next value, or None at the end of a container."""
        kind = self._stream.read(1)
        if kind == b"i":
            digits = self._until(b"e")
            if digits in (b"-0", b"") or digits.lstrip(b"-").startswith(b"0") and digits != b"0":
                raise BencodeError(f"bad integer {digits.decode('ascii', 'replace')}")
            return int(digits)
        if kind == b"l":
            return list(iter(self.decode, None))
        if kind == b"d":
            result: dict[str, Value] = {}
            while (key := self.decode()) is not None:
                result[key.decode()] = self.decode()
            return result
        if kind == b"e":
            return None
        if kind.isdigit():
            size = int(kind + self._until(b":"))
            data = self._stream.read(size)
            if len(data) < size:
                raise BencodeError(f"{size - len(data)} bytes are missing")
            return data
        raise BencodeError(f"unexpected {kind!r} at {self._stream.tell() - len(kind)}")

    def finish(self) -> None:
        if rest := self._stream.read():
            raise BencodeError(f"{len(rest)} bytes left over")


def decode(data: bytes) -> Value | None:
    decoder = Decoder(data)
    value = decoder.decode()
    decoder.finish()
    return value
