"""Figures about peers, as our own calls and tasks measured them, and their order.

Nobody is asked for the sake of a figure. One that is older than `FRESH` tells nothing
any more, so that a peer that was slow or away is tried again.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar

from anp.errors import ErrorKind
from anp.identity.dids import agent_name
from anp.interaction.operations import Operation, TaskCreate, TaskUpdate
from anp.sidecar.telemetry.call_entry import CallEntry

FRESH: Final = 600.0
"Seconds for which a figure counts."

AWAY: Final = 60.0
"Seconds for which a peer that was not reached stands behind all others."

WEIGHT: Final = 0.2
"Share of the newest measure in a mean."

MEASURED: Final = 2
"Answers after which their latency counts."

MAX_ASKED: Final = 1_000
"Tasks for whose first answer the time is measured."

MAX_MEASURED: Final = 4_000
"Pairs of peer and capability that are remembered; the one unused for longest goes."

ANSWERS: Final = frozenset({"ok", ErrorKind.APPLICATION_ERROR.value})
"Outcomes of calls that the peer answered."

FAULTS: Final = frozenset(
    {
        ErrorKind.PEER_UNREACHABLE.value,
        ErrorKind.TIMEOUT.value,
        ErrorKind.IDENTITY_REFUSED.value,
        ErrorKind.NEGOTIATION_REJECTED.value,
        ErrorKind.GENERATED_CODE.value,
    }
)
"Outcomes that count as failures of the peer; all others tell nothing about it."

Item = TypeVar("Item")

Health = Literal["good", "failing", "away", "unknown"]


@dataclass(slots=True, kw_only=True)
class PeerFigures:
    """The measures of one peer, or of one capability of it."""

    answered: int = 0
    "Calls and tasks that it answered since the daemon started."

    failed: int = 0
    "Calls and tasks that failed by it, or did not reach it, since then."

    latency: float | None = None
    "Recent mean of the milliseconds until an answer; None before the first."

    success: float = 1.0
    "Recent share of those that it answered, 0 to 1."

    at: float | None = None
    "Time of the newest measure, in seconds since 1970."

    failed_at: float | None = None
    "Time of the newest failure."


def health_of(figures: PeerFigures, *, away: bool, now: float) -> Health:
    """Return the health of a peer in one word.

    Args:
        away: It was not reached at the last try.
        now: Seconds since 1970.
    """
    if away:
        return "away"
    if not _is_fresh(figures, now):
        return "unknown"
    return "good" if figures.success > 0.5 else "failing"


class Measures:
    """Takes measures, and gives the figures of peers and of their capabilities."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._figures: OrderedDict[tuple[str, str], PeerFigures] = OrderedDict()
        self._chosen: OrderedDict[str, int] = OrderedDict()
        self._choices = 0
        self._versions: OrderedDict[str, str] = OrderedDict()

    def called(self, entry: CallEntry) -> None:
        """Take the entry of a call that has ended."""
        if entry.direction != "made" or entry.peer is None:
            return
        name = entry.capability or entry.need
        if entry.outcome in ANSWERS:
            self.answered(entry.peer, name, entry.ms)
        elif entry.outcome in FAULTS:
            self.failed(entry.peer, name)

    def answered(self, peer: str, capability: str, ms: float) -> None:
        """Take note of an answer.

        Args:
            peer: Its DID in any form.
            ms: Milliseconds that it took.
        """
        for one in self._of(peer, capability):
            # The first answer has the getting to know each other in it.
            first = one.latency is None or one.answered < MEASURED
            one.latency = ms if first else _mean(one.latency or ms, ms)
            one.answered += 1
            one.success = _mean(one.success, 1.0)
            one.at = self.clock()

    def failed(self, peer: str, capability: str) -> None:
        """Take note of a failure of a peer; see `answered`."""
        for one in self._of(peer, capability):
            one.failed += 1
            one.success = _mean(one.success, 0.0)
            one.at = one.failed_at = self.clock()

    def figures(self, peers: Iterable[str], capability: str = "") -> PeerFigures:
        """Return the newest figures of a peer; those of the start if there are none.

        Args:
            peers: Its DIDs.
            capability: Full name of one capability; empty for everything.
        """
        names = {agent_name(did) for did in peers}
        found = [self._figures.get((name, capability)) for name in names]
        known = [one for one in found if one is not None]
        newest = max(known, key=lambda one: one.at or 0.0, default=PeerFigures())
        # A copy: the next measure changes what is kept.
        return replace(newest)

    def choose(self, peer: str) -> None:
        """Take note that a peer was chosen, so that an equal one is the next."""
        self._choices += 1
        self._chosen[agent_name(peer)] = self._choices
        self._chosen.move_to_end(agent_name(peer))
        while len(self._chosen) > MAX_MEASURED:
            self._chosen.popitem(last=False)

    def chosen(self, peer: str) -> int:
        """Return a number that grows with the last choice of a peer; 0 before it."""
        return self._chosen.get(agent_name(peer), 0)

    def told_version(self, peer: str, version: str) -> None:
        """Take note of the version that a peer's daemon tells."""
        self._versions[agent_name(peer)] = version
        self._versions.move_to_end(agent_name(peer))
        while len(self._versions) > MAX_MEASURED:
            self._versions.popitem(last=False)

    def version(self, peers: Iterable[str]) -> str | None:
        """Return the version that a peer told last, or None."""
        found = (self._versions.get(agent_name(did)) for did in peers)
        return next((one for one in found if one is not None), None)

    def _of(self, peer: str, capability: str) -> list[PeerFigures]:
        """Return the figures of a peer, and those of one capability of it."""
        agent = agent_name(peer)
        return [self._kept((agent, name)) for name in {"", capability}]

    def _kept(self, key: tuple[str, str]) -> PeerFigures:
        figures = self._figures.get(key)
        if figures is None:
            figures = self._figures[key] = PeerFigures()
            if len(self._figures) > MAX_MEASURED:
                self._figures.popitem(last=False)
        else:
            self._figures.move_to_end(key)
        return figures


