"""Stores agreements, documents, module halves and facts about peers on disk."""

from cache.errors import CacheError, HashPrefixError, RecordError, StoreUnavailable
from cache.records.records import (
    AgreementRecord,
    DocumentRecord,
    HalfRecord,
    NegotiationRecord,
    PeerRecord,
    PeerState,
    PinRecord,
    Role,
    StandingRecord,
    State,
)
from cache.records.spending import ModelCallRecord, SpendRecord
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
    "Role",
    "SpendRecord",
    "StandingRecord",
    "State",
    "Store",
    "StoreLimits",
    "StoreUnavailable",
]
