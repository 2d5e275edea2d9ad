"""After the agreement: code generation; what is dropped, kept and misused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from negotiation.errors import FailureKind, MisuseError
from negotiation.exchange.events import CodeGenerationSlow, Ignored, NegotiationFailed
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import END_STATES, REACTIONS, NegotiationState
from negotiation.messages import Status
from negotiation.mind import Accept, Counter
from negotiation.need import Role
from negotiation.transcript import Direction
from tests.clauses import clause
from tests.negotiation.exchange.machines import (
    ERROR,
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
    ],
)
def test_what_we_cannot_process_is_dropped_and_counted(content: Any) -> None:
    machine = requester()
    machine.receive_message(json.dumps(content).encode(), now=0.0)
    assert [type(event) for event in events(machine)] == [Ignored]
    assert (machine.ignored, machine.messages_received) == (1, 1)
    assert not machine.messages_to_send()
    machine.receive_message(turn(1, "accepted"), now=0.0)
    assert machine.state is NegotiationState.EXPECT_CODE


@clause("ANP-18", "WIRE row 40")
@pytest.mark.parametrize("data", [b"[]", b'"text"', b"\xff", b"{", b"no JSON"])
def test_what_is_not_a_json_object_is_rejected(data: bytes) -> None:
    machine = requester()
    machine.receive_message(data, now=0.0)
    assert [type(event) for event in events(machine)] == [NegotiationFailed]
    [sent] = machine.messages_to_send()
    assert json.loads(sent)["status"] == "rejected"


@clause("WIRE row 50")
def test_too_much_of_no_use_is_a_protocol_error() -> None:
    machine = requester(max_ignored=3)
    for _ in range(3):
        machine.receive_message(b"", now=0.0)
    assert machine.state is NegotiationState.EXPECT_ANSWER
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
    assert set(REACTIONS) == set(NegotiationState) - END_STATES
    assert all(set(row) == set(Status) for row in REACTIONS.values())
