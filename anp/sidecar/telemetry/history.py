"""Calls over time, for charts: counts by peer and latencies, in memory. Pure.

Two rows of buckets are kept: the last hour by minute and the last day by quarter of an
hour. Each bucket tells a bounded number of peers apart, so that strangers cannot make
it grow; calls with others stand together under `OTHERS`.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from anp.sidecar.telemetry.call_entry import RUNNING, CallEntry
from cache.records.negotiations import ModelCallRecord
from cache.records.records import Count

Window = Literal["hour", "day"]
"The stretch of time that is looked at, up to now."

WINDOWS: Final[dict[Window, tuple[int, int]]] = {"hour": (60, 60), "day": (900, 96)}
"Seconds of a bucket, and the number of buckets, of each window."

MAX_PEERS: Final = 64
"Peers that a bucket tells apart."

OTHERS: Final = "-"
"Stands for calls that reached no peer, and for the peers above `MAX_PEERS`."

GOOD: Final = frozenset({"ok", RUNNING, "waiting"})
"Outcomes that are no error, as the filter `failed` of the list of calls has it."

STEP: Final = 1.1
"Ratio of two neighbouring latencies that are told apart: five percent off at most."


@dataclass(slots=True, kw_only=True)
class PeerCalls:
    """Calls with one peer in a window."""

    peer: str
    "Its DID; `-` for calls that reached no peer, and for peers beyond the limit."

    made: Count = 0
    "Calls that our agent made."

    made_failed: Count = 0
    "Those of them that failed."

    served: Count = 0
    "Calls that our agent served, refused ones too."

    served_failed: Count = 0
    "Those of them that failed or were refused."

    last: float = 0.0
    "Time when the last of them ended, in seconds since 1970."


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The calls of one bucket, and the model calls in it."""

    at: float
    "Time when the bucket begins, in seconds since 1970."

    made: Count
    made_failed: Count
    served: Count
    served_failed: Count
    p50_ms: float | None
    "Half of the good calls took at most so many milliseconds; null without any."

    p95_ms: float | None
    "The same for 95 of 100."

    model_calls: Count
    input_tokens: Count
    output_tokens: Count
    cost: float
    "Money, by the prices that were set at the time."


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """Calls and the cost of models over time, and the peers they were with."""

    window: Window
    step: Count
    "Seconds of one bucket."

    now: float
    "Seconds since 1970."

    priced: bool
    "True when the owner set prices, so that `cost` means something."

    points: Sequence[HistoryPoint]
    "All buckets, the oldest first; empty ones too."

    peers: Sequence[PeerCalls]
    "The one with most calls first."


@dataclass(slots=True)
class _Bucket:
    number: int
    "Its beginning in seconds since 1970, divided by its length."

    peers: dict[str, PeerCalls] = field(default_factory=dict)
    latencies: Counter[int] = field(default_factory=Counter)
    "Good calls by the logarithm of their milliseconds to the base `STEP`."

    def add(self, entry: CallEntry, ended: float, size: int | None) -> None:
        """Count one call, or as many as its entry stands for.

        Args:
            size: The key of its latency, if it was a good one.
        """
        name = entry.peer or OTHERS
        if name not in self.peers and len(self.peers) >= MAX_PEERS:
            name = OTHERS
        calls = self.peers.get(name)
        if calls is None:
            calls = self.peers[name] = PeerCalls(peer=name)
        failed = 0 if entry.outcome in GOOD else entry.count
        if entry.direction == "made":
            calls.made += entry.count
            calls.made_failed += failed
        else:
            calls.served += entry.count
            calls.served_failed += failed
        calls.last = max(calls.last, ended)
        if size is not None:
            self.latencies[size] = self.latencies.get(size, 0) + 1

    def latency(self, share: float) -> float | None:
        """Return the milliseconds within which a share of the good calls ended."""
        left = math.ceil(self.latencies.total() * share)
        for size in sorted(self.latencies):
            left -= self.latencies[size]
            if left <= 0:
                return round(STEP**size, 3)
        return None


class History:
    """Takes entries of calls that have ended, and adds them up by time."""

    def __init__(self) -> None:
        self._buckets: dict[Window, deque[_Bucket]] = {
            name: deque(maxlen=count) for name, (_, count) in WINDOWS.items()
        }

    def add(self, entry: CallEntry) -> None:
        """Count a call; one that is older than the oldest kept bucket is left out."""
        ended, size = entry.ended, None
        if entry.outcome == "ok":
            size = round(math.log(max(entry.ms, 0.001), STEP))
        for name, (step, _) in WINDOWS.items():
            bucket = self._bucket(self._buckets[name], int(ended // step))
            if bucket is not None:
                bucket.add(entry, ended, size)

    def view(
        self,
        window: Window,
        model_calls: Iterable[ModelCallRecord],
        *,
        now: float,
        priced: bool,
    ) -> HistoryView:
        """Return the buckets of a window, with the model calls of the ledger."""
        step, count = WINDOWS[window]
        last = int(now // step)
        wanted = range(last - count + 1, last + 1)
        found = {one.number: one for one in self._buckets[window]}
        spent: dict[int, list[ModelCallRecord]] = {}
        for call in model_calls:
            spent.setdefault(int(call.at // step), []).append(call)
        shown = [found.get(number) or _Bucket(number) for number in wanted]
        return HistoryView(
            window=window,
            step=step,
            now=now,
            priced=priced,
            points=[_point(one, step, spent.get(one.number, ())) for one in shown],
            peers=_sums(shown),
        )

    @staticmethod
    def _bucket(kept: deque[_Bucket], number: int) -> _Bucket | None:
        # Calls end nearly in the order of time, so the place is near the end.
        at = len(kept)
        while at and kept[at - 1].number > number:
            at -= 1
        if at and kept[at - 1].number == number:
            return kept[at - 1]
        if len(kept) == kept.maxlen:
            if at == 0:
                return None
            kept.popleft()
            at -= 1
        bucket = _Bucket(number)
        kept.insert(at, bucket)
        return bucket


def _point(
    bucket: _Bucket, step: int, spent: Sequence[ModelCallRecord]
) -> HistoryPoint:
    calls = bucket.peers.values()
    return HistoryPoint(
        at=float(bucket.number * step),
        made=sum(one.made for one in calls),
        made_failed=sum(one.made_failed for one in calls),
        served=sum(one.served for one in calls),
        served_failed=sum(one.served_failed for one in calls),
        p50_ms=bucket.latency(0.5),
        p95_ms=bucket.latency(0.95),
        model_calls=len(spent),
        input_tokens=sum(one.input_tokens for one in spent),
        output_tokens=sum(one.output_tokens for one in spent),
        cost=sum(one.cost for one in spent),
    )


def _sums(buckets: Iterable[_Bucket]) -> list[PeerCalls]:
    sums: dict[str, PeerCalls] = {}
    for bucket in buckets:
        for one in bucket.peers.values():
            total = sums.setdefault(one.peer, PeerCalls(peer=one.peer))
            total.made += one.made
            total.made_failed += one.made_failed
            total.served += one.served
            total.served_failed += one.served_failed
            total.last = max(total.last, one.last)
    return sorted(sums.values(), key=lambda one: (-one.made - one.served, one.peer))
