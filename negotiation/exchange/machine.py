"""The negotiation machine: the meta-protocol's rules as one pure object for both roles.

Bytes of the peer, answers of our own mind and the time go in; messages and events come
out (ANP-16 to ANP-46). The room's `__init__` has the theory of operation.
"""

from __future__ import annotations

import hashlib

from negotiation.errors import (
    CommunicationEnded,
    FailureKind,
    MessageDropped,
    MessageError,
    MessageFault,
    MisuseError,
)
from negotiation.exchange.dialogue.questions import QUESTIONS, Questions
from negotiation.exchange.events import (
    CodeGenerationSlow,
    Event,
    Ignored,
    NeedModule,
    NeedProposal,
    NeedVerdict,
    NegotiationAgreed,
    NegotiationFailed,
)
from negotiation.exchange.limits import (
    CANCEL_REASON,
    DEFAULT_SUMMARY,
    MAX_REASON,
    MAX_SUMMARY,
    MIND_REASON,
    UNCODED_REASON,
    DialogueLimits,
    NegotiationLimits,
)
from negotiation.exchange.reactions import (
    END_STATES,
    REACTIONS,
    NegotiationState,
    Reaction,
    expiry,
    wait_of,
    waits_for_peer,
)
from negotiation.exchange.speaker import SequenceCounter, Speaker
from negotiation.messages import (
    ChannelClose,
    CodeGeneration,
    CodeStatus,
    MetaMessage,
    NaturalLanguageNegotiation,
    ProtocolNegotiation,
    Status,
    candidate_problem,
    cut_text,
    parse_meta,
)
from negotiation.mind import Accept, Counter, Reject, Verdict
from negotiation.need import Role
from negotiation.transcript import Direction, Turn


