"""The store of one daemon, in a folder or on a server as the configuration says."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from cache.errors import StoreUnavailable
from cache.migration import AgentOf, migrate
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
from cache.safeguard import Safeguard, refuses

logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHome:
    """The home that a store belongs to, for a daemon that works with the store."""

    safeguard: Path
    "The file beside the store; see `Safeguard`."

    agent_of: AgentOf
    new_store: bool = False
    "The owner said that the home goes on with the store as it is now."


def open_store(
    folder: Path,
    *,
    url: str | None = None,
    prefix: str = DEFAULT_PREFIX,
    ca_file: Path | None = None,
    owner: str = "",
    limits: StoreLimits | None = None,
    times: RedisTimes | None = None,
    home: OwnHome | None = None,
) -> Store:
    """Open the store in `folder`, or on the server that `url` names.

    Args:
        url: `redis://…`, `rediss://…` or `unix://…`; see `RedisPlace.parse`.
        prefix: Beginning of all keys on the server; one for each identity.
        ca_file: Certificates (PEM) for `rediss://`; None uses the system's.
        owner: Identity the store on the server belongs to; another's is refused.
        home: Checks that the store is that of the home, and brings its records to the
            present version; None only looks.

    Raises:
        PlaceError: the URL or the prefix is invalid.
        StoreUnavailable: the store cannot be used now; the message says what to do.
    """
    if url is None:
        name, store = str(folder), Store(folder, limits)
    else:
        place = RedisPlace.parse(url, prefix=prefix, ca_file=ca_file)
        name = f"{place.shown} (prefix {place.prefix})"
        database = RedisDatabase(place, owner=owner, times=times, on_loss=end_all_keys)
        store = Store(database, limits)
    if home is not None:
        try:
            _settle(store, home, name=name, backup=folder)
        except BaseException:
            store.close()
            raise
    return store


def _settle(store: Store, home: OwnHome, *, name: str, backup: Path) -> None:
    """Check that a store is that of a home, migrate it, and put the file beside it.

    Raises:
        StoreUnavailable: It holds less than the home knows, or it cannot be changed.
    """
    safeguard = Safeguard(home.safeguard)
    store.expected = safeguard.store
    is_new = home.new_store or safeguard.is_new
    if store.was_emptied and not is_new:
        raise StoreUnavailable(
            f"cache: {name} is empty, or is not the store that {home.safeguard.parent} "
            "worked with: agreements, allowed peers, pins and budgets are not in it. "
            "Restore it from a backup (docs/operation.md), or go on with it as it is "
            "with: anpd up --new-store. Blocks and revocations are kept beside it"
        )
    was_empty = store.is_empty
    count = migrate(
        store, home.agent_of, backup=backup.with_name(f"{backup.name}.version-0")
    )
    if count:
        logger.warning("records migrated count=%d backup=%s.version-0", count, backup)
    found = store.identify(secrets.token_hex(16), at=time.time())
    if found.id != safeguard.store:
        safeguard.belong(found.id)
        if home.new_store or not was_empty:
            logger.warning("the home noted its store id=%s store=%s", found.id, name)
    store.expected = found.id
    _agree(store, safeguard, restores=is_new or not store.is_shared)
    store.follow(safeguard)


def _agree(store: Store, safeguard: Safeguard, *, restores: bool) -> None:
    """Have a store and the file beside it hold the same refusals.

    Args:
        restores: Put into the store what it lacks. A store of several daemons may lack
            it because another one ended it, so that there it counts here alone.
    """
    here = store.refusals()
    lost = [key for key in safeguard.rows if key not in here]
    if lost:
        logger.warning("refusals that only the home held count=%d %s", len(lost), lost)
    if lost and restores:
        store.restore({key: safeguard.rows[key] for key in lost})
    elif lost:
        safeguard.alone = frozenset(lost)
    safeguard.take({key: one for key, one in here.items() if refuses(key, one)})
