"""Budgets: never exceeded, never negative, and each side has its own."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from negotiation.errors import MindError, MisuseError
from negotiation.llm.asking.budget import (
    OWNER,
    UNLISTED,
    Budget,
    BudgetExhausted,
    BudgetLimits,
    Purse,
    Reservation,
    Spent,
    utc_day,
)
from negotiation.llm.asking.requests import Usage

DAY = "2026-03-01"
PEER = "did:key:zPeer"
LIMITS = BudgetLimits(
    negotiation_calls=3,
    negotiation_tokens=300,
    peer_calls=4,
    peer_tokens=400,
    unlisted_calls=2,
    unlisted_tokens=200,
    day_calls=12,
    day_tokens=1200,
)


def spend(budget: Budget, account: str, purse: Purse | None = None) -> Reservation:
    """Make one call of 10 tokens."""
    reservation = budget.reserve(account, purse or Purse(), 10)
    budget.settle(reservation, Usage(6, 4))
    return reservation


def exhaust(budget: Budget, account: str) -> int:
    """Make calls of new negotiations until none is granted; return how many."""
    for count in range(1000):
        try:
            spend(budget, account)
        except BudgetExhausted:
            return count
    raise AssertionError("no limit")


def test_the_defaults_are_those_of_the_design() -> None:
    limits = BudgetLimits()
    calls = [value for name, value in asdict(limits).items() if name.endswith("calls")]
    assert calls == [8, 40, 20, 200]


def test_a_negotiation_has_its_limit_whoever_pays() -> None:
    for account in (OWNER, UNLISTED, PEER):
        limits = replace(LIMITS, negotiation_calls=1)
        budget, purse = Budget(limits, day=DAY), Purse()
        spend(budget, account, purse)
        with pytest.raises(BudgetExhausted) as caught:
            spend(budget, account, purse)
        assert str(caught.value) == (
            "the budget of this negotiation is used up; budget.negotiation_calls = 1"
        )
        spend(budget, account, Purse())


def test_the_words_name_the_setting_and_the_time() -> None:
    budget = Budget(LIMITS, day=DAY)
    exhaust(budget, UNLISTED)
    with pytest.raises(MindError) as caught:
        spend(budget, UNLISTED)
    assert str(caught.value) == (
        "the budget for unlisted peers is used up until 00:00 UTC; "
        "budget.unlisted_calls = 2"
    )
    exhaust(budget, OWNER)
    with pytest.raises(MindError) as caught:
        spend(budget, OWNER)
    assert str(caught.value) == (
        "the budget for our own calls is used up until 00:00 UTC; budget.day_calls = "
        "12, 6 of them for our own calls (budget.owner_share)"
    )


def test_a_call_that_may_take_too_many_tokens_is_not_made() -> None:
    budget, purse = Budget(LIMITS, day=DAY), Purse()
    with pytest.raises(BudgetExhausted) as caught:
        budget.reserve(UNLISTED, purse, 201)
    assert str(caught.value) == (
        "the budget for unlisted peers is used up until 00:00 UTC: the next call may "
        "take 201 tokens, 200 are left; budget.unlisted_tokens = 200"
    )
    assert purse == Purse()
    assert budget.spent() == []
    budget.settle(budget.reserve(UNLISTED, purse, 200), Usage(100, 0))
    with pytest.raises(BudgetExhausted, match="100 are left"):
        budget.reserve(UNLISTED, purse, 101)


def test_listed_peers_have_a_budget_each_and_share_what_peers_have() -> None:
    budget = Budget(LIMITS, day=DAY)
    assert exhaust(budget, "did:key:zA") == 4
    assert exhaust(budget, "did:key:zB") == 2, "6 of 12 are for peers"
    assert exhaust(budget, UNLISTED) == 0
    assert exhaust(budget, OWNER) == 6


def test_unlisted_peers_share_one_budget_whatever_dids_they_bring() -> None:
    budget = Budget(LIMITS, day=DAY)
    assert exhaust(budget, UNLISTED) == 2
    assert exhaust(budget, PEER) == 4


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_our_own_calls_and_those_for_peers_never_draw_on_each_other(
    share: float,
) -> None:
    limits = replace(LIMITS, owner_share=share, peer_calls=100)
    alone = exhaust(Budget(limits, day=DAY), OWNER)
    budget = Budget(limits, day=DAY)
    peers = exhaust(budget, PEER)
    assert exhaust(budget, OWNER) == alone
    assert alone + peers == limits.day_calls


def test_what_is_released_was_never_spent() -> None:
    budget, purse = Budget(LIMITS, day=DAY), Purse()
    for _ in range(20):
        budget.release(budget.reserve(PEER, purse, 300))
    assert purse == Purse()
    assert budget.spent() == [Spent(DAY, PEER)]


def test_a_call_of_unknown_cost_counts_with_all_it_could_cost() -> None:
    budget = Budget(LIMITS, day=DAY)
    budget.settle(budget.reserve(PEER, Purse(), 70), None, cost=0.5)
    assert budget.spent() == [Spent(DAY, PEER, calls=1, input_tokens=70, cost=0.5)]


def test_a_server_that_uses_more_than_it_may_gets_nothing_more() -> None:
    budget = Budget(LIMITS, day=DAY)
    budget.settle(budget.reserve(PEER, Purse(), 10), Usage(10, 9_999))
    with pytest.raises(BudgetExhausted, match="0 are left"):
        budget.reserve(PEER, Purse(), 1)


def test_a_reservation_ends_once() -> None:
    budget = Budget(LIMITS, day=DAY)
    for end in (budget.release, lambda r: budget.settle(r, None)):
        reservation = budget.reserve(OWNER, Purse(), 1)
        end(reservation)
        with pytest.raises(MisuseError):
            budget.release(reservation)
        with pytest.raises(MisuseError):
            budget.settle(reservation, None)


def test_a_new_day_begins_at_nothing_and_old_calls_end_in_theirs() -> None:
    budget, purse = Budget(LIMITS, day=DAY), Purse()
    late = budget.reserve(PEER, purse, 10)
    exhaust(budget, PEER)
    budget.start_day("2026-03-02")
    assert budget.spent() == []
    budget.settle(late, Usage(1, 1))
    assert late.spent.day == DAY
    assert late.spent.held_tokens == 0
    assert exhaust(budget, PEER) == 4
    assert purse.calls == 1, "a negotiation's limit does not end at midnight"


def test_a_clock_set_back_grants_nothing_anew() -> None:
    budget = Budget(LIMITS, day=DAY)
    exhaust(budget, OWNER)
    budget.start_day("2026-02-28")
    budget.start_day(DAY)
    assert budget.day == DAY
    assert exhaust(budget, OWNER) == 0


def test_what_was_held_when_a_daemon_died_counts_as_spent() -> None:
    before = [
        Spent(DAY, PEER, calls=3, input_tokens=10, output_tokens=5, held_tokens=350),
        Spent("2026-02-28", OWNER, calls=6),
    ]
    budget = Budget(LIMITS, day=DAY, spent=before)
    with pytest.raises(BudgetExhausted, match="35 are left"):
        budget.reserve(PEER, Purse(), 36)
    assert exhaust(budget, PEER) == 1
    assert exhaust(budget, OWNER) == 6


def test_days_are_those_of_utc() -> None:
    assert utc_day(0.0) == "1970-01-01"
    assert utc_day(86_399.999) == "1970-01-01"
    assert utc_day(86_400.0) == "1970-01-02"


ACCOUNTS = st.sampled_from([OWNER, UNLISTED, "did:key:zA", "did:key:zB"])


class Spending(RuleBasedStateMachine):
    """Any sequence of calls, ends, restarts and days."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(LIMITS, day=DAY)
        self.purses = [Purse() for _ in range(3)]
        self.open: list[Reservation] = []

    @rule(
        account=ACCOUNTS,
        which=st.integers(0, 2),
        tokens=st.integers(0, 250),
    )
    def reserve(self, account: str, which: int, tokens: int) -> None:
        before = self.state()
        try:
            reservation = self.budget.reserve(account, self.purses[which], tokens)
        except BudgetExhausted:
            assert self.state() == before, "a refusal takes nothing"
        else:
            self.open.append(reservation)

    @rule(number=st.integers(0, 9), part=st.floats(0, 1))
    def settle(self, number: int, part: float) -> None:
        if self.open:
            reservation = self.open.pop(number % len(self.open))
            self.budget.settle(reservation, Usage(int(reservation.tokens * part), 0))

    @rule(number=st.integers(0, 9))
    def lose(self, number: int) -> None:
        if self.open:
            self.budget.settle(self.open.pop(number % len(self.open)), None)

    @rule(number=st.integers(0, 9))
    def release(self, number: int) -> None:
        if self.open:
            self.budget.release(self.open.pop(number % len(self.open)))

    @rule()
    def restart(self) -> None:
        self.budget = Budget(LIMITS, day=self.budget.day, spent=self.budget.spent())
        self.open, self.purses = [], [Purse() for _ in range(3)]

    @rule(which=st.integers(0, 2))
    def end_negotiation(self, which: int) -> None:
        self.purses[which] = Purse()

    @rule()
    def next_day(self) -> None:
        number = int(self.budget.day[-2:])
        if number < 28:
            self.budget.start_day(f"2026-03-{number + 1:02d}")

    @invariant()
    def nothing_is_exceeded_or_negative(self) -> None:
        limits = LIMITS
        used = {record.account: record for record in self.budget.spent()}
        for record in used.values():
            fields = asdict(record).values()
            assert all(value >= 0 for value in fields if not isinstance(value, str))
        for purse in self.purses:
            assert min(purse.calls, purse.tokens, purse.held) >= 0
            assert purse.calls <= limits.negotiation_calls
            assert purse.tokens + purse.held <= limits.negotiation_tokens
        owner = [r for name, r in used.items() if name == OWNER]
        peers = [r for name, r in used.items() if name != OWNER]
        listed = [r for r in peers if r.account != UNLISTED]
        unlisted = [r for r in peers if r.account == UNLISTED]
        within(owner, limits.owner_calls, limits.owner_tokens)
        within(unlisted, limits.unlisted_calls, limits.unlisted_tokens)
        within(peers, limits.day_calls // 2, limits.day_tokens // 2)
        within([*owner, *peers], limits.day_calls, limits.day_tokens)
        for record in listed:
            within([record], limits.peer_calls, limits.peer_tokens)
        held = sum(r.tokens for r in self.open if r.account.day == self.budget.day)
        assert sum(record.held_tokens for record in used.values()) == held

    def state(self) -> object:
        return [asdict(p) for p in self.purses], self.budget.spent()


def within(records: list[Spent], calls: int, tokens: int) -> None:
    """Require that these accounts together keep a limit."""
    assert sum(record.calls for record in records) <= calls
    used = sum(r.input_tokens + r.output_tokens + r.held_tokens for r in records)
    assert used <= tokens


TestSpending = Spending.TestCase
TestSpending.settings = settings(deadline=None, max_examples=60)


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=60),
    st.booleans(),
)
def test_a_peer_that_goes_on_for_ever_ends_within_its_budget(
    calls: list[tuple[int, int]], new_negotiations: bool
) -> None:
    budget, purse = Budget(LIMITS, day=DAY), Purse()
    granted = used = 0
    for document, answer in calls:
        try:
            taken = budget.reserve(UNLISTED, purse, document + answer)
        except BudgetExhausted:
            continue
        budget.settle(taken, Usage(document, answer))
        granted, used = granted + 1, used + document + answer
        purse = Purse() if new_negotiations else purse
    assert granted <= LIMITS.unlisted_calls
    assert used <= LIMITS.unlisted_tokens
    assert exhaust(budget, OWNER) == LIMITS.owner_calls


