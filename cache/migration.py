"""Brings the records of a store to the version that this program writes, once.

A step changes the stored fields of one kind of record. Whatever no step makes readable
stays as it is, and is named wherever the store is examined.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cache.errors import RecordError, StoreUnavailable
from cache.parts.shelf import StoreBase, key_of
from cache.records.peers import AddressRecord, AliasRecord, PeerRecord, PinRecord
from cache.records.records import KINDS, VERSION, Record, open_value

BATCH: Final = 100
"Records that are looked at, or changed, in one transaction."

Fields = dict[str, Any]
AgentOf = Callable[[str], str]
"Returns the one DID that stands for all that surely are of the key of a DID."


def _with_need(fields: Fields, agent_of: AgentOf) -> Fields:
    """Rename two fields: a need was called a task in version 0."""
    names = {"task": "need", "task_key": "need_key"}
    return {names.get(name, name): value for name, value in fields.items()}


def _with_agent(fields: Fields, agent_of: AgentOf) -> Fields:
    """Add the agent, so that any DID of the peer finds the pin."""
    return {**fields, "agent": agent_of(fields["did"])}


STEPS: Final[dict[str, Callable[[Fields, AgentOf], Fields]]] = {
    "agreement": _with_need,
    "negotiation": _with_need,
    "pin": _with_agent,
}
"Makes the fields of version 1 of those of version 0, by the kind of record."


def outdated(store: StoreBase, agent_of: AgentOf) -> list[str]:
    """Return the keys of the rows that a migration changes or adds to."""
    if store.version == VERSION:
        return []
    keys = store.all_keys()
    known, found = set(keys), []
    for start in range(0, len(keys), BATCH):
        for key, value in store.values(keys[start : start + BATCH]).items():
            made = [key_of(one) for one in upgrades_of(key, value, agent_of)]
            if key in made or not known.issuperset(made):
                found.append(key)
    return found


def migrate(store: StoreBase, agent_of: AgentOf, *, backup: Path) -> int:
    """Change all records of earlier versions; return how many these were.

    Args:
        backup: Where the whole store is copied before the first change; one that is
            there already is of a migration that was interrupted, and stays.

    Raises:
        StoreUnavailable: The store is of a later version, or cannot be changed.
    """
    if store.version > VERSION:
        raise StoreUnavailable(
            "cache: the store was written by a later version of anpd; use that one, or "
            f"a backup of an earlier one, such as {backup}"
        )
    found = outdated(store, agent_of)
    if found and not backup.exists():
        store.back_up(backup)
    for start in range(0, len(found), BATCH):
        batch = store.values(found[start : start + BATCH])
        store.put_all(
            one
            for key, value in batch.items()
            for one in upgrades_of(key, value, agent_of)
        )
    return len(found)


def upgrades_of(key: str, value: object, agent_of: AgentOf) -> list[Record]:
    """Return the records of the present version that a row of an earlier one becomes.

    They are its own, if that changes, and those by which it is found. An empty list
    means that the row stays as it is.
    """
    kind = KINDS.get(key.partition("/")[0])
    if kind is None:
        return []
    try:
        fields, is_changed = open_value(kind, key, value), False
        try:
            record = kind.from_json(fields)
        except RecordError:
            record, is_changed = (
                kind.from_json(STEPS[kind.kind](fields, agent_of)),
                True,
            )
        if key_of(record) != key:
            return []
    except (RecordError, KeyError, TypeError):
        # No step makes it readable.
        return []
    made = [record] if is_changed else []
    match record:
        case PeerRecord():
            made += [AliasRecord(alias, record.did) for alias in record.aliases]
        case PinRecord():
            made += [AddressRecord(record.agent, record.url, record.created)]
    return made
