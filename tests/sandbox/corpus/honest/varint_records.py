# kind: varints and zigzag (protobuf-like)
"""Key and value records with varints; signed numbers use zigzag."""

from collections.abc import Iterator

VARINT, BYTES = 0, 2
FIELDS = {1: ("id", VARINT), 2: ("name", BYTES), 3: ("delta", VARINT), 4: ("tags", BYTES)}
NUMBERS = {name: (number, wire) for number, (name, wire) in FIELDS.items()}
REPEATED = {"tags"}


class DecodeError(Exception):
    pass


def _varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        if not value:
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        try:
            byte = data[position]
        except IndexError:
            raise DecodeError("truncated varint") from None
        position += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, position
        if (shift := shift + 7) > 63:
            raise DecodeError("varint is too long")


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position, end = 0, len(data)
    while position < end:
        key, position = _read_varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, position = _read_varint(data, position)
            yield number, value
        elif wire == BYTES:
            length, position = _read_varint(data, position)
            if position + length > end:
                raise DecodeError(f"field {number} is truncated")
            yield number, data[position : (position := position + length)]
        else:
            raise DecodeError(f"wire type {wire}")


def encode(record: dict) -> bytes:
    parts = []
    for name, value in record.items():
        number, wire = NUMBERS[name]
        for item in value if name in REPEATED else [value]:
            parts.append(_varint(number << 3 | wire))
            if wire == VARINT:
                parts.append(_varint(_zigzag(item) if name == "delta" else item))
            else:
                raw = item.encode()
                parts += _varint(len(raw)), raw
    return b"".join(parts)


def decode(data: bytes) -> dict:
    record: dict = {name: [] for name in REPEATED}
    for number, value in _fields(data):
        name, _ = FIELDS.get(number, (f"field_{number}", None))
        if name == "delta":
            value = _unzigzag(value)
        elif isinstance(value, bytes):
            value = value.decode()
        if name in REPEATED:
            record[name].append(value)
        else:
            record[name] = value
    return record
