"""Questions to our mind after a negotiation: repairs, faults, answers, test cases.

Each gets a mind with an account of its own, as a negotiation does. What the model was
asked joins the record of the negotiation that the protocol came from, where the owner
looks for it, and what it cost joins the call at hand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from anp.sidecar.minds.accounts import MAX_EXCHANGES, NO_COST, Cost, Exchanged
from anp.sidecar.minds.minds import Think, Thinking
from cache.errors import CacheError
from cache.records.negotiations import NegotiationRecord
from cache.store import Store
from negotiation.errors import MindError
from negotiation.mind import Mind, Side

logger = logging.getLogger(__name__)


class Bill:
    """Costs that no call has taken into account yet."""

    def __init__(self) -> None:
        self._cost = NO_COST

    def add(self, cost: Cost) -> None:
        """Put a cost on the bill."""
        self._cost += cost

    def take(self) -> Cost:
        """Return the sum and begin anew, so that nothing is counted twice."""
        taken, self._cost = self._cost, NO_COST
        return taken


class Afterwards:
    """Gives minds for repairs, questions and test cases after a negotiation."""

    def __init__(self, store: Store, think: Think) -> None:
        self._store = store
        self._think = think
        # Records are read, changed and written; one at a time.
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def think(
        self,
        peer_did: str,
        *,
        ours: bool,
        negotiation_id: str | None,
        bill: Bill | None = None,
    ) -> AsyncIterator[Thinking]:
        """Give a mind for one matter; see `Minds.think`.

        Args:
            negotiation_id: The negotiation that made the protocol, if it is known.
            bill: Gets what it costs.
        """
        seen: list[Exchanged] = []
        thinking = self._think(
            peer_did, ours=ours, negotiation_id=negotiation_id, watch=seen.append
        )
        try:
            yield thinking
        finally:
            cost = thinking.cost()
            if bill is not None:
                bill.add(cost)
            if negotiation_id is not None and cost.model_calls:
                # A cancelled repair was paid for as well.
                await asyncio.shield(self._keep(negotiation_id, cost.model_calls, seen))

    async def _keep(
        self, negotiation_id: str, calls: int, seen: Sequence[Exchanged]
    ) -> None:
        async with self._lock:
            try:
                await asyncio.to_thread(self._add, negotiation_id, calls, seen)
            except CacheError as exc:
                # The ledger has the cost; only the owner's view lacks something.
                logger.error("questions to the model not recorded reason=%s", exc)

    def _add(self, negotiation_id: str, calls: int, seen: Sequence[Exchanged]) -> None:
        def change(record: NegotiationRecord) -> NegotiationRecord:
            shown = (*record.exchanges, *(one.shown() for one in seen))
            return replace(
                record,
                model_calls=record.model_calls + calls,
                exchanges=shown[-MAX_EXCHANGES:],
            )

        self._store.change_negotiation(negotiation_id, change)


async def words_of(mind: Mind, question: str, side: Side) -> str:
    """Return a mind's answer to a peer's question, empty when it has none (ANP-64)."""
    try:
        return await mind.answer(question, side)
    except MindError as exc:
        logger.info("question not answered reason=%r", str(exc)[:200])
        return ""
