"""Rows that were read lately, for use while the server is away. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from cache.redis.rows import area_of

__all__ = ["Remembered", "RememberedReader"]

MAX_BYTES = 32 * 1024 * 1024
"Largest size of all remembered rows, in bytes."

MAX_RANGE = 1000
"Largest number of keys in a range that is remembered."

AREAS = frozenset(
    {
        *("agreement", "document", "half"),
        *("peer", "alias", "pin", "address", "did_keys"),
    }
)
"""Areas that a call may need. Keys for resumption are left out: each use of one must
be on the server first."""

_Entry: TypeAlias = bytes | tuple[str, ...] | None


class Remembered:
    """Rows and ranges as they were last read; the longest unused are dropped first."""

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    def note_row(self, key: str, data: bytes | None) -> None:
        """Remember a stored row, or that it is absent."""
        if area_of(key) in AREAS:
            self._note(("row", key), data)

    def note_range(self, prefix: str, keys: Sequence[str]) -> None:
        """Remember the keys that begin with `prefix`."""
        if area_of(prefix) in AREAS and len(keys) <= MAX_RANGE:
            self._note(("range", prefix), tuple(keys))
        else:
            self._drop(("range", prefix))

    def forget(self, keys: Iterable[str]) -> None:
        """Forget rows that change, and every range they may be in."""
        changed = list(keys)
        for key in changed:
            self._drop(("row", key))
        ranges = [
            entry
            for entry in self._entries
            if entry[0] == "range" and any(k.startswith(entry[1]) for k in changed)
        ]
        for entry in ranges:
            self._drop(entry)

    def row(self, key: str) -> bytes | None:
        """Return a row; KeyError if it is not remembered."""
        data = self._entries["row", key]
        assert not isinstance(data, tuple)
        return data

    def range(self, prefix: str) -> list[str]:
        """Return the keys of a range; KeyError if it is not remembered."""
        keys = self._entries["range", prefix]
        assert isinstance(keys, tuple)
        return list(keys)

    def _note(self, name: tuple[str, str], entry: _Entry) -> None:
        self._drop(name)
        if (size := _size(name, entry)) > self._max_bytes // 8:
            return
        self._entries[name] = entry
        self._bytes += size
        while self._bytes > self._max_bytes:
            oldest, dropped = self._entries.popitem(last=False)
            self._bytes -= _size(oldest, dropped)

    def _drop(self, name: tuple[str, str]) -> None:
        if name in self._entries:
            self._bytes -= _size(name, self._entries.pop(name))


class RememberedReader:
    """See `cache.redis.rows.Reader`; raises `away` for anything not remembered."""

    def __init__(self, remembered: Remembered, away: Exception) -> None:
        self._remembered = remembered
        self._away = away

    def stored(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `Reader.stored`."""
        try:
            return [self._remembered.row(key) for key in keys]
        except KeyError:
            raise self._away from None

    def keys(self, prefix: str) -> list[str]:
        """See `Reader.keys`."""
        try:
            return self._remembered.range(prefix)
        except KeyError:
            raise self._away from None

    def sizes(self, keys: Sequence[str]) -> list[int]:
        """See `Reader.sizes`."""
        return [len(data or b"") for data in self.stored(keys)]


def _size(name: tuple[str, str], entry: _Entry) -> int:
    own = sum(map(len, entry)) if isinstance(entry, tuple) else len(entry or b"")
    # An estimate of Python's overhead.
    return own + len(name[1]) + 200
