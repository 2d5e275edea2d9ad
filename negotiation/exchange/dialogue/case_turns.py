"""The turns in which two sides agree on test cases (ANP-48 to ANP-53, ANP-Q9)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from negotiation.errors import MessageDropped, MisuseError
from negotiation.exchange.events import (
    AcceptCases,
    CasesAgreed,
    CasesEvent,
    CasesSkipped,
    CasesVerdict,
    CounterCases,
    NeedCasesVerdict,
    RejectCases,
)
from negotiation.exchange.limits import (
    MAX_REASON,
    MAX_SUMMARY,
    MIND_REASON,
    DialogueLimits,
)
from negotiation.messages import MAX_TEXT_SIZE, Status, TestCasesNegotiation, cut_text
from negotiation.need import Role

CASES: Final = "testCasesNegotiation"
"The capability that both sides must have listed (ANP-81)."


class CaseState(Enum):
    """The state of the agreement on test cases on our side."""

    MAY_START = auto()
    "The requester, before its first set."

    EXPECT_CASES = auto()
    "The provider, before the first set: only the requester may start (ANP-Q9)."

    EXPECT_ANSWER = auto()
    JUDGE = auto()
    AGREED = auto()
    SKIPPED = auto()


class CaseReaction(Enum):
    """The meaning of a `testCasesNegotiation` from the peer in a state."""

    CONSIDER = auto()
    "The peer sent a set for our side to judge."

    AGREE = auto()
    "The peer accepts our set."

    CONFIRM = auto()
    "The peer repeats the agreement, or contradicts it."

    SKIP = auto()
    "There will be no tests; the peer may even withdraw an agreement."

    DROP = auto()
    "It is not the peer's turn, or the turns have ended."


CASE_REACTIONS: Final[dict[CaseState, dict[Status, CaseReaction]]] = {
    CaseState.MAY_START: {
        Status.NEGOTIATING: CaseReaction.DROP,
        Status.ACCEPTED: CaseReaction.DROP,
        Status.REJECTED: CaseReaction.SKIP,
    },
    CaseState.EXPECT_CASES: {
        Status.NEGOTIATING: CaseReaction.CONSIDER,
        Status.ACCEPTED: CaseReaction.DROP,
        Status.REJECTED: CaseReaction.SKIP,
    },
    CaseState.EXPECT_ANSWER: {
        Status.NEGOTIATING: CaseReaction.CONSIDER,
        Status.ACCEPTED: CaseReaction.AGREE,
        Status.REJECTED: CaseReaction.SKIP,
    },
    CaseState.JUDGE: {
        Status.NEGOTIATING: CaseReaction.DROP,
        Status.ACCEPTED: CaseReaction.DROP,
        Status.REJECTED: CaseReaction.SKIP,
    },
    CaseState.AGREED: {
        Status.NEGOTIATING: CaseReaction.DROP,
        Status.ACCEPTED: CaseReaction.CONFIRM,
        Status.REJECTED: CaseReaction.SKIP,
    },
    CaseState.SKIPPED: {
        Status.NEGOTIATING: CaseReaction.DROP,
        Status.ACCEPTED: CaseReaction.DROP,
        Status.REJECTED: CaseReaction.DROP,
    },
}
"The meaning of each status in each state."


class CaseTurns:
    """One agreement on test cases; a channel has at most one.

    Part of a machine: messages to send and events go to the two callables. Any failure
    skips the tests and affects nothing else (ANP-48).
    """

    def __init__(
        self,
        role: Role,
        limits: DialogueLimits,
        *,
        common: bool,
        send: Callable[[TestCasesNegotiation], None],
        tell: Callable[[CasesEvent], None],
    ) -> None:
        self._limits = limits
        self._common = common
        self._send = send
        self._tell = tell
        self._requester = role is Role.REQUESTER
        self._state = CaseState.MAY_START if self._requester else CaseState.EXPECT_CASES
        self._text = ""
        # Every set so far, as a pair: true if it came from the peer, and its hash.
        self._seen: set[tuple[bool, bytes]] = set()
        self._rounds = 0
        self._ends = 0.0
        self._deadline: float | None = None
        self._skipped = CasesSkipped("", by_peer=False)

    # Our own side.

    def start(self, text: str, *, now: float) -> None:
        """Propose the first set, or report at once why that is impossible.

        Raises:
            MisuseError: We are the provider, or have started before.
        """
        if self._state is CaseState.SKIPPED and self._requester:
            self._tell(self._skipped)
            return
        if self._state is not CaseState.MAY_START:
            raise MisuseError("only the requester starts the tests, and only once")
        problem = _problem(text) if self._common else f"the peer does not have {CASES}"
        if problem is not None:
            self._skip(problem, by_peer=False)
            return
        self._ends = now + self._limits.cases_timeout
        self._repeats(text, by_peer=False)
        self._propose(text, "", now)

    def judged(self, verdict: CasesVerdict, *, now: float) -> None:
        """Answer the peer's set; no effect if the tests were skipped in the meantime.

        Raises:
            MisuseError: Our side was not asked.
        """
        if self._state is CaseState.SKIPPED:
            return
        if self._state is not CaseState.JUDGE:
            raise MisuseError("there are no test cases to judge")
        match verdict:
            case AcceptCases():
                # With the whole text, so that the peer knows which set is accepted.
                self._say(Status.ACCEPTED, self._text, "")
                self._agree(by_peer=False)
            case CounterCases(text, summary):
                self._counter(text, summary, now)
            case RejectCases(reason):
                self._refuse(reason, by_peer=False)

    # The peer's messages.

    def receive(self, message: TestCasesNegotiation, *, now: float) -> None:
        """Handle one message of the peer.

        Raises:
            MessageDropped: It has no effect.
        """
        if not self._common:
            raise MessageDropped(f"{CASES} is not common")
        match CASE_REACTIONS[self._state][message.status]:
            case CaseReaction.CONSIDER:
                self._consider(message, now)
            case CaseReaction.AGREE | CaseReaction.CONFIRM if (
                message.test_cases not in {"", self._text}
            ):
                self._refuse("the accepted test cases are not ours", by_peer=True)
            case CaseReaction.AGREE:
                self._agree(by_peer=True)
            case CaseReaction.CONFIRM:
                raise MessageDropped("test cases were accepted twice")
            case CaseReaction.SKIP:
                reason = cut_text(message.modification_summary, MAX_REASON)
                self._skip(reason or "the peer gave no reason", by_peer=True)
            case CaseReaction.DROP:
                raise MessageDropped("test cases out of turn")

    def refuse_large(self) -> None:
        """Answer a message of the peer whose text is over a limit (ANP-Q30).

        Raises:
            MessageDropped: It would have had no effect anyway.
        """
        if not self._common or self._state not in {
            CaseState.EXPECT_CASES,
            CaseState.EXPECT_ANSWER,
        }:
            raise MessageDropped("test cases that are too large and out of turn")
        self._refuse(f"the text is over {MAX_TEXT_SIZE} bytes", by_peer=True)

    # Time and end.

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        return None if self._deadline is None else min(self._deadline, self._ends)

    def handle_timer(self, *, now: float) -> None:
        """Skip the tests when one side took too long."""
        due = self.get_timer()
        if due is None or now < due:
            return
        limits = self._limits
        late_peer = self._state is CaseState.EXPECT_ANSWER
        if now >= self._ends:
            reason = f"no agreement on test cases in {limits.cases_timeout:g} s"
        elif late_peer:
            reason = f"no answer about test cases in {limits.message_timeout:g} s"
        else:
            reason = f"test cases were not judged in {limits.answer_timeout:g} s"
        self._refuse(reason, by_peer=late_peer)

    def close(self, reason: str) -> None:
        """Skip tests that are not agreed, without a message to the peer."""
        if self._deadline is not None:
            self._skip(reason, by_peer=False)

    # Steps.

    def _consider(self, message: TestCasesNegotiation, now: float) -> None:
        # There are no numbers (ANP-Q9), so a repeated message looks like a new turn;
        # answering it could lead to agreement on different sets.
        if self._repeats(message.test_cases, by_peer=True):
            raise MessageDropped("a set of test cases was repeated")
        if self._rounds == 0:
            self._ends = now + self._limits.cases_timeout
        self._rounds += 1
        if self._rounds > self._limits.max_rounds:
            self._refuse(self._too_many(), by_peer=True)
        elif not message.test_cases.strip():
            self._refuse("there are no test cases in the message", by_peer=True)
        else:
            self._text = message.test_cases
            self._state = CaseState.JUDGE
            self._deadline = now + self._limits.answer_timeout
            self._tell(
                NeedCasesVerdict(
                    message.test_cases,
                    message.modification_summary,
                    self._rounds,
                    may_counter=self._rounds < self._limits.max_rounds,
                )
            )

    def _counter(self, text: str, summary: str, now: float) -> None:
        problem = _problem(text)
        if problem is None and self._repeats(text, by_peer=False):
            problem = "the counter repeats a set of ours"
        if self._rounds >= self._limits.max_rounds:
            self._refuse(self._too_many(), by_peer=False)
        elif problem is not None:
            # The details are a fault of ours and do not concern the peer.
            self._refuse(problem, by_peer=False, told=MIND_REASON)
        else:
            self._propose(text, summary if summary.strip() else CASES_SUMMARY, now)

    def _propose(self, text: str, summary: str, now: float) -> None:
        self._rounds += 1
        self._text = text
        self._state = CaseState.EXPECT_ANSWER
        self._deadline = now + self._limits.message_timeout
        self._say(Status.NEGOTIATING, text, summary)

    def _repeats(self, text: str, *, by_peer: bool) -> bool:
        """Return whether this side proposed the set before, and remember it."""
        key = (by_peer, hashlib.sha256(text.encode("utf-8")).digest())
        repeats = key in self._seen
        self._seen.add(key)
        return repeats

    def _agree(self, *, by_peer: bool) -> None:
        self._state = CaseState.AGREED
        self._deadline = None
        self._tell(CasesAgreed(self._text, by_peer))

    def _refuse(self, reason: str, *, by_peer: bool, told: str | None = None) -> None:
        self._say(Status.REJECTED, "", told or reason)
        self._skip(reason, by_peer=by_peer)

    def _skip(self, reason: str, *, by_peer: bool) -> None:
        self._state = CaseState.SKIPPED
        self._deadline = None
        self._skipped = CasesSkipped(reason, by_peer)
        self._tell(self._skipped)

    def _too_many(self) -> str:
        return f"no agreement on test cases within {self._limits.max_rounds} rounds"

    def _say(self, status: Status, text: str, summary: str) -> None:
        limit = MAX_REASON if status is Status.REJECTED else MAX_SUMMARY
        self._send(
            TestCasesNegotiation(
                test_cases=text,
                modification_summary=cut_text(summary, limit),
                status=status,
            )
        )


CASES_SUMMARY: Final = "The test cases were replaced as a whole."
"Used when a side gives no summary of its counter-proposal (ANP-51)."


def _problem(text: str) -> str | None:
    """Return the reason why `text` cannot be sent as test cases, or None."""
    if not text.strip():
        return "there are no test cases"
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return "the test cases have lone surrogates, which UTF-8 cannot carry"
    if size > MAX_TEXT_SIZE:
        return f"the test cases have {size} bytes, at most {MAX_TEXT_SIZE} are allowed"
    return None
