"""Two dialogues against each other, over a link that does its worst."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.events import (
    AcceptCases,
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    CounterCases,
    DialogueBroken,
    DialogueEvent,
    Fault,
    NeedCasesVerdict,
    NeedFault,
    NeedRepair,
    NeedSpokenAnswer,
    OurFault,
    PeerFault,
    PeerRepaired,
    PeerRepairs,
    QuestionAnswered,
    QuestionUnanswered,
    RefusalUnsent,
    RejectCases,
    RepairFailed,
    ReportRefused,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.dialogue.talk import ALL

LIMITS = DialogueLimits(
    max_rounds=4, max_reports=2, max_matters=3, max_repairs=2, max_ignored=6
)
LONGEST = 1_000.0
"Seconds after which nothing at all can still be open under these limits."

SIDES = st.sampled_from([0, 1])
TEXTS = st.sampled_from(["one", "two", "three", "large", " "]).map(
    lambda text: "x" * 70_000 if text == "large" else text
)
REFERENCES = st.sampled_from(["r1", "r2", "r3", "no\nline"])
VERDICTS: st.SearchStrategy[CasesVerdict] = st.one_of(
    st.just(AcceptCases()),
    st.builds(CounterCases, st.sampled_from(["four", "five", "six"]), st.just("")),
    st.builds(CounterCases, TEXTS, st.just("other")),
    st.just(RejectCases("no")),
)
FAULTS: st.SearchStrategy[Fault] = st.sampled_from(
    [OurFault(("no code",)), PeerFault("it is good")]
)
FIELDS = st.sampled_from(
    ["action", "status", "testCases", "errorDescription", "type", "messageId"]
)
VALUES = st.sampled_from(
    [
        "accepted",
        "rejected",
        "negotiating",
        "generated",
        "error",
        "messageId: r1\nx",
        "codeGeneration",
        "protocolNegotiation",
        "",
        7,
        None,
    ]
)


class Side:
    """One dialogue, what it was asked for, and what it is owed."""

    def __init__(self, role: Role, common: frozenset[str]) -> None:
        self.machine = Dialogue(role, LIMITS, common=common, now=0.0)
        self.inbox: deque[bytes] = deque()
        self.cases_to_judge = False
        self.started = False
        self.agreed: str | None = None
        self.settled = 0
        self.faults: list[int] = []
        self.repairs = 0
        self.owed: list[str] = []
        self.reports = 0
        self.questions = 0
        self.broken = 0
        self.events_after_end = 0

    def read_events(self) -> None:
        while (event := self.machine.next_event()) is not None:
            refusals = CasesSkipped | ReportRefused | RefusalUnsent | QuestionUnanswered
            if self.broken and not isinstance(event, refusals):
                self.events_after_end += 1
            self.note(event)

    def note(self, event: DialogueEvent) -> None:
        match event:
            case NeedCasesVerdict():
                self.cases_to_judge = True
            case CasesAgreed(text):
                self.agreed, self.settled = text, self.settled + 1
            case CasesSkipped():
                self.agreed, self.settled = None, self.settled + 1
            case NeedFault(number=number):
                self.faults.append(number)
            case NeedRepair():
                assert self.machine.holding or self.machine.ended
                self.repairs += 1
            case PeerRepairs():
                assert self.machine.holding or self.machine.ended
            case PeerRepaired() | ReportRefused():
                self.reports -= 1
            case RepairFailed(by_peer=by_peer):
                self.reports -= by_peer
            case NeedSpokenAnswer(message_id):
                self.owed.append(message_id)
            case QuestionAnswered() | QuestionUnanswered():
                self.questions -= 1
            case DialogueBroken():
                self.broken += 1


class TwoDialogues(RuleBasedStateMachine):
    """Whatever the link and both shells do, both dialogues come to an end."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.sides: list[Side] = []
        self.linked = True
        self.forged = False
        self.asked = 0
        self.delivered = 0
        self.breaks_at: int | None = None

    @initialize(
        common=st.sampled_from([ALL, ALL, ALL, ALL, ALL, frozenset()]),
        breaks_at=st.none() | st.integers(1, 40),
        tests=st.none() | st.sampled_from(["one", "two"]),
    )
    def bind(
        self, common: frozenset[str], breaks_at: int | None, tests: str | None
    ) -> None:
        self.breaks_at = breaks_at
        self.sides = [Side(role, common) for role in (Role.REQUESTER, Role.PROVIDER)]
        if tests is not None:
            self.start_tests(tests)

    def flush(self) -> None:
        for index, side in enumerate(self.sides):
            for data in side.machine.messages_to_send():
                json.loads(data)
                if self.linked:
                    self.sides[1 - index].inbox.append(data)
            side.read_events()

    # The link.

    @rule(index=SIDES, many=st.booleans())
    def deliver(self, index: int, many: bool) -> None:
        side = self.sides[index]
        for _ in range(len(side.inbox) if many else min(1, len(side.inbox))):
            if side.inbox:
                side.machine.receive_message(side.inbox.popleft(), now=self.now)
                self.flush()
                self.delivered += 1
                if self.delivered == self.breaks_at:
                    self.break_link()

    @rule(index=SIDES, fault=st.sampled_from(["lose", "repeat", "repeat", "reorder"]))
    def disturb(self, index: int, fault: str) -> None:
        inbox = self.sides[index].inbox
        if inbox and fault == "lose":
            inbox.popleft()
        elif fault == "reorder":
            inbox.rotate(1)
        elif inbox and len(inbox) < 50:
            inbox.append(inbox[0])

    @rule(index=SIDES, name=FIELDS, value=VALUES, noise=st.none() | st.binary())
    def mutate(self, index: int, name: str, value: Any, noise: bytes | None) -> None:
        inbox = self.sides[index].inbox
        if not inbox:
            return
        try:
            content = json.loads(inbox[0])
        except ValueError:
            return
        if not isinstance(content, dict):
            return
        self.forged |= content.get("action") == "testCasesNegotiation"
        if noise is None:
            inbox[0] = json.dumps({**content, name: value}).encode()
        else:
            inbox[0] = inbox[0][: len(noise)] + noise

    def break_link(self) -> None:
        self.linked = False
        for side in self.sides:
            side.machine.link_lost(now=self.now)
            side.inbox.clear()
            assert side.machine.messages_to_send() == []
        self.flush()

    # Time.

    @rule(seconds=st.sampled_from([0.5, 20.0, 60.0, 120.0]))
    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        for side in self.sides:
            while (due := side.machine.get_timer()) is not None and due <= end:
                side.machine.handle_timer(now=max(due, self.now))
                self.flush()
        self.now = end

    @rule(index=SIDES, seconds=st.sampled_from([30.0, 70.0]))
    def wait_without_a_timer(self, index: int, seconds: float) -> None:
        # A shell whose timer is late must not change what the rules are.
        self.now += seconds

    # The shells.

    @rule(text=TEXTS)
    def start_tests(self, text: str) -> None:
        side = self.sides[0]
        if not side.started:
            side.started = True
            side.settled = 0
            side.machine.start_tests(text, now=self.now)
            self.flush()

    @rule(index=SIDES, verdict=VERDICTS)
    def judge_cases(self, index: int, verdict: CasesVerdict) -> None:
        side = self.sides[index]
        if side.cases_to_judge:
            side.cases_to_judge = False
            side.machine.cases_judged(verdict, now=self.now)
            self.flush()

    @rule(index=SIDES, reference=REFERENCES)
    def report(self, index: int, reference: str) -> None:
        side = self.sides[index]
        side.reports += 1
        side.machine.report_error(reference, "no code", now=self.now)
        self.flush()

    @rule(index=SIDES, reference=REFERENCES)
    def refuse(self, index: int, reference: str) -> None:
        self.sides[index].machine.refuse_message(reference, "it broke", now=self.now)
        self.flush()

    @rule(index=SIDES, fault=FAULTS)
    def judge_fault(self, index: int, fault: Fault) -> None:
        side = self.sides[index]
        if side.faults:
            number = side.faults.pop(0)
            side.machine.fault_judged(fault, now=self.now, number=number)
            self.flush()

    @rule(index=SIDES, good=st.sampled_from([True, True, False]))
    def end_repair(self, index: int, good: bool) -> None:
        side = self.sides[index]
        if side.repairs:
            side.repairs -= 1
            if good:
                side.machine.repair_ready(now=self.now)
            else:
                side.machine.repair_failed("no", now=self.now)
            self.flush()

    @rule(index=SIDES)
    def ask(self, index: int) -> None:
        side = self.sides[index]
        side.questions += 1
        self.asked += 1
        side.machine.ask("?", f"{self.asked:016d}", now=self.now)
        self.flush()

    @rule(index=SIDES)
    def answer(self, index: int) -> None:
        side = self.sides[index]
        if side.owed:
            side.machine.answer_ready(side.owed.pop(0), "!", now=self.now)
            self.flush()

    @rule(
        verdicts=st.lists(VERDICTS, min_size=1, max_size=3),
        faults=st.lists(FAULTS, min_size=1, max_size=3),
        turns=st.integers(1, 6),
    )
    def talk(
        self, verdicts: list[CasesVerdict], faults: list[Fault], turns: int
    ) -> None:
        """Let both shells answer whatever they are asked, for a while."""
        for turn in range(turns):
            for index in (0, 1):
                self.deliver(index, many=True)
                self.judge_cases(index, verdicts[turn % len(verdicts)])
                self.judge_fault(index, faults[turn % len(faults)])
                self.end_repair(index, good=True)
                self.answer(index)

    # What always holds.

    @invariant()
    def what_is_held_has_a_deadline(self) -> None:
        for side in self.sides:
            due = side.machine.get_timer()
            if side.machine.holding:
                assert due is not None
                assert due <= self.now + LIMITS.repair_timeout
            if side.machine.ended:
                assert due is None

    @invariant()
    def counts_are_bounded(self) -> None:
        for side in self.sides:
            machine = side.machine
            assert machine.ignored <= machine.messages_received
            assert machine.ended or machine.ignored <= LIMITS.max_ignored
            assert side.reports <= 2 + LIMITS.max_reports
            assert side.questions <= LIMITS.max_questions
            assert side.reports >= 0
            assert side.questions >= 0

    @invariant()
    def the_end_is_told_once(self) -> None:
        for side in self.sides:
            assert side.broken <= 1
            assert side.events_after_end == 0
            assert not side.broken or side.machine.ended

    @invariant()
    def both_agree_on_one_text(self) -> None:
        if not self.sides or self.forged:
            # Who can forge messages on an encrypted link is one of the two sides.
            return
        one, two = (side.agreed for side in self.sides)
        assert one is None or two is None or one == two

    def teardown(self) -> None:
        """Everything that was begun ends by time alone."""
        for side in self.sides:
            begun = self.now
            steps = 0
            while (due := side.machine.get_timer()) is not None:
                assert due <= begun + LONGEST
                side.machine.handle_timer(now=due)
                side.machine.messages_to_send()
                side.read_events()
                steps += 1
                assert steps < 100
            assert not side.machine.holding
            assert side.reports == 0
            assert side.questions == 0
            assert not side.started or side.settled >= 1


@pytest.mark.slow
@clause("ANP-44", "ANP-46", "ANP-Q9", "ANP-Q13", "ANP-Q17", "ANP-Q25")
def test_two_dialogues_always_come_to_an_end() -> None:
    profile = settings()
    run_state_machine_as_test(
        TwoDialogues,
        settings=settings(
            profile,
            max_examples=max(300, profile.max_examples),
            stateful_step_count=40,
        ),
    )
