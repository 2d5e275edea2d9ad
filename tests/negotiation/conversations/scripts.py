"""Conversations that go well, to be played up to any of their steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.negotiation.conversations.conversation import Conversation
from tests.negotiation.conversations.journal import Tally
from tests.negotiation.conversations.tempers import WILLING, Temper

COUNTERS_ONCE = replace(WILLING, counters=1)
LATE = replace(WILLING, ahead=False)
FLAWED = replace(WILLING, flaws=1)
FLAWED_COUNTERS = replace(FLAWED, counters=1)

TEMPERS: Final[dict[str, tuple[Temper, Temper]]] = {
    "accepted at once": (WILLING, WILLING),
    "code comes after the verdict": (LATE, LATE),
    "the requester accepts": (WILLING, COUNTERS_ONCE),
    "four candidates": (COUNTERS_ONCE, replace(LATE, counters=2)),
    "a flaw is repaired": (WILLING, FLAWED),
    "both have flaws": (FLAWED, FLAWED),
    "all at once": (
        replace(FLAWED, counters=1, eager=True),
        replace(FLAWED, counters=1),
    ),
}
MAX_STEPS: Final = 120
"More steps than any of them has."


def played(tally: Tally, name: str, *, first: int, steps: int) -> Conversation | None:
    """Play a conversation for some steps; None when it is over before that.

    Args:
        name: One of `TEMPERS`.
        first: Which side gets the first step.
    """
    conversation = Conversation(tally)
    for side, temper in zip(conversation.sides, TEMPERS[name], strict=True):
        side.temper = temper
    conversation.connect()
    used, idle = False, 0
    for step in range(steps):
        index = (first + step) % 2
        moved = (conversation.deliver, conversation.think)[step // 2 % 2](index)
        idle = 0 if moved else idle + 1
        if idle > 4 and not used:
            conversation.start_tests("# Test")
            conversation.call()
            used, idle = True, 0
        elif idle > 4:
            return None
    return conversation
