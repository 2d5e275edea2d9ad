"""A group of eight daemons as processes, with much to say and with kills."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.groups.homes import Home, join
from tests.crowd.ledger import Said, faults
from tests.crowd.programs import heard_by, speak

DAEMONS = 8
SENDERS = 4
SETTLED = 120.0
"Seconds in which all members have to have everything, once the last is said."

RATE = 6_000
"Messages of one member in a minute, while one floods."


class Crowd:
    """A group of eight daemons."""

    def __init__(self, folder: Path, messages: int, seed: int) -> None:
        self.homes = [Home(folder / f"daemon-{number}") for number in range(DAEMONS)]
        self.messages = messages
        self.choose = random.Random(seed)
        self.said = 0
        self.hub_away = 0.0
        "Seconds in which the hub was not there, starts included."

        self.kills: dict[str, int] = {"hub": 0, "member": 0, "away": 0}

    async def run(self, *, trouble: bool) -> dict[str, Any]:
        """Say everything; return the figures, with all faults."""
        homes = self.homes
        rate = RATE if trouble else 0
        group = await join(homes[0], homes[1:], policy_rate=rate)
        began, self.said = time.monotonic(), 0
        each = self.messages // SENDERS
        speaking = [
            asyncio.create_task(speak(one, group, f"s{number}", each, self._told))
            for number, one in enumerate(homes[:SENDERS])
        ]
        troubles = []
        if trouble:
            troubles = [self._kill_hub(), self._kill_members(), self._be_away()]
            flood = speak(homes[-1], group, "flood", each, lambda: None)
            speaking.append(asyncio.create_task(flood))
        troubling = [asyncio.create_task(one) for one in troubles]
        said = await asyncio.gather(*speaking)
        spoken = time.monotonic() - began
        await asyncio.gather(*troubling)
        last = await settled(homes, group)
        ended = time.monotonic() - began
        heard = {one.did: await heard_by(one, group, last) for one in homes}
        speakers = [*homes[:SENDERS], *([homes[-1]] if trouble else [])]
        told = {one.did: what for one, what in zip(speakers, said, strict=True)}
        wrong = faults(told, heard)
        return {
            "trouble": trouble,
            **counts(told, spoken, ended),
            "events": last,
            "deliveries_per_s": round(last * (DAEMONS - 1) / ended),
            **(self.kills if trouble else {}),
            "hub_away_s": round(self.hub_away, 1),
            "faults": wrong,
        }

    def _told(self) -> None:
        self.said += 1

    async def _at(self, share: float) -> None:
        wanted = self.messages * share
        while self.said < wanted:  # noqa: ASYNC110 - programs count, and tell nobody
            await asyncio.sleep(0.01)

    async def _kill_hub(self) -> None:
        for number in range(10):
            await self._at((number + 0.5) / 10)
            self.kills["hub"] += 1
            began = time.monotonic()
            await restarted(self.homes[0])
            self.hub_away += time.monotonic() - began

    async def _kill_members(self) -> None:
        for number in range(8):
            await self._at((number + 0.9) / 9)
            self.kills["member"] += 1
            await restarted(self.choose.choice(self.homes[1:6]))

    async def _be_away(self) -> None:
        await self._at(0.1)
        away = self.homes[6]
        await asyncio.to_thread(away.end)
        await self._at(0.8)
        self.kills["away"] += 1
        away.begin()
        await away.ready()


async def restarted(home: Home, *, after: float = 0.0) -> None:
    """Kill a daemon, and start it again after some seconds."""
    if home.process is None:
        return
    await asyncio.to_thread(home.end, signal.SIGKILL)
    await asyncio.sleep(after)
    home.begin()
    await home.ready()


async def settled(homes: Sequence[Home], group: str) -> int:
    """Wait until all members have the same events; return the newest number."""
    limit = time.monotonic() + SETTLED
    path = f"/v1/groups/{group}"
    while time.monotonic() < limit:
        known = [(await one.agent.ask("GET", path))["last"] for one in homes]
        if len(set(known)) == 1:
            await asyncio.sleep(1)
            again = [(await one.agent.ask("GET", path))["last"] for one in homes]
            if again == known:
                return int(known[0])
        await asyncio.sleep(0.1)
    raise TimeoutError(f"members have {known}")


def counts(told: Mapping[str, Said], spoken: float, ended: float) -> dict[str, Any]:
    """Return the figures of what was said, and of the time that it took."""
    return {
        "numbered": sum(len(one.numbers) for one in told.values()),
        "queued": sum(len(one.queued) for one in told.values()),
        "unknown": sum(len(one.unknown) for one in told.values()),
        "refused": sum(one.refused for one in told.values()),
        "said_s": round(spoken, 1),
        "settled_s": round(ended, 1),
    }
