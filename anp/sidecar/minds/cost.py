"""Costs of calls and negotiations: messages, rounds and the model's work. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Counts that add up over the steps of a call."""

    messages: int = 0
    "Meta messages, both directions."

    rounds: int = 0
    "Candidates that were on the table."

    model_calls: int = 0
    "Model calls on our side."

    money: float = 0.0
    "Price of those, as the owner set it; 0 where no prices are set."

    def __add__(self, other: Cost) -> Cost:
        if other is NO_COST:
            # As nearly always: a usual call costs nothing.
            return self
        return Cost(
            messages=self.messages + other.messages,
            rounds=self.rounds + other.rounds,
            model_calls=self.model_calls + other.model_calls,
            money=self.money + other.money,
        )


NO_COST = Cost()
