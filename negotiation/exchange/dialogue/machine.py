"""The whole dialogue after an agreement as one pure object, for both roles.

Test cases (ANP-48 to ANP-53), reports and repairs (ANP-56 to ANP-61) and questions
(ANP-64 to ANP-69). Its inputs are the peer's bytes, the answers of our own side and the
time; its outputs are messages and events.
"""

from __future__ import annotations

from collections.abc import Callable

from negotiation.errors import (
    CommunicationEnded,
    JsonError,
    MessageDropped,
    MessageError,
    MessageFault,
)
from negotiation.exchange.dialogue.case_turns import CASES, CaseTurns
from negotiation.exchange.dialogue.questions import QUESTIONS, Questions
from negotiation.exchange.dialogue.repairs import FIXES, Repairs
from negotiation.exchange.events import (
    CasesSkipped,
    CasesVerdict,
    DialogueBroken,
    DialogueEvent,
    Fault,
    Ignored,
    QuestionUnanswered,
    RefusalUnsent,
    ReportRefused,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.exchange.speaker import Speaker
from negotiation.messages import (
    MAX_MESSAGE_SIZE,
    CodeGeneration,
    FixErrorNegotiation,
    NaturalLanguageNegotiation,
    ProtocolNegotiation,
    Status,
    TestCasesNegotiation,
    parse_meta,
)
from negotiation.need import Role
from negotiation.strict_json import parse_json

BOUND_REASON = "This channel has its protocol; a new negotiation needs a new channel."
"Sent to a peer that negotiates on a bound channel (ANP-Q23)."

ENDED = "the dialogue has ended with its channel"
"Reason for refusing anything new after the end."

MAX_SEQUENCE = 2**53 - 1
"Largest sequenceId that we count up from; above it JSON readers lose precision."


class Dialogue(Speaker[DialogueEvent]):
    """The dialogue on one channel, from its binding to its end.

    After each call send what `messages_to_send` returns, act on every `next_event`,
    and re-arm `get_timer`. No message of a peer makes a method raise. A call of our own
    that was not asked for raises `MisuseError`, and a late one has no effect. At
    `DialogueBroken` the shell closes the channel; the only later events refuse what our
    own side still tries to begin.
    """

    def __init__(
        self, role: Role, limits: DialogueLimits, *, common: frozenset[str], now: float
    ) -> None:
        """Begin on a channel that is bound to a protocol.

        Args:
            common: Optional capabilities that both hellos listed (ANP-81).
            now: Time at which the channel was bound. No timer runs before the first
                message.
        """
        super().__init__()
        self._limits = limits
        self._ended = False
        self._told_bound = False
        self._cases = CaseTurns(
            role,
            limits,
            common=CASES in common,
            send=self._send,
            tell=self._events.append,
        )
        self._repairs = Repairs(
            limits, common=FIXES in common, send=self._send, tell=self._events.append
        )
        self._questions = Questions(
            limits,
            common=QUESTIONS in common,
            send=self._send,
            tell=self._events.append,
        )

    # Properties for the shell.

    @property
    def holding(self) -> bool:
        """True while application data of this channel waits for a repair (ANP-Q25).

        False after the end, when there is no channel any more.
        """
        return not self._ended and self._repairs.holding

    @property
    def ended(self) -> bool:
        """True when no input has an effect any more."""
        return self._ended

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        if self._ended:
            return None
        parts = (self._cases, self._repairs, self._questions)
        due = [part.get_timer() for part in parts]
        return min((one for one in due if one is not None), default=None)

    # Inputs from the shell.

    def receive_message(self, data: bytes, *, now: float) -> None:
        """Handle the Protocol Data of one PT=00 frame.

        A fault of the peer becomes `Ignored` (ANP-Q17, WIRE row 50); too many of them
        become `DialogueBroken`.
        """
        self.messages_received += 1
        # A message after a deadline is late, even if the timer has not fired yet.
        self.handle_timer(now=now)
        if self._ended:
            self.ignored += 1
            return
        try:
            self._handle(data, now)
        except MessageDropped as exc:
            self.ignored += 1
            self._events.append(Ignored(str(exc)))
            if self.ignored > self._limits.max_ignored:
                self._end("too many messages of no use", by_peer=True)
        except CommunicationEnded as exc:
            self._end(exc.reason, by_peer=exc.by_peer)

    def handle_timer(self, *, now: float) -> None:
        """End everything whose time is over."""
        if self._ended:
            return
        try:
            self._cases.handle_timer(now=now)
            self._questions.handle_timer(now=now)
            self._repairs.handle_timer(now=now)
        except CommunicationEnded as exc:
            self._end(exc.reason, by_peer=exc.by_peer)

    def link_lost(self, *, now: float) -> None:
        """End because nothing can be sent or received; no further event follows."""
        if not self._ended:
            self._outgoing.clear()
            self._close("the connection was lost")

    def start_tests(self, text: str, *, now: float) -> None:
        """Propose test cases; ends in `CasesAgreed` or `CasesSkipped` (ANP-Q9).

        Args:
            text: The whole set, at most 64 KiB of UTF-8; a larger one is not sent.

        Raises:
            MisuseError: We are the provider, or this was called before.
        """
        if self._open(now):
            self._cases.start(text, now=now)
        else:
            self._events.append(CasesSkipped(ENDED, by_peer=False))

    def cases_judged(self, verdict: CasesVerdict, *, now: float) -> None:
        """Answer `NeedCasesVerdict`."""
        if self._open(now):
            self._cases.judged(verdict, now=now)

    def report_error(
        self, reference: str | None, description: str, *, now: float
    ) -> None:
        """Report a faulty message to the peer (ANP-56).

        Ends in `PeerRepaired`, `RepairFailed` or `ReportRefused`. One report is open at
        a time; further ones wait. After `ReportRefused` the same message may be
        reported again with more detail, which is another round (ANP-61).

        Args:
            reference: Message id of the peer's encrypted envelope; it becomes the first
                line of the text.
            description: The fault; see `describe_error`.
        """
        if self._open(now):
            self._repairs.report(reference, description, now=now)
        else:
            self._events.append(ReportRefused(reference, ENDED, by_peer=False))

    def refuse_message(self, reference: str, reason: str, *, now: float) -> None:
        """Tell the peer that its message gets no answer (DESIGN.md, How a call flows).

        For a peer without `fixErrorNegotiation` it becomes `RefusalUnsent`.
        """
        if self._open(now):
            self._repairs.refuse(reference, reason)
        else:
            self._events.append(RefusalUnsent(reference, reason))

    def fault_judged(
        self, fault: Fault, *, now: float, number: int | None = None
    ) -> None:
        """Answer `NeedFault` (ANP-60).

        Args:
            number: The number of the event, so that an answer to an earlier event is
                ignored. Without it the shell must ensure that itself.
        """
        if self._open(now):
            self._ending(lambda: self._repairs.judged(fault, number=number, now=now))

    def repair_ready(self, *, now: float) -> None:
        """Answer `NeedRepair`: our new code is in use (ANP-60)."""
        if self._open(now):
            self._repairs.repair_ready()

    def repair_failed(self, reason: str, *, now: float) -> None:
        """Answer `NeedRepair`: there is no new code, which ends the channel (ANP-46).

        The peer does not see `reason`.
        """
        if self._open(now):
            self._ending(lambda: self._repairs.repair_failed(reason))

    def ask(self, text: str, message_id: str, *, now: float) -> None:
        """Ask the peer; ends in `QuestionAnswered` or `QuestionUnanswered` (ANP-66).

        Args:
            text: The question; shortened when it is too long.
            message_id: 16 random letters and digits (ANP-68).

        Raises:
            MisuseError: The id is not of this form, or is in use.
        """
        if self._open(now):
            self._questions.ask(text, message_id, now=now)
        else:
            self._events.append(QuestionUnanswered(message_id, ENDED))

    def answer_ready(self, message_id: str, text: str, *, now: float) -> None:
        """Answer `NeedSpokenAnswer`; without text the peer is told there is none."""
        if self._open(now):
            self._questions.answer(message_id, text)

    # The peer's messages.

    def _handle(self, data: bytes, now: float) -> None:
        try:
            message = parse_meta(data)
        except MessageError as exc:
            if exc.kind is MessageFault.TOO_LARGE:
                self._refuse_large(data)
            raise MessageDropped(exc.detail) from None
        match message:
            case TestCasesNegotiation():
                self._cases.receive(message, now=now)
            case FixErrorNegotiation():
                self._repairs.receive(message, now=now)
            case CodeGeneration():
                self._repairs.receive_code(message, now=now)
            case NaturalLanguageNegotiation():
                self._questions.receive(message, now=now)
            case ProtocolNegotiation():
                self._handle_negotiation(message)
            case _:
                raise MessageDropped(f"{message.action.value} is not in use")

    def _handle_negotiation(self, message: ProtocolNegotiation) -> None:
        if message.status is Status.NEGOTIATING and not self._told_bound:
            # Told only once, so that the peer need not wait. Answering verdicts could
            # go on for ever, as the peer might answer in turn (ANP-Q23, WIRE row 38).
            self._told_bound = True
            number = message.sequence_id
            self._send(
                ProtocolNegotiation(
                    sequence_id=number + 1 if 0 <= number < MAX_SEQUENCE else 0,
                    modification_summary=BOUND_REASON,
                    status=Status.REJECTED,
                )
            )
        raise MessageDropped("a negotiation on a channel that has its protocol")

    def _refuse_large(self, data: bytes) -> None:
        """Answer a message whose text is over its limit with `rejected` (ANP-Q30)."""
        try:
            value = parse_json(data, max_size=MAX_MESSAGE_SIZE)
        except JsonError:
            # The whole message is too large, so its text was not read at all.
            return
        match value:
            case {"action": str(action)} if action == CASES:
                self._cases.refuse_large()
            case {"action": str(action)} if action == FIXES:
                self._repairs.refuse_large()

    # Steps.

    def _open(self, now: float) -> bool:
        """Return whether an input of our own still has an effect."""
        self.handle_timer(now=now)
        return not self._ended

    def _ending(self, step: Callable[[], None]) -> None:
        try:
            step()
        except CommunicationEnded as exc:
            self._end(exc.reason, by_peer=exc.by_peer)

    def _end(self, reason: str, *, by_peer: bool) -> None:
        self._close(reason)
        self._events.append(DialogueBroken(reason, by_peer))

    def _close(self, reason: str) -> None:
        self._ended = True
        self._cases.close(reason)
        self._repairs.close(reason)
        self._questions.close(reason)
