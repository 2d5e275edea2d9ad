"""Daemons as processes, as users start them, and a group of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.groups.agent import Agent, Refused

ROOT: Final = Path(__file__).parents[2]
START_TIMEOUT: Final = 180.0

DESK: Final = {
    "name": "help",
    "description": "Helps for a while.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
}
"The capability by which a member takes the task about which it answers."


class Home:
    """One home, its daemon, and the agent's program."""

    def __init__(self, path: Path, *, port: int = 0, **settings: str) -> None:
        """Take a home.

        Args:
            port: The port to listen on; 0 for a free one.
            settings: Settings as the environment gives them (`groups__seal`).
        """
        self.path = path
        self.agent = Agent(path)
        self.url = ""
        self.did = ""
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = settings
        self._ready = path.parent / f"{path.name}.ready"

    @property
    def address(self) -> str:
        """The address that others invite."""
        return f"{self.url}#{self.did}"

    def attach_inbox(self) -> None:
        """Have an agent that takes tasks and tells of them, before the daemon runs."""
        self.path.mkdir(mode=0o700)
        declared = self.path / "desk.json"
        declared.write_text(json.dumps([DESK]))
        subprocess.run(
            [
                *(sys.executable, "-m", "anp", "--home", str(self.path), "attach"),
                *("inbox", "desk", "--capabilities", str(declared), "--expose", "*"),
            ],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def begin(self, *, module: Sequence[str] = ("anp",)) -> None:
        """Start the daemon, at the port that it had before."""
        self._ready.unlink(missing_ok=True)
        given = {f"ANPD_{name.upper()}": one for name, one in self._settings.items()}
        # Dozens of processes would each compile all that they import.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        with (self.path.parent / f"{self.path.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", *module, "--home", str(self.path)),
                    *("up", "--port", str(self.port), "--ready-file", str(self._ready)),
                ],
                env={**kept, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **given},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def ready(self) -> None:
        """Wait until peers can connect."""
        assert self.process is not None, "it was started"
        limit = time.monotonic() + START_TIMEOUT
        while not self._ready.exists():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"not ready: {self.log[-2000:]}")
            await asyncio.sleep(0.02)
        found = json.loads(self._ready.read_text())
        self.url, self.did = found["url"], found["did"]
        self.port = self.port or int(self.url.rsplit(":", 1)[1].strip("/"))

    @property
    def log(self) -> str:
        """The log of the daemon."""
        return (self.path.parent / f"{self.path.name}.log").read_text()

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the daemon, and wait for that."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(timeout=60)
        self.agent.close()


async def start_all(homes: Sequence[Home], *, at_once: int = 4) -> None:
    """Start daemons, a few at a time."""
    for first in range(0, len(homes), at_once):
        some = homes[first : first + at_once]
        for one in some:
            one.begin()
        for one in some:
            await one.ready()


async def join(
    owner: Home,
    members: Sequence[Home],
    *,
    hub: Home | None = None,
    policy_rate: int = 0,
    **body: Any,
) -> str:
    """Make a group, have all join, and return its id.

    Args:
        hub: The daemon that distributes; the owner's if there is none.
        policy_rate: Messages of one member in a minute; 0 for no limit.
    """
    policy = {"rate": policy_rate, "max_members": 1024}
    if hub is not None:
        body["hub"] = hub.address
    made = await owner.agent.ask("POST", "/v1/groups", {"policy": policy, **body})
    group = str(made["id"])
    for one in members:
        path = f"/v1/groups/{group}"
        await owner.agent.ask("POST", f"{path}/invite", {"peer": one.address})
        await _until(one, path, "invited")
        await one.agent.ask("POST", f"{path}/accept", {})
    for one in members:
        await _until(one, f"/v1/groups/{group}", "member")
    return group


async def _until(home: Home, path: str, state: str) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            if (await home.agent.ask("GET", path))["state"] == state:
                return
        except Refused as exc:
            if exc.status != 404:
                raise
        await asyncio.sleep(0.01)
    raise TimeoutError(f"{home.path.name} is not {state}")
