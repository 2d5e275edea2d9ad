"""Reacts to signals: stop, stop at once, read the configuration again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from anp.errors import EXIT_CODES, AnpError, ErrorKind

logger = logging.getLogger(__name__)

STOP: Final = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """The daemon's one handler of signals (SIDECAR.md, Local API).

    The first SIGINT or SIGTERM asks for a graceful stop; a second one ends the process
    at once, as a kill would, which neither the store nor the workers mind.

    Args:
        on_end: Called before the process ends at once: what clients would trip over.
        end: Ends the process with an exit code.
    """

    def __init__(
        self,
        *,
        on_end: Callable[[], None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._on_end = on_end
        self._end = end
        self._stop = asyncio.Event()
        self._wanted = asyncio.Event()

    async def stopped(self) -> None:
        """Wait until a stop is asked for."""
        await self._stop.wait()

    @contextlib.asynccontextmanager
    async def handled(
        self, reload: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[None]:
        """Handle signals for a block.

        Args:
            reload: Called at SIGHUP; its errors are logged.
        """
        loop = asyncio.get_running_loop()
        for number in STOP:
            loop.add_signal_handler(number, self._ask_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._wanted.set)
        reloading = asyncio.create_task(self._reload(reload))
        try:
            yield
        finally:
            reloading.cancel()
            await asyncio.gather(reloading, return_exceptions=True)
            for number in (*STOP, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def _ask_stop(self, number: signal.Signals) -> None:
        if not self._stop.is_set():
            logger.info("stop asked for signal=%s", number.name)
            self._stop.set()
            return
        logger.warning("ended at once signal=%s: calls were cut off", number.name)
        self._on_end()
        self._end(EXIT_CODES[ErrorKind.INTERRUPTED])

    async def _reload(self, reload: Callable[[], Awaitable[object]]) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await reload()
            except AnpError as exc:
                logger.error("not reloaded reason=%s", exc)
            except Exception:
                # One bad reload must not take the next one away.
                logger.exception("not reloaded")
