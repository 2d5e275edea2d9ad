# kind: state machine by transition table
"""Life cycle of an order; both agents keep the same table."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class State(Enum):
    NEW = "new"
    PAID = "paid"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


class Event(str, Enum):
    PAY = "pay"
    SHIP = "ship"
    DELIVER = "deliver"
    CANCEL = "cancel"


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.NEW, Event.PAY): State.PAID,
    (State.PAID, Event.SHIP): State.SHIPPED,
    (State.SHIPPED, Event.DELIVER): State.DELIVERED,
    **{(state, Event.CANCEL): State.CANCELLED for state in (State.NEW, State.PAID)},
}
FINAL_STATES = {State.DELIVERED, State.CANCELLED}


class TransitionError(RuntimeError):
    pass


@dataclass
class Order:
    number: str
    state: State = State.NEW
    history: list[tuple[State, Event]] = field(default_factory=list, repr=False)

    def apply(self, event: Event) -> Order:
        try:
            following = TRANSITIONS[self.state, event]
        except KeyError:
            allowed = sorted(e.value for s, e in TRANSITIONS if s is self.state)
            hint = f"; allowed: {', '.join(allowed)}" if allowed else ""
            raise TransitionError(
                f"cannot {event.value} order {self.number} in state {self.state.value}{hint}"
            ) from None
        self.history.append((self.state, event))
        self.state = following
        return self

    @property
    def done(self) -> bool:
        return self.state in FINAL_STATES


def replay(number: str, events: list[str]) -> dict:
    order = Order(number)
    for name in events:
        order.apply(Event(name))
    return {
        "state": order.state.value,
        "done": order.done,
        "history": [f"{state.name}->{event.name}" for state, event in order.history],
        "shown": f"{order!r}",
    }


def reachable(start: str) -> list[str]:
    seen, todo = set(), [State(start)]
    while todo:
        if (state := todo.pop()) in seen:
            continue
        seen.add(state)
        todo.extend(target for (source, _), target in TRANSITIONS.items() if source is state)
    return sorted(state.value for state in seen)