def test_one_address_cannot_use_up_what_all_unlisted_peers_share() -> None:
    budget = Budget(BudgetLimits(), day=DAY)
    for _ in range(10):
        budget.reserve(UNLISTED, Purse(), 10, address="192.0.2.1")
    with pytest.raises(BudgetExhausted, match="20, 10 of them for one address"):
        budget.reserve(UNLISTED, Purse(), 10, address="192.0.2.1")
    for _ in range(10):
        budget.reserve(UNLISTED, Purse(), 10, address="192.0.2.2")
    with pytest.raises(BudgetExhausted, match="for unlisted peers is used up"):
        budget.reserve(UNLISTED, Purse(), 10, address="192.0.2.3")
    budget.start_day("2026-03-02")
    budget.reserve(UNLISTED, Purse(), 10, address="192.0.2.1")


def test_the_tokens_of_one_address_are_bounded_too() -> None:
    budget = Budget(BudgetLimits(), day=DAY)
    held = budget.reserve(UNLISTED, Purse(), 90_000, address="192.0.2.1")
    with pytest.raises(BudgetExhausted, match="200000, 100000 of them for one address"):
        budget.reserve(UNLISTED, Purse(), 20_000, address="192.0.2.1")
    budget.release(held)
    budget.reserve(UNLISTED, Purse(), 20_000, address="192.0.2.1")
