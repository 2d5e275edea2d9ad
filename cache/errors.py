"""Errors of the store: one class for each way in which a caller reacts."""

from __future__ import annotations


class CacheError(Exception):
    """Base of all errors of `cache`."""


class StoreUnavailable(CacheError):
    """The store cannot be used now; the message tells the owner what to do."""


class StoreFull(StoreUnavailable):
    """There is no room for a change; all that is stored can be read."""


class StoreDamaged(StoreUnavailable):
    """The store cannot be read as what it was; only a backup or a new one helps."""


class RecordError(CacheError):
    """A record is invalid; one that is read so counts as absent."""


class LogConflict(CacheError):
    """A log has changed since the caller read it; who reads it again may go on."""


class LeaseLost(CacheError):
    """Another daemon of the fleet has what the caller would change."""


class HashPrefixError(CacheError):
    """A hash prefix matches no document, or more than one."""

    def __init__(self, detail: str, matches: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.matches = matches
