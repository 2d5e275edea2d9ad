"""Answers that a peer may fetch after its link was lost, within limits. Pure.

A call is kept from its request until its deadline: first as one that is worked on, then
with its answer. An answer stays also when it was sent, because nobody knows if it
arrived. What is over the limits goes oldest first; what is worked on never goes.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple


class CallName(NamedTuple):
    """One call of a peer."""

    parties: str
    "Our DID and the peer's, which only the same two can give again."

    message_id: str
    "Id of the envelope that carried the request."


class State(Enum):
    """The state of a call for which there is no answer to give."""

    RUNNING = auto()
    "It is worked on."

    UNKNOWN = auto()
    "It never came, is over its deadline, or was dropped."


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The end of a call."""

    data: bytes = b""
    "The answer's bytes."

    refusal: str | None = None
    "The reason why there is no answer, in words for the peer."

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.data) + len(self.refusal or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLimits:
    """Most of what is kept."""

    calls: int = 256
    "Calls of one peer, also those that are worked on."

    size: int = 8 * 1024 * 1024
    "Bytes of one peer's answers."

    total_calls: int = 4_096
    "Calls of all peers."

    total_size: int = 64 * 1024 * 1024
    "Bytes of all answers."


@dataclass(slots=True)
class _Kept:
    binding: str
    until: float
    answer: KeptAnswer | None = None

    @property
    def size(self) -> int:
        return 0 if self.answer is None else self.answer.size


class KeptAnswers:
    """The calls of all peers, each until its deadline.

    Times are seconds on one monotonic clock.
    """

    def __init__(self, limits: KeptLimits | None = None) -> None:
        self._limits = limits or KeptLimits()
        self._calls: dict[str, dict[str, _Kept]] = {}
        self._sizes: dict[str, int] = {}
        self._answered: OrderedDict[CallName, None] = OrderedDict()
        "Those with an answer, the oldest first."
        self._due: list[tuple[float, CallName]] = []
        self.count = 0
        "Calls that are kept."
        self.size = 0
        "Bytes of their answers."

    def of(self, parties: str) -> tuple[int, int]:
        """Return the calls of one peer and the bytes of their answers."""
        return len(self._calls.get(parties, ())), self._sizes.get(parties, 0)

    def begin(self, call: CallName, binding: str, *, until: float, now: float) -> bool:
        """Keep a call that is worked on.

        Args:
            binding: The protocol that its answer belongs to.
            until: Its deadline.

        Returns:
            False if there is no room; it is not kept.
        """
        self._drop_old(now)
        self._drop(call)
        limits = self._limits
        of_peer = self._calls.get(call.parties, {})
        if len(of_peer) >= limits.calls and not self._drop_oldest(call.parties):
            return False
        if self.count >= limits.total_calls and not self._drop_oldest(None):
            return False
        self._calls.setdefault(call.parties, {})[call.message_id] = _Kept(
            binding, until
        )
        self.count += 1
        heapq.heappush(self._due, (until, call))
        return True

    def answer(self, call: CallName, answer: KeptAnswer, *, now: float) -> None:
        """Keep the end of a call, if the call is kept and its end fits."""
        self._drop_old(now)
        kept = self._find(call)
        if kept is None:
            return
        limits = self._limits
        if answer.size > min(limits.size, limits.total_size):
            self._drop(call)
            return
        self._resize(call, kept, answer)
        self._answered[call] = None
        self._answered.move_to_end(call)
        while self._sizes[call.parties] > limits.size:
            self._drop_oldest(call.parties)
        while self.size > limits.total_size:
            self._drop_oldest(None)

    def fetch(self, call: CallName, binding: str, *, now: float) -> KeptAnswer | State:
        """Return the end of a call, or how far it is.

        Args:
            binding: The protocol of the channel that asks; for a call that belongs to
                another one there is nothing.
        """
        self._drop_old(now)
        kept = self._find(call)
        if kept is None or kept.binding != binding:
            return State.UNKNOWN
        return State.RUNNING if kept.answer is None else kept.answer

    def stop(self, call: CallName) -> None:
        """Drop a call on which nobody works any more, unless it has an answer."""
        kept = self._find(call)
        if kept is not None and kept.answer is None:
            self._drop(call)

    def forget(self, call: CallName) -> None:
        """Drop a call, as when it is cancelled."""
        self._drop(call)

    def _find(self, call: CallName) -> _Kept | None:
        return self._calls.get(call.parties, {}).get(call.message_id)

    def _resize(self, call: CallName, kept: _Kept, answer: KeptAnswer) -> None:
        change = answer.size - kept.size
        kept.answer = answer
        self.size += change
        self._sizes[call.parties] = self._sizes.get(call.parties, 0) + change

    def _drop_old(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            until, call = heapq.heappop(self._due)
            kept = self._find(call)
            # The same id may have begun anew with another deadline.
            if kept is not None and kept.until <= until:
                self._drop(call)
        if len(self._due) > 2 * self.count + 64:
            # Many were dropped before their deadlines.
            self._due = [one for one in self._due if self._is_live(*one)]
            heapq.heapify(self._due)

    def _is_live(self, until: float, call: CallName) -> bool:
        kept = self._find(call)
        return kept is not None and kept.until == until

    def _drop_oldest(self, parties: str | None) -> bool:
        """Drop the oldest answer of one peer, or of all; False if there is none."""
        for call in self._answered:
            if parties in {None, call.parties}:
                self._drop(call)
                return True
        return False

    def _drop(self, call: CallName) -> None:
        kept = self._calls.get(call.parties, {}).pop(call.message_id, None)
        if kept is None:
            return
        self.count -= 1
        self.size -= kept.size
        self._answered.pop(call, None)
        left = self._sizes.get(call.parties, 0) - kept.size
        if self._calls[call.parties]:
            self._sizes[call.parties] = left
        else:
            del self._calls[call.parties]
            self._sizes.pop(call.parties, None)
