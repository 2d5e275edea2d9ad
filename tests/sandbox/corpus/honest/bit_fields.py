# kind: bit fields and flags packed in integers
"""Device status words: 32 bits with fields of different width."""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple


class Alarm(IntFlag):
    NONE = 0
    LOW_BATTERY = 1
    TAMPER = 2
    OVERHEAT = 4
    OFFLINE = 8


class Field(NamedTuple):
    name: str
    shift: int
    width: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def get(self, word: int) -> int:
        return (word >> self.shift) & self.mask

    def put(self, word: int, value: int) -> int:
        if not 0 <= value <= self.mask:
            raise OverflowError(f"{self.name}={value} needs more than {self.width} bits")
        return (word & ~(self.mask << self.shift)) | (value << self.shift)


LAYOUT = (
    Field("alarms", 0, 4),
    Field("battery", 4, 7),
    Field("channel", 11, 5),
    Field("sequence", 16, 16),
)


def pack(values: dict[str, int]) -> int:
    word = 0
    for field in LAYOUT:
        word = field.put(word, values.get(field.name, 0))
    return word


def unpack(word: int) -> dict:
    if word < 0 or word.bit_length() > 32:
        raise ValueError(f"{word:#x} is not a 32-bit word")
    result: dict = {field.name: field.get(word) for field in LAYOUT}
    alarms = Alarm(result["alarms"])
    result["alarms"] = [flag.name for flag in Alarm if flag and flag in alarms]
    result["critical"] = bool(alarms & (Alarm.TAMPER | Alarm.OVERHEAT))
    return result


def show(word: int) -> str:
    bits = format(word, "032b")
    return "_".join(bits[i : i + 8] for i in range(0, 32, 8)) + f" ({word:08x}, {word.bit_count()} set)"


def parity(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
    return value


def gray(value: int) -> list[int]:
    code = value ^ (value >> 1)
    back, shift = code, code >> 1
    while shift:
        back ^= shift
        shift >>= 1
    return [code, back]
