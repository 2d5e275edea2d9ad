"""Two sides agree on test cases, or do without."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.errors import MisuseError
from negotiation.exchange.dialogue.case_turns import (
    CASE_REACTIONS,
    CASES_SUMMARY,
    CaseReaction,
    CaseState,
)
from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.events import (
    AcceptCases,
    CasesAgreed,
    CasesSkipped,
    CounterCases,
    Ignored,
    NeedCasesVerdict,
    RejectCases,
)
from negotiation.exchange.limits import MIND_REASON
from negotiation.messages import MAX_TEXT_SIZE, Status
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.dialogue.talk import (
    cases,
    dialogue,
    events,
    sent,
    written,
)

ONE = "# 测试用例1\n- **测试请求数据**: {}\n"
TWO = "# Test case 1\nanother set\n"
THREE = "# Test case 1\na third set\n"


def started(**limits: Any) -> Dialogue:
    """A requester that has proposed its first set."""
    machine = dialogue(Role.REQUESTER, **limits)
    machine.start_tests(ONE, now=0.0)
    sent(machine)
    return machine


def judging(**limits: Any) -> Dialogue:
    """A provider that has received the first set."""
    machine = dialogue(Role.PROVIDER, **limits)
    machine.receive_message(cases("negotiating", ONE), now=0.0)
    events(machine)
    return machine


def skipped(machine: Dialogue) -> CasesSkipped:
    last = events(machine)[-1]
    assert isinstance(last, CasesSkipped)
    assert machine.get_timer() is None
    assert not machine.ended
    return last


@clause("ANP-48", "ANP-49", "ANP-50", "ANP-52", "ANP-Q9")
def test_the_requester_starts_without_a_number() -> None:
    machine = dialogue(Role.REQUESTER)
    machine.start_tests(ONE, now=0.0)
    assert sent(machine) == [
        {
            "action": "testCasesNegotiation",
            "testCases": ONE,
            "status": "negotiating",
        }
    ]
    assert events(machine) == []


@clause("ANP-Q9")
def test_a_provider_never_starts() -> None:
    with pytest.raises(MisuseError):
        dialogue(Role.PROVIDER).start_tests(ONE, now=0.0)
    machine = dialogue(Role.REQUESTER)
    machine.receive_message(cases("negotiating", ONE), now=0.0)
    assert events(machine) == [Ignored("test cases out of turn")]
    assert sent(machine) == []


def test_tests_start_only_once() -> None:
    machine = started()
    with pytest.raises(MisuseError):
        machine.start_tests(TWO, now=1.0)


@clause("ANP-49", "ANP-53")
def test_the_provider_judges_the_set() -> None:
    machine = dialogue(Role.PROVIDER)
    machine.receive_message(cases("negotiating", ONE, "new"), now=0.0)
    assert events(machine) == [NeedCasesVerdict(ONE, "new", 1, may_counter=True)]


@clause("ANP-52", "ANP-53")
def test_an_accepted_set_is_agreed_on_both_sides() -> None:
    provider, requester = judging(), started()
    provider.cases_judged(AcceptCases(), now=1.0)
    (data,) = provider.messages_to_send()
    assert events(provider) == [CasesAgreed(ONE, by_peer=False)]
    requester.receive_message(data, now=1.0)
    assert events(requester) == [CasesAgreed(ONE, by_peer=True)]
    assert requester.get_timer() is provider.get_timer() is None


@clause("ANP-51")
@pytest.mark.parametrize(
    ("given", "wanted"), [("less of it", "less of it"), (" ", CASES_SUMMARY)]
)
def test_a_counter_is_the_whole_set_with_a_summary(given: str, wanted: str) -> None:
    machine = judging()
    machine.cases_judged(CounterCases(TWO, given), now=0.0)
    assert sent(machine) == [
        {
            "action": "testCasesNegotiation",
            "testCases": TWO,
            "modificationSummary": wanted,
            "status": "negotiating",
        }
    ]
    machine.receive_message(cases("accepted", TWO), now=0.0)
    assert events(machine) == [CasesAgreed(TWO, by_peer=True)]


def test_an_acceptance_may_leave_the_text_out() -> None:
    machine = started()
    machine.receive_message(cases("accepted"), now=0.0)
    assert events(machine) == [CasesAgreed(ONE, by_peer=True)]


def test_an_acceptance_of_another_text_skips_the_tests() -> None:
    machine = started()
    machine.receive_message(cases("accepted", TWO), now=0.0)
    assert skipped(machine).by_peer
    assert [one["status"] for one in sent(machine)] == ["rejected"]


@clause("ANP-52", "ANP-Q9")
def test_a_rejection_skips_the_tests_and_nothing_else() -> None:
    machine = started()
    machine.receive_message(cases("rejected", "", "no fixtures"), now=0.0)
    assert events(machine) == [CasesSkipped("no fixtures", by_peer=True)]
    assert not machine.ended
    assert sent(machine) == []
    provider = judging()
    provider.cases_judged(RejectCases("no fixtures"), now=0.0)
    assert sent(provider)[0]["modificationSummary"] == "no fixtures"
    assert events(provider) == [CasesSkipped("no fixtures", by_peer=False)]


def test_a_rejection_before_the_start_is_remembered() -> None:
    machine = dialogue(Role.REQUESTER)
    machine.receive_message(cases("rejected", "", "none"), now=0.0)
    events(machine)
    machine.start_tests(ONE, now=0.0)
    assert events(machine) == [CasesSkipped("none", by_peer=True)]
    assert sent(machine) == []


def test_a_side_that_never_got_the_acceptance_takes_the_agreement_back() -> None:
    machine = judging()
    machine.cases_judged(AcceptCases(), now=0.0)
    events(machine)
    machine.receive_message(cases("rejected", "", "no answer"), now=60.0)
    assert skipped(machine) == CasesSkipped("no answer", by_peer=True)


def test_what_contradicts_an_agreement_takes_it_back() -> None:
    machine = judging()
    machine.cases_judged(AcceptCases(), now=0.0)
    events(machine)
    machine.receive_message(cases("accepted", ONE), now=0.0)
    assert events(machine) == [Ignored("test cases were accepted twice")]
    machine.receive_message(cases("accepted", TWO), now=0.0)
    assert skipped(machine).by_peer


@clause("ANP-48", "ANP-81", "ANP-Q9")
def test_a_peer_without_the_capability_leaves_the_agreement_untested() -> None:
    machine = dialogue(Role.REQUESTER, frozenset())
    machine.start_tests(ONE, now=0.0)
    assert not skipped(machine).by_peer
    assert sent(machine) == []


@clause("ANP-48", "WIRE row 49")
def test_a_silent_peer_leaves_the_agreement_untested() -> None:
    machine = started(message_timeout=30.0)
    assert machine.get_timer() == 30.0
    machine.handle_timer(now=29.9)
    assert events(machine) == []
    machine.handle_timer(now=30.0)
    assert skipped(machine).by_peer
    assert [one["status"] for one in sent(machine)] == ["rejected"]
    machine.receive_message(cases("accepted", ONE), now=31.0)
    assert events(machine) == [Ignored("test cases out of turn")]


def test_our_own_silence_is_told_to_the_peer() -> None:
    machine = judging(answer_timeout=5.0)
    machine.handle_timer(now=5.0)
    assert not skipped(machine).by_peer
    assert [one["status"] for one in sent(machine)] == ["rejected"]
    # The late verdict has no effect any more.
    machine.cases_judged(AcceptCases(), now=6.0)
    assert (events(machine), sent(machine)) == ([], [])


def test_the_whole_takes_a_limited_time() -> None:
    machine = started(cases_timeout=50.0, message_timeout=30.0)
    machine.receive_message(cases("negotiating", TWO), now=25.0)
    assert machine.get_timer() == 50.0
    machine.cases_judged(CounterCases(THREE, ""), now=49.0)
    machine.handle_timer(now=50.0)
    assert "50 s" in skipped(machine).reason


@clause("ANP-Q9", "ANP-Q24")
def test_ten_sets_are_counted_and_an_eleventh_skips_the_tests() -> None:
    machine = started(max_rounds=3)
    machine.receive_message(cases("negotiating", "2"), now=0.0)
    assert events(machine) == [NeedCasesVerdict("2", "", 2, may_counter=True)]
    machine.cases_judged(CounterCases("3", ""), now=0.0)
    sent(machine)
    machine.receive_message(cases("negotiating", "4"), now=0.0)
    assert skipped(machine).by_peer
    assert [one["status"] for one in sent(machine)] == ["rejected"]


@clause("ANP-Q9")
def test_a_counter_over_the_limit_is_a_rejection() -> None:
    machine = dialogue(Role.PROVIDER, max_rounds=1)
    machine.receive_message(cases("negotiating", ONE), now=0.0)
    assert events(machine) == [NeedCasesVerdict(ONE, "", 1, may_counter=False)]
    machine.cases_judged(CounterCases(TWO, ""), now=0.0)
    assert not skipped(machine).by_peer
    assert "1 rounds" in sent(machine)[0]["modificationSummary"]


@clause("ANP-Q30")
@pytest.mark.parametrize("text", ["", " \n", "x" * (MAX_TEXT_SIZE + 1), "\ud800"])
def test_a_set_that_cannot_be_sent_is_not_sent(text: str) -> None:
    machine = dialogue(Role.REQUESTER)
    machine.start_tests(text, now=0.0)
    assert not skipped(machine).by_peer
    assert sent(machine) == []
    provider = judging()
    provider.cases_judged(CounterCases(text, ""), now=0.0)
    assert not skipped(provider).by_peer
    assert sent(provider)[0]["modificationSummary"] == MIND_REASON


@clause("ANP-Q30")
def test_a_set_at_the_limit_is_sent() -> None:
    machine = dialogue(Role.REQUESTER)
    machine.start_tests("x" * MAX_TEXT_SIZE, now=0.0)
    assert len(sent(machine)[0]["testCases"]) == MAX_TEXT_SIZE


@clause("ANP-Q30")
def test_a_set_of_the_peer_over_the_limit_is_rejected() -> None:
    machine = dialogue(Role.PROVIDER)
    data = cases("negotiating", "x" * (MAX_TEXT_SIZE + 1))
    machine.receive_message(data, now=0.0)
    assert [one["status"] for one in sent(machine)] == ["rejected"]
    assert [type(one) for one in events(machine)] == [CasesSkipped, Ignored]
    machine.receive_message(data, now=0.0)
    assert sent(machine) == []


def test_an_empty_set_skips_the_tests() -> None:
    machine = dialogue(Role.PROVIDER)
    machine.receive_message(cases("negotiating", "  "), now=0.0)
    assert skipped(machine).by_peer


def test_a_repeated_set_is_no_new_turn() -> None:
    machine = judging()
    machine.cases_judged(CounterCases(TWO, ""), now=0.0)
    sent(machine)
    machine.receive_message(cases("negotiating", ONE), now=0.0)
    assert events(machine) == [Ignored("a set of test cases was repeated")]
    machine.receive_message(cases("negotiating", THREE), now=0.0)
    events(machine)
    machine.cases_judged(CounterCases(TWO, ""), now=0.0)
    assert "repeats" in skipped(machine).reason


def test_a_verdict_that_nobody_asked_for_is_a_bug() -> None:
    with pytest.raises(MisuseError):
        started().cases_judged(AcceptCases(), now=0.0)


def test_a_lost_link_skips_what_is_not_settled() -> None:
    machine = started()
    machine.link_lost(now=1.0)
    assert events(machine) == [CasesSkipped("the connection was lost", by_peer=False)]
    agreed = started()
    agreed.receive_message(cases("accepted", ONE), now=0.0)
    events(agreed)
    agreed.link_lost(now=1.0)
    assert events(agreed) == []


def in_state(state: CaseState) -> Dialogue:
    match state:
        case CaseState.MAY_START:
            return dialogue(Role.REQUESTER)
        case CaseState.EXPECT_CASES:
            return dialogue(Role.PROVIDER)
        case CaseState.EXPECT_ANSWER:
            return started()
        case CaseState.JUDGE:
            return judging()
        case CaseState.AGREED:
            machine = judging()
            machine.cases_judged(AcceptCases(), now=0.0)
        case CaseState.SKIPPED:
            machine = judging()
            machine.cases_judged(RejectCases("no"), now=0.0)
    sent(machine)
    events(machine)
    return machine


EXPECTED: dict[CaseReaction, type[object]] = {
    CaseReaction.CONSIDER: NeedCasesVerdict,
    CaseReaction.AGREE: CasesAgreed,
    CaseReaction.CONFIRM: Ignored,
    CaseReaction.SKIP: CasesSkipped,
    CaseReaction.DROP: Ignored,
}


@clause("ANP-52", "ANP-Q9")
@pytest.mark.parametrize("state", CaseState)
@pytest.mark.parametrize("status", Status)
def test_every_status_in_every_state_does_what_the_table_says(
    state: CaseState, status: Status
) -> None:
    machine = in_state(state)
    text = ONE if status is Status.ACCEPTED else THREE
    machine.receive_message(cases(status.value, text), now=0.0)
    (event,) = events(machine)
    assert type(event) is EXPECTED[CASE_REACTIONS[state][status]]
    assert sent(machine) == []


@pytest.mark.parametrize("status", ["done", None, "ACCEPTED"])
def test_another_status_is_dropped(status: str | None) -> None:
    machine = started()
    content = {"action": "testCasesNegotiation", "testCases": ONE, "status": status}
    machine.receive_message(written(content), now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored]


@clause("ANP-Q9")
def test_repeated_messages_do_not_lead_to_two_agreements() -> None:
    requester, provider = dialogue(Role.REQUESTER), dialogue(Role.PROVIDER)
    requester.start_tests(ONE, now=0.0)
    (first,) = requester.messages_to_send()
    provider.receive_message(first, now=0.0)
    provider.cases_judged(CounterCases(TWO, ""), now=0.0)
    (second,) = provider.messages_to_send()
    requester.receive_message(second, now=0.0)
    requester.cases_judged(CounterCases(THREE, ""), now=0.0)
    events(requester)
    events(provider)
    # The third message is on its way when both old ones come once more.
    provider.receive_message(first, now=0.0)
    requester.receive_message(second, now=0.0)
    assert [type(one) for one in events(provider)] == [Ignored]
    assert [type(one) for one in events(requester)] == [Ignored]
    (third,) = requester.messages_to_send()
    provider.receive_message(third, now=0.0)
    provider.cases_judged(AcceptCases(), now=0.0)
    (last,) = provider.messages_to_send()
    requester.receive_message(last, now=0.0)
    assert CasesAgreed(THREE, by_peer=False) in events(provider)
    assert events(requester) == [CasesAgreed(THREE, by_peer=True)]
