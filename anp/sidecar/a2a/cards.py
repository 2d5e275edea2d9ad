"""The cards of this daemon: its own, one per attachment, and those of known callers."""

from __future__ import annotations

from typing import Any

from anp.protocols.a2a.words import A2aError, A2aFault
from anp.sidecar.a2a.card import CardFacts, make_card
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.schemes import Schemes
from anp.sidecar.config.a2a import A2aConfig
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.tasks.choice import Reach


class A2aCards:
    """Makes the cards of what is exposed at the moment."""

    def __init__(self, facts: CardFacts, gate: Gate) -> None:
        self._facts = facts
        self._gate = gate

    async def card(self, caller: A2aCaller | None, agent: str) -> dict[str, Any] | None:
        """Return the card that a caller may see; of an agent, None if there is none.

        Args:
            caller: None for everybody.
            agent: Name of an attachment; empty for the daemon.
        """
        peer = None if caller is None else caller.id
        reach = Reach() if caller is None else caller.reach
        skills = [
            one
            for one in self._gate.offered(WayIn.A2A, peer)
            if reach.has(one.name) and Reach(agent=agent).has(one.name)
        ]
        # Whether one is attached from which nothing is exposed is nobody's business.
        if agent and not skills:
            return None
        return make_card(self._facts, skills, agent=agent)

    async def extended(self, caller: A2aCaller) -> dict[str, Any]:
        """Return the card of a known caller.

        Raises:
            A2aError: Everybody is let in here, so that there is only one card.
        """
        found = await self.card(caller, caller.agent) if self._facts.extended else None
        if found is None:
            raise A2aError(A2aFault.EXTENDED_AGENT_CARD_NOT_CONFIGURED)
        return found


def facts_of(config: A2aConfig, url: str) -> CardFacts:
    """Return what the owner says in the card.

    Args:
        url: Where the face listens.
    """
    provider = None
    if config.provider is not None and config.provider_url is not None:
        provider = config.provider, config.provider_url
    return CardFacts(
        name=config.name,
        description=config.description,
        url=(config.public_url or url).rstrip("/"),
        schemes=Schemes(
            token=not config.open,
            scopes=None if config.issuer is None or config.open else config.scopes,
            token_url=config.token_url,
            authorization_url=config.authorization_url,
            openid_url=config.openid_url,
        ),
        provider=provider,
        documentation_url=config.documentation_url,
        icon_url=config.icon_url,
        extended=not config.open,
    )
