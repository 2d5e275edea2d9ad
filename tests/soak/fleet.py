"""A process with some of the peers: they call, and write down what they were told.

Each peer is a whole daemon. It calls one capability for a while, then another; now and
then it loses its connection, or ends and comes again with the same home.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from anp.errors import AnpError, CallError
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Need
from tests.attacks.children import give, orders, raise_file_limit

TIMEOUT = 30.0
"Seconds of one call."

BURST = (8, 30)
"Calls of one capability before the peer turns to another."

FIRST_BURST = (1, 3)
"The same at the beginning of the run, so that all agreements are made there."

AFTER_ERROR = 0.5
"Seconds before a peer goes on after an error."

OFFERED_BY_NOBODY = "c.nothing"
"A capability that the daemon under test refuses to negotiate about."

LEAST_PAUSE = 0.05
"Seconds between two calls of a peer that is late."


class Notes:
    """The file of one process in which calls and answers are noted."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(path, flags, 0o600)

    def add(self, **note: Any) -> None:
        """Note something in one write, so that a kill leaves whole lines."""
        os.write(self._file, json.dumps(note).encode() + b"\n")


class Peer:
    """One peer that comes, calls and goes."""

    def __init__(self, number: int, folder: Path, notes: Notes, order: Any) -> None:
        self._number = number
        self._folder = folder
        self._notes = notes
        self._address: str = order["address"]
        self._capabilities: list[str] = order["capabilities"]
        self._rate: float = order["rate"]
        self._life: float = order["life"]
        self._refused: int = order["refused"]
        self._random = random.Random(f"{number} {os.getpid()}")
        self._began = time.monotonic()
        self._early: float = self._began + order["early"]
        self._answered = 0
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Come and go until told to stop."""
        # Not all at once: a start costs time.
        await self._rest(self._random.uniform(0, min(self._life, 10.0)))
        while not self.stopping.is_set():
            life = self._life * self._random.uniform(0.5, 1.5)
            daemon = self._daemon()
            try:
                async with daemon.running():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(life):
                            await self._live(daemon)
            except AnpError as exc:
                print(f"peer {self._number}: {exc}", file=sys.stderr)
            await self._rest(self._random.uniform(0.5, 3.0))

    async def _live(self, daemon: Daemon) -> None:
        """Call one capability after the other; the whole list in the first turns.

        Before that it calls for what nobody offers, as often as it was told to.
        """
        while self._refused and not self.stopping.is_set():
            error = await self._call(daemon, Need(OFFERED_BY_NOBODY))
            if error == "negotiation_rejected":
                self._refused -= 1
            else:
                await self._rest(AFTER_ERROR)
        turn = self._random.randrange(len(self._capabilities))
        while not self.stopping.is_set():
            turn += 1
            need = self._need(self._capabilities[turn % len(self._capabilities)])
            early = time.monotonic() < self._early
            burst = FIRST_BURST if early else BURST
            for _ in range(self._random.randint(*burst)):
                if self.stopping.is_set():
                    return
                # A call that has begun is waited for, whatever the time.
                call = asyncio.create_task(self._call(daemon, need))
                try:
                    error = await asyncio.shield(call)
                except asyncio.CancelledError:
                    await call
                    raise
                await self._rest(AFTER_ERROR if error else self._until_due())
            if self._random.random() < 0.3:
                for link in list(daemon.links._links):
                    await link.close("gone for a while")

    def _until_due(self) -> float:
        """Return the seconds until the next call; time that was lost is made good."""
        due = self._began + (self._answered + self._random.random()) / self._rate
        return max(LEAST_PAUSE, due - time.monotonic())

    async def _call(self, daemon: Daemon, need: Need) -> str:
        """Make one call, and return the kind of its error; "" if it was answered."""
        name, value = uuid.uuid4().hex, self._random.randrange(10**6)
        request = CallRequest(
            peer=self._address,
            need=need,
            arguments={"call": name, "value": value},
            timeout=TIMEOUT,
        )
        self._notes.add(call=name, asked=need.requirement)
        try:
            result = await daemon.caller.call(request)
        except CallError as exc:
            self._notes.add(
                call=name,
                error=f"{exc.kind}: {exc.detail[:100]}",
                may_have_run=exc.may_have_run,
            )
            return exc.kind
        self._answered += 1
        self._notes.add(call=name, told=result.output, source=result.source)
        return ""

    def _need(self, capability: str) -> Need:
        """Return the need for a capability; every second peer has one of its own."""
        if self._number % 2 == 0:
            return Need(capability)
        schema = {
            "type": "object",
            "properties": {
                "call": {"type": "string", "description": f"by {self._number}"},
                "value": {"type": "integer"},
            },
            "required": ["call", "value"],
        }
        return Need(capability, input_schema=schema)

    def _daemon(self) -> Daemon:
        home = Home(self._folder / f"peer{self._number:03}")
        home.create()
        # Most negotiate; the others take what the provider publishes.
        flags = {"listen.port": 0, "consensus.use": self._number % 5 == 0}
        config = load_config(
            home, home_given=True, flags=flags, environ={}, cwd=self._folder
        )
        return Daemon(home, config)

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()


async def _main(folder: Path, notes: Path) -> None:
    peers: list[Peer] = []
    tasks: list[asyncio.Task[None]] = []
    async for order in orders():
        match order["do"]:
            case "begin":
                written = Notes(notes)
                for number in order["numbers"]:
                    peer = Peer(number, folder, written, order)
                    peers.append(peer)
                    tasks.append(asyncio.create_task(peer.run()))
            case "end":
                for peer in peers:
                    peer.stopping.set()
                await asyncio.gather(*tasks)
        give({})


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    raise_file_limit()
    asyncio.run(_main(Path(sys.argv[1]), Path(sys.argv[2])))
