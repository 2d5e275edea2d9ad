"""Reads and writes records in the database, and notes damaged rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar

from cache.errors import RecordError
from cache.records.negotiations import (
    ModelCallRecord,
    NegotiationRecord,
    SpendRecord,
    StandingRecord,
)
from cache.records.peers import (
    AddressRecord,
    AliasRecord,
    DidKeysRecord,
    KeyRecord,
    PeerRecord,
    PinRecord,
)
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    DocumentRecord,
    HalfRecord,
    Record,
    RevocationRecord,
    UsageRecord,
    open_envelope,
    seal,
)
from cache.rows import Row, Rows

__all__ = ["KINDS", "Damage", "Shelf", "key_of"]

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)

KINDS: dict[str, type[Record]] = {
    kind.kind: kind
    for kind in (
        DocumentRecord,
        HalfRecord,
        AgreementRecord,
        NegotiationRecord,
        StandingRecord,
        PeerRecord,
        AliasRecord,
        PinRecord,
        AddressRecord,
        DidKeysRecord,
        SpendRecord,
        ModelCallRecord,
        KeyRecord,
        RevocationRecord,
        UsageRecord,
    )
}
"""Every kind of record, by its name; the name is the first part of a key."""

_MAX_DAMAGED = 1000


@dataclass(frozen=True, slots=True)
class Damage:
    """A row without a valid record, which counts as absent."""

    key: str

    reason: str
    "Reason in words; quotes nothing of the row."


def key_of(record: Record) -> str:
    """Return the key that `record` is stored under.

    Keys are made so that each look-up is one range: a requester looks up by need, a
    provider, which never learns the need, by hash.
    """
    match record:
        case DocumentRecord():
            return f"document/{record.hash}"
        case HalfRecord():
            return f"half/{record.hash}/{record.role}/{record.revision:08d}"
        case AgreementRecord(role=AgreementRole.PROVIDER):
            parts = record.hash, record.peer_did, record.own_did
            return f"agreement/provider/{'/'.join(parts)}"
        case AgreementRecord():
            if record.need_key is None:
                raise RecordError("a requester's agreement needs a task key")
            parts = record.own_did, record.peer_did, record.need_key
            return f"agreement/requester/{'/'.join(parts)}/{record.hash}"
        case NegotiationRecord():
            area = "agreed" if record.agreed else "other"
            microseconds = int(record.started * 1e6)
            return f"negotiation/{area}/{microseconds:020d}/{record.id}"
        case StandingRecord():
            microseconds = int(record.created * 1e6)
            return f"standing/{record.peer_did}/{microseconds:020d}/{record.id}"
        case PeerRecord():
            return f"peer/{record.did}"
        case AliasRecord():
            return f"alias/{record.alias}"
        case PinRecord():
            return f"pin/{record.url}"
        case AddressRecord():
            return f"address/{record.agent}/{record.url}"
        case DidKeysRecord():
            return f"did_keys/{record.did}"
        case SpendRecord():
            return f"spend/{record.day}/{record.account}"
        case ModelCallRecord():
            microseconds = int(record.at * 1e6)
            return f"model_call/{record.day}/{microseconds:020d}/{record.id}"
        case KeyRecord():
            return f"key/{record.role}/{record.peer_did}/{record.id}"
        case RevocationRecord():
            return f"revocation/{record.hash}/{record.peer_did or '-'}"
        case UsageRecord():
            return f"usage/{record.hash or '-'}"
        case _:
            raise TypeError(f"no key for {type(record).__name__}")


class Shelf:
    """Reads and writes records; notes an invalid row and skips it."""

    def __init__(self) -> None:
        self._damaged: dict[str, Damage] = {}

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """The damaged rows found so far, at most 1,000."""
        return tuple(self._damaged.values())

    def put(self, cache: Rows, record: Record, *, keep: float | None = None) -> None:
        """Store `record`; RecordError if reading it back would fail.

        Args:
            keep: See `Rows.set`.
        """
        key = key_of(record)
        cache.set(key, seal(record, key), keep=keep)
        self._damaged.pop(key, None)

    def get(self, cache: Rows, kind: type[R], key: str) -> R | None:
        """Return the record under `key`, or None if it is absent or damaged."""
        try:
            value = cache.get(key)
        except RecordError as exc:
            self._note(Damage(key, str(exc)))
            return None
        return None if value is None else self.open(kind, Row(key, value, None))

    def scan(
        self,
        cache: Rows,
        kind: type[R],
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
    ) -> list[R]:
        """Return the valid ones of the first `limit` records below `prefix`."""
        rows = cache.rows(prefix, limit=limit, descending=descending)
        records = (self.open(kind, row) for row in rows)
        return [record for record in records if record is not None]

    def open(self, kind: type[R], row: Row) -> R | None:
        """Return the record in `row`; None if it is invalid, which is noted."""
        try:
            if row.damage is not None:
                raise RecordError(row.damage)
            record = open_envelope(kind, row.key, row.value)
            if key_of(record) != row.key:
                raise RecordError("is stored under the key of another record")
        except RecordError as exc:
            self._note(Damage(row.key, str(exc)))
            return None
        return record

    def check(self, cache: Rows) -> None:
        """Read every row, so that `damaged` is complete."""
        for key in cache.keys(""):
            kind = KINDS.get(key.partition("/")[0])
            if kind is None or not key.isascii():
                self._note(Damage(key, "of no known kind"))
            elif self.get(cache, kind, key) is None:
                # The index lists a key without a row; known damage of it stays.
                self._note(Damage(key, "not found under its key"))

    def _note(self, damage: Damage) -> None:
        if damage.key in self._damaged or len(self._damaged) >= _MAX_DAMAGED:
            return
        self._damaged[damage.key] = damage
        logger.error(
            "record damaged key=%r reason=%r", damage.key[:200], damage.reason[:200]
        )
