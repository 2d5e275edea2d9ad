"""Ends of a negotiation without a text: rejections, limits and silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from negotiation.errors import FailureKind, MisuseError
from negotiation.exchange.events import NeedVerdict, NegotiationFailed
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import NegotiationState
from negotiation.messages import MAX_CANDIDATE_SIZE
from negotiation.mind import Accept, Counter, Reject, Verdict
from tests.clauses import clause
from tests.negotiation.exchange.machines import (
    OTHER,
    TEXT,
    accepted_requester,
    accepting_provider,
    events,
    failure,
    provider,
    requester,
    sent,
    turn,
)

# Rejections and other endings.


@clause("ANP-32", "ANP-33", "ANP-Q4", "ANP-Q23", "WIRE row 40")
@pytest.mark.parametrize("number", [0, 1, 2, -7, 10**20])
@pytest.mark.parametrize(
    "start",
    [
        lambda: requester(proposed=False),
        requester,
        lambda: provider(judging=False),
        provider,
        accepted_requester,
        accepting_provider,
    ],
)
def test_a_rejection_with_any_number_ends_it(
    number: int, start: Callable[[], Machine]
) -> None:
    machine = start()
    data = turn(number, "rejected", "", modificationSummary="no such thing")
    machine.receive_message(data, now=0.0)
    assert not machine.messages_to_send()
    assert failure(machine) == NegotiationFailed(
        FailureKind.REJECTED, "no such thing", by_peer=True
    )


def test_a_rejection_without_a_reason_has_one_in_words() -> None:
    machine = requester()
    machine.receive_message(turn(1, "rejected"), now=0.0)
    assert failure(machine).reason == "the peer gave no reason"


@clause("ANP-32", "ANP-Q23")
def test_our_rejection_has_the_reason_in_the_summary_and_no_text() -> None:
    machine = provider()
    machine.verdict_ready(Reject("`unit` is missing"), now=0.0)
    assert sent(machine) == [
        {
            "action": "protocolNegotiation",
            "sequenceId": 1,
            "candidateProtocols": "",
            "modificationSummary": "`unit` is missing",
            "status": "rejected",
        }
    ]
    assert failure(machine) == NegotiationFailed(
        FailureKind.REJECTED, "`unit` is missing", by_peer=False
    )


@clause("ANP-28", "WIRE row 39")
@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_empty_proposal_is_rejected(text: str | None) -> None:
    machine = provider(judging=False)
    machine.receive_message(turn(1, "negotiating", text), now=0.0)
    (message,) = sent(machine)
    assert (message["status"], message["sequenceId"]) == ("rejected", 2)
    assert failure(machine).by_peer


@clause("ANP-Q30")
def test_a_candidate_over_the_limit_is_rejected() -> None:
    machine = provider(judging=False)
    text = "x" * (MAX_CANDIDATE_SIZE + 1)
    machine.receive_message(turn(0, "negotiating", text), now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-Q30")
def test_a_message_of_10_mb_is_rejected() -> None:
    machine = provider(judging=False)
    machine.receive_message(turn(0, "negotiating", "x" * 10_000_000), now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).by_peer


@clause("ANP-Q29")
@pytest.mark.parametrize(
    "start",
    [lambda: provider(judging=False), provider, lambda: requester(proposed=False)],
)
def test_accepting_nothing_or_ones_own_candidate_is_a_protocol_error(
    start: Callable[[], Machine],
) -> None:
    machine = start()
    machine.receive_message(turn(1, "accepted", TEXT), now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-Q14", "ANP-Q4")
@pytest.mark.parametrize(
    "start", [lambda: requester(proposed=False), provider, accepted_requester]
)
def test_a_candidate_out_of_turn_is_a_protocol_error(
    start: Callable[[], Machine],
) -> None:
    machine = start()
    in_code = machine.state is NegotiationState.EXPECT_CODE
    machine.receive_message(turn(0, "negotiating", OTHER), now=0.0)
    (message,) = sent(machine)
    assert message["status"] == ("error" if in_code else "rejected")
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-23", "ANP-33", "ANP-Q24", "WIRE row 45")
@pytest.mark.parametrize("last", [Accept(), Counter(TEXT, "x"), Reject("no")])
def test_at_most_ten_negotiating_messages(last: Verdict) -> None:
    machine = requester()
    for number in range(1, 9, 2):
        machine.receive_message(turn(number, "negotiating", OTHER), now=0.0)
        assert events(machine) == [NeedVerdict(OTHER, "", number + 1, True)]
        machine.verdict_ready(Counter(TEXT, "x"), now=0.0)
        assert sent(machine)[0]["sequenceId"] == number + 1
    machine.receive_message(turn(9, "negotiating", OTHER), now=0.0)
    assert events(machine) == [NeedVerdict(OTHER, "", 10, False)]
    machine.verdict_ready(last, now=0.0)
    (message,) = sent(machine)
    assert message["sequenceId"] == 10
    if isinstance(last, Accept):
        assert message["status"] == "accepted"
        return
    assert message["status"] == "rejected"
    counter = isinstance(last, Counter)
    assert failure(machine).kind is (
        FailureKind.ROUNDS if counter else FailureKind.REJECTED
    )


@clause("ANP-23", "ANP-Q24", "WIRE row 45")
def test_the_peers_message_over_the_limit_is_rejected() -> None:
    machine = requester(max_rounds=3)
    machine.receive_message(turn(1, "negotiating", OTHER), now=0.0)
    machine.verdict_ready(Counter(TEXT, "x"), now=0.0)
    sent(machine)
    machine.receive_message(turn(3, "negotiating", OTHER), now=0.0)
    (message,) = sent(machine)
    assert (message["status"], message["sequenceId"]) == ("rejected", 4)
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.ROUNDS, True)


@clause("WIRE row 44")
def test_a_peers_timeout_status_is_a_protocol_error() -> None:
    machine = requester()
    machine.receive_message(turn(1, "timeout"), now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


def test_our_failed_mind_is_told_in_neutral_words() -> None:
    for machine in (requester(proposed=False), provider()):
        machine.mind_failed("key sk-123 has no money left", now=0.0)
        (message,) = sent(machine)
        assert message["status"] == "rejected"
        assert "sk-123" not in message["modificationSummary"]
        assert message["modificationSummary"]
        assert failure(machine) == NegotiationFailed(
            FailureKind.MIND, "key sk-123 has no money left", by_peer=False
        )


@pytest.mark.parametrize("text", ["", " ", "\ud800", "x" * (MAX_CANDIDATE_SIZE + 1)])
def test_a_candidate_of_ours_that_cannot_be_sent_is_our_minds_failure(
    text: str,
) -> None:
    opening, answering = requester(proposed=False), provider()
    opening.proposal_ready(text, now=0.0)
    answering.verdict_ready(Counter(text, "x"), now=0.0)
    for machine in (opening, answering):
        assert sent(machine)[0]["status"] == "rejected"
        assert failure(machine).kind is FailureKind.MIND


def test_a_reason_of_ours_is_cut_and_fit_for_utf_8() -> None:
    machine = provider()
    machine.verdict_ready(Reject("\ud800" * 5_000), now=0.0)
    assert len(sent(machine)[0]["modificationSummary"]) == 2_000


def test_a_reason_of_the_peers_is_cut() -> None:
    machine = requester()
    data = turn(1, "rejected", modificationSummary="x" * 60_000)
    machine.receive_message(data, now=0.0)
    assert len(failure(machine).reason) == 2_000


def test_a_cancelled_negotiation_is_told_without_our_reason() -> None:
    for machine in (requester(proposed=False), requester(), provider()):
        machine.cancel("the owner said so", now=0.0)
        (message,) = sent(machine)
        assert message["status"] == "rejected"
        assert "owner" not in message["modificationSummary"]
        assert failure(machine) == NegotiationFailed(
            FailureKind.CANCELLED, "the owner said so", by_peer=False
        )


def test_a_lost_link_ends_it_without_a_word() -> None:
    machine = requester(proposed=False)
    machine.proposal_ready(TEXT, now=0.0)
    machine.link_lost(now=1.0)
    assert not machine.messages_to_send()
    assert failure(machine).kind is FailureKind.LINK_LOST


def test_a_channel_that_the_peer_closes_ends_it() -> None:
    machine = requester()
    data = b'{"action": "channelClose", "code": 4004, "reason": "expired"}'
    machine.receive_message(data, now=0.0)
    assert not machine.messages_to_send()
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.LINK_LOST, True)
    assert "4004" in end.reason
    assert "expired" in end.reason


# Time.


@clause("WIRE row 46")
@pytest.mark.parametrize("start", [requester, lambda: provider(judging=False)])
def test_a_silent_peer_is_given_60_s(start: Callable[[], Machine]) -> None:
    machine = start()
    assert machine.get_timer() == 60.0
    machine.handle_timer(now=59.9)
    assert events(machine) == []
    machine.handle_timer(now=60.0)
    assert sent(machine)[0]["status"] == "rejected"
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.TIMEOUT, True)
    assert machine.get_timer() is None


@clause("WIRE row 46")
@pytest.mark.parametrize("start", [provider, lambda: requester(proposed=False)])
def test_our_own_mind_answers_within_60_s_or_not_at_all(
    start: Callable[[], Machine],
) -> None:
    machine = start()
    assert machine.get_timer() == 55.0
    machine.handle_timer(now=55.0)
    assert sent(machine)[0]["status"] == "rejected"
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.TIMEOUT, False)
    machine.mind_failed("late", now=56.0)
    assert events(machine) == []


def test_the_whole_negotiation_has_a_limit_of_its_own() -> None:
    machine = requester()
    now = 0.0
    for number in (1, 3):
        now += 50.0
        machine.receive_message(turn(number, "negotiating", OTHER), now=now)
        machine.verdict_ready(Counter(TEXT, "x"), now=now)
    sent(machine)
    events(machine)
    assert machine.get_timer() == 120.0
    machine.handle_timer(now=120.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    "limits",
    [
        {"timeout": 0.0},
        {"message_timeout": -1.0},
        {"answer_timeout": float("nan")},
        {"codegen_timeout": 0.0},
        {"codegen_slow": 0.0},
        {"max_rounds": 0},
        {"max_ignored": -1},
    ],
)
def test_limits_without_sense_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(MisuseError):
        NegotiationLimits(**limits)
