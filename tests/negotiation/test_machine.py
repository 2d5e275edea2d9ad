"""The rules of the meta-protocol, for both roles, without a clock or a socket."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from negotiation.errors import FailureKind, MisuseError
from negotiation.events import (
    Agreed,
    CodeGenerationSlow,
    Event,
    Ignored,
    NeedModule,
    NeedProposal,
    NeedVerdict,
    NegotiationFailed,
)
from negotiation.limits import NegotiationLimits
from negotiation.machine import Machine
from negotiation.messages import MAX_CANDIDATE_SIZE, Status
from negotiation.mind import Accept, Counter, Direction, Reject, Verdict
from negotiation.reactions import END_STATES, REACTIONS, State
from negotiation.sequence import SequenceCounter
from negotiation.task import Role
from tests.clauses import clause
from tests.negotiation.sdk_like import SdkLike

TEXT = "# 需求\nadd two numbers\n\r\n\ttrailing blanks  \n"
OTHER = "# Need\nadd numbers, in our terms\n"
GENERATED = b'{"action": "codeGeneration", "status": "generated"}'
ERROR = b'{"action": "codeGeneration", "status": "error"}'


def turn(number: Any, status: str, text: str | None = None, **more: Any) -> bytes:
    content = {
        "action": "protocolNegotiation",
        "sequenceId": number,
        "status": status,
        **more,
    }
    if text is not None:
        content["candidateProtocols"] = text
    return json.dumps(content).encode()


def events(machine: Machine) -> list[Event]:
    return list(iter(machine.next_event, None))


def sent(machine: Machine) -> list[dict[str, Any]]:
    return [json.loads(data) for data in machine.messages_to_send()]


def failure(machine: Machine) -> NegotiationFailed:
    last = events(machine)[-1]
    assert isinstance(last, NegotiationFailed)
    assert machine.state is State.FAILED
    return last


def requester(*, proposed: bool = True, **limits: Any) -> Machine:
    """A requester, by default one that has sent its first candidate."""
    machine = Machine(Role.REQUESTER, NegotiationLimits(**limits), now=0.0)
    if proposed:
        machine.proposal_ready(TEXT, now=0.0)
        sent(machine)
        events(machine)
    return machine


def provider(*, judging: bool = True, **limits: Any) -> Machine:
    """A provider, by default one that has received the first candidate."""
    machine = Machine(Role.PROVIDER, NegotiationLimits(**limits), now=0.0)
    if judging:
        machine.receive_message(turn(0, "negotiating", TEXT), now=0.0)
        events(machine)
    return machine


def accepted_requester(**limits: Any) -> Machine:
    """A requester whose candidate was accepted and that owes its module."""
    machine = requester(**limits)
    machine.receive_message(turn(1, "accepted", TEXT), now=0.0)
    events(machine)
    return machine


def accepting_provider(**limits: Any) -> Machine:
    """A provider that sent `accepted` and `generated`."""
    machine = provider(**limits)
    machine.module_ready(now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    sent(machine)
    return machine


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
    assert events(machine) == [Agreed(TEXT, digest)]
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
    assert events(machine) == [Agreed(TEXT, hashlib.sha256(TEXT.encode()).hexdigest())]
    assert machine.ready


@clause("ANP-Q10")
def test_the_peers_code_may_come_before_ours() -> None:
    machine = accepted_requester()
    machine.receive_message(GENERATED, now=1.0)
    assert events(machine) == []
    machine.module_ready(now=2.0)
    assert isinstance(events(machine)[0], Agreed)


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
    assert agreed == Agreed(OTHER, hashlib.sha256(OTHER.encode()).hexdigest())


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
    assert machine.state is State.EXPECT_CODE


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
    in_code = machine.state is State.EXPECT_CODE
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


# Code generation.


@clause("ANP-3")
@pytest.mark.parametrize("data", [GENERATED, ERROR])
@pytest.mark.parametrize(
    "start", [requester, provider, lambda: provider(judging=False)]
)
def test_code_before_an_agreement_is_a_protocol_error(
    data: bytes, start: Callable[[], Machine]
) -> None:
    machine = start()
    machine.receive_message(data, now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-46")
@pytest.mark.parametrize("start", [accepted_requester, accepting_provider])
def test_the_peers_error_ends_it(start: Callable[[], Machine]) -> None:
    machine = start()
    machine.receive_message(ERROR, now=0.0)
    assert not machine.messages_to_send()
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.CODE_GENERATION, True)
    machine.module_ready(now=1.0)
    assert not machine.messages_to_send()
    assert not machine.ready


@clause("ANP-46", "WIRE row 48")
def test_our_failed_code_is_announced_as_error() -> None:
    machine = accepted_requester()
    machine.module_failed("three attempts, no working half", now=0.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    assert failure(machine) == NegotiationFailed(
        FailureKind.CODE_GENERATION, "three attempts, no working half", by_peer=False
    )


def test_a_candidate_that_cannot_be_coded_is_rejected_without_details() -> None:
    machine = provider()
    machine.module_failed("NameError in line 3", now=0.0)
    (message,) = sent(machine)
    assert message["status"] == "rejected"
    assert "NameError" not in message["modificationSummary"]
    assert failure(machine).kind is FailureKind.CODE_GENERATION


@clause("ANP-44", "ANP-45", "ANP-Q8", "WIRE row 46")
def test_missing_code_is_noted_after_15_s_and_fails_after_60_s() -> None:
    machine = accepting_provider()
    assert machine.get_timer() == 15.0
    machine.handle_timer(now=14.9)
    assert events(machine) == []
    machine.handle_timer(now=15.0)
    assert events(machine) == [CodeGenerationSlow(waiting_for_peer=True)]
    assert machine.get_timer() == 60.0
    machine.handle_timer(now=59.9)
    assert events(machine) == []
    machine.handle_timer(now=60.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    end = failure(machine)
    assert (end.kind, end.by_peer) == (FailureKind.CODE_GENERATION, True)
    machine.receive_message(GENERATED, now=60.1)
    assert events(machine) == []
    assert not machine.ready


@clause("ANP-44", "ANP-Q8")
def test_code_that_comes_with_the_deadline_is_late_even_before_the_timer() -> None:
    machine = accepting_provider()
    machine.receive_message(GENERATED, now=60.0)
    assert failure(machine).kind is FailureKind.CODE_GENERATION


@clause("ANP-Q8")
def test_code_just_before_the_deadline_is_in_time() -> None:
    machine = accepting_provider()
    machine.receive_message(GENERATED, now=59.9)
    assert machine.ready


@clause("ANP-44")
def test_our_own_late_code_is_our_failure() -> None:
    machine = accepted_requester()
    machine.handle_timer(now=15.0)
    assert events(machine) == [CodeGenerationSlow(waiting_for_peer=False)]
    machine.handle_timer(now=60.0)
    assert not failure(machine).by_peer


@clause("ANP-40")
@pytest.mark.parametrize("status", ["ready", None, "GENERATED"])
def test_code_of_another_status_is_a_protocol_error(status: str | None) -> None:
    machine = accepting_provider()
    content = {"action": "codeGeneration", "status": status}
    machine.receive_message(json.dumps(content).encode(), now=0.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    assert failure(machine).by_peer


def test_repeated_code_is_counted() -> None:
    machine = accepted_requester()
    machine.receive_message(GENERATED, now=0.0)
    machine.receive_message(GENERATED, now=0.0)
    assert [type(event) for event in events(machine)] == [Ignored]
    machine.module_ready(now=0.0)
    assert machine.ready


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


# What is dropped and counted.


@clause("ANP-Q16", "ANP-Q17", "ANP-Q11", "WIRE row 49", "WIRE row 50")
@pytest.mark.parametrize(
    "content",
    [
        {"action": "testCasesNegotiation", "testCases": "x", "status": "negotiating"},
        {"action": "fixErrorNegotiation", "errorDescription": "", "status": "accepted"},
        {
            "action": "naturalLanguageNegotiation",
            "type": "REQUEST",
            "messageId": "x" * 16,
            "message": "hello",
        },
        {"action": "verificationProtocol"},
        {"no": "action"},
        [],
        "text",
    ],
)
def test_what_we_cannot_process_is_dropped_and_counted(content: Any) -> None:
    machine = requester()
    machine.receive_message(json.dumps(content).encode(), now=0.0)
    assert [type(event) for event in events(machine)] == [Ignored]
    assert (machine.ignored, machine.messages_received) == (1, 1)
    assert not machine.messages_to_send()
    machine.receive_message(turn(1, "accepted"), now=0.0)
    assert machine.state is State.EXPECT_CODE


@clause("WIRE row 50")
def test_too_much_of_no_use_is_a_protocol_error() -> None:
    machine = requester(max_ignored=3)
    for _ in range(3):
        machine.receive_message(b"", now=0.0)
    assert machine.state is State.EXPECT_ANSWER
    machine.receive_message(b"", now=0.0)
    assert sent(machine)[0]["status"] == "rejected"
    assert failure(machine).kind is FailureKind.PROTOCOL_ERROR


@clause("ANP-42")
def test_nothing_changes_a_machine_that_is_ready() -> None:
    machine = accepting_provider()
    machine.receive_message(GENERATED, now=0.0)
    events(machine)
    for data in (turn(3, "negotiating", OTHER), ERROR, turn(3, "rejected"), b"{"):
        machine.receive_message(data, now=1.0)
    machine.handle_timer(now=1_000.0)
    machine.cancel("late", now=1_000.0)
    machine.link_lost(now=1_000.0)
    machine.module_failed("late", now=1_000.0)
    assert machine.ready
    assert events(machine) == []
    assert not machine.messages_to_send()
    assert machine.ignored == 4
    assert machine.get_timer() is None


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


# Transcript and misuse.


def test_the_transcript_holds_every_turn() -> None:
    machine = Machine(Role.PROVIDER, NegotiationLimits(), now=100.0)
    machine.receive_message(turn(0, "negotiating", TEXT), now=101.0)
    machine.verdict_ready(Counter(OTHER, "ours"), now=103.5)
    machine.receive_message(turn(2, "accepted", OTHER), now=104.0)
    assert [
        (turn.direction, turn.sequence_id, turn.status, turn.seconds)
        for turn in machine.transcript
    ] == [
        (Direction.RECEIVED, 0, Status.NEGOTIATING, 1.0),
        (Direction.SENT, 1, Status.NEGOTIATING, 3.5),
        (Direction.RECEIVED, 2, Status.ACCEPTED, 4.0),
    ]
    assert machine.transcript[1].candidate == OTHER
    assert machine.transcript[1].summary == "ours"
    assert (machine.messages_sent, machine.messages_received) == (1, 2)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda machine: machine.proposal_ready(TEXT, now=0.0),
        lambda machine: machine.verdict_ready(Accept(), now=0.0),
        lambda machine: machine.module_ready(now=0.0),
        lambda machine: machine.module_failed("x", now=0.0),
        lambda machine: machine.mind_failed("x", now=0.0),
    ],
)
def test_an_answer_that_nobody_asked_for_is_a_bug(
    misuse: Callable[[Machine], None],
) -> None:
    with pytest.raises(MisuseError):
        misuse(requester())


@clause("ANP-32")
def test_every_state_has_a_reaction_to_every_status() -> None:
    assert set(REACTIONS) == set(State) - END_STATES
    assert all(set(row) == set(Status) for row in REACTIONS.values())


# A peer like the official SDK.


def play(machine: Machine, peer: SdkLike, verdicts: list[Verdict]) -> list[Event]:
    """Let both talk until nothing more happens; return every event of ours."""
    seen: list[Event] = []
    pending = list(verdicts)
    moved = True
    while moved:
        moved = False
        for data in machine.messages_to_send():
            peer.receive(data)
            moved = True
        while peer.outgoing:
            machine.receive_message(peer.outgoing.pop(0), now=0.0)
            moved = True
        for event in events(machine):
            seen.append(event)
            moved = True
            match event:
                case NeedProposal():
                    machine.proposal_ready(TEXT, now=0.0)
                case NeedVerdict():
                    machine.verdict_ready(pending.pop(0), now=0.0)
                case NeedModule():
                    machine.module_ready(now=0.0)
                    peer.notify_code_generation()
    return seen


def accepting(text: str) -> tuple[str, str]:
    return "accepted", ""


@clause("ANP-10", "WIRE row 37", "WIRE row 38", "WIRE row 41")
def test_an_sdk_requester_agrees_with_us() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting, proposal=TEXT)
    seen = play(machine, peer, [Accept()])
    assert isinstance(seen[-1], Agreed)
    assert (peer.agreed, peer.code_received) == (TEXT, 1)
    numbers = [turn.sequence_id for turn in machine.transcript]
    assert numbers == [1, 2, 1]


@clause("WIRE row 37", "WIRE row 38", "WIRE row 41")
def test_an_sdk_requester_takes_our_counter() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting, proposal=TEXT)
    seen = play(machine, peer, [Counter(OTHER, "our terms")])
    assert isinstance(seen[-1], Agreed)
    assert seen[-1].document == peer.agreed == OTHER
    assert [turn.sequence_id for turn in machine.transcript] == [1, 2, 3]


@clause("ANP-10", "WIRE row 37", "WIRE row 38")
def test_an_sdk_provider_agrees_with_us() -> None:
    machine = requester(proposed=False)
    peer = SdkLike(Role.PROVIDER, accepting)
    seen = play(machine, peer, [])
    assert isinstance(seen[-1], Agreed)
    assert peer.agreed == TEXT
    assert [turn.sequence_id for turn in machine.transcript] == [0, 2]


@clause("WIRE row 37", "WIRE row 38")
def test_an_sdk_provider_counters_and_takes_our_acceptance() -> None:
    machine = requester(proposed=False)
    peer = SdkLike(Role.PROVIDER, lambda text: ("negotiating", OTHER))
    seen = play(machine, peer, [Accept()])
    assert isinstance(seen[-1], Agreed)
    assert seen[-1].document == peer.agreed == OTHER
    assert [turn.sequence_id for turn in machine.transcript] == [0, 2, 3, 2]


@clause("WIRE row 40")
def test_an_sdk_provider_whose_model_fails_ends_it() -> None:
    machine = requester(proposed=False)
    peer = SdkLike(Role.PROVIDER, lambda text: ("failed", ""))
    end = play(machine, peer, [])[-1]
    assert isinstance(end, NegotiationFailed)
    assert end.kind is FailureKind.REJECTED
    assert end.reason == "Error during evaluation: no model"
    assert machine.transcript[-1].sequence_id == 0


@clause("WIRE row 39")
def test_an_sdk_requester_without_a_proposal_is_rejected() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting)
    end = play(machine, peer, [])[-1]
    assert isinstance(end, NegotiationFailed)
    assert end.by_peer
    assert peer.agreed is None


@clause("WIRE row 39")
def test_an_sdk_requester_whose_model_fails_ends_it() -> None:
    machine = provider(judging=False)
    machine.receive_message(turn(1, "rejected", ""), now=0.0)
    assert failure(machine).kind is FailureKind.REJECTED


@clause("WIRE row 48")
def test_an_sdk_peer_does_not_learn_of_an_error_but_we_are_not_ready() -> None:
    machine = provider(judging=False)
    peer = SdkLike(Role.REQUESTER, accepting, proposal=TEXT)
    machine.receive_message(peer.outgoing.pop(), now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    machine.module_failed("no", now=0.0)
    for data in machine.messages_to_send():
        peer.receive(data)
    peer.notify_code_generation()
    for data in peer.outgoing:
        machine.receive_message(data, now=0.0)
    assert peer.code_received == 1
    assert not machine.ready


# Properties.

VERDICTS = st.lists(
    st.sampled_from([Accept(), Counter(TEXT, "x"), Counter(OTHER, "y"), Reject("no")]),
    max_size=12,
)


@clause("ANP-6", "ANP-21", "ANP-33", "ANP-Q24")
@given(st.lists(VERDICTS, min_size=2, max_size=2), st.booleans(), st.booleans())
def test_two_machines_always_come_to_one_end(
    scripts: list[list[Verdict]], requester_codes: bool, provider_codes: bool
) -> None:
    limits = NegotiationLimits()
    pair = [Machine(role, limits, now=0.0) for role in Role]
    codes = [requester_codes, provider_codes]
    ends: list[list[Event]] = [[], []]
    for _ in range(50):
        for index, machine in enumerate(pair):
            for event in events(machine):
                match event:
                    case NeedProposal():
                        machine.proposal_ready(TEXT, now=0.0)
                    case NeedVerdict():
                        script = scripts[index]
                        verdict = script.pop(0) if script else Accept()
                        machine.verdict_ready(verdict, now=0.0)
                    case NeedModule() if codes[index]:
                        machine.module_ready(now=0.0)
                    case NeedModule():
                        machine.module_failed("no", now=0.0)
                    case _:
                        ends[index].append(event)
            for data in machine.messages_to_send():
                pair[1 - index].receive_message(data, now=0.0)
    ((one,), (two,)) = ends
    assert isinstance(one, Agreed) == isinstance(two, Agreed)
    if isinstance(one, Agreed):
        assert one == two
    turns = pair[0].transcript
    assert [turn.sequence_id for turn in turns] == list(range(len(turns)))
    proposals = [turn for turn in turns if turn.status is Status.NEGOTIATING]
    assert len(proposals) <= 10


PEER_BYTES = (
    st.binary(max_size=60)
    | st.sampled_from([GENERATED, ERROR, b"", b"{}", b'{"action": "channelClose"}'])
    | st.builds(
        turn,
        st.integers(-1, 12),
        st.sampled_from([*Status, "timeout"]),
        st.sampled_from([None, "", TEXT, OTHER]),
    )
)
OWN_INPUTS = st.sampled_from(
    [
        "proposal",
        "accept",
        "counter",
        "reject",
        "module",
        "no module",
        "no mind",
        "time",
    ]
)


@given(st.sampled_from(Role), st.lists(PEER_BYTES | OWN_INPUTS, max_size=40))
def test_no_input_in_any_order_raises_or_ends_it_twice(
    role: Role, inputs: list[bytes | str]
) -> None:
    machine = Machine(role, NegotiationLimits(), now=0.0)
    now = 0.0
    seen: list[Event] = []
    answers: dict[str, Callable[[], None]] = {
        "proposal": lambda: machine.proposal_ready(TEXT, now=now),
        "accept": lambda: machine.verdict_ready(Accept(), now=now),
        "counter": lambda: machine.verdict_ready(Counter(OTHER, ""), now=now),
        "reject": lambda: machine.verdict_ready(Reject(""), now=now),
        "module": lambda: machine.module_ready(now=now),
        "no module": lambda: machine.module_failed("no", now=now),
        "no mind": lambda: machine.mind_failed("no", now=now),
        "time": lambda: machine.handle_timer(now=now),
    }
    for data in inputs:
        if isinstance(data, bytes):
            machine.receive_message(data, now=now)
        else:
            now += 7.0 if data == "time" else 0.0
            # Only answers to what was asked: other ones are bugs of ours.
            try:
                answers[data]()
            except MisuseError:
                assert machine.state not in END_STATES
        seen.extend(events(machine))
        for written in machine.messages_to_send():
            json.loads(written.decode())
    ended = [event for event in seen if isinstance(event, Agreed | NegotiationFailed)]
    assert len(ended) <= 1
    assert bool(ended) == (machine.state in END_STATES)
    assert ended == seen[len(seen) - len(ended) :]
    machine.handle_timer(now=now + 1_000.0)
    assert machine.state in END_STATES


@given(st.sampled_from(Role), st.lists(PEER_BYTES, max_size=40))
def test_application_data_waits_for_both_sides(role: Role, inputs: list[bytes]) -> None:
    machine = Machine(role, NegotiationLimits(), now=0.0)
    if role is Role.REQUESTER:
        machine.proposal_ready(TEXT, now=0.0)
    for data in inputs:
        machine.receive_message(data, now=0.0)
    # No module of ours was ever announced, whatever the peer said (ANP-42).
    assert not machine.ready


@clause("ANP-65")
@pytest.mark.parametrize(
    "verdict", [Accept(), Reject("no"), Counter(OTHER, "our terms")], ids=repr
)
def test_a_negotiation_uses_predefined_messages_alone(verdict: Verdict) -> None:
    common = frozenset({"naturalLanguageNegotiation"})
    machine = Machine(Role.PROVIDER, NegotiationLimits(), now=0.0, common=common)
    machine.receive_message(turn(0, "negotiating", TEXT), now=0.0)
    machine.verdict_ready(verdict, now=0.0)
    machine.cancel("over", now=0.0)
    assert {message["action"] for message in sent(machine)} <= {
        "protocolNegotiation",
        "codeGeneration",
    }
