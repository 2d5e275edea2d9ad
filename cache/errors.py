"""What can go wrong in the store: one class per reaction."""

from __future__ import annotations

__all__ = ["CacheError", "HashPrefixError", "RecordError", "StoreUnavailable"]


class CacheError(Exception):
    """Base of all errors of `cache`."""


class StoreUnavailable(CacheError):
    """The store cannot be used now; the message tells the owner what to do."""


class RecordError(CacheError):
    """A record is not what it has to be; on reading it counts as absent."""


class HashPrefixError(CacheError):
    """A hash prefix fits no document, or more than one."""

    def __init__(self, detail: str, matches: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.matches = matches
