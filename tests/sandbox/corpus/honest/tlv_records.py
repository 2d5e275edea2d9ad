# kind: TLV with nested containers
"""Type-length-value records; types 0xE0 and up are containers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Union

Value = Union[bytes, str, int, "list[Record]"]


@unique
class Tag(IntEnum):
    NAME = 0x01
    COUNT = 0x02
    BLOB = 0x03
    GROUP = 0xE1

    @property
    def is_container(self) -> bool:
        return self >= 0xE0


@dataclass(frozen=True)
class Record:
    tag: Tag
    value: Value

    def encode(self) -> bytes:
        body = self._body()
        return bytes([self.tag]) + len(body).to_bytes(2, "big") + body

    def _body(self) -> bytes:
        match self.value:
            case bytes():
                return self.value
            case str():
                return self.value.encode()
            case int():
                return self.value.to_bytes(4, "big", signed=True)
            case list():
                return b"".join(record.encode() for record in self.value)
            case _:
                raise TypeError(f"cannot encode {type(self.value).__name__}")

    def to_plain(self) -> dict:
        if isinstance(self.value, list):
            value: object = [child.to_plain() for child in self.value]
        else:
            value = self.value
        return {"tag": self.tag.name, "value": value}


def _parse(data: bytes) -> list[Record]:
    records: list[Record] = []
    position = 0
    while position < len(data):
        tag = Tag(data[position])
        length = int.from_bytes(data[position + 1 : position + 3], "big")
        body = data[position + 3 : position + 3 + length]
        if len(body) != length:
            raise ValueError(f"{tag.name} at {position} is truncated")
        if tag.is_container:
            value: Value = _parse(body)
        elif tag is Tag.COUNT:
            value = int.from_bytes(body, "big", signed=True)
        elif tag == Tag.NAME:
            value = body.decode()
        else:
            value = body
        records.append(Record(tag, value))
        position += 3 + length
    return records


def _from_plain(item: dict) -> Record:
    value = item["value"]
    if isinstance(value, list):
        value = [_from_plain(child) for child in value]
    return Record(Tag[item["tag"]], value)


def encode(items: list[dict]) -> bytes:
    return b"".join(_from_plain(item).encode() for item in items)


def decode(data: bytes) -> list[dict]:
    return [record.to_plain() for record in _parse(data)]
