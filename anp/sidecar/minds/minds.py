"""Gives each piece of work its mind, and an account that pays for it.

See DESIGN.md, Negotiation and Trust.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from anp.errors import ConfigError
from anp.sidecar.minds.accounts import Cost, Exchanged, Spender, Spending
from negotiation.llm.asking.budget import OWNER, UNLISTED
from negotiation.mind import Mind
from negotiation.rules.rules import RulesMind
from sandbox.pool.shares import current_share

if TYPE_CHECKING:
    from negotiation.llm.asking.endpoint import ModelEndpoint
    from negotiation.llm.mind import LlmMind


@dataclass(frozen=True, slots=True)
class Thinking:
    """A mind for one negotiation, repair or question."""

    mind: Mind
    "Proposes, judges, writes and answers."

    model: LlmMind | None
    "The part that only a model can do; None if the owner set no model."

    cost: Callable[[], Cost] = Cost
    "Returns the model calls so far, with their price."

    first: Mind | None = None
    "A mind without cost that tries a repair before `mind` does, or None."

    exhausted: Callable[[], str] = lambda: ""
    "Names the budget that had no room for a call, for the owner; else empty."


class Think(Protocol):
    """Gives a mind; see `Minds.think`."""

    def __call__(
        self,
        peer_did: str,
        *,
        ours: bool,
        negotiation_id: str | None = None,
        watch: Callable[[Exchanged], None] | None = None,
    ) -> Thinking: ...


class Minds:
    """Makes minds; with a model, each with an account that its calls are paid from.

    No model is asked before a handshake is complete: minds are made for what comes on
    an open channel, and for calls of the owner's.
    """

    def __init__(
        self,
        kind: str,
        *,
        endpoint: ModelEndpoint | None,
        spending: Spending,
        is_listed: Callable[[str], bool],
    ) -> None:
        """Make the maker.

        Args:
            kind: `rules`, `llm` or `auto`: rules first, the model for what is left.
            endpoint: The owner's model, or None.
            is_listed: Tells by its canonical DID if the owner listed a peer.

        Raises:
            ConfigError: `llm` without a model.
        """
        if kind == "llm" and endpoint is None:
            raise ConfigError(
                'negotiation.decided_by: "llm" needs llm.model; set it, or write "auto"'
            )
        self._kind = kind
        self._endpoint = endpoint if kind != "rules" else None
        self._spending = spending
        self._is_listed = is_listed

    @property
    def name(self) -> str:
        """The kind of mind that negotiates: `rules`, `llm` or `auto`."""
        return self._kind if self._endpoint is not None else "rules"

    def think(
        self,
        peer_did: str,
        *,
        ours: bool,
        negotiation_id: str | None = None,
        watch: Callable[[Exchanged], None] | None = None,
    ) -> Thinking:
        """Return a mind; who makes us think pays for it.

        Args:
            peer_did: The peer in its canonical form.
            ours: True if a call of the owner's started it; else the peer pays.
            negotiation_id: For the ledger.
            watch: Gets every exchange with the model.
        """
        if self._endpoint is None:
            return Thinking(RulesMind(), None)
        # Without a model nobody has to wait for its parts at start.
        from anp.sidecar.minds.remembered import RememberingMind
        from negotiation.llm.auto import AutoMind
        from negotiation.llm.mind import LlmMind

        account = OWNER
        if not ours:
            account = peer_did if self._is_listed(peer_did) else UNLISTED
        spender = Spender(
            self._endpoint,
            self._spending,
            account=account,
            address=current_share.get().name if account == UNLISTED else "",
            peer=peer_did,
            negotiation_id=negotiation_id,
            watch=watch,
            remembers=True,
        )
        model = LlmMind(spender, name=self._endpoint.model[:256])
        rules = None if self._kind == "llm" else RulesMind()
        mind = RememberingMind(
            model if rules is None else AutoMind(rules, model),
            self._spending,
            peer=peer_did,
            model=self._endpoint.model,
            cost=spender.cost,
        )
        return Thinking(mind, model, spender.cost, rules, lambda: spender.exhausted)
