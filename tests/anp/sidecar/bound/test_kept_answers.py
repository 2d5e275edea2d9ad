"""Answers that a peer may fetch: generated histories, against a plain model."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from anp.sidecar.bound.kept_answers import (
    CallName,
    KeptAnswer,
    KeptAnswers,
    KeptLimits,
    State,
)

LIMITS = KeptLimits(calls=4, size=40, total_calls=7, total_size=60)
PEERS = ("us a", "us b", "us c")

calls = st.builds(CallName, st.sampled_from(PEERS), st.sampled_from("123456"))
bindings = st.sampled_from(("one", "two"))
answers = st.one_of(
    st.builds(KeptAnswer, st.binary(max_size=50)),
    st.builds(KeptAnswer, refusal=st.text("x", max_size=20)),
)


@dataclass
class Known:
    """A call as the model knows it."""

    binding: str
    until: float
    answer: KeptAnswer | None = None


class Histories(RuleBasedStateMachine):
    """What is given out is what was kept, to whom it belongs, and never too much."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = KeptAnswers(LIMITS)
        self.now = 0.0
        self.known: dict[CallName, Known] = {}

    @rule(seconds=st.integers(0, 20))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(call=calls, binding=bindings, seconds=st.integers(1, 30))
    def begin(self, call: CallName, binding: str, seconds: int) -> None:
        until = self.now + seconds
        if self.kept.begin(call, binding, until=until, now=self.now):
            self.known[call] = Known(binding, until)
        else:
            # Only what is worked on can stand in its way, for that never goes.
            self.known.pop(call, None)
            running = [
                one
                for one, known in self.known.items()
                if known.answer is None and known.until > self.now
            ]
            of_peer = [one for one in running if one.parties == call.parties]
            full = len(running) >= LIMITS.total_calls
            assert full or len(of_peer) >= LIMITS.calls

    @rule(call=calls, answer=answers)
    def answer(self, call: CallName, answer: KeptAnswer) -> None:
        self.kept.answer(call, answer, now=self.now)
        if call in self.known:
            self.known[call].answer = answer

    @rule(call=calls, binding=bindings)
    def fetch(self, call: CallName, binding: str) -> None:
        found = self.kept.fetch(call, binding, now=self.now)
        known = self.known.get(call)
        if known is None or known.until <= self.now or known.binding != binding:
            assert found is State.UNKNOWN
        elif known.answer is None:
            assert found is State.RUNNING
        else:
            # An answer may have made room for others.
            assert found in {known.answer, State.UNKNOWN}
            if found is State.UNKNOWN:
                del self.known[call]

    @rule(call=calls)
    def stop(self, call: CallName) -> None:
        self.kept.stop(call)
        known = self.known.get(call)
        if known is not None and known.answer is None:
            del self.known[call]

    @rule(call=calls)
    def forget(self, call: CallName) -> None:
        self.kept.forget(call)
        self.known.pop(call, None)

    @rule(call=calls)
    def newest_answer_is_there(self, call: CallName) -> None:
        """Of all answers the newest is the last to go."""
        if self.kept.begin(call, "one", until=self.now + 5, now=self.now):
            answer = KeptAnswer(b"new")
            self.kept.answer(call, answer, now=self.now)
            assert self.kept.fetch(call, "one", now=self.now) == answer
            self.known[call] = Known("one", self.now + 5, answer)
        else:
            self.known.pop(call, None)

    @invariant()
    def within_limits(self) -> None:
        of = [self.kept.of(parties) for parties in PEERS]
        assert all(count <= LIMITS.calls for count, _ in of)
        assert all(0 <= size <= LIMITS.size for _, size in of)
        assert self.kept.count == sum(count for count, _ in of) <= LIMITS.total_calls
        assert self.kept.size == sum(size for _, size in of) <= LIMITS.total_size


TestHistories = Histories.TestCase
TestHistories.settings = settings(deadline=None)


def test_what_was_dropped_early_is_not_remembered_for_its_deadline() -> None:
    kept = KeptAnswers()
    for number in range(10_000):
        call = CallName("us a", str(number))
        assert kept.begin(call, "one", until=3_600.0, now=0.0)
        kept.forget(call)
    assert len(kept._due) < 200
