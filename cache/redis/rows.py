"""Rows on Redis or Valkey, as a transaction sees them or as last read. Pure.

A row is a string under `<prefix>:row:<key>`; all keys are members of one sorted set,
which gives them in order. `<prefix>:version:<area>` counts the changes of an area. Rows
that were read lately are remembered for the time in which the server is away.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from cache.errors import RecordError
from cache.records.records import MAX_RECORD, decode_json, encode_json
from cache.rows import Row

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
        self.probe = f"{prefix}:probe"

    def row(self, key: str) -> str:
        """Return the name of a row."""
        return f"{self._prefix}:row:{key}"

    def version(self, area: str) -> str:
        """Return the name of the counter of changes to an area."""
        return f"{self._prefix}:version:{area}"

    def box(self, name: str) -> str:
        """Return the name of a box for letters."""
        return f"{self._prefix}:box:{name}"

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

    def page(
        self, prefix: str, *, limit: int, descending: bool, after: str, before: str
    ) -> list[str]:
        """Return at most `limit` of them, between `after` and `before`."""
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
        before: str = "",
    ) -> list[Row]:
        """See `Rows.rows`.

        Of a page no more keys are read than it needs, except where whole ranges are
        remembered for outages.
        """
        whole = limit < 0 or area_of(prefix) in AREAS
        every = self.keys(prefix, descending=descending) if whole else []
        left = [key for key in every if _is_between(key, after, before)]
        found: list[Row] = []
        while len(found) != limit:
            wanted = _CHUNK if limit < 0 else min(_CHUNK, limit - len(found))
            if whole:
                keys, left = left[:wanted], left[wanted:]
            else:
                keys = self._page(prefix, wanted, descending, after, before)
            for key, data in zip(keys, self._fetch(keys), strict=True):
                if data is None:
                    self._drop_dangling(key)
                else:
                    found.append(_row(key, data))
            if len(keys) < wanted:
                break
            after, before = (after, keys[-1]) if descending else (keys[-1], before)
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

    @property
    def changes(self) -> dict[str, bytes | None]:
        """The stored forms of the rows that change; None is for a deleted one."""
        return {
            key: None if written is None else written[0]
            for key, written in self._written.items()
        }

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

    def _page(
        self, prefix: str, limit: int, descending: bool, after: str, before: str
    ) -> list[str]:
        """Return the first keys of a range, with what the transaction changed."""
        changed = {key for key in self._written if key.startswith(prefix)}
        # So many may be deleted that the page needs others in their place.
        keys = self._reader.page(
            prefix,
            limit=limit + len(changed),
            descending=descending,
            after=after,
            before=before,
        )
        there = {key for key in changed if self._written[key] is not None}
        within = {key for key in there if _is_between(key, after, before)}
        return sorted({*keys} - changed | within, reverse=descending)[:limit]

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


def _is_between(key: str, after: str, before: str) -> bool:
    return key > after and (not before or key < before)


def _row(key: str, data: bytes) -> Row:
    try:
        return Row(key, decode(data), None)
    except RecordError as exc:
        return Row(key, None, str(exc))


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

    def forget(self, keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Forget rows that change, and every range they may be in.

        Returns:
            The ranges, by prefix, for `note_change` when the change has been made.
        """
        changed = list(keys)
        for key in changed:
            self._drop(("row", key))
        ranges = {
            name[1]: entry
            for name, entry in self._entries.items()
            if isinstance(entry, tuple) and any(k.startswith(name[1]) for k in changed)
        }
        for prefix in ranges:
            self._drop(("range", prefix))
        return ranges

    def note_change(
        self, changes: Mapping[str, bytes | None], ranges: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Remember rows as they were changed, and the ranges that `forget` gave."""
        for key, data in changes.items():
            self.note_row(key, data)
        for prefix, before in ranges.items():
            keys = set(before)
            for key, data in changes.items():
                if key.startswith(prefix):
                    (keys.discard if data is None else keys.add)(key)
            self.note_range(prefix, sorted(keys))

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

    def page(
        self, prefix: str, *, limit: int, descending: bool, after: str, before: str
    ) -> list[str]:
        """See `Reader.page`."""
        found = [key for key in self.keys(prefix) if _is_between(key, after, before)]
        return (found[::-1] if descending else found)[:limit]

    def sizes(self, keys: Sequence[str]) -> list[int]:
        """See `Reader.sizes`."""
        return [len(data or b"") for data in self.stored(keys)]


def _size(name: tuple[str, str], entry: _Entry) -> int:
    own = sum(map(len, entry)) if isinstance(entry, tuple) else len(entry or b"")
    # An estimate of Python's overhead.
    return own + len(name[1]) + 200