class Machine(Speaker[Event]):
    """One negotiation on one channel (ANP-3, ANP-20 to ANP-46).

    After each call send what `messages_to_send` returns, act on every `next_event`, and
    re-arm `get_timer`. The last event is `NegotiationAgreed` or `NegotiationFailed`;
    after it no input has an effect. No message of a peer makes a method raise; a call
    of our own in a state that does not ask for it raises `MisuseError`.
    """

    def __init__(
        self,
        role: Role,
        limits: NegotiationLimits,
        *,
        now: float,
        common: frozenset[str] = frozenset(),
    ) -> None:
        """Begin a negotiation.

        Args:
            common: Optional capabilities that both hellos listed (ANP-81).
        """
        super().__init__()
        self._limits = limits
        self._started = now
        self._transcript: list[Turn] = []
        self._rounds = 0
        self._sequence = SequenceCounter(role)
        self._questions = Questions(
            DialogueLimits(),
            common=QUESTIONS in common,
            send=self._send,
            tell=self._events.append,
        )
        self._candidate = ""
        # Our code for the candidate under discussion, before and after the agreement.
        self._own_code = False
        self._peer_code = False
        self._confirmed = False
        self._slow_at: float | None = None
        if role is Role.REQUESTER:
            self._enter(NegotiationState.PROPOSE, now)
            self._events.append(NeedProposal())
        else:
            self._enter(NegotiationState.EXPECT_PROPOSAL, now)

    # Properties for the shell.

    @property
    def state(self) -> NegotiationState:
        """The state of the negotiation."""
        return self._state

    @property
    def ready(self) -> bool:
        """True once both sides announced their code: data may flow (ANP-42)."""
        return self._state is NegotiationState.READY

    @property
    def transcript(self) -> tuple[Turn, ...]:
        """All turns of the negotiation so far, oldest first."""
        return tuple(self._transcript)

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        if self._state in END_STATES:
            return None
        due = min(self._deadline, self._started + self._limits.timeout)
        others = (self._slow_at, self._questions.get_timer())
        return min([due, *(one for one in others if one is not None)])

    # Inputs from the shell.

    def handle_timer(self, *, now: float) -> None:
        """Report slow code, or end the negotiation, when that is due."""
        if self._state in END_STATES:
            return
        self._questions.handle_timer(now=now)
        if self._slow_at is not None and now >= self._slow_at:
            self._slow_at = None
            self._events.append(CodeGenerationSlow(waiting_for_peer=self._own_code))
        if now >= self._deadline:
            kind, reason, told = expiry(
                self._state, self._limits, own_code=self._own_code
            )
            by_peer = waits_for_peer(self._state, own_code=self._own_code)
            self._fail(kind, reason, by_peer=by_peer, now=now, told=told)
        elif now >= self._started + self._limits.timeout:
            self._fail(
                FailureKind.TIMEOUT,
                f"not settled within {self._limits.timeout:g} s",
                by_peer=waits_for_peer(self._state, own_code=self._own_code),
                now=now,
            )

    def receive_message(self, data: bytes, *, now: float) -> None:
        """Handle the Protocol Data of one PT=00 frame.

        A fault of the peer becomes `Ignored` (WIRE row 50) or `NegotiationFailed`.
        """
        self.messages_received += 1
        # A message after a deadline is late, even if the timer has not fired yet.
        self.handle_timer(now=now)
        if self._state in END_STATES:
            self.ignored += 1
            return
        try:
            message = parse_meta(data)
        except MessageError as exc:
            # An unknown action may be of a later version, and an empty frame says
            # nothing. A text that is not JSON is a turn that would be waited for.
            if exc.kind is MessageFault.UNKNOWN_ACTION or not data:
                self._ignore(exc.detail, now)
            else:
                self._protocol_error(exc.detail, now)
            return
        self._handle(message, now)

    def proposal_ready(self, text: str, *, now: float) -> None:
        """Send the first candidate of our mind (ANP-4, ANP-21)."""
        if self._late(now, NegotiationState.PROPOSE):
            return
        problem = candidate_problem(text)
        if problem is not None:
            self._fail_mind(f"the first proposal cannot be sent: {problem}", now)
            return
        # ANP-29: only the first message may have no summary.
        self._propose(text, "", now)

    def verdict_ready(self, verdict: Verdict, *, now: float) -> None:
        """Answer the peer's candidate with our mind's verdict."""
        if self._late(now, NegotiationState.JUDGE):
            return
        match verdict:
            case Accept(told):
                # The whole text, byte for byte: an official SDK without a proposal of
                # its own hashes the text it receives (WIRE row 41, WIRE row 42).
                self._send_turn(Status.ACCEPTED, self._candidate, told, now)
                self._agree(now)
            case Counter(document, summary):
                self._counter(document, summary, now)
            case Reject(why, told):
                self._fail(FailureKind.REJECTED, why, by_peer=False, now=now, told=told)

    def module_ready(self, *, now: float) -> None:
        """Announce our code (ANP-41), at once or together with a following `Accept`.

        Allowed while we judge a candidate, since its half is prepared before it is
        accepted (ANP-Q8). Then `accepted` and `generated` are sent together.
        """
        states = NegotiationState.JUDGE, NegotiationState.EXPECT_CODE
        if self._late(now, *states) or self._own_code:
            return
        self._own_code = True
        if self._state is NegotiationState.EXPECT_CODE:
            self._announce(now)

    def module_failed(self, reason: str, *, now: float) -> None:
        """End because our half cannot be made; the peer does not see `reason`.

        While we judge, the peer gets `rejected`; after an agreement `error` (ANP-46).
        """
        if self._late(now, NegotiationState.JUDGE, NegotiationState.EXPECT_CODE):
            return
        kind, told = FailureKind.CODE_GENERATION, UNCODED_REASON
        self._fail(kind, reason, by_peer=False, now=now, told=told)

    def mind_failed(self, reason: str, *, now: float) -> None:
        """End because our mind gave no answer; the peer does not see `reason`."""
        coding = NegotiationState.EXPECT_CODE
        if not self._late(
            now, NegotiationState.PROPOSE, NegotiationState.JUDGE, coding
        ):
            self._fail_mind(reason, now)

    def cancel(self, reason: str, *, now: float) -> None:
        """End because the owner, the caller or the daemon wants it; tell the peer."""
        if self._state not in END_STATES:
            kind, told = FailureKind.CANCELLED, CANCEL_REASON
            self._fail(kind, reason, by_peer=False, now=now, told=told)

    def ask(self, text: str, message_id: str, *, now: float) -> None:
        """Ask the peer; ends in `QuestionAnswered` or `QuestionUnanswered` (ANP-66).

        A question that is still open when the negotiation ends is abandoned.

        Args:
            text: The question; shortened when it is too long.
            message_id: 16 random letters and digits (ANP-68).

        Raises:
            MisuseError: The id is not of this form, or is in use.
        """
        self.handle_timer(now=now)
        if self._state not in END_STATES:
            self._questions.ask(text, message_id, now=now)

    def answer_ready(self, message_id: str, text: str, *, now: float) -> None:
        """Answer `NeedSpokenAnswer`; without text the peer is told there is none."""
        self.handle_timer(now=now)
        if self._state not in END_STATES:
            self._questions.answer(message_id, text)

    def link_lost(self, *, now: float) -> None:
        """End because nothing can be sent or received any more."""
        if self._state not in END_STATES:
            self._outgoing.clear()
            self._end(FailureKind.LINK_LOST, "the connection was lost", by_peer=False)

    # The peer's messages.

    def _handle(self, message: MetaMessage, now: float) -> None:
        match message:
            case ProtocolNegotiation():
                self._record(Direction.RECEIVED, message, now)
                self._handle_turn(message, now)
            case CodeGeneration():
                self._handle_code(message, now)
            case ChannelClose():
                reason = cut_text(message.reason, MAX_REASON)
                detail = f"the peer closed the channel ({message.code}): {reason}"
                self._end(FailureKind.LINK_LOST, detail, by_peer=True)
            case NaturalLanguageNegotiation():
                self._handle_question(message, now)
            case _:
                # Both are only allowed after an agreement (ANP-53, ANP-56).
                self._ignore(f"{message.action.value} before an agreement", now)

    def _handle_turn(self, message: ProtocolNegotiation, now: float) -> None:
        match REACTIONS[self._state][message.status]:
            case Reaction.CONSIDER:
                self._handle_candidate(message, now)
            case Reaction.AGREE:
                self._handle_accepted(message, now)
            case Reaction.CONFIRM:
                self._handle_confirmation(message, now)
            case Reaction.END:
                self._handle_rejected(message)
            case Reaction.OUT_OF_TURN:
                self._protocol_error("a candidate out of turn", now)
            case Reaction.NOTHING_TO_ACCEPT:
                self._protocol_error("there is no candidate of ours to accept", now)

    def _handle_candidate(self, message: ProtocolNegotiation, now: float) -> None:
        if not self._number_fits(message, now):
            return
        self._rounds += 1
        if self._rounds > self._limits.max_rounds:
            self._fail_rounds(by_peer=True, now=now)
            return
        if not message.candidate_protocols.strip():
            self._protocol_error("the proposal is empty", now)
            return
        self._candidate = message.candidate_protocols
        self._enter(NegotiationState.JUDGE, now)
        self._events.append(
            NeedVerdict(
                message.candidate_protocols,
                message.modification_summary,
                self._rounds,
                may_counter=self._rounds < self._limits.max_rounds,
            )
        )

    def _handle_accepted(self, message: ProtocolNegotiation, now: float) -> None:
        if not self._number_fits(message, now):
            return
        if not self._text_fits(message):
            self._protocol_error("the accepted text is not the text we offered", now)
            return
        self._agree(now)

    def _handle_confirmation(self, message: ProtocolNegotiation, now: float) -> None:
        # Its number is an old one of the peer and is not checked. It is never answered,
        # or two peers of this kind would confirm for ever (ANP-Q4, WIRE row 38).
        if self._confirmed:
            self._protocol_error("the verdict was repeated more than once", now)
        elif not self._text_fits(message):
            self._protocol_error("the confirmed text is not the agreed one", now)
        else:
            self._confirmed = True

    def _handle_rejected(self, message: ProtocolNegotiation) -> None:
        # Any number is accepted: the SDK rejects with an old one (WIRE row 40).
        reason = cut_text(message.modification_summary, MAX_REASON)
        reason = reason or "the peer gave no reason"
        self._end(FailureKind.REJECTED, reason, by_peer=True)

    def _handle_code(self, message: CodeGeneration, now: float) -> None:
        if self._state is not NegotiationState.EXPECT_CODE:
            # ANP-3: the agreement comes before the code.
            self._protocol_error("codeGeneration before an agreement", now)
        elif message.status is CodeStatus.ERROR:
            reason = "the peer could not make its code"
            self._end(FailureKind.CODE_GENERATION, reason, by_peer=True)
        elif self._peer_code:
            self._ignore("codeGeneration was repeated", now)
        else:
            self._peer_code = True
            self._finish()

    def _handle_question(self, message: NaturalLanguageNegotiation, now: float) -> None:
        try:
            self._questions.receive(message, now=now)
        except MessageDropped as exc:
            self._ignore(str(exc), now)
        except CommunicationEnded as exc:
            self._protocol_error(exc.reason, now)

    def _number_fits(self, message: ProtocolNegotiation, now: float) -> bool:
        if self._sequence.receive(message.sequence_id):
            return True
        number = cut_text(str(message.sequence_id), 20)
        wanted = " or ".join(str(item) for item in self._sequence.expected)
        self._protocol_error(f"sequenceId {number}, expected {wanted}", now)
        return False

    def _text_fits(self, message: ProtocolNegotiation) -> bool:
        """Return whether a verdict repeats or omits the present candidate (ANP-Q6)."""
        return message.candidate_protocols in {"", self._candidate}

    def _ignore(self, reason: str, now: float) -> None:
        self.ignored += 1
        self._events.append(Ignored(reason))
        if self.ignored > self._limits.max_ignored:
            self._protocol_error("too many messages of no use", now)

    # Our own steps.

    def _late(self, now: float, *states: NegotiationState) -> bool:
        """Return whether the negotiation has ended already; refuse a wrong input."""
        self.handle_timer(now=now)
        if self._state in END_STATES:
            return True
        if self._state not in states:
            raise MisuseError(f"this input is not expected in {self._state}")
        return False

    def _counter(self, document: str, summary: str, now: float) -> None:
        if self._rounds >= self._limits.max_rounds:
            self._fail_rounds(by_peer=False, now=now)
            return
        problem = candidate_problem(document)
        if problem is not None:
            self._fail_mind(f"the counter-proposal cannot be sent: {problem}", now)
            return
        summary = cut_text(summary, MAX_SUMMARY)
        self._propose(document, summary if summary.strip() else DEFAULT_SUMMARY, now)

    def _propose(self, text: str, summary: str, now: float) -> None:
        self._rounds += 1
        self._candidate = text
        self._own_code = False
        self._send_turn(Status.NEGOTIATING, text, summary, now)
        self._enter(NegotiationState.EXPECT_ANSWER, now)

    def _agree(self, now: float) -> None:
        self._enter(NegotiationState.EXPECT_CODE, now)
        self._slow_at = now + self._limits.codegen_slow
        if self._own_code:
            self._announce(now)
        else:
            self._events.append(NeedModule(self._candidate))

    def _announce(self, now: float) -> None:
        self._send(CodeGeneration(status=CodeStatus.GENERATED))
        self._finish()

    def _finish(self) -> None:
        if self._own_code and self._peer_code:
            self._questions.close("the negotiation ended first")
            self._state = NegotiationState.READY
            digest = hashlib.sha256(self._candidate.encode("utf-8")).hexdigest()
            self._events.append(NegotiationAgreed(self._candidate, digest))

    def _enter(self, state: NegotiationState, now: float) -> None:
        self._state = state
        self._deadline = now + wait_of(state, self._limits)

    # Endings.

    def _protocol_error(self, reason: str, now: float) -> None:
        self._fail(FailureKind.PROTOCOL_ERROR, reason, by_peer=True, now=now)

    def _fail_rounds(self, *, by_peer: bool, now: float) -> None:
        reason = f"no agreement within {self._limits.max_rounds} rounds"
        self._fail(FailureKind.ROUNDS, reason, by_peer=by_peer, now=now)

    def _fail_mind(self, reason: str, now: float) -> None:
        self._fail(FailureKind.MIND, reason, by_peer=False, now=now, told=MIND_REASON)

    def _fail(
        self,
        kind: FailureKind,
        reason: str,
        *,
        by_peer: bool,
        now: float,
        told: str | None = None,
    ) -> None:
        """End the negotiation and tell the peer, who sees `told` or else `reason`."""
        if self._state is NegotiationState.EXPECT_CODE:
            self._send(CodeGeneration(status=CodeStatus.ERROR))
        else:
            # Never `timeout`: it would raise in the SDK's negotiation (WIRE row 44).
            text = cut_text(told or reason, MAX_REASON)
            self._send_turn(Status.REJECTED, "", text, now)
        self._end(kind, reason, by_peer=by_peer)

    def _end(self, kind: FailureKind, reason: str, *, by_peer: bool) -> None:
        self._questions.close("the negotiation ended first")
        self._state = NegotiationState.FAILED
        self._events.append(NegotiationFailed(kind, reason, by_peer))

    # Sending and recording.

    def _send_turn(
        self, status: Status, candidate: str, summary: str, now: float
    ) -> None:
        message = ProtocolNegotiation(
            sequence_id=self._sequence.send(),
            candidate_protocols=candidate,
            modification_summary=summary,
            status=status,
        )
        self._record(Direction.SENT, message, now)
        self._send(message)

    def _record(
        self, direction: Direction, message: ProtocolNegotiation, now: float
    ) -> None:
        self._transcript.append(Turn.of(direction, message, now - self._started))
