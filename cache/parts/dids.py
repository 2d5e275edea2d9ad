"""The part of the store for the keys of DIDs on the web."""

from __future__ import annotations

from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of
from cache.records.dids import DidKeysRecord
from cache.rows import Rows

__all__ = ["MAX_DIDS", "DidStore"]

MAX_DIDS = 20_000
"""DIDs whose keys are remembered. Above it the longest unchanged ones are dropped,
except those in `keep`."""


class DidStore(AgreementStore):
    """Stores the keys that each DID was met with; see `AgreementStore`."""

    def save_did_keys(
        self, record: DidKeysRecord, *, keep: frozenset[str] = frozenset()
    ) -> None:
        """Store or replace the record of a DID's keys.

        Args:
            keep: DIDs whose keys are never dropped to make room.
        """

        def work(cache: Rows) -> None:
            is_new = key_of(record) not in cache
            self._shelf.put(cache, record)
            if not is_new or len(cache.keys("did_keys/")) <= MAX_DIDS:
                return
            known = self._shelf.scan(cache, DidKeysRecord, "did_keys/")
            loose = [entry for entry in known if entry.did not in keep]
            loose.sort(key=lambda entry: entry.seen)
            # Drops a tenth at once, so that a flood of strangers rarely pays for this.
            for entry in loose[: MAX_DIDS // 10]:
                cache.delete(key_of(entry))

        self._database.write(work)

    def did_keys(self, did: str) -> DidKeysRecord | None:
        """Return the record of a DID's keys, or None."""
        return self._database.read(
            lambda cache: self._shelf.get(cache, DidKeysRecord, f"did_keys/{did}")
        )

    def changed_dids(self) -> list[DidKeysRecord]:
        """Return the DIDs with new keys that wait for the owner's decision."""
        found = self._database.read(
            lambda cache: self._shelf.scan(cache, DidKeysRecord, "did_keys/")
        )
        return [record for record in found if record.waiting]

    def forget_did_keys(self, did: str) -> bool:
        """Drop the record of a DID's keys; return whether there was one."""
        return self._database.write(lambda cache: bool(cache.delete(f"did_keys/{did}")))
