"""The base of the store's parts: records in rows, transactions, and damaged rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from cache.disk import LOCK_TIMEOUT, Database
from cache.errors import RecordError
from cache.records.groups import (
    GroupLeaseRecord,
    GroupPageRecord,
    GroupRecord,
    GroupRowRecord,
)
from cache.records.logs import (
    LogEventRecord,
    LogItemRecord,
    LogLeaseRecord,
    LogMarkRecord,
    LogNameRecord,
    LogRecord,
)
from cache.records.negotiations import (
    AnswerRecord,
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
    NameRecord,
    PeerRecord,
    PinRecord,
    RulingRecord,
)
from cache.records.records import (
    KINDS,
    AgreementRecord,
    AgreementRole,
    CallRecord,
    ConfirmedRecord,
    DocumentRecord,
    HalfRecord,
    Record,
    RevocationRecord,
    UsageRecord,
    WithdrawnRecord,
    hash_text,
    open_envelope,
    seal,
)
from cache.records.subscriptions import FiringRecord, SubscriptionRecord
from cache.rows import Room, Row, Rows, StoreBackend

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R", bound=Record)
T = TypeVar("T")

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
        case RulingRecord():
            return "ruling/last"
        case PinRecord():
            return f"pin/{record.url}"
        case AddressRecord():
            return f"address/{record.agent}/{record.url}"
        case NameRecord():
            return f"name/{record.name}"
        case DidKeysRecord():
            return f"did_keys/{record.did}"
        case AnswerRecord():
            return f"answer/{record.question}"
        case SpendRecord():
            return f"spend/{record.day}/{record.account}"
        case ModelCallRecord():
            microseconds = int(record.at * 1e6)
            return f"model_call/{record.day}/{microseconds:020d}/{record.id}"
        case KeyRecord():
            return f"key/{record.role}/{record.peer_did}/{record.id}"
        case CallRecord():
            return f"call/{record.id}"
        case LogRecord():
            return f"log/{record.id}"
        case LogEventRecord():
            return f"log_event/{record.log}/{record.number:012d}"
        case LogItemRecord():
            return f"log_item/{record.log}/{record.id}"
        case LogLeaseRecord():
            return f"log_lease/{record.item}"
        case LogMarkRecord():
            return f"log_mark/{record.area}/{record.id}"
        case SubscriptionRecord():
            return f"subscription/{record.id}"
        case FiringRecord():
            return f"firing/{record.subscription}/{record.number:012d}"
        case LogNameRecord():
            return f"log_name/{record.name}"
        case GroupRecord():
            return f"group/{record.id}"
        case GroupLeaseRecord():
            return f"group_lease/{record.group}"
        case GroupRowRecord():
            return f"group_row/{record.group}/{record.name}"
        case GroupPageRecord():
            return f"group_page/{record.group}/{record.first:012d}"
        case RevocationRecord():
            return f"revocation/{record.hash}/{record.peer_did or '-'}"
        case WithdrawnRecord():
            # A name may be in any script, and keys are ASCII.
            parts = record.role, record.peer_did or "-", hash_text(record.capability)
            return f"withdrawn/{'/'.join(parts)}"
        case ConfirmedRecord():
            parts = record.peer_did, record.need, hash_text(record.capability)
            return f"confirmed/{'/'.join(parts)}"
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
        before: str = "",
    ) -> list[R]:
        """Return the valid ones of the first `limit` records below `prefix`.

        Args:
            before: See `Rows.rows`.
        """
        rows = cache.rows(prefix, limit=limit, descending=descending, before=before)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits on data whose amount others determine."""

    lock_timeout: float = LOCK_TIMEOUT
    "Seconds to wait for another process that holds the database."

    max_failed_negotiations: int = 1000
    "Negotiations without agreement that are kept; the oldest are dropped first."

    max_failed_bytes: int = 64 * 1024 * 1024
    """Bytes of all kept negotiations without agreement; one transcript can have
    megabytes."""

    max_agreed_negotiations: int = 10_000
    "Negotiations with an agreement that are kept; the bounds are shared by who called."

    max_agreed_bytes: int = 256 * 1024 * 1024
    "Bytes of all kept negotiations with an agreement."

    max_provided: int = 2000
    """Agreements that one peer may have called for, or all peers together about which
    the owner decided nothing; the longest unused go first."""

    max_strangers: int = 1000
    "Peers kept about which the owner decided nothing; the longest unseen go first."


