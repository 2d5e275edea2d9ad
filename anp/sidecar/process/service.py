"""Reports the daemon's state to a service manager, if there is one (sd_notify)."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping

logger = logging.getLogger(__name__)


class ServiceManager:
    """Tells systemd, or another setter of `NOTIFY_SOCKET`, the state of the daemon."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._watchdog = _watchdog(environ)

    def ready(self, status: str) -> None:
        """Say that peers and local callers are served."""
        self._tell("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """Say that a reload began; `ready` ends it."""
        usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._tell("RELOADING=1", f"MONOTONIC_USEC={usec}")

    def stopping(self, status: str) -> None:
        """Report that the daemon is stopping."""
        self._tell("STOPPING=1", f"STATUS={status}")

    async def keep_alive(self) -> None:
        """Report regularly that the event loop runs, if the manager has a watchdog."""
        while self._watchdog is not None:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog / 2)

    def _tell(self, *lines: str) -> None:
        if self._address is None:
            return
        text = "\n".join(" ".join(line.splitlines()) for line in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode(), self._address)
        except OSError as exc:
            logger.warning("service manager not told reason=%s", exc.strerror)


def _address(text: str) -> bytes | None:
    if text.startswith("@"):
        return b"\0" + os.fsencode(text[1:])
    return os.fsencode(text) if text.startswith("/") else None


def _watchdog(environ: Mapping[str, str]) -> float | None:
    """Return the seconds within which the manager wants to hear from us, or None."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or int(usec) == 0:
        return None
    if pid and pid != str(os.getpid()):
        return None
    return int(usec) / 1e6
