"""Two sides, the link between them, the time, and what must hold whatever happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from anp.wire.meta_protocol import CAPABILITIES
from negotiation.errors import MessageError
from negotiation.exchange.reactions import NegotiationState
from negotiation.messages import ProtocolNegotiation, TestCasesNegotiation, parse_meta
from tests.negotiation.conversations.forging import Wire
from tests.negotiation.conversations.journal import Journal, Tally
from tests.negotiation.conversations.letters import Condition, Letter, Link, Sort
from tests.negotiation.conversations.liar import Liar
from tests.negotiation.conversations.side import Phase, Side
from tests.negotiation.conversations.tempers import WILLING

MAX_CONNECTIONS: Final = 6
LONGEST: Final = 1_000.0
"Seconds after which nothing at all may still be open."


class Fault(Protocol):
    """Something that goes wrong."""

    def strike(self, talks: Conversation, index: int) -> None:
        """Let it happen, to one side if it happens to one."""
        ...


class Conversation:
    """Every connection between two sides, from the first hello to the last byte."""

    def __init__(
        self,
        tally: Tally,
        *,
        liar: int | None = None,
        claims: Callable[[], str | None] = lambda: None,
        capabilities: tuple[str, ...] = CAPABILITIES,
    ) -> None:
        self.tally = tally
        self.journal = Journal(tally)
        self.now = 0.0
        self.link = Link()
        self.wire = Wire()
        self.connections = 0
        self.calls = 0
        self.deliveries = 0
        # Faults, each with the number of deliveries after which it happens.
        self.plan: deque[tuple[int, Fault]] = deque()
        self.liar = liar
        self.sides = [
            Liar(index, self._sender(index), claims)
            if index == liar
            else Side(
                index,
                self.journal,
                self._sender(index),
                self._held_by_both,
                capabilities=capabilities,
            )
            for index in (0, 1)
        ]
        tally.count("conversations", "with a liar" if liar is not None else "honest")

    def _sender(self, index: int) -> Callable[[Letter], bool]:
        def send(letter: Letter) -> bool:
            self.wire.read(letter)
            return self.link.send(letter, towards=1 - index)

        return send

    def _held_by_both(self, digest: str) -> bool:
        return all(one.shelf.holds(digest) for one in self.sides if one.honest)

    # Steps.

    @property
    def connected(self) -> bool:
        """True if some side believes that there is a connection."""
        return any(one.phase is not Phase.CLOSED for one in self.sides if one.honest)

    @property
    def may_connect(self) -> bool:
        """True if another connection may be opened."""
        return not self.up and self.connections < MAX_CONNECTIONS

    @property
    def up(self) -> bool:
        """Whether there is one."""
        return self.connected and self.link.condition is Condition.UP

    def connect(self) -> None:
        """Open a connection; whoever still waits on an old one learns that it ended."""
        self.end_connection()
        self._count_alone()
        self.link, self.wire = Link(), Wire()
        self.connections += 1
        self.journal.connected()
        if self.liar is not None:
            self.journal.forged_turns = self.journal.forged_cases = 2
        for side in reversed(self.sides):
            side.open(self.now)
        self.check()

    def _count_alone(self) -> None:
        for index, digest in self.journal.agreements.items():
            other = self.sides[1 - index]
            if other.honest and not other.shelf.holds(digest):
                self.tally.count("agreements of one side alone", ROLES[index])

    def end_connection(
        self, *, unaware: int | None = None, crash: int | None = None
    ) -> None:
        """Tell the sides that the link is gone, all but one perhaps."""
        for queue in self.link.towards:
            queue.clear()
        for side in self.sides:
            if side.index != unaware and side.phase is not Phase.CLOSED:
                side.lose_link(
                    self.now,
                    crash=side.index == crash,
                    busy=self.link.condition is Condition.DOWN,
                )
        self.check()

    def deliver(self, index: int) -> bool:
        """Deliver the oldest letter to one side; False when there is none to take."""
        side, queue = self.sides[index], self.link.towards[index]
        if not queue or side.phase is Phase.KEEPING:
            return False
        letter = queue.popleft()
        if letter.forged and self.liar is None:
            self._note_forgery(letter)
        self.deliveries += 1
        side.receive(letter, self.now)
        self.check()
        return True

    def _note_forgery(self, letter: Letter) -> None:
        if letter.sort is not Sort.FRAME or letter.data[:1] >= b"\x40":
            return
        try:
            message = parse_meta(letter.data[1:])
        except MessageError:
            return
        self.journal.forged_turns += isinstance(message, ProtocolNegotiation)
        self.journal.forged_cases += isinstance(message, TestCasesNegotiation)

    def think(self, index: int) -> bool:
        """Let one side finish one thing that it is at; False when there is none."""
        side = self.sides[index]
        if side.temper.pace and side.busy:
            self.wait(side.temper.pace)
        done = side.think(self.now)
        self.check()
        return done

    def talk(self, turns: int) -> None:
        """Deliver and think in turns until both sides have nothing to do."""
        for _ in range(turns):
            moved = False
            for index in (0, 1):
                self._strike(index)
                moved |= self.deliver(index)
                moved |= self.think(index)
            if not moved:
                return

    def _strike(self, index: int) -> None:
        """Let the next planned fault happen when its time has come."""
        if self.plan and self.deliveries >= self.plan[0][0]:
            _, fault = self.plan.popleft()
            fault.strike(self, index)

    def expect(self, faults: Sequence[tuple[int, Fault]]) -> None:
        """Plan faults, each so many deliveries after the one before."""
        self.plan.clear()
        due = self.deliveries
        for more, fault in faults:
            due += more
            self.plan.append((due, fault))

    def call(self) -> None:
        """Let the requester's agent make a call, if the channel is bound."""
        bound = self.sides[0].bound
        if bound is not None and self.sides[0].phase is Phase.BOUND:
            self.calls += 1
            bound.call(self.calls, self.now)
            self.check()

    def start_tests(self, text: str) -> None:
        """Let the requester propose test cases, if the channel is bound."""
        side = self.sides[0]
        if isinstance(side, Side) and side.phase is Phase.BOUND:
            assert side.bound is not None
            side.bound.start_tests(text, self.now)
            side.settle(self.now)
            self.check()

    def break_link(
        self,
        *,
        silent: bool = True,
        towards: int = 0,
        last: int = 0,
        unaware: int | None = None,
        crash: int | None = None,
    ) -> None:
        """Break the link; a few letters may still arrive on one side.

        Args:
            silent: Whether sending seems to work on.
            towards: The side that still gets letters, and acts on them in vain.
            last: How many.
            unaware: The side that does not notice, and waits until its timers end it.
            crash: The side that breaks down and loses what it has not stored.
        """
        self.tally.count("breaks", self.moment())
        self.link.condition = Condition.SILENT if silent else Condition.DOWN
        for _ in range(last):
            self.deliver(towards)
            self.think(towards)
        self.end_connection(unaware=unaware, crash=crash)

    def wait(self, seconds: float) -> None:
        """Let time pass, with every timer on time."""
        self._run_timers(self.now + seconds)
        self.now += seconds

    def _run_timers(self, end: float) -> None:
        for _ in range(200):
            dues = [(side.due(), side) for side in self.sides]
            due, side = min(
                ((due, side) for due, side in dues if due is not None and due <= end),
                key=lambda one: one[0],
                default=(end, None),
            )
            if side is None:
                return
            start, self.now = self.now, max(self.now, due)
            side.tick(self.now)
            self.check()
            self.now = max(start, min(self.now, end))
        raise AssertionError("a timer that never ends")

    # What holds.

    def moment(self) -> str:
        """Return in a few words where the conversation stands."""
        phases = {side.phase for side in self.sides if side.honest}
        states = {one.machine.state for one in self.sides if one.machine is not None}
        done = {Phase.KEEPING, Phase.BOUND}
        if Phase.NEGOTIATING in phases:
            if phases & done:
                return "one side ready"
            for state, words in MOMENTS.items():
                if state in states:
                    return words
        if Phase.HELLO in phases or Phase.UNBOUND in phases:
            return "hello"
        if Phase.KEEPING in phases:
            return "keeping"
        if Phase.BOUND in phases:
            held = any(
                one.bound is not None and one.bound.dialogue.holding
                for one in self.sides
            )
            return "repair" if held else "bound"
        return "closed"

    def check(self) -> None:
        """Assert what holds after every step."""
        if self._all_said():
            self.journal.compare_cases()
        known: dict[str, str] = {}
        for side in self.sides:
            side.check(self.now)
            for digest, text in side.shelf.texts().items():
                assert known.setdefault(digest, text) == text, "two texts for one hash"

    def _all_said(self) -> bool:
        bounds = [side.bound for side in self.sides]
        return (
            self.up
            and not self.link.lossy
            and not any(self.link.towards)
            and not any(bound is not None and bound.busy for bound in bounds)
        )

    def finish(self) -> None:
        """Let all time pass, with nothing delivered: everything comes to an end."""
        self._run_timers(self.now + LONGEST)
        for side in self.sides:
            if side.phase is Phase.KEEPING:
                side.think(self.now)
            assert side.due() is None, "something waits for ever"
            if side.honest:
                assert side.phase in {Phase.CLOSED, Phase.UNBOUND, Phase.BOUND}
            assert side.bound is None or not side.bound.dialogue.holding
        self.end_connection()
        assert not self.connected
        self.tally.count("conversations that ended with", self.journal.last_end)

    def call_again(self) -> None:
        """Show that after all that the next call starts clean, and works.

        An offered hash that the provider does not hold is declined and negotiated.
        """
        self.end_connection()
        requester, provider = self.sides
        requester.temper = provider.temper = WILLING
        self.plan.clear()
        offered = requester.shelf.newest()
        held = offered is not None and provider.shelf.holds(offered)
        before = self.journal.decoded
        self.connect()
        self.talk(40)
        assert requester.phase is provider.phase is Phase.BOUND
        assert self.journal.decoded == before, "decoded before a call was made"
        assert self.journal.declined == (offered is not None and not held)
        assert (self.journal.agreements != {}) == (not held)
        self.call()
        self.talk(10)
        bound = requester.bound
        assert bound is not None
        assert bound.answers == 1
        assert provider.bound is not None
        assert provider.bound.digest == bound.digest
        self.tally.count("next calls", "confirmed" if held else "negotiated anew")
        self.end_connection()


ROLES: Final = ("requester", "provider")

MOMENTS: Final = {
    NegotiationState.PROPOSE: "proposing",
    NegotiationState.JUDGE: "judging",
    NegotiationState.EXPECT_CODE: "making code",
    NegotiationState.EXPECT_ANSWER: "waiting for a verdict",
    NegotiationState.EXPECT_PROPOSAL: "waiting for a candidate",
}
"What a negotiation is at, by the state that says most."
