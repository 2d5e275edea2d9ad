"""Tests of files of tasks."""

from __future__ import annotations

from cache.parts.logs import Log

__all__ = ["idle", "unreached"]


async def idle(log: str) -> Log:
    """Return the head of a session in which nothing is under way."""
    return Log(
        id=log,
        created=1.0,
        updated=1.0,
        first=1,
        last=1,
        size=1,
        open=True,
        busy=False,
        content=b"",
    )


async def unreached(log: str) -> None:
    """Make no line to the peer of a session."""
