"""The store: agreements, documents, module halves, keys, and what is known of peers.

* `store`: the store of one daemon, put together from its parts and opened.
* `parts`: one part of the store for each kind of record.
* `records`: the records as plain data.
* `rows`: rows under text keys, and transactions over them.
* `disk`: the rows on disk.
* `redis`: the rows on a Redis or Valkey server.
* `errors`: the errors of the package, one class for each reaction.
"""

from cache.errors import CacheError, HashPrefixError, RecordError, StoreUnavailable
from cache.records.negotiations import (
    ModelCallRecord,
    NegotiationRecord,
    SpendRecord,
    StandingRecord,
)
from cache.records.peers import PeerRecord, PeerState, PinRecord
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    DocumentRecord,
    HalfRecord,
)
from cache.store import Store, StoreLimits

__all__ = [
    "AgreementRecord",
    "CacheError",
    "DocumentRecord",
    "HalfRecord",
    "HashPrefixError",
    "ModelCallRecord",
    "NegotiationRecord",
    "PeerRecord",
    "PeerState",
    "PinRecord",
    "RecordError",
    "AgreementRole",
    "SpendRecord",
    "StandingRecord",
    "AgreementState",
    "Store",
    "StoreLimits",
    "StoreUnavailable",
]
