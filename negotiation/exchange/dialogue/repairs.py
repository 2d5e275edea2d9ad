"""Reports of errors and the repairs that follow (ANP-56 to ANP-61, ANP-Q25).

Theory of operation
-------------------

On an agreed channel either side may receive a message that breaks the document. It then
*reports* it with `fixErrorNegotiation`; for the other side the same message is a
*claim* about its own code. A claim ends in one of three ways: the side admits the
fault, makes new code and announces it with `codeGeneration`; it refuses, with the
reason; or it says nothing in time, which counts as a refusal.

    receiver of the bad message                 its sender
    report ------ negotiating ----------------> NeedFault
                                                judged(OurFault): NeedRepair
    PeerRepairs <------- accepted -------------
    PeerRepaired <------ codeGeneration -------  repair_ready
         or
    ReportRefused <----- rejected -------------  judged(PeerFault)

The seed gives a report neither number nor direction, so the status alone tells whose
matter a message belongs to: `negotiating` is always a claim of who sends it, and
`accepted` and `rejected` always answer a claim of who receives them. The first line of
the description names the id of the envelope in question (`descriptions`). An answer
that names no id belongs to the one report that is open; this is why each direction has
at most one open report, and further ones wait in a queue.

The two directions never wait for each other: both sides may report at the same time,
about different messages or about the same one, and both may admit a fault (ANP-61). A
claim about the message that we have reported ourselves is the peer's next word in the
same matter: it counts as a round of it, and the peer gets our full time again before it
has to answer our report.

A `rejected` for a message that nobody reported is the other use of this action: a
provider says that a request gets no answer (`refuse`), and the caller's call ends with
that reason (`MessageRefused`).

Between `accepted` and `codeGeneration` application data is held (`holding`). Our own
shell keeps that time short: it writes and checks the new half *before* it calls
`judged`, and so refuses, instead of admitting a fault that it cannot mend. A peer may
take its time, up to `repair_timeout`. A repair that was admitted and then fails, on
either side, ends the communication (ANP-46): the methods raise `CommunicationEnded`,
and the machine that this object is a part of closes the channel.

Limits hold everything down: rounds about one message, reports that wait, repairs of one
channel (each may cost calls to a model), and the number of matters that are remembered
at all. What does not fit is dropped or refused, never queued without end.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from negotiation.errors import CommunicationEnded, MessageDropped, MisuseError
from negotiation.exchange.dialogue.reports import headed, read_description
from negotiation.exchange.events import (
    Fault,
    MessageRefused,
    NeedFault,
    NeedRepair,
    OurFault,
    PeerFault,
    PeerRepaired,
    PeerRepairs,
    RefusalUnsent,
    RepairEvent,
    RepairFailed,
    ReportRefused,
)
from negotiation.exchange.limits import MAX_REASON, DialogueLimits
from negotiation.messages import (
    MAX_TEXT_SIZE,
    CodeGeneration,
    CodeStatus,
    FixErrorNegotiation,
    Status,
    cut_text,
)

FIXES: Final = "fixErrorNegotiation"
"The capability that both sides must have listed (ANP-81)."

UNJUDGED_REASON: Final = "This side could not find out in time whose fault it is."
"Sent to the peer when our side gave no judgement in time."


@dataclass(slots=True)
class _Report:
    """A report of ours that was sent to the peer."""

    reference: str | None
    deadline: float
    ends: float
    accepted: bool = False


@dataclass(slots=True)
class _Claim:
    """A report of the peer."""

    reference: str | None
    description: str
    deadline: float
    admitted: bool = False


class Repairs:
    """The reports of one channel, at most one open in each direction.

    Part of a machine: messages to send and events go to the two callables.
    """

    def __init__(
        self,
        limits: DialogueLimits,
        *,
        common: bool,
        send: Callable[[FixErrorNegotiation | CodeGeneration], None],
        tell: Callable[[RepairEvent], None],
    ) -> None:
        self._limits = limits
        self._common = common
        self._send = send
        self._tell = tell
        self._report: _Report | None = None
        self._waiting: deque[tuple[str | None, str]] = deque()
        self._claim: _Claim | None = None
        self._claims = 0
        self._repairs = 0
        # Reference to (rounds, time when they are forgotten), the last used at the end.
        self._matters: OrderedDict[str | None, tuple[int, float]] = OrderedDict()

    @property
    def holding(self) -> bool:
        """True while a repair is being made, on either side (ANP-Q25)."""
        return (self._report is not None and self._report.accepted) or (
            self._claim is not None and self._claim.admitted
        )

    # Our own side.

    def report(self, reference: str | None, description: str, *, now: float) -> None:
        """Report a faulty message to the peer, now or after the open report."""
        if not self._common:
            self._drop(reference, f"the peer does not have {FIXES}")
        elif self._report is None:
            self._send_report(reference, description, now)
        elif len(self._waiting) >= self._limits.max_reports:
            self._drop(reference, f"{len(self._waiting)} reports wait already")
        else:
            self._waiting.append((reference, description))

    def refuse(self, reference: str, reason: str) -> None:
        """Tell the peer that its message gets no answer; if impossible, the shell."""
        if self._common:
            self._say(reference, reason or "no reason is known", Status.REJECTED)
        else:
            self._tell(RefusalUnsent(reference, reason))

    def judged(self, fault: Fault, *, number: int | None, now: float) -> None:
        """Answer the peer's report; no effect when it is no longer open."""
        claim = self._claim
        if claim is None or claim.admitted or number not in {None, self._claims}:
            return
        match fault:
            case OurFault(findings):
                words = "; ".join(findings) or "this side is at fault"
                self._say(claim.reference, words, Status.ACCEPTED)
                self._begin_repair(claim, now)
            case PeerFault(reason):
                self._claim = None
                words = reason if reason.strip() else "the message is good"
                self._say(claim.reference, words, Status.REJECTED)

    def repair_ready(self) -> None:
        """Announce our new code (ANP-60).

        Raises:
            MisuseError: Our side was not asked for a repair.
        """
        claim = self._admitted()
        self._claim = None
        self._repairs += 1
        self._matters.pop(claim.reference, None)
        self._send(CodeGeneration(status=CodeStatus.GENERATED))

    def repair_failed(self, reason: str) -> NoReturn:
        """Give up our repair.

        Raises:
            MisuseError: Our side was not asked for a repair.
            CommunicationEnded: Always, as a failed repair ends the communication
                (ANP-46).
        """
        claim = self._admitted()
        self._claim = None
        self._send(CodeGeneration(status=CodeStatus.ERROR))
        self._tell(RepairFailed(claim.reference, reason, by_peer=False))
        raise CommunicationEnded(f"our repair failed: {reason}", by_peer=False)

    # The peer's messages.

    def receive(self, message: FixErrorNegotiation, *, now: float) -> None:
        """Handle a report of the peer, or its answer to ours.

        Raises:
            MessageDropped: It has no effect.
        """
        if not self._common:
            raise MessageDropped(f"{FIXES} is not common")
        reference, text = read_description(message.error_description)
        match message.status:
            case Status.NEGOTIATING:
                self._handle_claim(reference, text, now)
            case Status.ACCEPTED:
                self._handle_accepted(reference, now)
            case Status.REJECTED:
                self._handle_rejected(reference, text, now)

    def receive_code(self, message: CodeGeneration, *, now: float) -> None:
        """Handle the end of the peer's repair.

        Raises:
            MessageDropped: We are not waiting for it.
            CommunicationEnded: The repair failed (ANP-46).
        """
        report = self._report
        if report is None or not report.accepted:
            raise MessageDropped("codeGeneration that nobody waits for")
        if message.status is CodeStatus.ERROR:
            self._fail_report("the peer could not make new code")
        self._matters.pop(report.reference, None)
        self._tell(PeerRepaired(report.reference))
        self._next_report(now)

    def refuse_large(self) -> None:
        """Answer a message of the peer whose text is over a limit (ANP-Q30).

        Raises:
            MessageDropped: The peer has a report open, or repairs are not supported.
        """
        if not self._common or self._claim is not None:
            raise MessageDropped(f"{FIXES} that is too large and out of turn")
        self._say(None, f"the text is over {MAX_TEXT_SIZE} bytes", Status.REJECTED)

    # Time and end.

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        return min(
            (one.deadline for one in (self._report, self._claim) if one is not None),
            default=None,
        )

    def handle_timer(self, *, now: float) -> None:
        """End all steps whose time is over.

        Raises:
            CommunicationEnded: A repair took too long, which counts as failed (ANP-44).
        """
        limits = self._limits
        if self._claim is not None and now >= self._claim.deadline:
            if self._claim.admitted:
                self.repair_failed(f"no new code in {limits.repair_timeout:g} s")
            self._say(self._claim.reference, UNJUDGED_REASON, Status.REJECTED)
            self._claim = None
        if self._report is not None and now >= self._report.deadline:
            if self._report.accepted:
                seconds = f"{limits.repair_timeout:g} s"
                self._fail_report(f"no codeGeneration of the peer in {seconds}")
            self._tell(
                ReportRefused(
                    self._report.reference,
                    f"no answer in {limits.report_timeout:g} s",
                    by_peer=True,
                )
            )
            self._next_report(now)

    def close(self, reason: str) -> None:
        """End everything without a message to the peer."""
        report, self._report = self._report, None
        claim, self._claim = self._claim, None
        if claim is not None and claim.admitted:
            self._tell(RepairFailed(claim.reference, reason, by_peer=False))
        if report is not None and report.accepted:
            self._tell(RepairFailed(report.reference, reason, by_peer=True))
        elif report is not None:
            self._drop(report.reference, reason)
        while self._waiting:
            self._drop(self._waiting.popleft()[0], reason)

    # Steps about our reports.

    def _send_report(self, reference: str | None, text: str, now: float) -> None:
        rounds = self._count(reference, now)
        if rounds > self._limits.max_rounds:
            self._drop(reference, self._too_many())
            return
        wait = self._limits.report_timeout
        # Reports of its own let the peer delay its answer, but only up to this limit.
        ends = now + wait * self._limits.max_rounds
        self._report = _Report(reference, now + wait, ends)
        words = text if text.strip() else "the message breaks the protocol"
        self._say(reference, words, Status.NEGOTIATING)

    def _next_report(self, now: float) -> None:
        self._report = None
        while self._report is None and self._waiting:
            self._send_report(*self._waiting.popleft(), now)

    def _handle_accepted(self, reference: str | None, now: float) -> None:
        report = self._report
        if report is None or report.accepted or not _same(reference, report):
            raise MessageDropped("there is no report of ours to accept")
        report.accepted = True
        report.deadline = now + self._limits.repair_timeout
        self._tell(PeerRepairs(report.reference))

    def _handle_rejected(self, reference: str | None, text: str, now: float) -> None:
        report = self._report
        reason = cut_text(text, MAX_REASON) or "the peer gave no reason"
        if report is not None and not report.accepted and _same(reference, report):
            self._tell(ReportRefused(report.reference, reason, by_peer=True))
            self._next_report(now)
        elif report is None or reference not in (None, report.reference):
            self._tell(MessageRefused(reference, reason))
        else:
            raise MessageDropped("a refusal that belongs to no message")

    def _fail_report(self, reason: str) -> NoReturn:
        assert self._report is not None
        self._tell(RepairFailed(self._report.reference, reason, by_peer=True))
        self._report = None
        raise CommunicationEnded(f"the peer's repair failed: {reason}", by_peer=True)

    def _drop(self, reference: str | None, reason: str) -> None:
        self._tell(ReportRefused(reference, reason, by_peer=False))

    # Steps about the peer's reports.

    def _handle_claim(self, reference: str | None, text: str, now: float) -> None:
        if self._claim is not None:
            raise MessageDropped("a second report while one is open")
        rounds = self._count(reference, now)
        if rounds > self._limits.max_rounds:
            self._say(reference, self._too_many(), Status.REJECTED)
            raise MessageDropped("too many reports of one message")
        report = self._report
        if report is not None and not report.accepted and report.reference == reference:
            report.deadline = min(now + self._limits.report_timeout, report.ends)
        self._claims += 1
        self._claim = _Claim(reference, text, now + self._limits.fault_timeout)
        self._tell(NeedFault(reference, text, rounds, self._claims))

    def _begin_repair(self, claim: _Claim, now: float) -> None:
        claim.admitted = True
        claim.deadline = now + self._limits.repair_timeout
        if self._repairs >= self._limits.max_repairs:
            # A repair may cost model calls, and so many repairs have not helped.
            self.repair_failed(f"repaired {self._repairs} times already")
        self._tell(NeedRepair(claim.reference, claim.description))

    def _admitted(self) -> _Claim:
        if self._claim is None or not self._claim.admitted:
            raise MisuseError("our side was not asked for a repair")
        return self._claim

    # Steps of both directions.

    def _count(self, reference: str | None, now: float) -> int:
        """Count a round about a message and return the number of rounds."""
        rounds, expires = self._matters.pop(reference, (0, now))
        rounds = rounds + 1 if now < expires else 1
        self._matters[reference] = (rounds, now + self._limits.matter_lifetime)
        while len(self._matters) > self._limits.max_matters:
            self._matters.popitem(last=False)
        return rounds

    def _too_many(self) -> str:
        return f"no end within {self._limits.max_rounds} rounds about this message"

    def _say(self, reference: str | None, text: str, status: Status) -> None:
        self._send(
            FixErrorNegotiation(
                error_description=headed(reference, text), status=status
            )
        )


def _same(reference: str | None, report: _Report) -> bool:
    """Return whether an answer may belong to `report`: same reference, or none."""
    return reference is None or reference == report.reference
