"""What children of the daemon get from it, and what becomes of what they print."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping

__all__ = ["OutputTail", "child_environment"]

logger = logging.getLogger(__name__)

PASSED_ON = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    }
)
"Variables a child inherits besides `LC_*`; all else might be a secret of ours."


def child_environment(
    extra: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of a child: a small safe set, and what the owner gave."""
    safe = {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith("LC_")
    }
    return safe | dict(extra)


class OutputTail:
    """Reads what a child prints so that it never blocks, and keeps the last lines."""

    MAX_LINES = 20
    MAX_LINE = 200

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: deque[str] = deque(maxlen=self.MAX_LINES)

    @property
    def last_line(self) -> str:
        """The last line that was not blank; often it says why a child died."""
        return next((line for line in reversed(self._lines) if line.strip()), "")

    async def drain(self, reader: asyncio.StreamReader) -> None:
        """Read until the end; a line is logged and kept up to 200 characters."""
        rest = b""
        while chunk := await reader.read(64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._keep(line)
            # A child that prints no newlines must not fill our memory.
            rest = rest[: self.MAX_LINE]
        if rest:
            self._keep(rest)

    def _keep(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()[: self.MAX_LINE]
        self._lines.append(text)
        logger.debug("child printed attachment=%s text=%r", self._name, text)
