"""Records put into a state that the product comes to in its own ways."""

from __future__ import annotations

from dataclasses import replace

from cache.parts.shelf import key_of
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
)
from cache.rows import Rows
from cache.store import Store


def set_state(
    store: Store,
    hash_: str,
    state: AgreementState,
    *,
    role: AgreementRole | None = None,
    revision: int | None = None,
) -> int:
    """Put a document's halves and the agreements on them into a state.

    Args:
        role: Only that role; None is both.
        revision: Only that revision; None is all.

    Returns:
        How many records changed.
    """
    hash_ = hash_.lower()

    def work(cache: Rows) -> int:
        records: list[HalfRecord | AgreementRecord] = [
            *store._halves(cache, hash_),
            *store._agreements_of(cache, hash_),
        ]
        changed = [
            replace(record, state=state)
            for record in records
            if role in {None, record.role}
            and revision in {None, record.revision}
            and record.state is not state
        ]
        for record in changed:
            store._shelf.put(cache, record)
        return len(changed)

    return store._database.write(work)


def set_agreement_state(
    store: Store, agreement: AgreementRecord, state: AgreementState
) -> None:
    """Put one agreement into a state; its half stays for other peers."""

    def work(cache: Rows) -> None:
        stored = store._shelf.get(cache, AgreementRecord, key_of(agreement))
        if stored is not None:
            store._shelf.put(cache, replace(stored, state=state))

    store._database.write(work)
