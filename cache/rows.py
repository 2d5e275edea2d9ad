"""What both back ends share: rows under text keys, and transactions over them. Pure.

A value is JSON or bytes. Its stored form is compared with what we would write for it,
so a row in which one byte changed is never read, whatever that byte means to JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar

from cache.errors import RecordError

__all__ = ["Backend", "Row", "Rows", "decode_json", "encode_json"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it was found."""

    key: str
    "Its key."

    value: object
    "JSON value or bytes; None if `damage` is set."

    damage: str | None
    "Why it cannot be read, or None."


class Rows(Protocol):
    """The rows as one transaction sees them; what it wrote itself is among them."""

    def __contains__(self, key: str) -> bool:
        """Say whether there is a row, readable or not."""
        ...

    def get(self, key: str) -> object:
        """Return a value, or None if there is none; RecordError if damaged."""
        ...

    def set(self, key: str, value: object, *, keep: float | None = None) -> object:
        """Store a value.

        Args:
            keep: Seconds after which nobody asks for it, if that is known. It may go
                then, and may not; a row that is stored again keeps its time.
        """
        ...

    def delete(self, key: str) -> bool:
        """Drop a row; say whether there was one."""
        ...

    def rows(
        self,
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
        after: str = "",
    ) -> list[Row]:
        """Return rows whose key begins with `prefix`, in order of their keys.

        Args:
            after: Only rows whose key comes later than this one.
        """
        ...

    def keys(self, prefix: str, *, descending: bool = False) -> list[str]:
        """Return such keys; no value is read."""
        ...

    def sizes(self, prefix: str, *, descending: bool = False) -> list[tuple[str, int]]:
        """Return such keys and the sizes of their values in bytes."""
        ...


class Backend(Protocol):
    """Where rows are kept. Its methods block; call them from any thread.

    All but `close` raise `StoreUnavailable` with one line that says what to do.
    """

    @property
    def is_open(self) -> bool:
        """Whether `close` was not called yet."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether daemons on other machines may use the same rows."""
        ...

    def read(self, work: Callable[[Rows], T]) -> T:
        """Return what `work`, which writes nothing, returns."""
        ...

    def write(self, work: Callable[[Rows], T]) -> T:
        """Run `work` in one transaction: all of it lasts, or nothing of it happened.

        It may run several times, of which only the last counts.
        """
        ...

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """Remember `names` for `keep` seconds, unless one of them is remembered.

        Returns:
            Whether none was; of two that ask at once, one gets that answer.
        """
        ...

    def changes(self, area: str) -> int:
        """Return a number that grows when another daemon changes a row of `area`.

        An area is the first part of its keys. Without other daemons it stands still.
        """
        ...

    def check(self) -> list[str]:
        """Return what is wrong with the whole, besides single rows."""
        ...

    def close(self) -> None:
        """Close it; a second time does nothing."""
        ...


def encode_json(value: object) -> str:
    """Return the one stored form of a JSON value; ASCII only.

    Raises:
        TypeError, ValueError: it is not JSON.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def decode_json(text: str) -> object:
    """Return the value in `text`; RecordError if we did not write it so."""
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
        # Another spelling of the same value, such as \u00E9, is damage as well.
        fits = encode_json(value) == text
    except (ValueError, RecursionError):
        raise RecordError("the value is not JSON") from None
    if not fits:
        raise RecordError("the value is not as we write it")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
