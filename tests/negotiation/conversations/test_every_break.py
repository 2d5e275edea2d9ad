"""One conversation, broken after each of its steps, in every way a link can break."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clauses import clause
from tests.negotiation.conversations.journal import Tally
from tests.negotiation.conversations.scripts import MAX_STEPS, TEMPERS, played

WAYS: list[dict[str, Any]] = [
    {},
    {"silent": False},
    {"towards": 0, "last": 4},
    {"towards": 1, "last": 4},
    {"towards": 0, "last": 4, "silent": False},
    {"towards": 1, "last": 4, "silent": False},
    {"unaware": 0},
    {"unaware": 1},
    {"crash": 0},
    {"crash": 1, "towards": 0, "last": 2},
]


@clause("ANP-86", "ANP-87", "ANP-42")
@pytest.mark.parametrize("name", TEMPERS)
@pytest.mark.parametrize("first", [0, 1], ids=["requester first", "provider first"])
def test_a_conversation_may_break_after_every_step(name: str, first: int) -> None:
    tally = Tally()
    for way in WAYS:
        for steps in range(MAX_STEPS):
            conversation = played(tally, name, first=first, steps=steps)
            if conversation is None:
                break
            conversation.break_link(**way)
            if "unaware" not in way:
                assert not conversation.connected
            else:
                conversation.wait(500.0)
            conversation.call_again()
        else:
            raise AssertionError("a conversation that never ends")
    broken = {moment for group, moment in tally.counts if group == "breaks"}
    assert {"hello", "judging", "making code", "one side ready", "bound"} <= broken
    # Some ways leave one side alone with an agreement. If that is the requester, the
    # next hello finds out; if it is the provider, the requester has nothing to offer.
    assert (
        tally.counts["agreements of one side alone", "requester"]
        or (tally.counts["agreements of one side alone", "provider"])
    )
    alone = tally.counts["agreements of one side alone", "requester"]
    assert tally.counts["hellos", "declined"] == alone
    assert tally.counts["next calls", "negotiated anew"] > alone
