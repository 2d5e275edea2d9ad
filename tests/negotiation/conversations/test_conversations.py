"""Whole conversations between two sides, over a link that does its worst."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from anp.wire.meta_protocol import CAPABILITIES
from tests.clauses import clause
from tests.negotiation.conversations.conversation import Conversation
from tests.negotiation.conversations.faults import FAULTS, PLANS, Fault
from tests.negotiation.conversations.forging import (
    ACCEPTING,
    GENERATED,
    HAGGLING,
    LIES,
    Lie,
    Raw,
)
from tests.negotiation.conversations.journal import Tally
from tests.negotiation.conversations.side import Side
from tests.negotiation.conversations.tempers import WILLING, Last, Temper

TALLY = Tally()

SIDES = st.sampled_from([0, 1])
TEMPERS = st.one_of(
    st.just(WILLING),
    st.builds(
        Temper,
        proposal=st.sampled_from(
            ["# Need\nadd two numbers\n", "# Need\nadd\n", "# 需求\r\n"] * 3
            + ["  ", None]
        ),
        counters=st.sampled_from([0, 0, 0, 1, 1, 2, 99, 99]),
        last=st.sampled_from([*Last, *[Last.ACCEPT] * 5]),
        ahead=st.booleans(),
        eager=st.booleans(),
        codes=st.sampled_from([True] * 7 + [False]),
        flaws=st.sampled_from([0, 0, 1, 2]),
        admits=st.sampled_from([True, True, False]),
        repairs=st.sampled_from([True, True, False]),
        pace=st.sampled_from([0.0, 0.0, 0.0, 20.0, 50.0]),
    ),
    st.builds(
        Temper,
        counters=st.integers(0, 2),
        ahead=st.booleans(),
        eager=st.booleans(),
        flaws=st.integers(0, 2),
    ),
)


CLAIMS = st.sampled_from([None, "f" * 64])
LIES_IN_A_ROW = st.one_of(
    st.lists(LIES, min_size=1, max_size=5),
    st.builds(lambda lie, times: [lie] * times, LIES, st.integers(2, 8)),
    st.integers(2, 8).map(lambda times: [HAGGLING] * times),
    # Peers that get their channel bound before they misbehave.
    st.lists(LIES, max_size=5).map(lambda lies: [HAGGLING, GENERATED, *lies]),
    st.lists(LIES, max_size=5).map(lambda lies: [ACCEPTING, GENERATED, *lies]),
)


class TwoSides(RuleBasedStateMachine):
    """One run is one conversation, over up to six connections."""

    def __init__(self) -> None:
        super().__init__()
        self.talks: Conversation | None = None
        self.claim: str | None = None

    @property
    def both(self) -> Conversation:
        assert self.talks is not None
        return self.talks

    @initialize(
        liar=st.sampled_from([None] * 6 + [0, 1]),
        tempers=st.tuples(TEMPERS, TEMPERS),
        capabilities=st.sampled_from([CAPABILITIES, CAPABILITIES, CAPABILITIES, ()]),
        claim=CLAIMS,
        plan=PLANS,
        turns=st.sampled_from([0, 4, 8, 20]),
    )
    def begin(
        self,
        liar: int | None,
        tempers: tuple[Temper, Temper],
        capabilities: tuple[str, ...],
        claim: str | None,
        plan: list[tuple[int, Fault]],
        turns: int,
    ) -> None:
        self.claim = claim
        self.talks = Conversation(
            TALLY, liar=liar, claims=lambda: self.claim, capabilities=capabilities
        )
        self.connect(tempers, plan, turns)

    # What the two sides do.

    @rule(turns=st.integers(1, 8))
    def talk(self, turns: int) -> None:
        self.both.talk(turns)

    @rule(index=SIDES)
    def deliver(self, index: int) -> None:
        self.both.deliver(index)

    @rule(index=SIDES)
    def think(self, index: int) -> None:
        self.both.think(index)

    @rule(
        calls=st.integers(0, 3),
        tests=st.none() | st.sampled_from(["# Test", "# Other test", " "]),
        turns=st.integers(0, 12),
    )
    def use(self, calls: int, tests: str | None, turns: int) -> None:
        """Let the agents use the channel, if it is bound."""
        if tests is not None:
            self.both.start_tests(tests)
        for _ in range(calls):
            self.both.call()
        self.both.talk(turns)

    @rule(
        tempers=st.tuples(TEMPERS, TEMPERS),
        plan=PLANS,
        turns=st.sampled_from([0, 4, 8, 20]),
    )
    def connect(
        self,
        tempers: tuple[Temper, Temper],
        plan: list[tuple[int, Fault]],
        turns: int,
    ) -> None:
        if self.both.may_connect:
            for side, temper in zip(self.both.sides, tempers, strict=True):
                side.temper = temper
            self.both.connect()
            self.both.expect(plan)
            self.both.talk(turns)

    # What happens to them.

    @rule(index=SIDES, fault=FAULTS)
    def disturb(self, index: int, fault: Fault) -> None:
        fault.strike(self.both, index)

    @rule(plan=PLANS, turns=st.integers(0, 12))
    def expect(self, plan: list[tuple[int, Fault]], turns: int) -> None:
        self.both.expect(plan)
        self.both.talk(turns)

    @rule(lies=LIES_IN_A_ROW)
    @precondition(lambda self: self.both.liar is not None)
    def lie(self, lies: list[Lie | Raw]) -> None:
        """Let a lying peer talk with the honest side for a while."""
        assert self.both.liar is not None
        index = 1 - self.both.liar
        for one in lies:
            self.both.link.inject(one.letter(self.both.wire), towards=index)
            self.both.talk(2)

    @rule(claim=CLAIMS, known=st.booleans())
    @precondition(lambda self: self.both.liar is not None)
    def choose_claim(self, claim: str | None, known: bool) -> None:
        """Let a lying peer offer, or confirm, something next time."""
        assert self.both.liar is not None
        held = self.both.sides[1 - self.both.liar].shelf.newest()
        self.claim = held if known else claim

    @rule(index=SIDES, damage=st.booleans())
    def lose_agreement(self, index: int, damage: bool) -> None:
        side = self.both.sides[index]
        newest = side.shelf.newest()
        if isinstance(side, Side) and newest is not None and not self.both.connected:
            TALLY.count("faults of the disk", "damaged" if damage else "half lost")
            if damage:
                side.shelf.damage(newest)
            else:
                side.shelf.forget_half(newest)

    def teardown(self) -> None:
        """Everything ends, and the next call works."""
        if self.talks is None:
            return
        self.both.finish()
        if self.both.liar is None:
            self.both.call_again()


@clause("ANP-86", "ANP-87")
def test_a_hash_that_a_liar_negotiated_binds_its_channel_and_no_more() -> None:
    claim: str | None = None
    talks = Conversation(Tally(), liar=0, claims=lambda: claim)
    provider = talks.sides[1]
    talks.connect()
    talks.talk(3)
    for lie in (HAGGLING, GENERATED):
        talks.link.inject(lie.letter(talks.wire), towards=1)
        talks.talk(3)
    claim = provider.shelf.newest()
    assert claim is not None
    talks.connect()
    talks.talk(3)
    assert provider.bound is not None
    assert provider.bound.digest == claim
    talks.finish()


@pytest.mark.slow
@clause("ANP-3", "ANP-33", "ANP-42", "ANP-84", "ANP-86", "ANP-87", "ANP-Q4", "ANP-Q6")
def test_every_conversation_ends_in_agreement_or_with_a_reason() -> None:
    profile = settings()
    run_state_machine_as_test(
        TwoSides,
        settings=settings(
            profile,
            max_examples=max(300, profile.max_examples),
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
    ended = TALLY.total("conversations that ended with")
    assert ended >= max(300, profile.max_examples)
    # For `make fuzz`, which shows it; pytest keeps it to itself otherwise.
    print("\n" + "\n".join(TALLY.lines()))
