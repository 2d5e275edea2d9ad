"""`python -m bench.updates`: both kinds in turns, in one run.

A task of 200 updates at 50 a second goes through two daemons, from a Python generator
behind the one to a client of the other; and from the same generator behind an A2A agent
that stores its tasks in SQLite to the library's own client. Measured is the time from
the yield to the caller's event, in medians; only ratios of one run can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AGENT_PYTHON = ROOT / ".venvs" / "a2a" / "bin" / "python"

GOAL = 2.0
"Most times as long as an A2A agent that is called directly."

MARK = re.compile(r"<<(\d+)\|(\d+)>>")
START_TIMEOUT = 120.0

LAYERS = (
    ("the function's process to its daemon", "yielded"),
    ("stored by the provider", "stored"),
    ("encoded and handed to the connection", "sent"),
    ("decrypted and read by the caller's daemon", "received"),
    ("stored by the caller", "caller stored"),
    ("event of the API at the client", "event"),
)
"The layers in order, and the station that ends each."


class Run:
    """The updates of one task: times in nanoseconds from the yield to the event."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.made: dict[int, int] = {}
        self.came: dict[int, int] = {}

    def take(self, text: str) -> None:
        """Take the text of an event."""
        now = time.monotonic_ns()
        for number, made in MARK.findall(text):
            self.numbers.append(int(number))
            self.made[int(number)], self.came[int(number)] = int(made), now

    def check(self, number: int) -> None:
        """Fail if an update is missing or out of order."""
        if self.numbers != list(range(number)):
            raise RuntimeError(f"not every update in order: {self.numbers}")

    @property
    def times(self) -> list[float]:
        """Milliseconds of each update."""
        return [(self.came[one] - self.made[one]) / 1e6 for one in self.numbers]


@contextmanager
def process(*words: str, cwd: Path, **environment: str) -> Iterator[Any]:
    """Run a program for a block."""
    found = subprocess.Popen(
        words,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=(cwd / "errors.log").open("ab"),
        text=True,
    )
    try:
        yield found
    finally:
        found.send_signal(signal.SIGTERM)
        try:
            found.wait(timeout=30)
        except subprocess.TimeoutExpired:
            found.kill()


