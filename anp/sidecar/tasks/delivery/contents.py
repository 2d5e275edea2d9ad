"""The contents of a session as its log has them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from anp.interaction.elements import EventContent, Message, MessagePurpose, Task
from anp.sidecar.tasks.sessions import Sessions

__all__ = ["created_task", "results_of"]


async def created_task(sessions: Sessions, log: str, name: str) -> Task | None:
    """Return a task as it was created, with its messages; None if that is gone."""
    async for content in _contents(sessions, log):
        if isinstance(content, Task) and content.id == name:
            return content
    return None


async def results_of(sessions: Sessions, log: str, name: str) -> list[Message]:
    """Return the results of a task, in order."""
    return [
        content
        async for content in _contents(sessions, log)
        if isinstance(content, Message)
        and content.task == name
        and content.purpose is MessagePurpose.RESULT
    ]


async def _contents(sessions: Sessions, log: str) -> AsyncIterator[EventContent]:
    after = 0
    while events := await sessions.events(log, after=after):
        for event in events:
            yield event.content
        after = events[-1].number