class FirstAnswers:
    """Measures the time from a task of ours to the first word of its peer."""

    def __init__(
        self, measures: Measures, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._measures = measures
        self._clock = clock
        self._asked: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def sent(self, operation: Operation) -> None:
        """Take note of what a peer is told."""
        if isinstance(operation, TaskCreate):
            task = operation.task
            self._asked[task.id] = task.capability, self._clock()
            while len(self._asked) > MAX_ASKED:
                self._asked.popitem(last=False)

    def came(self, operation: Operation, peer: str) -> None:
        """Take note of what a peer tells."""
        if isinstance(operation, TaskUpdate):
            found = self._asked.pop(operation.content.task, None)
            if found is not None:
                ms = (self._clock() - found[1]) * 1000
                self._measures.answered(peer, found[0], ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """Everything that decides about the place of one peer among others."""

    figures: PeerFigures = field(default_factory=PeerFigures)
    "Those of the wanted capability."

    at_work: int = 0
    "Our calls and tasks that it has not ended."

    away_at: float | None = None
    "Time at which it was not reached last, unless it was reached since."

    chosen: int = 0
    "See `Measures.chosen`."


def by_rate(
    items: Sequence[Item], rated: Callable[[Item], Rated], *, now: float
) -> list[Item]:
    """Return peers, the best first.

    Those that were not reached of late come last. Before them the expected time
    decides: the latency times the work of ours that is there, over the share of good
    answers. Times that differ by less than half count as equal, and of equal ones the
    one comes first that was not chosen for longest. A peer of which nothing is known
    counts like the fastest, so that it is tried.

    Args:
        now: Seconds since 1970.
    """
    known = {id(item): rated(item) for item in items}
    times = [
        one.figures.latency
        for one in known.values()
        if one.figures.latency is not None and _is_measured(one.figures, now)
    ]
    least = max(1.0, min(times, default=1.0))

    def key(item: Item) -> tuple[bool, int, int]:
        one = known[id(item)]
        is_away = one.away_at is not None and now - one.away_at < AWAY
        figures = one.figures if _is_fresh(one.figures, now) else PeerFigures()
        is_measured = _is_measured(figures, now)
        latency = max(least, (figures.latency or 0.0) if is_measured else 0.0)
        expected = latency * (1 + one.at_work) / max(figures.success, 0.05)
        return is_away, round(math.log(expected / least, 1.5)), one.chosen

    return sorted(items, key=key)


def _is_fresh(figures: PeerFigures, now: float) -> bool:
    return figures.at is not None and now - figures.at < FRESH


def _is_measured(figures: PeerFigures, now: float) -> bool:
    return figures.answered >= MEASURED and _is_fresh(figures, now)


def _mean(old: float, new: float) -> float:
    return (1 - WEIGHT) * old + WEIGHT * new
