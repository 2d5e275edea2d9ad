"""Notices that a capability means something else than when its code was agreed.

A capability may be described in other words, with the same schemas, so that its code
still runs: a price in euros is one in cents from then on. The owner hears of it; an
agreement with side effects waits until the owner accepts the new words.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from anp.sidecar.agreement.rulings import subject_of_capability
from cache.records.negotiations import NegotiationRecord
from cache.records.records import AgreementRole, HalfRecord
from cache.store import Store
from negotiation.errors import APPROVAL_PENDING
from negotiation.need import Capability, meaning_hash

logger = logging.getLogger(__name__)

EVERY_PEER: Final = "local:anpd"
"Stands for the peer in entries of the owner's queue that concern all of them."

WAY: Final = "description"
"Stands for the way of a call in these entries."

MAX_ENTRIES: Final = 3
"Entries for one capability in a day; a further change replaces the newest one."

DAY: Final = 86_400.0

MAX_LOOKED: Final = 1000
"Most negotiations that are looked through for earlier entries."

MAX_SHOWN: Final = 300
"Most characters of a description in an entry."


class Meanings:
    """Compares capabilities with what they meant when a half was made for them."""

    def __init__(
        self, store: Store, *, on_waiting: Callable[[NegotiationRecord], None]
    ) -> None:
        """Begin; nothing is known as accepted or asked but what the store has.

        Args:
            on_waiting: Told of each new entry in the owner's queue.
        """
        self._store = store
        self._on_waiting = on_waiting
        self._asked: dict[str, str] = {}
        "Hash of the newest description that the owner was asked about, by capability."

    async def problem(
        self, half: HalfRecord, capabilities: Sequence[Capability]
    ) -> str | None:
        """Return why a half may not be used before the owner accepts, or None.

        What is read-only goes on; the owner is told all the same.
        """
        waits = None
        for one in capabilities:
            digest = meaning_hash(one)
            if half.meanings.get(one.name, digest) == digest:
                continue
            if await asyncio.to_thread(self._is_accepted, one.name, digest):
                continue
            await self._ask(one, digest)
            if not one.read_only:
                waits = f"the owner has to accept the new description of {one.name}"
        return waits

    def _is_accepted(self, name: str, digest: str) -> bool:
        return name in self._store.confirmed(EVERY_PEER, digest)

    async def _ask(self, capability: Capability, digest: str) -> None:
        if self._asked.get(capability.name) == digest:
            return
        # Set before the store is asked: calls that come at once ask together.
        self._asked[capability.name] = digest
        entry = await asyncio.to_thread(self._put, capability, digest)
        if entry is not None:
            logger.warning("description changed capability=%s", capability.name)
            self._on_waiting(entry)

    def _put(self, capability: Capability, digest: str) -> NegotiationRecord | None:
        now, name = time.time(), capability.name
        subject = subject_of_capability(WAY, name)
        earlier = [
            one
            for one in self._store.negotiations(limit=MAX_LOOKED)
            if (one.peer_did, one.subject) == (EVERY_PEER, subject)
        ]
        if earlier and (earlier[0].pending or {}).get("need") == digest:
            # The owner was asked, or has decided, before this daemon started.
            return None
        entry = NegotiationRecord(
            id=secrets.token_hex(8),
            peer_did=EVERY_PEER,
            role=AgreementRole.PROVIDER,
            need=None,
            turns=(),
            outcome=APPROVAL_PENDING,
            reason=f"{name} is described in other words than when its code was "
            f"agreed: {capability.description[:MAX_SHOWN]!r}",
            hash=None,
            started=now,
            ended=now,
            subject=subject,
            pending={
                "capability": name,
                "way": WAY,
                "read_only": capability.read_only,
                "unnamed": [name],
                "need": digest,
            },
        )
        today = [one for one in earlier if now - one.started < DAY]
        if len(today) >= MAX_ENTRIES and today[0].decision is None:
            entry = replace(entry, id=today[0].id, started=today[0].started)
        self._store.save_negotiation(entry)
        return entry
