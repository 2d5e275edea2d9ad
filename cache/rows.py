"""Rows under text keys and transactions over them, for both back ends. Pure.

A value is JSON or bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it was read."""

    key: str

    value: object
    "JSON value or bytes; None if `damage` is set."

    damage: str | None
    "Reason why it cannot be read, or None."


@dataclass(frozen=True, slots=True)
class Room:
    """The room on the disk of a store, or in the memory of its server."""

    free: int
    "Bytes."

    total: int
    "Bytes."


class Rows(Protocol):
    """The rows as one transaction sees them, its own changes included."""

    def __contains__(self, key: str) -> bool:
        """Return whether there is a row, readable or not."""
        ...

    def get(self, key: str) -> object:
        """Return a value, or None if there is none; RecordError if it is damaged."""
        ...

    def set(self, key: str, value: object, *, keep: float | None = None) -> object:
        """Store a value.

        Args:
            keep: Seconds after which the row may be dropped, if that is known. A row
                that is stored again keeps its time.
        """
        ...

    def delete(self, key: str) -> bool:
        """Delete a row; return whether there was one."""
        ...

    def rows(
        self,
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
        after: str = "",
        before: str = "",
    ) -> list[Row]:
        """Return rows whose key begins with `prefix`, in order of their keys.

        Args:
            after: Only rows whose key comes later than this one.
            before: Only rows whose key comes earlier than this one.
        """
        ...

    def keys(self, prefix: str, *, descending: bool = False) -> list[str]:
        """Return the keys that begin with `prefix`; no value is read."""
        ...

    def sizes(self, prefix: str, *, descending: bool = False) -> list[tuple[str, int]]:
        """Return such keys and the sizes of their values in bytes."""
        ...


class StoreBackend(Protocol):
    """A place where rows are kept. Its methods block; any thread may call them.

    All but `close` raise `StoreUnavailable` with one line for the owner.
    """

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        ...

    @property
    def is_shared(self) -> bool:
        """True when daemons on other machines may use the same rows."""
        ...

    @property
    def thread(self) -> Executor | None:
        """The thread in which all work is done anyhow; None if any thread will do.

        Work that is given to it directly waits for one thread, and not for two.
        """
        ...

    def read(self, work: Callable[[Rows], T]) -> T:
        """Return the result of `work`, which only reads."""
        ...

    def write(self, work: Callable[[Rows], T], *, aside: bool = False) -> T:
        """Run `work` in one transaction and make all its changes, or none.

        `work` may run several times; only the last run counts.

        Args:
            aside: True for rows by which no call finds its way; `writes` stays.
        """
        ...

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """Remember `names` for `keep` seconds, unless one of them is remembered.

        Returns:
            True when none of them was; of two callers at once, only one gets True.
        """
        ...

    @property
    def writes(self) -> int | None:
        """Number of write transactions since it was opened, less those aside.

        While it stands still, every call finds the way that it found before. None when
        other daemons may write, too.
        """
        ...

    def changes(self, area: str) -> int:
        """Return a number that grows when another daemon changes a row of `area`.

        An area is the first part of a key. Without other daemons the number stays.
        """
        ...

    def send_mail(self, box: str, letter: bytes) -> None:
        """Put a letter into the box of another daemon that uses the same rows."""
        ...

    def mail(self, box: str, after: str, wait: float) -> tuple[str, list[bytes]]:
        """Return the letters of a box, and the place of the last; one caller at a time.

        Those up to `after` are dropped.

        Args:
            after: The place up to which they were read; `0` at the beginning.
            wait: Most seconds to wait when there are none.
        """
        ...

    def check(self) -> list[str]:
        """Return the faults of the whole store, other than damaged rows."""
        ...

    def probe(self) -> None:
        """Write something, read it back and delete it; no row changes."""
        ...

    def room(self) -> Room | None:
        """Return the room where the rows are, or None if nothing limits it."""
        ...

    def compact(self) -> tuple[int, int]:
        """Give back the room of deleted rows.

        Returns:
            Bytes that the rows took before and take now; zeros where rows that are
            deleted leave no gap.
        """
        ...

    def close(self) -> None:
        """Close it; a second call does nothing."""
        ...
