"""The programs of the agents, which go on when their daemon is gone for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from bench.groups.agent import Agent, Refused
from bench.groups.homes import Home
from bench.groups.members import text_of
from tests.crowd.ledger import Heard, Said

AT_ONCE = 8
"Messages of one agent that wait for their numbers at a time."

PATIENCE = 0.05
"Seconds until a daemon that is gone is asked again."

GONE = (OSError, asyncio.IncompleteReadError)


async def speak(
    home: Home, group: str, name: str, count: int, told: Callable[[], None]
) -> Said:
    """Say so many messages to a group, and return what became of them.

    Args:
        told: Called after each that is certain.
    """
    said = Said()
    names: Iterator[int] = iter(range(10**9))
    left = count

    async def some() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            if await _say(home.agent, group, f"{name}/{next(names)}", said):
                told()
            else:
                left += 1

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return said


async def _say(agent: Agent, group: str, text: str, said: Said) -> bool:
    """Say one message; False when nobody knows whether it is said."""
    while True:
        try:
            path = f"/v1/groups/{group}/messages"
            answer = await agent.ask("POST", path, {"text": text, "wait": 30})
        except Refused as exc:
            if exc.status != 429:
                raise
            said.refused += 1
            await asyncio.sleep(PATIENCE)
            continue
        except (FileNotFoundError, ConnectionRefusedError):
            # Nobody was asked.
            await asyncio.sleep(PATIENCE)
            continue
        except GONE:
            said.unknown.add(text)
            await asyncio.sleep(PATIENCE)
            return False
        if answer["number"] is None:
            said.queued.add(text)
        else:
            said.numbers[text] = answer["number"]
        return True


async def heard_by(home: Home, group: str, last: int) -> Heard:
    """Return all messages that a member has, up to a number."""
    found: dict[int, tuple[str, str]] = {}
    async for event in home.agent.events(group):
        by = event["data"]["by"]
        if event["type"] in ("message.send", "group.fetch"):
            # What it said before it was killed has no text here.
            is_said = event["type"] == "message.send"
            found[event["number"]] = by, text_of(event) if is_said else ""
        if event["number"] >= last:
            break
    return found
