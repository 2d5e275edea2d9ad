"""Does what strangers give us to do, a piece at a time, beside all other work.

What follows from it runs in tasks, whose time counts as well: `counted` measures it.
Before a piece that takes milliseconds a task waits for its turn, in `own_turn`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Protocol, TypeVar

from anp.channel.core.turns import Turns

T = TypeVar("T")


class Meter(Protocol):
    """Counts what tasks do for a stranger; a `Guest` is one."""

    def worked(self, seconds: float) -> None:
        """Count seconds of the event loop."""

    async def turn(self, after: float) -> None:
        """Wait until the stranger may have the event loop for a while.

        Args:
            after: Seconds of work since the last turn before which none is needed.
        """


current_meter: ContextVar[Meter | None] = ContextVar("current_meter", default=None)
"Of the stranger for whom the present task works; None for others."

OTHERS = 10.0
"""Seconds after a message for ourselves or of a listed peer for which the work of tasks
slows strangers down. When nobody else is there, strangers may have all the time."""

LEAST = 0.00003
"Seconds that every piece counts at least, for the loop's own work with it."


class StrangerWork:
    """Runs pieces of work by the order and at the pace of `Turns`.

    A piece is a function that neither waits nor raises. One piece is done in a round of
    the event loop, so that nobody else waits for longer than it takes.

    Args:
        places: Returns how many connections an address has; see `Turns`.
    """

    def __init__(self, places: Callable[[str], int] = lambda _: 0) -> None:
        self._turns: Turns[Callable[[], None]] = Turns(places)
        self._timer: asyncio.Handle | None = None
        self._running = False
        self._others_at = float("-inf")

    def do(self, key: str, piece: Callable[[], None]) -> None:
        """Do a piece for an address: now if nobody has to wait, else at its turn."""
        # A piece that follows from another one is not counted with it a second time.
        if not self._running and self._turns.free(now=time.monotonic()):
            self._run(key, piece)
        else:
            self._turns.add(key, piece)
            self._arm()

    def gives_way(self) -> bool:
        """Return whether strangers wait for others, who were here a moment ago."""
        return time.monotonic() - self._others_at < OTHERS

    def charge(self, key: str, seconds: float) -> None:
        """Count work for an address that was or will be done elsewhere."""
        self._turns.spent(key, seconds, now=time.monotonic())

    def worked(self, key: str, seconds: float) -> None:
        """Count the time that a task worked for an address."""
        now = time.monotonic()
        if self.gives_way():
            self._turns.spent(key, seconds, now=now)
        else:
            self._turns.had(key, seconds, now=now)

    def give_way(self) -> None:
        """Take note that there is work for somebody else than strangers."""
        self._others_at = time.monotonic()

    def _run(self, key: str, piece: Callable[[], None]) -> None:
        # Not the time of the processor: where that is scarce, others wait for longer.
        began, self._running = time.monotonic(), True
        try:
            piece()
        finally:
            self._running = False
            self.charge(key, LEAST + time.monotonic() - began)

    def _arm(self) -> None:
        wait = self._turns.wait(now=time.monotonic())
        if self._timer is not None or wait is None:
            return
        loop = asyncio.get_running_loop()
        # Not in that of the task which happens to run: its meter is another stranger's.
        context = Context()
        if wait > 0:
            self._timer = loop.call_later(wait, self._next, context=context)
        else:
            self._timer = loop.call_soon(self._next, context=context)

    def _next(self) -> None:
        self._timer = None
        try:
            if self._turns.wait(now=time.monotonic()) == 0:
                self._run(*self._turns.take(now=time.monotonic()))
        finally:
            self._arm()


async def own_turn(after: float = 0.0) -> None:
    """Wait, if the present task works for a stranger, until it may go on.

    For pieces of work that take milliseconds, outside of whatever others wait for: a
    lock, a worker, a deadline. Otherwise those of several strangers, each ready to run,
    would follow one another in one round of the event loop.

    Args:
        after: Seconds of work since the last turn before which none is needed, for
            pieces that may be short.
    """
    meter = current_meter.get()
    if meter is not None:
        await meter.turn(after)


def counted(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return a coroutine that does `work` and has `current_meter` count its time.

    To be run by a task of its own. Only the time in which it runs counts, not the time
    in which it waits; and tasks that it starts have to be counted themselves.
    """
    meter = current_meter.get()
    return work if meter is None else _Counted(work, meter.worked)


class _Counted(Coroutine[Any, Any, T]):
    """A coroutine each of whose steps is measured."""

    def __init__(
        self, work: Coroutine[Any, Any, T], meter: Callable[[float], None]
    ) -> None:
        self._work = work
        self._meter = meter

    def send(self, value: Any) -> Any:
        began = time.monotonic()
        try:
            return self._work.send(value)
        finally:
            self._meter(time.monotonic() - began)

    def throw(self, *error: Any) -> Any:
        began = time.monotonic()
        try:
            return self._work.throw(*error)
        finally:
            self._meter(time.monotonic() - began)
            # It passes here, and would hold this frame and be held by it.
            del error

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        raise TypeError("counted work is run by a task")

    def __getattr__(self, name: str) -> Any:
        # Libraries look at the state of a task's coroutine.
        return getattr(self._work, name)
