"""Two sides come to one text: turns, their numbers and confirmations."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from negotiation.errors import FailureKind
from negotiation.exchange.events import (
    NeedModule,
    NeedProposal,
    NeedVerdict,
    NegotiationAgreed,
)
from negotiation.exchange.reactions import NegotiationState
from negotiation.exchange.speaker import SequenceCounter
from negotiation.mind import Accept, Counter, Reject
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.machines import (
    GENERATED,
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

# Agreement.


@clause("ANP-3", "ANP-4", "ANP-20", "ANP-28", "ANP-29", "WIRE row 37")
def test_the_requester_opens_with_number_0_and_no_summary() -> None:
    machine = requester(proposed=False)
    assert events(machine) == [NeedProposal()]
    assert not machine.messages_to_send()
    machine.proposal_ready(TEXT, now=1.0)
    assert sent(machine) == [
        {
            "action": "protocolNegotiation",
            "sequenceId": 0,
            "candidateProtocols": TEXT,
            "status": "negotiating",
        }
    ]


@clause("ANP-3", "ANP-5", "ANP-33", "ANP-Q8", "WIRE row 41")
def test_a_provider_accepts_and_announces_its_code_together() -> None:
    machine = provider(judging=False)
    assert events(machine) == []
    machine.receive_message(turn(0, "negotiating", TEXT), now=1.0)
    assert events(machine) == [NeedVerdict(TEXT, "", 1, True)]
    machine.module_ready(now=2.0)
    assert not machine.messages_to_send()
    machine.verdict_ready(Accept(), now=2.0)
    assert sent(machine) == [
        {
            "action": "protocolNegotiation",
            "sequenceId": 1,
            "candidateProtocols": TEXT,
            "status": "accepted",
        },
        {"action": "codeGeneration", "status": "generated"},
    ]
    assert events(machine) == []
    assert not machine.ready
    machine.receive_message(GENERATED, now=3.0)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert events(machine) == [NegotiationAgreed(TEXT, digest)]
    assert machine.ready


@clause("ANP-Q8", "ANP-41")
def test_a_provider_may_also_accept_first_and_announce_later() -> None:
    machine = provider()
    machine.verdict_ready(Accept(), now=1.0)
    assert [content["action"] for content in sent(machine)] == ["protocolNegotiation"]
    assert events(machine) == [NeedModule(TEXT)]
    machine.module_ready(now=2.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "generated"}]


@clause("ANP-7", "ANP-41", "ANP-42", "ANP-85", "ANP-88")
def test_a_requester_is_ready_once_both_announced_their_code() -> None:
    machine = requester()
    machine.receive_message(turn(1, "accepted", TEXT), now=1.0)
    assert events(machine) == [NeedModule(TEXT)]
    assert not machine.messages_to_send()
    machine.module_ready(now=2.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "generated"}]
    assert events(machine) == []
    assert not machine.ready
    machine.receive_message(GENERATED, now=3.0)
    assert events(machine) == [
        NegotiationAgreed(TEXT, hashlib.sha256(TEXT.encode()).hexdigest())
    ]
    assert machine.ready


@clause("ANP-Q10")
def test_the_peers_code_may_come_before_ours() -> None:
    machine = accepted_requester()
    machine.receive_message(GENERATED, now=1.0)
    assert events(machine) == []
    machine.module_ready(now=2.0)
    assert isinstance(events(machine)[0], NegotiationAgreed)


@clause("ANP-6", "ANP-21", "ANP-22", "ANP-27", "ANP-30")
def test_both_directions_share_one_counter() -> None:
    machine = requester()
    machine.receive_message(turn(1, "negotiating", OTHER), now=1.0)
    assert events(machine) == [NeedVerdict(OTHER, "", 2, True)]
    machine.verdict_ready(Counter(TEXT, "- back to ours"), now=2.0)
    assert sent(machine) == [
        {
            "action": "protocolNegotiation",
            "sequenceId": 2,
            "candidateProtocols": TEXT,
            "modificationSummary": "- back to ours",
            "status": "negotiating",
        }
    ]
    machine.receive_message(turn(3, "accepted", TEXT), now=3.0)
    assert events(machine) == [NeedModule(TEXT)]


@clause("ANP-29")
@pytest.mark.parametrize("summary", ["", "  \n", "x" * 100_000, "\ud800"])
def test_a_counter_always_has_a_summary_that_fits(summary: str) -> None:
    machine = provider()
    machine.verdict_ready(Counter(OTHER, summary), now=0.0)
    (message,) = sent(machine)
    assert message["modificationSummary"].strip()
    assert len(message["modificationSummary"].encode()) <= 64 * 1024


@clause("ANP-29", "WIRE row 43")
def test_a_summary_is_not_demanded_from_the_peer() -> None:
    machine = requester()
    machine.receive_message(turn(1, "negotiating", OTHER), now=0.0)
    assert isinstance(events(machine)[0], NeedVerdict)


@clause("ANP-Q6", "WIRE row 41")
@pytest.mark.parametrize("text", [None, "", TEXT])
def test_accepted_may_omit_or_repeat_the_text(text: str | None) -> None:
    machine = requester()
    machine.receive_message(turn(1, "accepted", text), now=0.0)
    assert events(machine) == [NeedModule(TEXT)]


@clause("ANP-Q6", "WIRE row 42")
@pytest.mark.parametrize("text", [TEXT + "\n", TEXT.strip(), OTHER, " "])
def test_another_text_in_accepted_is_a_failure(text: str) -> None:
    machine = requester()
    machine.receive_message(turn(1, "accepted", text), now=0.0)
    (message,) = sent(machine)
    assert (message["status"], message["sequenceId"]) == ("rejected", 2)
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.PROTOCOL_ERROR, True)


@clause("ANP-85", "ANP-Q6", "ANP-Q7")
def test_the_agreed_text_is_the_accepted_candidate_and_hashed_as_is() -> None:
    machine = requester()
    machine.receive_message(turn(1, "negotiating", OTHER), now=0.0)
    machine.module_ready(now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    assert sent(machine)[0]["candidateProtocols"] == OTHER
    machine.receive_message(GENERATED, now=0.0)
    agreed = events(machine)[-1]
    assert agreed == NegotiationAgreed(
        OTHER, hashlib.sha256(OTHER.encode()).hexdigest()
    )


def test_a_module_of_a_countered_candidate_does_not_count() -> None:
    machine = provider()
    machine.module_ready(now=0.0)
    machine.verdict_ready(Counter(OTHER, "x"), now=0.0)
    machine.receive_message(turn(2, "accepted"), now=0.0)
    assert NeedModule(OTHER) in events(machine)
    assert "codeGeneration" not in {content["action"] for content in sent(machine)}


# Numbers.


@clause("ANP-22", "ANP-Q4", "WIRE row 37")
@pytest.mark.parametrize("number", [0, 1])
def test_the_first_number_may_be_0_or_1(number: int) -> None:
    machine = provider(judging=False)
    machine.receive_message(turn(number, "negotiating", TEXT), now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    assert sent(machine)[0]["sequenceId"] == number + 1


@clause("ANP-Q4", "WIRE row 37")
@pytest.mark.parametrize("number", [1, 2])
def test_the_first_answer_to_our_0_may_be_1_or_2(number: int) -> None:
    machine = requester()
    machine.receive_message(turn(number, "negotiating", OTHER), now=0.0)
    machine.verdict_ready(Counter(TEXT, "x"), now=0.0)
    assert sent(machine)[0]["sequenceId"] == number + 1
    machine.receive_message(turn(number + 2, "accepted"), now=0.0)
    assert machine.state is NegotiationState.EXPECT_CODE


@clause("ANP-22", "ANP-Q4")
@pytest.mark.parametrize("number", [-1, 2, 3, 10**300])
def test_a_wrong_first_number_is_a_protocol_error(number: int) -> None:
    machine = provider(judging=False)
    machine.receive_message(turn(number, "negotiating", TEXT), now=0.0)
    (message,) = sent(machine)
    assert (message["status"], message["sequenceId"]) == ("rejected", 1)
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-22", "ANP-Q4")
@pytest.mark.parametrize("number", [-1, 0, 3, 4])
@pytest.mark.parametrize("status", ["negotiating", "accepted"])
def test_a_gap_repeat_or_step_back_is_a_protocol_error(
    number: int, status: str
) -> None:
    machine = requester()
    machine.receive_message(turn(number, status, TEXT), now=0.0)
    (message,) = sent(machine)
    assert (message["status"], message["sequenceId"]) == ("rejected", 1)
    assert message["candidateProtocols"] == ""
    assert "sequenceId" in message["modificationSummary"]
    assert failure(machine).by_peer


@clause("ANP-22", "ANP-Q4")
def test_the_exception_for_the_sdk_holds_for_its_first_answer_only() -> None:
    machine = provider()
    machine.verdict_ready(Counter(OTHER, "x"), now=0.0)
    machine.receive_message(turn(3, "negotiating", TEXT), now=0.0)
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-Q4")
@pytest.mark.parametrize("number", [True, 1.0, "1", None])
def test_other_json_values_are_no_numbers(number: Any) -> None:
    machine = requester()
    machine.receive_message(turn(number, "accepted", TEXT), now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-21", "ANP-22", "WIRE row 37")
def test_only_the_requesters_0_has_two_answers() -> None:
    ours, theirs = SequenceCounter(Role.REQUESTER), SequenceCounter(Role.PROVIDER)
    assert ours.send() == 0
    assert theirs.receive(0)
    assert (ours.expected, theirs.expected) == ((1, 2), (1,))
    assert not theirs.receive(2)
    assert theirs.send() == 1


# Confirmations.


@clause("ANP-Q4", "WIRE row 38")
@pytest.mark.parametrize("number", [0, 1, 2, 99])
@pytest.mark.parametrize("text", [None, "", TEXT])
def test_one_repeated_verdict_is_a_confirmation(number: int, text: str | None) -> None:
    machine = accepting_provider()
    machine.receive_message(turn(number, "accepted", text), now=0.0)
    assert not machine.messages_to_send()
    assert events(machine) == []
    machine.receive_message(GENERATED, now=0.0)
    assert machine.ready


@clause("WIRE row 38", "ANP-Q10")
def test_code_may_come_before_the_confirmation() -> None:
    machine = provider()
    machine.verdict_ready(Accept(), now=0.0)
    machine.receive_message(GENERATED, now=0.0)
    machine.receive_message(turn(0, "accepted", TEXT), now=0.0)
    machine.module_ready(now=0.0)
    assert machine.ready


@clause("ANP-Q4")
def test_a_second_repetition_is_a_protocol_error() -> None:
    machine = accepting_provider()
    machine.receive_message(turn(0, "accepted", TEXT), now=0.0)
    machine.receive_message(turn(0, "accepted", TEXT), now=0.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-Q6", "WIRE row 42")
def test_a_confirmation_of_another_text_is_a_failure() -> None:
    machine = accepting_provider()
    machine.receive_message(turn(0, "accepted", OTHER), now=0.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("WIRE row 38")
def test_the_echo_of_our_rejection_is_counted_only() -> None:
    machine = provider()
    machine.verdict_ready(Reject("no"), now=0.0)
    sent(machine)
    events(machine)
    machine.receive_message(turn(0, "rejected", ""), now=0.0)
    assert events(machine) == []
    assert not machine.messages_to_send()
    assert machine.ignored == 1
