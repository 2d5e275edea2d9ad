"""A simulated side of a channel that has its protocol: calls, repairs, tests."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from anp.wire.frames import ProtocolType
from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.dialogue.reports import describe_error
from negotiation.exchange.events import (
    AcceptCases,
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    CounterCases,
    DialogueBroken,
    DialogueEvent,
    Fault,
    MessageRefused,
    NeedCasesVerdict,
    NeedFault,
    NeedRepair,
    NeedSpokenAnswer,
    OurFault,
    PeerFault,
    PeerRepaired,
    PeerRepairs,
    RefusalUnsent,
    RejectCases,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.need import Role
from tests.negotiation.conversations.journal import Journal
from tests.negotiation.conversations.letters import Letter
from tests.negotiation.conversations.tempers import Last, Temper

DIALOGUE_LIMITS = DialogueLimits(
    max_rounds=6, max_reports=3, max_repairs=2, max_matters=4, max_ignored=4
)

MAX_HELD = 16
"Application frames that wait while a repair is made."

Post = Callable[[ProtocolType, bytes, str | None], str]
"Sends a frame; gets the hash that made it, if it is application data; says its name."


class Bound:
    """Drives one `Dialogue` and carries calls with a half that may have flaws."""

    def __init__(
        self,
        index: int,
        digest: str,
        common: frozenset[str],
        temper: Temper,
        *,
        now: float,
        post: Post,
        journal: Journal,
        held_by_both: Callable[[str], bool],
    ) -> None:
        self.digest = digest
        self.broken: str | None = None
        self.answers = 0
        self.dialogue = Dialogue(
            (Role.REQUESTER, Role.PROVIDER)[index],
            DIALOGUE_LIMITS,
            common=common,
            now=now,
        )
        self._index = index
        self._temper = temper
        self._post = post
        self._journal = journal
        self._held_by_both = held_by_both
        self._todo: deque[Callable[[float], None]] = deque()
        self._waiting: deque[Letter] = deque()
        self._flaws = temper.flaws
        # Name of the envelope to (number of the call, whether it fits the document).
        self._sent: dict[str, tuple[int, bool]] = {}
        self._tests_started = False
        self._cases_seen = 0
        self._asked = 0
        # Whose code is being repaired, as the events tell.
        self._repairing: set[str] = set()

    @property
    def busy(self) -> bool:
        """True while the dialogue waits for an answer of ours."""
        return bool(self._todo)

    # What the agent and the tests want.

    def call(self, number: int, now: float) -> None:
        """Send one request, unless data is held (ANP-Q25)."""
        if self._index == 0 and not self.dialogue.holding and self.broken is None:
            self._send(number)

    def start_tests(self, text: str, now: float) -> None:
        """Propose test cases, once."""
        if self._index == 0 and not self._tests_started:
            self._tests_started = True
            self.dialogue.start_tests(text, now=now)

    def ask(self, now: float) -> None:
        """Ask the peer something."""
        self._asked += 1
        self.dialogue.ask("which unit?", f"{self._asked:016d}", now=now)

    # Letters, answers, time.

    def receive(self, kind: ProtocolType, letter: Letter, now: float) -> None:
        """Take one frame."""
        if kind is ProtocolType.META:
            self.dialogue.receive_message(letter.data[1:], now=now)
        elif kind is ProtocolType.APPLICATION and len(self._waiting) < MAX_HELD:
            self._waiting.append(letter)

    def think(self, now: float) -> bool:
        """Answer the oldest question of the dialogue; False when there is none."""
        if not self._todo:
            return False
        self._todo.popleft()(now)
        return True

    def settle(self, now: float) -> None:
        """Send, act on events, and read application data unless it is held."""
        while True:
            for data in self.dialogue.messages_to_send():
                self._post(ProtocolType.META, data, None)
            event = self.dialogue.next_event()
            if event is not None:
                self._act(event)
            elif (
                self._waiting
                and self.broken is None
                and not self.dialogue.ended
                and not self.dialogue.holding
            ):
                self._read(self._waiting.popleft(), now)
            else:
                return

    def lost(self, now: float, *, busy: bool = False) -> None:
        """End with the channel; nothing may be held or said after it.

        Args:
            busy: We have just answered something, and it was not sent yet.
        """
        dialogue = self.dialogue
        if busy and self._todo:
            self._todo.popleft()(now)
        ended = dialogue.ended
        dialogue.link_lost(now=now)
        assert ended or dialogue.messages_to_send() == []
        self.settle(now)
        self.check(now)
        assert dialogue.ended
        # Late answers of our own side and late messages have no effect.
        while self._todo:
            self._todo.popleft()(now)
        dialogue.receive_message(
            b'{"action":"codeGeneration","status":"error"}', now=now
        )
        dialogue.handle_timer(now=now + 1e6)
        assert dialogue.messages_to_send() == []
        assert dialogue.next_event() is None
        assert not dialogue.holding

    def check(self, now: float) -> None:
        """Assert what always holds."""
        dialogue = self.dialogue
        due = dialogue.get_timer()
        assert dialogue.ignored <= dialogue.messages_received
        if dialogue.ended:
            assert due is None
            assert not dialogue.holding
            return
        assert dialogue.ignored <= DIALOGUE_LIMITS.max_ignored
        if dialogue.holding:
            assert due is not None
            assert due <= now + DIALOGUE_LIMITS.repair_timeout

    # Application data.

    def _send(self, number: int) -> None:
        assert not self._repairing, "application data in the middle of a repair"
        fits = self._flaws == 0
        data = json.dumps({"call": number, "fits": fits}).encode()
        name = self._post(ProtocolType.APPLICATION, data, self.digest)
        self._sent[name] = (number, fits)
        self._flaws -= not fits

    def _read(self, letter: Letter, now: float) -> None:
        assert not self._repairing, "application data in the middle of a repair"
        self._journal.read(
            self.digest, letter, held_by_both=self._held_by_both(self.digest)
        )
        try:
            content: Any = json.loads(letter.data[1:])
        except ValueError:
            content = None
        match content:
            case {"call": int(number), "fits": True} if not isinstance(number, bool):
                if self._index == 1:
                    self._send(number)
                else:
                    self.answers += 1
            case {"fits": None}:
                self.dialogue.refuse_message(letter.name, "no answer", now=now)
            case _:
                words = describe_error(letter.name, ["no such field"], letter.data)
                self.dialogue.report_error(letter.name, words, now=now)

    # Events.

    def _act(self, event: DialogueEvent) -> None:
        match event:
            case NeedCasesVerdict(may_counter=may_counter):
                self._cases_seen += 1
                verdict = self._cases_verdict(may_counter=may_counter)
                self._todo.append(
                    lambda now: self.dialogue.cases_judged(verdict, now=now)
                )
            case NeedFault(reference=reference, number=number):
                fault = self._fault(reference)
                self._todo.append(
                    lambda now: self.dialogue.fault_judged(
                        fault, now=now, number=number
                    )
                )
            case NeedRepair(reference=reference):
                self._repairing.add("ours")
                self._todo.append(lambda now: self._end_repair(reference, now))
            case NeedSpokenAnswer(message_id=name):
                self._todo.append(
                    lambda now: self.dialogue.answer_ready(name, "metres", now=now)
                )
            case CasesAgreed(text):
                self._journal.tested(self._index, text)
            case CasesSkipped(reason):
                assert reason
                self._journal.tested(self._index, None)
            case RefusalUnsent(reason=reason) | DialogueBroken(reason=reason):
                assert reason
                self.broken = reason
            case PeerRepairs():
                self._repairing.add("the peer's")
            case PeerRepaired():
                self._repairing.discard("the peer's")
                self._journal.tally.count("dialogue events", "PeerRepaired")
            case MessageRefused(reference):
                self._sent.pop(reference or "", None)
            case _:
                self._journal.tally.count("dialogue events", type(event).__name__)

    def _cases_verdict(self, *, may_counter: bool) -> CasesVerdict:
        if self._temper.last is Last.REJECT:
            return RejectCases("no tests here")
        if self._temper.counters >= self._cases_seen and may_counter:
            return CounterCases(f"# Test {self._index}.{self._cases_seen}", "")
        return AcceptCases()

    def _fault(self, reference: str | None) -> Fault:
        _, fits = self._sent.get(reference or "", (0, True))
        if fits or not self._temper.admits:
            return PeerFault("the message is good")
        return OurFault(("a field was missing",))

    def _end_repair(self, reference: str | None, now: float) -> None:
        if self.dialogue.ended:
            # Its time was over; a shell hears of that with `DialogueBroken`.
            return
        if not self._temper.repairs:
            self.dialogue.repair_failed("no better code", now=now)
            return
        self._flaws = 0
        self.dialogue.repair_ready(now=now)
        self._repairing.discard("ours")
        sent = self._sent.pop(reference or "", None)
        # The new code is announced before what it makes.
        self.settle(now)
        if sent is not None and not self.dialogue.holding and self.broken is None:
            self._send(sent[0])
