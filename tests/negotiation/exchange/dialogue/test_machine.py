"""Messages that belong to no part of a dialogue, and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.errors import MisuseError
from negotiation.exchange.dialogue.machine import BOUND_REASON
from negotiation.exchange.events import (
    AcceptCases,
    CasesSkipped,
    DialogueBroken,
    Ignored,
    NeedCasesVerdict,
    NeedFault,
    OurFault,
    PeerRepairs,
    QuestionUnanswered,
    RefusalUnsent,
    ReportRefused,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.messages import MAX_MESSAGE_SIZE
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.dialogue.talk import (
    FAILED,
    asked,
    cases,
    dialogue,
    events,
    fix,
    sent,
    written,
)


def turn(status: str, number: Any = 0) -> bytes:
    return written(
        {
            "action": "protocolNegotiation",
            "sequenceId": number,
            "candidateProtocols": "# Need\n",
            "status": status,
        }
    )


@clause("ANP-77", "ANP-81", "ANP-Q17")
@pytest.mark.parametrize(
    "data",
    [
        cases("negotiating", "x"),
        cases("rejected"),
        fix("negotiating", "x"),
        fix("rejected", "messageId: x"),
        asked("REQUEST", "x" * 16, "?"),
        asked("RESPONSE", "x" * 16, "!"),
    ],
)
def test_what_is_not_common_is_dropped_and_counted(data: bytes) -> None:
    machine = dialogue(Role.PROVIDER, frozenset({"verificationProtocol"}))
    machine.receive_message(data, now=0.0)
    (event,) = events(machine)
    assert isinstance(event, Ignored)
    assert event.reason.endswith("is not common")
    assert (machine.ignored, machine.messages_received) == (1, 1)
    assert (sent(machine), machine.get_timer()) == ([], None)


@clause("ANP-Q11", "ANP-Q16", "WIRE row 50")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"{}",
        b"[]",
        b"[" * 1_000,
        written({"action": "verificationProtocol"}),
        written({"action": "channelClose", "code": 4004, "reason": "x"}),
        written({"action": "fixErrorNegotiation", "status": "negotiating"}),
        written({"action": "codeGeneration", "status": 7}),
        b" " * (MAX_MESSAGE_SIZE + 1),
        FAILED,
    ],
)
def test_what_means_nothing_is_dropped_and_counted(data: bytes) -> None:
    machine = dialogue()
    machine.receive_message(data, now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored]
    assert sent(machine) == []


@clause("ANP-Q17")
def test_too_much_of_no_use_ends_the_communication() -> None:
    machine = dialogue(max_ignored=2)
    for _ in range(2):
        machine.receive_message(b"", now=0.0)
    assert not machine.ended
    machine.receive_message(b"", now=0.0)
    last = events(machine)[-1]
    assert last == DialogueBroken("too many messages of no use", by_peer=True)
    machine.receive_message(b"", now=0.0)
    assert (events(machine), machine.ignored) == ([], 4)


@clause("ANP-Q23")
def test_a_negotiation_on_a_bound_channel_is_refused_once() -> None:
    machine = dialogue(Role.PROVIDER)
    for number in (0, 2):
        machine.receive_message(turn("negotiating", number), now=0.0)
    assert sent(machine) == [
        {
            "action": "protocolNegotiation",
            "sequenceId": 1,
            "candidateProtocols": "",
            "modificationSummary": BOUND_REASON,
            "status": "rejected",
        }
    ]
    assert [type(one) for one in events(machine)] == [Ignored, Ignored]


@clause("ANP-Q23", "WIRE row 38")
@pytest.mark.parametrize("status", ["accepted", "rejected"])
def test_a_late_verdict_on_a_bound_channel_is_not_answered(status: str) -> None:
    machine = dialogue()
    machine.receive_message(turn(status), now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored]
    assert sent(machine) == []


@pytest.mark.parametrize("number", [-1, 2**53 - 1, 10**300])
def test_a_number_that_has_no_next_one_is_answered_with_0(number: int) -> None:
    machine = dialogue()
    machine.receive_message(turn("negotiating", number), now=0.0)
    assert [one["sequenceId"] for one in sent(machine)] == [0]


def test_a_message_behind_a_deadline_is_late() -> None:
    machine = dialogue(report_timeout=10.0)
    machine.report_error("x", "no", now=0.0)
    machine.receive_message(fix("accepted", "messageId: x\n"), now=10.0)
    assert PeerRepairs("x") not in events(machine)
    assert not machine.holding


def test_the_timer_is_that_of_the_first_deadline() -> None:
    machine = dialogue(message_timeout=30.0, report_timeout=20.0, question_timeout=10.0)
    assert machine.get_timer() is None
    machine.start_tests("x", now=0.0)
    assert machine.get_timer() == 30.0
    machine.report_error("x", "no", now=0.0)
    assert machine.get_timer() == 20.0
    machine.ask("?", "a" * 16, now=0.0)
    assert machine.get_timer() == 10.0


def test_the_parts_work_at_the_same_time() -> None:
    machine = dialogue(Role.PROVIDER)
    machine.receive_message(cases("negotiating", "x"), now=0.0)
    machine.receive_message(fix("negotiating", "no"), now=0.0)
    assert [type(one) for one in events(machine)] == [NeedCasesVerdict, NeedFault]
    machine.fault_judged(OurFault(("no",)), now=0.0)
    machine.cases_judged(AcceptCases(), now=0.0)
    assert [one["status"] for one in sent(machine)] == ["accepted", "accepted"]
    assert machine.holding
    assert machine.messages_sent == 2


def test_after_the_end_no_input_has_an_effect() -> None:
    machine = dialogue()
    machine.link_lost(now=0.0)
    machine.link_lost(now=0.0)
    machine.cases_judged(AcceptCases(), now=0.0)
    machine.fault_judged(OurFault(("no",)), now=0.0)
    machine.answer_ready("a" * 16, "!", now=0.0)
    machine.repair_ready(now=0.0)
    machine.repair_failed("no", now=0.0)
    machine.receive_message(fix("negotiating", "no"), now=0.0)
    machine.handle_timer(now=1_000.0)
    assert (events(machine), sent(machine), machine.get_timer()) == ([], [], None)
    assert (machine.ended, machine.ignored) == (True, 1)


def test_what_is_begun_after_the_end_is_refused() -> None:
    machine = dialogue()
    machine.link_lost(now=0.0)
    machine.start_tests("x", now=0.0)
    machine.report_error("x", "no", now=0.0)
    machine.refuse_message("x", "no", now=0.0)
    machine.ask("?", "a" * 16, now=0.0)
    assert [type(one) for one in events(machine)] == [
        CasesSkipped,
        ReportRefused,
        RefusalUnsent,
        QuestionUnanswered,
    ]
    assert sent(machine) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"cases_timeout": 0.0},
        {"message_timeout": -1.0},
        {"answer_timeout": 0.0},
        {"report_timeout": float("nan")},
        {"fault_timeout": 0.0},
        {"repair_timeout": 0.0},
        {"question_timeout": 0.0},
        {"matter_lifetime": 0.0},
        {"max_rounds": 0},
        {"max_reports": -1},
        {"max_matters": 0},
        {"max_repairs": -1},
        {"max_questions": -1},
        {"max_ignored": -1},
    ],
)
def test_limits_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match=f"dialogue.{next(iter(wrong))} must be"):
        DialogueLimits(**wrong)
