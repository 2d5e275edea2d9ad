"""Templates of our needs in words, kept for each peer."""

from __future__ import annotations

import asyncio
import hashlib
import logging

from anp.sidecar.minds.accounts import NO_COST, Cost, Spending
from anp.sidecar.minds.minds import Think
from negotiation.errors import MindError
from negotiation.mind import Demand
from negotiation.rules.templates import (
    Template,
    is_wordy,
    read_by,
    templated,
    values_in_words,
)
from negotiation.strict_json import canonical_json

logger = logging.getLogger(__name__)

KEPT = 10 * 365 * 86_400.0
"Seconds that the templates of a peer are kept, unless they make room."

MAX_TEMPLATES = 40
"Templates kept of one peer, the newest ones."


class Templates:
    """Makes arguments of the values in the words of needs (DESIGN.md, Needs).

    A sentence that a remembered template reads costs nothing. The values of another one
    are marked by the owner's model; without a model its words stay as they are.
    """

    def __init__(self, think: Think, spending: Spending) -> None:
        self._think = think
        self._spending = spending
        self._lock = asyncio.Lock()

    async def known(self, peer_did: str, demand: Demand) -> Demand:
        """Return a need as a remembered template reads it; else the need itself."""
        if not is_wordy(demand):
            return demand
        return read_by(await self._of(peer_did), demand) or demand

    async def marked(self, peer_did: str, demand: Demand) -> tuple[Demand, Cost]:
        """Return a need with the values of its words as arguments, and the cost.

        The need is returned itself when it has no such values, when there is no model,
        or when the model fails. Where the caller gives data, only words that look like
        values are worth a question, and the same words are asked about once.
        """
        words = demand.need.requirement.strip()
        if not is_wordy(demand) or (demand.arguments and not values_in_words(words)):
            return demand, NO_COST
        plain = _key("words without values", words)
        if await self._spending.known(plain) is not None:
            return demand, NO_COST
        thinking = self._think(peer_did, ours=True)
        if thinking.model is None:
            return demand, NO_COST
        try:
            marks = await thinking.model.mark_values(words)
        except MindError as exc:
            # The call goes on with its words; their protocol serves only these.
            logger.warning("values not marked reason=%r", str(exc)[:200])
            return demand, thinking.cost()
        async with self._lock:
            known = await self._of(peer_did)
            made = templated(demand, marks, known)
            if made is None:
                await self._spending.keep(plain, {}, seconds=KEPT)
                return demand, thinking.cost()
            template, taken = made
            if template not in known:
                await self._keep(peer_did, template, known)
        return taken, thinking.cost()

    async def _of(self, peer_did: str) -> list[Template]:
        found = await self._spending.known(_key("templates", peer_did)) or {}
        return [
            Template(
                one["text"], {name: tuple(all_) for name, all_ in one["shapes"].items()}
            )
            for one in found.get("templates", [])
        ]

    async def _keep(
        self, peer_did: str, template: Template, known: list[Template]
    ) -> None:
        others = [one for one in known if one.text != template.text]
        newest = [*others, template][-MAX_TEMPLATES:]
        kept = {
            "templates": [
                {
                    "text": one.text,
                    "shapes": {name: [*all_] for name, all_ in one.shapes.items()},
                }
                for one in newest
            ]
        }
        await self._spending.keep(_key("templates", peer_did), kept, seconds=KEPT)


def _key(*parts: str) -> str:
    return hashlib.sha256(canonical_json(list(parts))).hexdigest()
