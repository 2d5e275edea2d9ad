"""Reports of errors, whose fault they are, and the repairs that follow."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.errors import MisuseError
from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.events import (
    DialogueBroken,
    Ignored,
    MessageRefused,
    NeedFault,
    NeedRepair,
    OurFault,
    PeerFault,
    PeerRepaired,
    PeerRepairs,
    RefusalUnsent,
    RepairFailed,
    ReportRefused,
)
from negotiation.messages import MAX_TEXT_SIZE
from tests.clauses import clause
from tests.negotiation.exchange.dialogue.talk import (
    FAILED,
    GENERATED,
    dialogue,
    events,
    fix,
    sent,
)

ID = "a1b2c3d4e5f60718"
OTHER = "ffffffffffffffff"


def reported(**limits: Any) -> Dialogue:
    """A side that has told the peer about its message `ID`."""
    machine = dialogue(**limits)
    machine.report_error(ID, "the code is missing", now=0.0)
    sent(machine)
    return machine


def accused(reference: str = ID, **limits: Any) -> Dialogue:
    """A side that is to judge its own message."""
    machine = dialogue(**limits)
    text = f"messageId: {reference}\nthe code is missing"
    machine.receive_message(fix("negotiating", text), now=0.0)
    events(machine)
    return machine


def repairing(**limits: Any) -> Dialogue:
    """A side that has admitted a fault."""
    machine = accused(**limits)
    machine.fault_judged(OurFault(("/status: no code",)), now=0.0)
    sent(machine)
    events(machine)
    return machine


def awaiting(**limits: Any) -> Dialogue:
    """A side whose peer has admitted a fault."""
    machine = reported(**limits)
    machine.receive_message(fix("accepted", f"messageId: {ID}\n"), now=0.0)
    events(machine)
    return machine


# Reporting.


@clause("ANP-56", "ANP-57", "ANP-58", "ANP-59", "ANP-Q25")
def test_a_report_names_the_message_in_its_first_line() -> None:
    machine = dialogue()
    machine.report_error(ID, "the code is missing", now=0.0)
    assert sent(machine) == [
        {
            "action": "fixErrorNegotiation",
            "errorDescription": f"messageId: {ID}\nthe code is missing",
            "status": "negotiating",
        }
    ]
    assert not machine.holding


def test_a_line_that_is_there_already_is_not_written_twice() -> None:
    machine = dialogue()
    machine.report_error(ID, f"messageId: {ID}\nno code", now=0.0)
    assert sent(machine)[0]["errorDescription"] == f"messageId: {ID}\nno code"


@pytest.mark.parametrize("reference", [None, "two\nlines", "", "x" * 129, "漢"])
def test_an_id_that_could_break_the_line_is_left_out(reference: str | None) -> None:
    machine = dialogue()
    machine.report_error(reference, "no code", now=0.0)
    assert sent(machine)[0]["errorDescription"] == "no code"
    # The answer cannot name it either.
    machine.receive_message(fix("rejected", "not so"), now=0.0)
    assert events(machine) == [ReportRefused(reference, "not so", by_peer=True)]


@clause("ANP-60", "ANP-Q25")
def test_an_accepted_report_holds_the_data_until_the_code_is_there() -> None:
    machine = reported()
    machine.receive_message(fix("accepted", f"messageId: {ID}\nindeed"), now=1.0)
    assert events(machine) == [PeerRepairs(ID)]
    assert machine.holding
    machine.receive_message(GENERATED, now=2.0)
    assert events(machine) == [PeerRepaired(ID)]
    assert not machine.holding
    assert machine.get_timer() is None


@clause("ANP-46", "ANP-60")
def test_a_peer_that_cannot_repair_ends_the_communication() -> None:
    machine = awaiting()
    machine.receive_message(FAILED, now=2.0)
    failed, broken = events(machine)
    assert failed == RepairFailed(ID, "the peer could not make new code", by_peer=True)
    assert isinstance(broken, DialogueBroken)
    assert broken.by_peer
    assert (machine.holding, machine.ended) == (False, True)


@clause("ANP-44")
def test_a_repair_of_the_peer_that_takes_too_long_has_failed() -> None:
    machine = awaiting(repair_timeout=20.0)
    assert machine.get_timer() == 20.0
    machine.handle_timer(now=20.0)
    assert [type(one) for one in events(machine)] == [RepairFailed, DialogueBroken]
    assert not machine.holding


@clause("ANP-60", "ANP-61")
@pytest.mark.parametrize("text", [f"messageId: {ID}\nit has one", "it has one"])
def test_a_refused_report_comes_back_with_its_reason(text: str) -> None:
    machine = reported()
    machine.receive_message(fix("rejected", text), now=1.0)
    assert events(machine) == [ReportRefused(ID, "it has one", by_peer=True)]


@clause("ANP-61", "ANP-Q25")
def test_a_report_may_be_made_again_until_the_rounds_are_over() -> None:
    machine = dialogue(max_rounds=2)
    for _ in range(2):
        machine.report_error(ID, "no code", now=0.0)
        assert len(sent(machine)) == 1
        machine.receive_message(fix("rejected", f"messageId: {ID}\nno"), now=0.0)
        assert events(machine) == [ReportRefused(ID, "no", by_peer=True)]
    machine.report_error(ID, "but look", now=0.0)
    (event,) = events(machine)
    assert isinstance(event, ReportRefused)
    assert (event.by_peer, sent(machine)) == (False, [])
    machine.report_error(OTHER, "no code", now=0.0)
    assert len(sent(machine)) == 1


def test_rounds_are_forgotten_with_the_plaintexts() -> None:
    machine = dialogue(max_rounds=1, matter_lifetime=300.0)
    for now in (0.0, 300.0):
        machine.report_error(ID, "no code", now=now)
        assert len(sent(machine)) == 1
        machine.receive_message(fix("rejected", f"messageId: {ID}\nno"), now=now)
        events(machine)


@clause("ANP-Q25")
def test_one_report_is_open_at_a_time() -> None:
    machine = reported(max_reports=1)
    machine.report_error(OTHER, "no name", now=0.0)
    machine.report_error("third", "no name", now=0.0)
    (event,) = events(machine)
    assert event == ReportRefused("third", "1 reports wait already", by_peer=False)
    assert sent(machine) == []
    machine.receive_message(fix("rejected", "no"), now=0.0)
    assert sent(machine)[0]["errorDescription"].startswith(f"messageId: {OTHER}\n")


@clause("ANP-81")
def test_a_peer_without_the_capability_gets_no_report() -> None:
    machine = dialogue(common=frozenset())
    machine.report_error(ID, "no code", now=0.0)
    (event,) = events(machine)
    assert isinstance(event, ReportRefused)
    assert not event.by_peer
    machine.refuse_message(ID, "it broke", now=0.0)
    assert events(machine) == [RefusalUnsent(ID, "it broke")]
    assert sent(machine) == []


@clause("WIRE row 49")
def test_a_silent_peer_ends_a_report_and_nothing_else() -> None:
    machine = reported(report_timeout=30.0)
    machine.report_error(OTHER, "no name", now=1.0)
    assert machine.get_timer() == 30.0
    machine.handle_timer(now=30.0)
    assert events(machine) == [
        ReportRefused(ID, "no answer in 30 s", by_peer=True),
    ]
    assert len(sent(machine)) == 1
    assert machine.get_timer() == 60.0


# Judging our own.


@clause("ANP-60", "ANP-Q25")
def test_a_fault_of_ours_is_admitted_and_repaired() -> None:
    machine = dialogue()
    text = f"messageId: {ID}\nno code"
    machine.receive_message(fix("negotiating", text), now=0.0)
    assert events(machine) == [NeedFault(ID, "no code", 1, 1)]
    machine.fault_judged(OurFault(("/status: no code",)), now=1.0)
    assert sent(machine) == [
        {
            "action": "fixErrorNegotiation",
            "errorDescription": f"messageId: {ID}\n/status: no code",
            "status": "accepted",
        }
    ]
    assert events(machine) == [NeedRepair(ID, "no code")]
    assert machine.holding
    machine.repair_ready(now=2.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "generated"}]
    assert (machine.holding, machine.get_timer()) == (False, None)
    assert events(machine) == []


@clause("ANP-60")
def test_what_is_not_our_fault_is_refused_with_the_reason() -> None:
    machine = accused()
    machine.fault_judged(PeerFault("it has a code: 200"), now=1.0)
    assert sent(machine) == [
        {
            "action": "fixErrorNegotiation",
            "errorDescription": f"messageId: {ID}\nit has a code: 200",
            "status": "rejected",
        }
    ]
    assert (machine.holding, machine.get_timer(), events(machine)) == (False, None, [])


@clause("ANP-46")
def test_a_repair_of_ours_that_fails_ends_the_communication() -> None:
    machine = repairing()
    machine.repair_failed("three attempts, no code", now=1.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    assert events(machine) == [
        RepairFailed(ID, "three attempts, no code", by_peer=False),
        DialogueBroken("our repair failed: three attempts, no code", by_peer=False),
    ]
    assert machine.ended
    # What comes too late has no effect.
    machine.repair_ready(now=2.0)
    machine.fault_judged(PeerFault("x"), now=2.0)
    assert (sent(machine), events(machine)) == ([], [])


@clause("ANP-44")
def test_a_repair_of_ours_that_takes_too_long_has_failed() -> None:
    machine = repairing(repair_timeout=20.0)
    machine.handle_timer(now=20.0)
    assert sent(machine) == [{"action": "codeGeneration", "status": "error"}]
    assert [type(one) for one in events(machine)] == [RepairFailed, DialogueBroken]


def test_repairs_are_limited() -> None:
    machine = repairing(max_repairs=1)
    machine.repair_ready(now=1.0)
    sent(machine)
    machine.receive_message(fix("negotiating", f"messageId: {OTHER}\nno"), now=2.0)
    events(machine)
    machine.fault_judged(OurFault(("no",)), now=2.0)
    assert [one["status"] for one in sent(machine)] == ["accepted", "error"]
    assert [type(one) for one in events(machine)] == [RepairFailed, DialogueBroken]


def test_an_unjudged_report_is_refused_in_time() -> None:
    machine = accused(fault_timeout=10.0)
    machine.handle_timer(now=10.0)
    assert [one["status"] for one in sent(machine)] == ["rejected"]
    machine.fault_judged(OurFault(("late",)), now=11.0)
    assert (sent(machine), events(machine), machine.holding) == ([], [], False)


def test_a_late_judgement_is_not_taken_for_that_of_the_next_report() -> None:
    machine = accused(fault_timeout=10.0)
    machine.handle_timer(now=10.0)
    sent(machine)
    machine.receive_message(fix("negotiating", f"messageId: {OTHER}\nno"), now=11.0)
    assert events(machine) == [NeedFault(OTHER, "no", 1, 2)]
    machine.fault_judged(OurFault(("late",)), now=11.0, number=1)
    assert sent(machine) == []
    machine.fault_judged(PeerFault("good"), now=11.0, number=2)
    assert len(sent(machine)) == 1


@clause("ANP-Q25")
def test_a_second_report_while_one_is_open_is_dropped() -> None:
    machine = accused()
    machine.receive_message(fix("negotiating", f"messageId: {OTHER}\nno"), now=0.0)
    assert events(machine) == [Ignored("a second report while one is open")]
    machine.fault_judged(OurFault(("no",)), now=0.0)
    events(machine)
    machine.receive_message(fix("negotiating", f"messageId: {ID}\nno"), now=0.0)
    assert events(machine) == [Ignored("a second report while one is open")]


@clause("ANP-61", "ANP-Q25")
def test_the_peer_may_report_again_until_the_rounds_are_over() -> None:
    machine = dialogue(max_rounds=2)
    for rounds in (1, 2):
        machine.receive_message(fix("negotiating", f"messageId: {ID}\nno"), now=0.0)
        assert events(machine) == [NeedFault(ID, "no", rounds, rounds)]
        machine.fault_judged(PeerFault("good"), now=0.0)
        sent(machine)
    machine.receive_message(fix("negotiating", f"messageId: {ID}\nno"), now=0.0)
    assert [one["status"] for one in sent(machine)] == ["rejected"]
    assert events(machine) == [Ignored("too many reports of one message")]
    assert machine.get_timer() is None


@clause("ANP-62")
def test_the_example_of_the_seed_is_a_report_without_a_reference() -> None:
    machine = dialogue()
    text = "# 错误描述\n- 响应消息中,status字段缺少code字段"
    machine.receive_message(fix("negotiating", text), now=0.0)
    assert events(machine) == [NeedFault(None, text, 1, 1)]
    machine.fault_judged(OurFault(("no code",)), now=0.0)
    assert sent(machine)[0]["errorDescription"] == "no code"


# Both at the same time.


@clause("ANP-61", "ANP-Q25")
@pytest.mark.parametrize("text", [f"messageId: {OTHER}\nno", "no"])
def test_a_report_of_the_peer_does_not_answer_ours(text: str) -> None:
    machine = reported()
    machine.receive_message(fix("negotiating", text), now=0.0)
    machine.fault_judged(PeerFault("good"), now=0.0)
    events(machine)
    machine.receive_message(fix("accepted", f"messageId: {ID}\n"), now=0.0)
    assert events(machine) == [PeerRepairs(ID)]


@clause("ANP-61")
def test_the_same_message_reported_by_both_is_one_matter() -> None:
    machine = reported(report_timeout=30.0)
    text = f"messageId: {ID}\nno, the fault is yours"
    machine.receive_message(fix("negotiating", text), now=20.0)
    assert events(machine) == [NeedFault(ID, "no, the fault is yours", 2, 1)]
    machine.fault_judged(PeerFault("no"), now=20.0)
    # The peer spoke about it, so it has its time again.
    assert machine.get_timer() == 50.0


@clause("ANP-61")
def test_an_answer_cannot_be_put_off_for_ever() -> None:
    machine = reported(report_timeout=10.0, max_rounds=3, matter_lifetime=10.0)
    now = 0.0
    while machine.get_timer() is not None and now < 100.0:
        now += 9.0
        text = f"messageId: {ID if now % 2 else OTHER}\nyours"
        machine.receive_message(fix("negotiating", text), now=now)
        machine.fault_judged(PeerFault("no"), now=now)
    assert now < 40.0


@clause("ANP-61")
def test_both_sides_may_be_at_fault() -> None:
    machine = reported()
    text = f"messageId: {ID}\nyour request was wrong"
    machine.receive_message(fix("negotiating", text), now=0.0)
    machine.fault_judged(OurFault(("true",)), now=0.0)
    machine.receive_message(fix("accepted", f"messageId: {ID}\n"), now=0.0)
    events(machine)
    machine.receive_message(GENERATED, now=0.0)
    assert events(machine) == [PeerRepaired(ID)]
    assert machine.holding
    machine.repair_ready(now=0.0)
    assert not machine.holding


# What belongs to nothing.


@clause("ANP-59", "ANP-60")
def test_an_unsolicited_refusal_ends_the_call_it_names() -> None:
    machine = dialogue()
    machine.receive_message(fix("rejected", f"messageId: {ID}\nit broke"), now=0.0)
    assert events(machine) == [MessageRefused(ID, "it broke")]
    # The one that it does not name is the last one.
    machine.receive_message(fix("rejected", "it broke"), now=0.0)
    assert events(machine) == [MessageRefused(None, "it broke")]


def test_a_refusal_of_another_message_leaves_our_report_open() -> None:
    machine = reported()
    machine.receive_message(fix("rejected", f"messageId: {OTHER}\nit broke"), now=0.0)
    assert events(machine) == [MessageRefused(OTHER, "it broke")]
    machine.receive_message(fix("accepted", f"messageId: {OTHER}\n"), now=0.0)
    assert events(machine) == [Ignored("there is no report of ours to accept")]
    machine.receive_message(fix("accepted", "yes"), now=0.0)
    assert events(machine) == [PeerRepairs(ID)]


def test_we_refuse_a_message_that_has_no_answer() -> None:
    machine = dialogue()
    machine.refuse_message(ID, "the half raised", now=0.0)
    assert sent(machine) == [
        {
            "action": "fixErrorNegotiation",
            "errorDescription": f"messageId: {ID}\nthe half raised",
            "status": "rejected",
        }
    ]
    assert events(machine) == []


@clause("ANP-Q25")
@pytest.mark.parametrize("data", [GENERATED, FAILED])
def test_code_that_nobody_waits_for_is_counted(data: bytes) -> None:
    for machine in (dialogue(), reported(), accused(), repairing()):
        machine.receive_message(data, now=0.0)
        assert events(machine) == [Ignored("codeGeneration that nobody waits for")]
        assert machine.ignored == 1


def test_a_repeated_answer_is_counted() -> None:
    machine = awaiting()
    for status in ("accepted", "rejected"):
        machine.receive_message(fix(status, f"messageId: {ID}\n"), now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored, Ignored]
    assert machine.holding


@pytest.mark.parametrize("make", [dialogue, reported, accused])
def test_a_repair_that_nobody_asked_for_is_a_bug(make: Any) -> None:
    with pytest.raises(MisuseError):
        make().repair_ready(now=0.0)
    with pytest.raises(MisuseError):
        make().repair_failed("x", now=0.0)


@clause("ANP-Q30")
def test_a_report_over_the_limit_is_refused() -> None:
    machine = dialogue()
    data = fix("negotiating", "x" * (MAX_TEXT_SIZE + 1))
    machine.receive_message(data, now=0.0)
    assert [one["status"] for one in sent(machine)] == ["rejected"]
    assert [type(one) for one in events(machine)] == [Ignored]
    busy = accused()
    busy.receive_message(data, now=0.0)
    assert sent(busy) == []


@clause("ANP-Q30")
def test_what_we_send_is_cut() -> None:
    machine = dialogue()
    machine.report_error(ID, "漢" * 100_000, now=0.0)
    text = sent(machine)[0]["errorDescription"]
    assert text.startswith(f"messageId: {ID}\n漢")
    assert len(text.encode()) <= MAX_TEXT_SIZE


# The end of the link.


def test_a_lost_link_ends_reports_and_repairs() -> None:
    machine = awaiting()
    machine.report_error(OTHER, "no", now=0.0)
    machine.receive_message(fix("negotiating", "no"), now=0.0)
    machine.fault_judged(OurFault(("no",)), now=0.0)
    events(machine)
    machine.link_lost(now=1.0)
    gone = "the connection was lost"
    assert events(machine) == [
        RepairFailed(None, gone, by_peer=False),
        RepairFailed(ID, gone, by_peer=True),
        ReportRefused(OTHER, gone, by_peer=False),
    ]
    assert (sent(machine), machine.holding, machine.get_timer()) == ([], False, None)
