"""The calls of ours on one channel that wait for their answers, and their deadlines."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from anp.sidecar.bound.exchanges import Exchange
from anp.sidecar.bound.updates import UpdateTaker
from anp.sidecar.bound.work import CallTerms
from anp.sidecar.halves.protocol import Answer


@dataclass(slots=True)
class WaitingCall:
    """A call in flight."""

    answer: asyncio.Future[Answer]
    exchange: Exchange
    terms: CallTerms
    updates: UpdateTaker

    until: float
    "Its deadline on `time.monotonic`."

    def fail(self, error: Exception) -> None:
        """End the call with an error, unless it has ended."""
        if not self.answer.done():
            self.answer.set_exception(error)


class WaitingCalls:
    """Finds the call that a message belongs to, and ends those that are late.

    One timer serves all calls, since most of them end long before their deadlines: it
    is set for the first deadline there was, and anew only when that has come.
    """

    def __init__(self) -> None:
        self._calls: dict[str, WaitingCall] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf
        "The deadline for which the timer is set."

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[WaitingCall]:
        return iter([*self._calls.values()])

    def add(self, key: str, waiting: WaitingCall) -> None:
        """Take a call.

        Args:
            key: Its message id.
        """
        self._calls[key] = waiting

    def remove(self, key: str) -> None:
        """Forget a call."""
        self._calls.pop(key, None)

    def get(self, key: str | None) -> WaitingCall | None:
        """Return the call with a message id, or None."""
        return None if key is None else self._calls.get(key)

    def named(self, key: str | None) -> WaitingCall | None:
        """Return the call that a message belongs to, if it still waits.

        Args:
            key: The message id; without one, only a call alone can be meant.
        """
        if key is None and len(self._calls) == 1:
            key = next(iter(self._calls))
        waiting = self.get(key)
        return None if waiting is None or waiting.answer.done() else waiting

    def requested(self, request_id: str) -> WaitingCall | None:
        """Return the call whose request went in the envelope with an id, or None."""
        found = self._calls.values()
        return next((w for w in found if w.exchange.request_id == request_id), None)

    def watch(self, until: float) -> None:
        """Fail calls with `TimeoutError` at their deadlines, of which one is this."""
        if until < self._due:
            self.unwatch()
            wait = max(0.0, until - time.monotonic())
            loop = asyncio.get_running_loop()
            self._due, self._timer = until, loop.call_later(wait, self._on_time)

    def unwatch(self) -> None:
        """Stop the timer, as at the end of the channel."""
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = math.inf, None

    def _on_time(self) -> None:
        self._due, self._timer = math.inf, None
        now = time.monotonic()
        for waiting in self._calls.values():
            if waiting.until <= now:
                waiting.fail(TimeoutError())
            else:
                self.watch(waiting.until)
