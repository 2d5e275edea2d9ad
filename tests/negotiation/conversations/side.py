"""One honest simulated side: what the daemon's shells do, at the level of bytes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from anp.errors import PeerError
from anp.wire.frames import ProtocolType, decode_frame
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from negotiation.errors import FailureKind
from negotiation.exchange.events import (
    Event,
    NeedModule,
    NeedProposal,
    NeedSpokenAnswer,
    NeedVerdict,
    NegotiationAgreed,
    NegotiationFailed,
)
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.exchange.reactions import END_STATES, NegotiationState
from negotiation.messages import (
    CodeGeneration,
    CodeStatus,
    ProtocolNegotiation,
    Status,
    parse_meta,
)
from negotiation.mind import Accept, Counter
from negotiation.need import Role
from tests.negotiation.conversations.bound import Bound
from tests.negotiation.conversations.journal import Journal
from tests.negotiation.conversations.letters import Letter, Sort, framed
from tests.negotiation.conversations.rules import check_ended, check_numbers
from tests.negotiation.conversations.shelf import Shelf
from tests.negotiation.conversations.tempers import WILLING

LIMITS = NegotiationLimits(max_rounds=4, max_ignored=2)

HANDSHAKE_TIMEOUT = 10.0
MAX_HELD = 16
"Application frames that may come before the channel is bound."


class Phase(Enum):
    """What a side does with its channel."""

    CLOSED = auto()
    HELLO = auto()
    UNBOUND = auto()
    "The provider declined, and waits for the first candidate."

    NEGOTIATING = auto()
    KEEPING = auto()
    "The machine agreed; the agreement is on its way to the disk."

    BOUND = auto()


class Side:
    """Connects, negotiates, keeps, calls and answers; nothing here waits by itself."""

    honest = True

    def __init__(
        self,
        index: int,
        journal: Journal,
        send: Callable[[Letter], bool],
        held_by_both: Callable[[str], bool],
        *,
        capabilities: tuple[str, ...] = CAPABILITIES,
    ) -> None:
        self.index = index
        self.role = (Role.REQUESTER, Role.PROVIDER)[index]
        self.shelf = Shelf()
        self.temper = WILLING
        self.phase = Phase.CLOSED
        self.machine: Machine | None = None
        self.bound: Bound | None = None
        self._journal = journal
        self._send = send
        self._held_by_both = held_by_both
        self._capabilities = capabilities
        self._common: frozenset[str] = frozenset()
        self._offer = MetaProtocol()
        self._todo: deque[Callable[[float], None]] = deque()
        self._held: list[Letter] = []
        self._agreed: NegotiationAgreed | None = None
        # Texts that our mind wrote or accepted, those it accepted, our half's text.
        self._approved: set[str] = set()
        self._accepted: set[str] = set()
        self._half_for: str | None = None
        self._rounds = 0
        self._own_text = ""
        self._judged = 0
        self._code_received = False
        self._opened = self._began = 0.0
        self._names = 0
        self._asked = 0

    # One connection.

    def open(self, now: float) -> None:
        """Begin a connection; the requester offers its newest agreement (ANP-85)."""
        assert self.phase is Phase.CLOSED
        self.machine = self.bound = None
        self._agreed = None
        self._todo.clear()
        self._held.clear()
        self._approved.clear()
        self._accepted.clear()
        self._half_for = None
        self._rounds = 0
        self._own_text, self._judged = "", 0
        self._code_received = False
        self._opened = now
        self.phase = Phase.HELLO
        if self.role is Role.REQUESTER:
            self._offer = self._meta(self.shelf.newest())
            self._journal.offered = self._offer.used_protocol_hash
            self._post_hello(self._offer)

    def receive(self, letter: Letter, now: float) -> None:
        """Take one letter."""
        assert self.phase is not Phase.KEEPING
        if self.phase is Phase.CLOSED:
            return
        if letter.sort is Sort.CLOSE:
            self.lose_link(now)
        elif letter.sort is Sort.HELLO:
            self._receive_hello(letter, now)
        elif self.phase is Phase.HELLO:
            # Held by the channel until the handshake is done, or dropped: no matter.
            return
        else:
            self._receive_frame(letter, now)
        self.settle(now)

    @property
    def busy(self) -> bool:
        """True while our mind works on something in a negotiation."""
        return self.phase is Phase.NEGOTIATING and bool(self._todo)

    def think(self, now: float) -> bool:
        """Let our mind, code generator or disk finish one thing."""
        if self.phase is Phase.KEEPING:
            self._keep(now)
        elif self.bound is not None and self.phase is Phase.BOUND:
            if not self.bound.think(now):
                return False
        elif self._todo and self.phase is Phase.NEGOTIATING:
            self._todo.popleft()(now)
        else:
            return False
        self.settle(now)
        return True

    def due(self) -> float | None:
        """Return when `tick` is due, or None."""
        match self.phase:
            case Phase.HELLO:
                return self._opened + HANDSHAKE_TIMEOUT
            case Phase.NEGOTIATING:
                assert self.machine is not None
                return self.machine.get_timer()
            case Phase.BOUND:
                assert self.bound is not None
                return self.bound.dialogue.get_timer()
            case _:
                return None

    def tick(self, now: float) -> None:
        """Let a timer fire."""
        if self.phase is Phase.HELLO:
            self._close()
        elif self.phase is Phase.NEGOTIATING and self.machine is not None:
            self.machine.handle_timer(now=now)
            self._check_time(now)
        elif self.phase is Phase.BOUND and self.bound is not None:
            self.bound.dialogue.handle_timer(now=now)
        self.settle(now)

    def cancel(self, now: float) -> None:
        """Let the owner end a negotiation."""
        if self.phase is Phase.NEGOTIATING and self.machine is not None:
            self.machine.cancel("the owner does not want it", now=now)
            self.settle(now)

    def ask(self, now: float) -> None:
        """Ask the peer something in words."""
        if self.phase is Phase.BOUND and self.bound is not None:
            self.bound.ask(now)
        elif self.phase is Phase.NEGOTIATING and self.machine is not None:
            self._asked += 1
            self.machine.ask("what for?", f"q{self._asked:015d}", now=now)
        self.settle(now)

    def lose_link(self, now: float, *, crash: bool = False, busy: bool = False) -> None:
        """Learn that the link is gone.

        Args:
            crash: We break down and lose what was not kept.
            busy: Our mind has just answered, and nothing of that was sent yet.
        """
        if self.phase is Phase.NEGOTIATING and self.machine is not None:
            if busy and self._todo:
                self._todo.popleft()(now)
            ended = self.machine.state in END_STATES
            self.machine.link_lost(now=now)
            assert ended or self.machine.messages_to_send() == []
            self.settle(now)
            assert self.phase is not Phase.NEGOTIATING
        if self.phase is Phase.KEEPING and not crash:
            # What is being kept is kept, whatever happens to its channel.
            self._keep(now)
        if self.phase is Phase.BOUND and self.bound is not None:
            self.bound.lost(now, busy=busy)
        self.phase = Phase.CLOSED

    # Hellos.

    def _meta(self, digest: str | None) -> MetaProtocol:
        return MetaProtocol(
            supported_capabilities=self._capabilities, used_protocol_hash=digest
        )

    def _post_hello(self, meta: MetaProtocol) -> None:
        self._send(Letter(Sort.HELLO, json.dumps(meta.to_json()).encode()))

    def _receive_hello(self, letter: Letter, now: float) -> None:
        if letter.forged or self.phase is not Phase.HELLO:
            # Its signature is wrong, or the handshake is over.
            if self.phase is Phase.HELLO:
                self._close()
            return
        meta = MetaProtocol.from_json(json.loads(letter.data))
        if self.role is Role.REQUESTER:
            self._common = self._offer.common_capabilities(meta)
            self._read_answer(meta, now)
        else:
            self._answer(meta, now)

    def _answer(self, meta: MetaProtocol, now: float) -> None:
        meta.common_version()
        self._common = self._meta(None).common_capabilities(meta)
        offered = meta.used_protocol_hash
        confirmed = (
            offered if offered is not None and self.shelf.holds(offered) else None
        )
        self._journal.answered(offered, confirmed)
        self._post_hello(self._meta(confirmed))
        if confirmed is None:
            self.phase = Phase.UNBOUND
        else:
            self._bind(confirmed, now)

    def _read_answer(self, meta: MetaProtocol, now: float) -> None:
        try:
            meta.check_answer(self._offer)
        except PeerError:
            self._close()
            return
        confirmed = meta.used_protocol_hash
        assert confirmed in {None, self._offer.used_protocol_hash}
        if confirmed is not None and confirmed == self._offer.used_protocol_hash:
            self._bind(confirmed, now)
        else:
            self._negotiate(now)

    # The negotiation.

    def _negotiate(self, now: float) -> None:
        self.phase = Phase.NEGOTIATING
        self._began = now
        self.machine = Machine(self.role, LIMITS, now=now, common=self._common)

    def _receive_frame(self, letter: Letter, now: float) -> None:
        try:
            frame = decode_frame(letter.data)
        except PeerError:
            self.lose_link(now)
            self._close()
            return
        if self.phase is Phase.UNBOUND:
            self._negotiate(now)
        if self.phase is Phase.BOUND and self.bound is not None:
            self.bound.receive(frame.protocol_type, letter, now)
        elif frame.protocol_type is ProtocolType.META and self.machine is not None:
            # Code counts from the agreement on (ANP-3), no matter who sent it when.
            self._code_received |= (
                b'"generated"' in frame.data
                and self.machine.state is NegotiationState.EXPECT_CODE
            )
            self.machine.receive_message(frame.data, now=now)
            self._check_time(now)
        elif len(self._held) < MAX_HELD:
            # Nothing is decoded before both sides announced their code (ANP-42).
            self._held.append(letter)

    def settle(self, now: float) -> None:
        """Send what is to be sent and act on what is told, like the shells."""
        if self.phase is Phase.BOUND and self.bound is not None:
            self.bound.settle(now)
            if self.bound.broken is not None:
                self.bound.lost(now)
                self._close()
        while self.phase is Phase.NEGOTIATING and self.machine is not None:
            machine = self.machine
            for data in machine.messages_to_send():
                if not self._post_meta(data):
                    self._lost_while_sending(machine, now)
                    return
            event = machine.next_event()
            if event is None:
                return
            self._act(event, machine, now)

    def _lost_while_sending(self, machine: Machine, now: float) -> None:
        if machine.ready:
            # The peer did not learn that our code is ready, so it is not.
            self._journal.failed(FailureKind.LINK_LOST)
            self._close()
            return
        machine.link_lost(now=now)
        assert machine.messages_to_send() == []
        self.settle(now)

    def _act(self, event: Event, machine: Machine, now: float) -> None:
        match event:
            case NeedProposal():
                self._todo.append(self._propose)
            case NeedVerdict(candidate=candidate, messages=rounds):
                assert rounds <= LIMITS.max_rounds, "over the limit of rounds"
                self._todo.append(lambda now: self._judge(machine, candidate, now))
            case NeedModule(document):
                assert document in self._approved, "code for what our mind never saw"
                self._todo.append(lambda now: self._make_code(machine, document, now))
            case NeedSpokenAnswer(message_id=name):
                self._todo.append(
                    lambda now: machine.answer_ready(name, "to add", now=now)
                )
            case NegotiationAgreed(document, digest):
                assert document in self._approved, "agreed to what our mind never saw"
                assert self._code_received, "ready before the peer's code"
                assert self._half_for == document, "ready without a half of ours"
                assert machine.ready
                check_numbers(machine)
                self._agreed = NegotiationAgreed(document, digest)
                self.phase = Phase.KEEPING
                check_ended(machine, now)
            case NegotiationFailed(kind, reason):
                assert reason.strip()
                assert isinstance(kind, FailureKind)
                assert machine.state is NegotiationState.FAILED
                check_ended(machine, now)
                self._journal.failed(kind)
                while self._todo:
                    # A mind that answers late changes nothing.
                    self._todo.popleft()(now)
                assert machine.messages_to_send() == []
                assert machine.next_event() is None
                self._close()
            case _:
                self._journal.tally.count("machine events", type(event).__name__)

    def _propose(self, now: float) -> None:
        assert self.machine is not None
        text = self.temper.proposal
        if text is None:
            self.machine.mind_failed("no model answers", now=now)
            return
        self._approved.add(text)
        self._own_text = text
        self.machine.proposal_ready(text, now=now)

    def _judge(self, machine: Machine, candidate: str, now: float) -> None:
        verdict = self.temper.judge(candidate, self._own_text, self._judged)
        self._judged += 1
        if self.temper.eager and self.temper.codes:
            # A half for a candidate that may be countered in the end.
            self._half_for = candidate
            machine.module_ready(now=now)
        match verdict:
            case None:
                machine.mind_failed("no model answers", now=now)
                return
            case Accept() if not self.temper.codes:
                machine.module_failed("no code passes its tests", now=now)
                return
            case Accept():
                self._approved.add(candidate)
                self._accepted.add(candidate)
                if self.temper.ahead:
                    self._half_for = candidate
                    machine.module_ready(now=now)
            case Counter(document):
                self._approved.add(document)
                self._own_text = document
        machine.verdict_ready(verdict, now=now)

    def _make_code(self, machine: Machine, document: str, now: float) -> None:
        if self.temper.codes:
            self._half_for = document
            machine.module_ready(now=now)
        else:
            machine.module_failed("no code passes its tests", now=now)

    # After it.

    def _keep(self, now: float) -> None:
        assert self._agreed is not None
        agreed = self._agreed
        self.shelf.keep(agreed.document, agreed.hash)
        self._journal.kept(self.index, agreed.document, agreed.hash)
        self._bind(agreed.hash, now)

    def _bind(self, digest: str, now: float) -> None:
        self.phase = Phase.BOUND
        self._todo.clear()
        self._journal.bound(self.index, digest, agreed=self._agreed is not None)
        self.bound = Bound(
            self.index,
            digest,
            self._common,
            self.temper,
            now=now,
            post=self._post,
            journal=self._journal,
            held_by_both=self._held_by_both,
        )
        held, self._held = self._held, []
        for letter in held:
            self.bound.receive(decode_frame(letter.data).protocol_type, letter, now)

    def _post_meta(self, data: bytes) -> bool:
        match parse_meta(data):
            case ProtocolNegotiation(status=Status.ACCEPTED, candidate_protocols=text):
                assert text in self._accepted, "accepted what our mind did not"
            case ProtocolNegotiation(status=Status.NEGOTIATING):
                self._rounds += 1
                assert self._rounds <= LIMITS.max_rounds // 2 + 1, "too many rounds"
            case CodeGeneration(status=CodeStatus.GENERATED):
                assert self._half_for in self._approved, "announced code without any"
            case _:
                pass
        self._names += 1
        name = f"m{self.index}-{self._names}"
        return self._send(framed(ProtocolType.META, data, name, None))

    def _post(self, kind: ProtocolType, data: bytes, under: str | None) -> str:
        assert self.phase is Phase.BOUND
        self._names += 1
        name = f"m{self.index}-{self._names}"
        self._send(framed(kind, data, name, under))
        return name

    def _close(self) -> None:
        self.phase = Phase.CLOSED
        self._send(Letter(Sort.CLOSE))

    # What always holds.

    def _check_time(self, now: float) -> None:
        """Whatever is fed when the time is over ends the negotiation."""
        assert self.machine is not None
        over = now >= self._began + LIMITS.timeout
        assert not over or self.machine.state in END_STATES, "longer than its limit"

    def check(self, now: float) -> None:
        """Assert the limits of whatever is going on."""
        if self.phase is Phase.BOUND and self.bound is not None:
            self.bound.check(now)
        if self.phase is not Phase.NEGOTIATING or self.machine is None:
            return
        machine = self.machine
        due = machine.get_timer()
        assert machine.state not in END_STATES
        assert due is not None, "a negotiation that could last for ever"
        assert due <= self._began + LIMITS.timeout
        assert machine.ignored <= LIMITS.max_ignored
        assert machine.ignored <= machine.messages_received
        # A turn for each round and a verdict, our code, questions and their answers.
        answers = machine.messages_received + self._asked
        assert machine.messages_sent <= LIMITS.max_rounds + 2 + answers
