# kind: total_ordering, cached_property and comparison of versions
"""Version ranges of the protocols that an agent offers."""

from __future__ import annotations

import re
from functools import cached_property, total_ordering
from itertools import zip_longest


@total_ordering
class Version:
    """A semantic version."""

    _pattern = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-([0-9A-Za-z.]+))?")

    def __init__(self, text: str) -> None:
        match = self._pattern.fullmatch(text)
        if match is None:
            raise ValueError(f"invalid version: {text}")
        self.text = text
        major, minor, patch, self.pre = match.groups()
        self.major, self.minor, self.patch = int(major), int(minor), int(patch or 0)

    @cached_property
    def release(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.text!r})"

    def __str__(self) -> str:
        base = ".".join(map(str, self.release))
        return f"{base}-{self.pre}" if self.pre else base

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Version):
            return (self.release, self.pre) == (other.release, other.pre)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.release, self.pre))

    def __lt__(self, other: Version) -> bool:
        if self.release != other.release:
            return self.release < other.release
        if not self.pre or not other.pre:
            return bool(self.pre) and not other.pre
        for mine, theirs in zip_longest(self.pre.split("."), other.pre.split(".")):
            if mine == theirs:
                continue
            if mine is None or theirs is None:
                return mine is None
            if mine.isdigit() and theirs.isdigit():
                return int(mine) < int(theirs)
            return (not mine.isdigit(), mine) < (not theirs.isdigit(), theirs)
        return False


_COMPARE = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "=": lambda a, b: a == b,
    "^": lambda a, b: a >= b and a.major == b.major,
    "~": lambda a, b: a >= b and a.release[:2] == b.release[:2],
}


def satisfies(version: Version, requirement: str) -> bool:
    for clause in requirement.split(","):
        operator, text = re.match(r"\s*([<>=^~]*)\s*(\S+)", clause).groups()
        if not _COMPARE[operator or "="](version, Version(text)):
            return False
    return True


def choose(offered: list[str], requirement: str) -> str:
    versions = sorted({Version(text) for text in offered}, reverse=True)
    for version in versions:
        if satisfies(version, requirement):
            return str(version)
    raise LookupError(f"none of {versions} satisfies {requirement}")


def ordered(texts: list[str]) -> list[str]:
    return [str(version) for version in sorted(map(Version, texts))]
