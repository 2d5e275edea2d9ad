"""One conversation, with one thing that goes wrong before each of its steps."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.clauses import clause
from tests.negotiation.conversations.faults import Alter, Fault, Inject, Move
from tests.negotiation.conversations.forging import EVERY_CHANGE, EVERY_LIE
from tests.negotiation.conversations.journal import Tally
from tests.negotiation.conversations.scripts import MAX_STEPS, played

FAULTS: tuple[Fault, ...] = (
    *(Alter(change, 0) for change in EVERY_CHANGE),
    *(Inject(lie) for lie in EVERY_LIE),
    Move("lose", 0),
    Move("repeat", 0),
    Move("reorder", 1),
)


LONG = settings().max_examples >= 10_000
"Whether `make fuzz` runs: every fault at every step, not a part of them."


def break_everything(name: str, *, bound: bool) -> Tally:
    """Play a conversation with every fault before every step of one of its halves."""
    tally = Tally()
    part = 1 if LONG else 5 if bound else 2
    for steps in range(MAX_STEPS):
        conversation = played(tally, name, first=0, steps=steps)
        if conversation is None or (conversation.calls and not bound):
            return tally
        if bound and not conversation.calls:
            continue
        for fault in FAULTS[steps % part :: part]:
            for index in (0, 1):
                conversation = played(tally, name, first=0, steps=steps)
                assert conversation is not None
                if isinstance(fault, Inject) or conversation.link.towards[index]:
                    fault.strike(conversation, index)
                    conversation.talk(30)
                    conversation.call()
                    conversation.talk(10)
                    conversation.finish()
                    conversation.call_again()
    raise AssertionError("a conversation that never ends")


@pytest.mark.slow
@clause("ANP-21", "ANP-33", "ANP-Q4", "ANP-Q6", "ANP-Q14", "ANP-Q29")
@pytest.mark.parametrize(
    "name", ["accepted at once", "the requester accepts", "four candidates"]
)
def test_no_single_message_makes_two_sides_agree_on_different_texts(name: str) -> None:
    tally = break_everything(name, bound=False)
    assert not tally.total("agreed with two or more forged turns")
    assert tally.counts["negotiations of a side", "protocol_error"]


@pytest.mark.slow
@clause("ANP-44", "ANP-46", "ANP-Q9", "ANP-Q25")
def test_no_single_message_upsets_tests_and_repairs() -> None:
    tally = break_everything("all at once", bound=True)
    assert tally.counts["test cases", "agreed"]
    assert tally.counts["dialogue events", "PeerRepaired"]
