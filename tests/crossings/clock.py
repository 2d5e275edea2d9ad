"""An event loop whose time is a number: what waits is due at once, in its order."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

__all__ = ["simulated"]

T = TypeVar("T")

BEGIN = 1_000_000.0
"Seconds on the monotonic clock when a history begins."


class _Nothing(selectors.SelectSelector):
    """Waits for nothing: the time that it would wait has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = BEGIN

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again")
        self.now += max(0.0, timeout)
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = _Nothing()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now

    def run_in_executor(  # type: ignore[override]  # at once, so that order is kept
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as exc:  # noqa: BLE001 - as an executor hands it on
            done.set_exception(exc)
        return done


@contextlib.contextmanager
def _clocks(loop: _Loop) -> Iterator[None]:
    began = time.time()
    true = time.monotonic, time.time
    time.monotonic = loop.time
    time.time = lambda: began + loop.time() - BEGIN
    try:
        yield
    finally:
        time.monotonic, time.time = true


def simulated(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run something in simulated time, and end all that it left."""
    loop = _Loop()
    with _clocks(loop):
        try:
            asyncio.set_event_loop(loop)
            return loop.run_until_complete(main())
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            asyncio.set_event_loop(None)
            loop.close()
