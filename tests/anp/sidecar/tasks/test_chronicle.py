"""The events of a session in order, also for a watcher that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from anp.interaction.elements import (
    Chunk,
    Message,
    MessagePurpose,
    Part,
    SenderRole,
    SessionEvent,
    TaskProgress,
)
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.sessions import Sessions

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Stored:
    """Sessions whose events are there already."""

    watchers = 0

    def __init__(self, contents: list[Any]) -> None:
        self.log = [
            SessionEvent(number=number, at=EPOCH, by="peer", content=content)
            for number, content in enumerate(contents, 1)
        ]

    async def events(
        self, log: str, *, after: int = 0, limit: int = 100
    ) -> list[SessionEvent]:
        return self.log[after : after + limit]

    async def watch(self, log: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        for event in self.log[after:]:
            yield event


def chunk(message: str, index: int, last: int) -> Message:
    part = Part.text(f"{message}{index} ")
    if index < last:
        part = Part.text(f"{message}{index} ", continued=True)
    return Message(
        id=message,
        session="s",
        task="t",
        sender="peer",
        role=SenderRole.SERVICE,
        purpose=MessagePurpose.RESULT,
        parts=(part,),
        chunk=Chunk(index=index, last=index == last),
    )


def shown(stored: Stored, after: int) -> list[tuple[int, Any, Any]]:
    async def read() -> list[tuple[int, Any, Any]]:
        told = Chronicle(cast(Sessions, stored)).watch("log", after=after)
        return [
            (one.event.number, getattr(one.event.content, "parts", ()), one.begun)
            async for one in told
        ]

    return asyncio.run(read())


@st.composite
def contents(draw: st.DrawFn) -> list[Any]:
    """Return the chunks of two messages in any order, with progress between them."""
    chunks = [chunk(name, index, 3) for name in "ab" for index in range(4)]
    notes = [TaskProgress(task="t", progress=float(number)) for number in range(4)]
    return draw(st.permutations([*chunks, *notes]))


@given(contents())
def test_a_watcher_goes_on_between_chunks_in_any_order(contents: list[Any]) -> None:
    stored = Stored(contents)
    whole = shown(stored, 0)
    said = "".join(part.content for _, parts, _ in whole for part in parts)
    assert sorted(said.split()) == sorted(f"{m}{n}" for m in "ab" for n in range(4))
    for place, (number, _, _) in enumerate(whole):
        assert shown(stored, number) == whole[place + 1 :]
