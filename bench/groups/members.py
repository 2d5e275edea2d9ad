"""The programs of all members, in one process: `python -m bench.groups.members`.

Each watches the group over its own daemon's API. They answer a post that begins with
`?` to the group, one that begins with `&` to its sender alone, over the task that it
gave them (mixed mode), count those that begin with `.`, and tell that count when one
begins with `!`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench.groups.agent import Agent


def text_of(event: dict[str, object]) -> str:
    """Return what a message says; empty for other events."""
    data = event["data"]
    assert isinstance(data, dict), "the API says so"
    message = data.get("message")
    return "" if message is None else str(message["parts"][0].get("text", ""))


async def _member(agent: Agent, group: str, ready: asyncio.Semaphore) -> None:
    path, counted, task = f"/v1/groups/{group}/messages", 0, ""
    about = await agent.ask("GET", f"/v1/groups/{group}")
    async for event in agent.events(group, about["last"], ready=ready.release):
        match text_of(event)[:1]:
            case "?":
                await agent.ask("POST", path, {"text": "answer"})
            case "&":
                task = task or await _taken(agent)
                told = {"text": "answer"}
                await agent.ask("POST", f"/v1/inbox/{task}/messages", told)
            case ".":
                counted += 1
            case "!":
                await agent.ask("POST", path, {"text": f"counted {counted}"})
                counted = 0


async def _taken(agent: Agent) -> str:
    """Return the id of the task that the sender of the group's posts gave us."""
    found = await agent.ask("POST", "/v1/inbox/next", {"wait": 60})
    name = str(found["task"]["id"])
    await agent.ask("POST", f"/v1/inbox/{name}/ack", {})
    return name


async def main() -> None:
    """Watch in the homes that the command line names, after the group."""
    group, *homes = sys.argv[1:]
    ready = asyncio.Semaphore(0)
    members = [
        asyncio.create_task(_member(Agent(Path(one)), group, ready)) for one in homes
    ]
    for _ in members:
        await ready.acquire()
    print("ready", flush=True)
    await asyncio.gather(*members)


if __name__ == "__main__":
    asyncio.run(main())
