"""A call that is answered by updates, with a requester in memory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, cast

from anp.interaction.elements import Message, MessagePurpose, Part, SenderRole
from anp.sidecar.attachments.assignment import MAX_HEARD, MAX_HEARD_TEXT, Assignment
from anp.sidecar.attachments.requester import Requester, current_requester


class Speaker:
    """A requester that only speaks."""

    hear: Callable[[Message], None]

    async def listen(self, hear: Callable[[Message], None]) -> None:
        self.hear = hear

    def say(self, text: str) -> None:
        self.hear(
            Message(
                id=text[:9],
                session="s",
                task="t",
                sender="peer",
                role=SenderRole.REQUESTER,
                purpose=MessagePurpose.COMMUNICATION,
                parts=(Part.text(text),),
            )
        )


def test_of_many_messages_the_newest_are_kept() -> None:
    async def hear() -> tuple[Speaker, Assignment, list[Any]]:
        speaker, told = Speaker(), []
        current_requester.set(cast(Requester, speaker))
        work = Assignment("c", {}, caller="did", deadline=math.inf, max_result=1)
        work.on_heard = lambda: told.append(len(work.heard))
        await work.listen()
        for number in range(MAX_HEARD + 5):
            speaker.say(f"{number}")
        assert [one.number for one in work.heard] == [*range(6, MAX_HEARD + 6)]
        speaker.say("x" * MAX_HEARD_TEXT)
        assert [one.number for one in work.heard] == [MAX_HEARD + 6]
        work.end("canceled")
        speaker.say("late")
        return speaker, work, told

    _, work, told = asyncio.run(hear())
    assert len(work.heard) == 1
    assert len(told) == MAX_HEARD + 6
