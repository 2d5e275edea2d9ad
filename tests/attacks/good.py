"""The process of the good peers: one that is listed and warm, and new ones.

Calls begin at fixed moments, whether earlier ones have ended or not: a daemon that
stands still for five seconds costs every call of those seconds, not one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from anp.errors import CallError, ErrorKind
from anp.identity.dids import did_key
from anp.identity.keys import PrivateKey
from anp.protocols.envelope.messages import ENVELOPE_URI
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Need
from tests.attacks.children import give, orders, raise_file_limit
from tests.attacks.newcomer import ARGUMENTS, NEED, WAYS, arrive

KINDS = ("agreement", "envelope")
"The protocols of warm calls, in turn; each kind has a daemon of its own."

NEWCOMERS = 128
"Keys of new peers; every daemon under attack is new, so that they may come again."

MOST_OPEN = 400
"Calls that wait for an answer at a time; more are counted as errors at once."

CALL_TIMEOUT = 30.0
"Seconds of one call."


class Good:
    """A daemon whose DID is listed, and the keys of peers that are new each time."""

    def __init__(self, folder: Path) -> None:
        self._daemons = [_daemon(folder / kind) for kind in KINDS]
        keys = [PrivateKey.generate() for _ in range(NEWCOMERS)]
        self._new = {did_key(key.public_bytes): key for key in keys}
        self._arriving = itertools.cycle(keys)
        self._address = ""

    async def run(self) -> None:
        """Do what is ordered until there are no more orders."""
        async with self._daemons[0].running(), self._daemons[1].running():
            async for order in orders():
                match order["do"]:
                    case "name":
                        dids = [daemon.did for daemon in self._daemons]
                        give({"dids": dids, "new": [*self._new]})
                    case "meet":
                        give(await self._meet(order["address"], order["calls"]))
                    case "measure":
                        del order["do"]
                        give(await self._measure(**order))

    async def _call(self, number: int) -> None:
        """Make one warm call, in turn over an agreement and over the envelope."""
        kind = number % len(KINDS)
        daemon = self._daemons[kind]
        result = await daemon.caller.call(
            CallRequest(
                peer=self._address,
                need=Need(NEED),
                arguments=ARGUMENTS,
                timeout=CALL_TIMEOUT,
                protocol=ENVELOPE_URI if KINDS[kind] == "envelope" else None,
            )
        )
        if result.output.get("number") != "42":
            raise CallError(ErrorKind.UNEXPECTED, "a wrong answer")

    async def _meet(self, address: str, calls: int) -> dict[str, Any]:
        self._address = address
        for number in range(calls):
            await self._call(number)
        return {}

    async def _measure(
        self, seconds: float, rate: float, grace: float, arrivals: float
    ) -> dict[str, Any]:
        """Call at `rate` a second, and have a new peer arrive every `arrivals` seconds.

        Args:
            grace: Seconds after the last call for what has not ended.
            arrivals: 0 has nobody arrive.
        """
        began = time.monotonic()
        ends, waited = began + seconds, began + seconds + grace
        times: dict[str, list[float]] = {kind: [] for kind in KINDS}
        errors: Counter[str] = Counter()
        calling: set[asyncio.Task[None]] = set()
        coming: list[asyncio.Task[dict[str, Any]]] = []

        async def call(number: int, due: float) -> None:
            try:
                async with asyncio.timeout(max(0.0, waited - time.monotonic())):
                    await self._call(number)
            except CallError as exc:
                errors[f"{exc.kind}: {exc.detail}"[:120]] += 1
            except TimeoutError:
                errors["no answer"] += 1
            # From the moment it was due, also if we came late to it.
            times[_kind(number)].append((time.monotonic() - due) * 1000)

        url, _, did = self._address.partition("#")
        ways = itertools.cycle(WAYS)
        next_arrival = began if arrivals else ends + 1
        for number in itertools.count():
            due = began + number / rate
            if due >= ends:
                break
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if len(calling) >= MOST_OPEN:
                errors["too many calls wait"] += 1
                times[_kind(number)].append((waited - due) * 1000)
            else:
                task = asyncio.create_task(call(number, due))
                calling.add(task)
                task.add_done_callback(calling.discard)
            if time.monotonic() >= next_arrival:
                next_arrival += arrivals
                coming.append(
                    asyncio.create_task(
                        arrive(
                            *(url, did, next(ways), next(self._arriving)),
                            give_up=waited,
                        )
                    )
                )
        if calling:
            await asyncio.wait(calling)
        arrived = await asyncio.gather(*coming)
        return {"times": times, "errors": errors, "arrivals": arrived}


def _kind(number: int) -> str:
    return KINDS[number % len(KINDS)]


def _daemon(folder: Path) -> Daemon:
    home = Home(folder)
    home.create()
    flags = {"listen.port": 0, "consensus.use": folder.name == "envelope"}
    config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
    return Daemon(home, config)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    raise_file_limit()
    asyncio.run(Good(Path(sys.argv[1])).run())