def anpd(folder: Path, home: str, *words: str) -> None:
    """Run one command on a home."""
    subprocess.run(
        [sys.executable, "-m", "anp", "--home", str(folder / home), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def daemon(folder: Path, home: str) -> Iterator[str]:
    """Run a daemon with stations for a block; give its address."""
    ready = folder / f"{home}.ready"
    with process(
        *(sys.executable, "-m", "bench.updates.stations", f"{home}.stations"),
        *("--home", str(folder / home), "up", "--port", "0"),
        *("--ready-file", str(ready)),
        cwd=folder,
        PYTHONPATH=str(ROOT),
    ) as running:
        limit = time.monotonic() + START_TIMEOUT
        while not ready.exists():
            if running.poll() is not None or time.monotonic() > limit:
                raise RuntimeError((folder / "errors.log").read_text())
            time.sleep(0.05)
        known = json.loads(ready.read_text())
        yield f"{known['url']}#{known['did']}"


def through_daemons(client: Any, address: str, number: int, pause: float) -> Run:
    """Start a task, and follow it to its end."""
    run = Run()
    data = {"number": number, "pause": pause}
    task = client.start_task(address, "source.updates", data)
    state = ""
    for event in client.task_events(task.id):
        if event["type"] == "task.message":
            message = event["data"]["message"]
            if message["purpose"] == "result":
                run.take("".join(part.get("text", "") for part in message["parts"]))
        if event["type"] == "task.state":
            state = event["data"]["state"]
    if state != "completed":
        raise RuntimeError(f"the task ended as {state}")
    run.check(number)
    return run


async def directly(url: str, number: int, pause: float) -> Run:
    """Send a message to the agent, and follow its task to the end."""
    import httpx
    from a2a.client import ClientConfig, ClientFactory
    from a2a.client.card_resolver import A2ACardResolver
    from a2a.helpers.proto_helpers import new_text_message
    from a2a.types.a2a_pb2 import Role, SendMessageRequest

    run = Run()
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        words = new_text_message(f"{number} {pause}", role=Role.ROLE_USER)
        async for event in client.send_message(SendMessageRequest(message=words)):
            if event.HasField("artifact_update"):
                parts = event.artifact_update.artifact.parts
                run.take("".join(part.text for part in parts))
    run.check(number)
    return run


def stations_of(folder: Path, home: str) -> dict[str, list[int]]:
    """Return the times of each station, task after task and update after update."""
    found: dict[str, list[int]] = {}
    for line in (folder / f"{home}.stations").read_text().splitlines():
        station, _, at = line.split()
        found.setdefault(station, []).append(int(at))
    return found


def shares(folder: Path, runs: list[Run]) -> Iterator[str]:
    """Give a line for each layer, with its time and its part of the whole."""
    provider = stations_of(folder, "provider")
    caller = stations_of(folder, "caller")
    made = [run.made[one] for run in runs for one in run.numbers]
    came = [run.came[one] for run in runs for one in run.numbers]
    passed = {
        **provider,
        "received": caller["received"],
        "caller stored": caller["stored"],
        "event": came,
    }
    whole = statistics.mean(b - a for a, b in zip(made, came, strict=True))
    earlier = made
    for name, station in LAYERS:
        times = passed[station][-len(made) :]
        took = [b - a for a, b in zip(earlier, times, strict=True)]
        mean = statistics.mean(took)
        yield (
            f"  {name:<45}{statistics.median(took) / 1e6:7.2f} ms median"
            f"{mean / whole:7.0%}"
        )
        earlier = times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--rate", type=float, default=50.0, help="updates a second")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if not AGENT_PYTHON.exists():
        sys.exit("bench.updates: the A2A agent has no environment: make a2a-env")
    path = ROOT / "clients" / "python" / "anpd_client.py"
    spec = importlib.util.spec_from_file_location("anpd_client", path)
    assert spec is not None
    assert spec.loader is not None
    client = importlib.util.module_from_spec(spec)
    sys.modules["anpd_client"] = client
    spec.loader.exec_module(client)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "source.py").write_text((HERE / "source.py").read_text())
        anpd(folder, "provider", "attach", "python", "--expose", "*", "source")
        agent = stack.enter_context(
            process(str(AGENT_PYTHON), str(HERE / "a2a_agent.py"), name, cwd=folder)
        )
        url = agent.stdout.readline().strip()
        address = stack.enter_context(daemon(folder, "provider"))
        stack.enter_context(daemon(folder, "caller"))
        known = client.Anpd(folder / "caller")
        pause = 1 / given.rate
        # The owner meets the peer; the first of each imports what it needs.
        few = json.dumps({"number": 2, "pause": 0})
        words = ("tasks", "start", address, "source.updates", "-d", few, "--watch")
        anpd(folder, "caller", *words)
        through_daemons(known, address, 20, pause)
        asyncio.run(directly(url, 20, pause))
        ours, theirs = [], []
        for _ in range(given.rounds):
            ours.append(through_daemons(known, address, given.updates, pause))
            theirs.append(asyncio.run(directly(url, given.updates, pause)))
        print(
            f"{given.rounds} tasks of {given.updates} updates at {given.rate:g} a "
            "second, each of both kinds in turns; every update came in order"
        )
        medians = []
        for title, runs in (("two daemons", ours), ("A2A directly", theirs)):
            times = [one for run in runs for one in run.times]
            cuts = statistics.quantiles(times, n=10)
            medians.append(statistics.median(times))
            print(
                f"{title:<14}p10 {cuts[0]:6.2f} ms  median {medians[-1]:6.2f} ms  "
                f"p90 {cuts[-1]:6.2f} ms"
            )
        print("shares of the layers:")
        for line in shares(folder, ours):
            print(line)
    ratio = medians[0] / medians[1]
    print(f"ratio of the medians: {ratio:.2f} (goal: at most {GOAL:g})")
    sys.exit(ratio > GOAL)


if __name__ == "__main__":
    main()
