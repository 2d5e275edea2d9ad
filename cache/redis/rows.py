"""Rows on Redis or Valkey, as one transaction sees them. Pure.

A row is a string under `<prefix>:row:<key>`; all keys are members of one sorted set,
which gives them in order. `<prefix>:version:<area>` counts the changes of an area.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from cache.errors import RecordError
from cache.records.records import MAX_RECORD, decode_json, encode_json
from cache.rows import Row

__all__ = ["Command", "Names", "Reader", "RedisRows", "area_of", "decode", "encode"]

Command: TypeAlias = tuple[str | bytes | int, ...]

MAX_STORED = MAX_RECORD + 64 * 1024
"Largest stored row that is read, in bytes: a record and its envelope."

_CHUNK = 200
"Rows fetched with one command."

_BYTES: Final = b"\x00"
"First byte of stored bytes; no JSON text begins with it."


class Names:
    """Makes the names of our keys on the server."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.index = f"{prefix}:keys"
        self.about = f"{prefix}:about"

    def row(self, key: str) -> str:
        """Return the name of a row."""
        return f"{self._prefix}:row:{key}"

    def version(self, area: str) -> str:
        """Return the name of the counter of changes to an area."""
        return f"{self._prefix}:version:{area}"

    def seen(self, name: str) -> str:
        """Return the name that marks something as having happened."""
        return f"{self._prefix}:seen:{name}"


class Reader(Protocol):
    """Reads rows that the transaction did not write itself."""

    def stored(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the stored forms under `keys`, None for each that is absent."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with `prefix`, in order."""
        ...

    def sizes(self, keys: Sequence[str]) -> list[int]:
        """Return the number of bytes under each key; 0 for each that is absent."""
        ...


def encode(value: object) -> bytes:
    """Return the stored form of JSON or bytes."""
    if type(value) is bytes:
        return _BYTES + value
    return encode_json(value).encode("ascii")


def decode(data: bytes) -> object:
    """Return the value of a stored form; RecordError if it is invalid."""
    if len(data) > MAX_STORED:
        raise RecordError(f"{len(data)} bytes, at most {MAX_STORED}")
    if data.startswith(_BYTES):
        return data[1:]
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise RecordError("the value is not JSON") from None
    return decode_json(text)


def area_of(key: str) -> str:
    """Return the first part of a key or of a prefix of keys."""
    return key.partition("/")[0]


class RedisRows:
    """See `cache.rows.Rows`. One object is one attempt of one transaction."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._written: dict[str, tuple[bytes, float | None] | None] = {}
        "Changes by key: stored form and time to keep, or None for a deletion."

    def __contains__(self, key: str) -> bool:
        return self._stored(key) is not None

    def get(self, key: str) -> object:
        """See `Rows.get`."""
        data = self._stored(key)
        return None if data is None else decode(data)

    def set(self, key: str, value: object, *, keep: float | None = None) -> None:
        """See `Rows.set`."""
        self._written[key] = encode(value), keep

    def delete(self, key: str) -> bool:
        """See `Rows.delete`."""
        existed = key in self
        if existed:
            self._written[key] = None
        return existed

    def rows(
        self,
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
        after: str = "",
    ) -> list[Row]:
        """See `Rows.rows`."""
        every = self.keys(prefix, descending=descending)
        keys = [key for key in every if key > after] if after else every
        found: list[Row] = []
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            for key, data in zip(part, self._fetch(part), strict=True):
                if data is None:
                    self._drop_dangling(key)
                elif len(found) != limit:
                    found.append(_row(key, data))
            if len(found) == limit:
                break
        return found

    def keys(self, prefix: str, *, descending: bool = False) -> list[str]:
        """See `Rows.keys`; an expired one may still be among them."""
        keys = set(self._reader.keys(prefix))
        for key, written in self._written.items():
            if key.startswith(prefix):
                (keys.discard if written is None else keys.add)(key)
        return sorted(keys, reverse=descending)

    def sizes(self, prefix: str, *, descending: bool = False) -> list[tuple[str, int]]:
        """See `Rows.sizes`."""
        keys = self.keys(prefix, descending=descending)
        sized: list[tuple[str, int]] = []
        for key, size in zip(keys, self._reader.sizes(keys), strict=True):
            written = self._written.get(key)
            if written is not None:
                sized.append((key, len(written[0])))
            elif size:
                sized.append((key, size))
            else:
                self._drop_dangling(key)
        return sized

    @property
    def written(self) -> list[str]:
        """The keys of the rows that change."""
        return list(self._written)

    def commands(self, names: Names) -> list[Command]:
        """Return the commands that make the changes, for one transaction."""
        commands: list[Command] = []
        for key, written in self._written.items():
            name = names.row(key)
            if written is None:
                commands += [("DEL", name), ("ZREM", names.index, key)]
                continue
            data, keep = written
            if keep is None:
                commands.append(("SET", name, data, "KEEPTTL"))
            else:
                commands.append(("SET", name, data, "PX", max(1, int(keep * 1000))))
            commands.append(("ZADD", names.index, 0, key))
        areas = sorted({area_of(key) for key in self._written})
        return commands + [("INCR", names.version(area)) for area in areas]

    def _stored(self, key: str) -> bytes | None:
        if key in self._written:
            written = self._written[key]
            return None if written is None else written[0]
        return self._reader.stored([key])[0]

    def _fetch(self, keys: list[str]) -> list[bytes | None]:
        unwritten = [key for key in keys if key not in self._written]
        read = dict(zip(unwritten, self._reader.stored(unwritten), strict=True))
        return [read[key] if key in read else self._stored(key) for key in keys]

    def _drop_dangling(self, key: str) -> None:
        """Remove a key from the index after its row expired."""
        self._written[key] = None


def _row(key: str, data: bytes) -> Row:
    try:
        return Row(key, decode(data), None)
    except RecordError as exc:
        return Row(key, None, str(exc))
