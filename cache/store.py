"""The store of one daemon, in a folder or on a server as the configuration says."""

from __future__ import annotations

from pathlib import Path

from cache.parts.calls import CallStore
from cache.parts.groups import GroupStore
from cache.parts.keys import KeyStore, end_all_keys
from cache.parts.leases import LeaseStore
from cache.parts.library import LibraryStore
from cache.parts.logs import LogStore
from cache.parts.negotiations import NegotiationStore
from cache.parts.peers import PeerStore
from cache.parts.shelf import StoreLimits
from cache.parts.subscriptions import SubscriptionStore
from cache.parts.usage import UsageStore
from cache.redis.database import RedisDatabase
from cache.redis.place import DEFAULT_PREFIX, RedisPlace
from cache.redis.server import RedisTimes


class Store(
    LibraryStore,
    NegotiationStore,
    PeerStore,
    KeyStore,
    CallStore,
    UsageStore,
    LogStore,
    LeaseStore,
    SubscriptionStore,
    GroupStore,
):
    """All data that outlives a run of the daemon; see `StoreBase`."""


def open_store(
    folder: Path,
    *,
    url: str | None = None,
    prefix: str = DEFAULT_PREFIX,
    ca_file: Path | None = None,
    owner: str = "",
    limits: StoreLimits | None = None,
    times: RedisTimes | None = None,
) -> Store:
    """Open the store in `folder`, or on the server that `url` names.

    Args:
        url: `redis://…`, `rediss://…` or `unix://…`; see `RedisPlace.parse`.
        prefix: Beginning of all keys on the server; one for each identity.
        ca_file: Certificates (PEM) for `rediss://`; None uses the system's.
        owner: Identity the store on the server belongs to; another's is refused.

    Raises:
        PlaceError: the URL or the prefix is invalid.
        StoreUnavailable: the store cannot be used now; the message says what to do.
    """
    if url is None:
        return Store(folder, limits)
    place = RedisPlace.parse(url, prefix=prefix, ca_file=ca_file)
    database = RedisDatabase(place, owner=owner, times=times, on_loss=end_all_keys)
    return Store(database, limits)