class StoreBase:
    """Opens and closes the rows of a store; each part adds the methods of its records.

    Methods block for a disk access: call them in a thread. Any number of threads may
    call them at once. A method that returns has stored its changes durably; otherwise
    it raises one of these:

    StoreUnavailable: the disk is full, the file damaged, or held by another process.
    RecordError: the record to store is invalid.
    """

    def __init__(
        self, place: Path | StoreBackend, limits: StoreLimits | None = None
    ) -> None:
        """Open or make the store in a folder, or use a back end; `close` closes it."""
        self._limits = limits or StoreLimits()
        self._shelf = Shelf()
        self._database: StoreBackend = (
            Database(place, lock_timeout=self._limits.lock_timeout)
            if isinstance(place, Path)
            else place
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; a second call does nothing."""
        if self._database.is_open:
            self._database.close()

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Rows found damaged so far; each counts as absent, all others are usable."""
        return self._shelf.damaged

    @property
    def is_shared(self) -> bool:
        """True when other daemons may use the same store."""
        return self._database.is_shared

    @property
    def thread(self) -> Executor | None:
        """See `StoreBackend.thread`."""
        return self._database.thread

    @property
    def writes(self) -> int | None:
        """Number of writes that tell calls their way; see `StoreBackend.writes`."""
        return self._database.writes

    def changes(self, area: str) -> int:
        """Return a number that grows when another daemon changes records of a kind.

        Args:
            area: `agreement`, `half`, `peer`… Without other daemons the number stays.
        """
        return self._database.changes(area)

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """Remember `names` for `keep` seconds, unless one of them is remembered.

        Returns:
            True when none of them was; all daemons of one store share one memory.
        """
        return self._database.first_time(names, keep=keep)

    def check(self) -> tuple[list[str], tuple[Damage, ...]]:
        """Read everything; return the faults of the whole store, and damaged rows."""
        self._database.read(self._shelf.check)
        return self._database.check(), self.damaged

    def probe(self) -> None:
        """Write something and read it back; see `StoreBackend.probe`."""
        self._database.probe()

    def room(self) -> Room | None:
        """Return the room where the store is; see `StoreBackend.room`."""
        return self._database.room()

    def check_file(self) -> list[str]:
        """Return the faults of the whole store, without a look at each record."""
        return self._database.check()

    def compact(self) -> tuple[int, int]:
        """Give back the room of what was deleted; see `StoreBackend.compact`."""
        return self._database.compact()

    # For the parts.

    def _get(self, kind: type[R], key: str) -> R | None:
        """Return one record in a transaction of its own; see `Shelf.get`."""
        return self._database.read(lambda cache: self._shelf.get(cache, kind, key))

    def _scan(
        self, kind: type[R], prefix: str, *, limit: int = -1, descending: bool = False
    ) -> list[R]:
        """Return records in a transaction of its own; see `Shelf.scan`."""
        return self._database.read(
            lambda cache: self._shelf.scan(
                cache, kind, prefix, limit=limit, descending=descending
            )
        )


S = TypeVar("S", bound=StoreBase)


def read_transaction(
    method: Callable[Concatenate[S, Rows, P], T],
) -> Callable[Concatenate[S, P], T]:
    """Make a method one transaction that only reads; its callers give no rows.

    It runs in the database's thread, so it must not call such methods itself.
    """

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._database.read(lambda cache: method(self, cache, *args, **kwargs))

    return run


def write_transaction(
    method: Callable[Concatenate[S, Rows, P], T],
) -> Callable[Concatenate[S, P], T]:
    """Make a method one transaction that changes rows; all its changes last, or none.

    As with `read_transaction`, its callers give no rows. It may run several times; only
    the last run counts.
    """

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._database.write(lambda cache: method(self, cache, *args, **kwargs))

    return run


def aside_transaction(
    method: Callable[Concatenate[S, Rows, P], T],
) -> Callable[Concatenate[S, P], T]:
    """Make a method a write transaction by which no call is looked up anew.

    For what changes often and tells no call its way: counts of use, keys, logs.
    """

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._database.write(
            lambda cache: method(self, cache, *args, **kwargs), aside=True
        )

    return run
