"""Killed with SIGKILL at random points while agents answer by updates.

The agents read an inbox, or send the updates of a callback; in half of the rounds with
an inbox the news are brought to the caller's address. `make kill` does twenty kills of
each kind, the ordinary tests one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.states import is_terminal
from tests.e2e.daemons import Anpd
from tests.e2e.proxy import CALLER, PROVIDER
from tests.e2e.test_kill import check_logs
from tests.e2e.test_kill_tasks import Pair, check_events
from tests.e2e.test_run_and_clients import client

KILLS = int(os.environ.get("ANPD_AGENT_KILLS", "1"))

STEPS, PACE = 8, 0.05
"Messages of an agent about one task, and the seconds before each."

CAPABILITY = [
    {
        "name": "work",
        "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
]


class Agent:
    """Everything that the agents did, by the names of tasks."""

    def __init__(self) -> None:
        self.starts: Counter[str] = Counter()
        "Times that a task was given out as a new one."

        self.keys: dict[str, set[str]] = defaultdict(set)
        self.told: dict[str, list[str]] = defaultdict(list)
        "Messages that the daemon acknowledged."

        self.heard: dict[str, list[str]] = defaultdict(list)
        self.stopping = threading.Event()

    def texts(self, name: str) -> Iterator[str]:
        """Yield what is to be told, each in its time; after each one it is told."""
        for number in range(STEPS):
            time.sleep(PACE)
            text = f"{name} step {number}"
            yield text
            self.told[name].append(text)

    def read(self, home: Path) -> None:
        """Read the inbox of a daemon that comes and goes."""
        while not self.stopping.is_set():
            with (
                contextlib.suppress(client.AnpdError, OSError),
                client.Anpd(home) as local,
            ):
                found = local.next_task(wait=1)
                if found is not None:
                    self._work(local, found)
            time.sleep(0.02)

    def _work(self, local: Any, found: dict[str, Any]) -> None:
        name, item = found["input"]["name"], found["id"]
        self.starts[name] += not found["redelivered"]
        self.keys[name].add(found["key"])
        local.acknowledge(item)
        for text in self.texts(name):
            local.tell(item, text)
        ended = local.complete(item, {"result": name})
        self.heard[name] = [one["parts"][0]["text"] for one in ended["messages"]]

    def take(self, call: dict[str, Any]) -> None:
        """Do a call that was posted, by updates."""
        name = call["input"]["name"]
        self.starts[name] += 1
        with contextlib.suppress(OSError):
            for text in self.texts(name):
                update(call, type="message", text=text)
            update(call, type="completed", output={"result": name})


def update(call: dict[str, Any], **body: Any) -> None:
    """Send an update of a callback; OSError if it is not acknowledged."""
    updates = call["updates"]
    request = urllib.request.Request(
        updates["url"],
        json.dumps(body).encode(),
        {
            "authorization": f"Bearer {updates['token']}",
            "content-type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=10):
        pass


@contextlib.contextmanager
def serving(agent: Agent) -> Iterator[str]:
    """Serve the callbacks; yield their URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            call = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(202)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            threading.Thread(target=agent.take, args=(call,), daemon=True).start()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/calls"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pair, Agent]]:
    folder = tmp_path_factory.mktemp("kills")
    agent = Agent()
    (folder / "caps.json").write_text(json.dumps(CAPABILITY))
    caller, provider = Anpd(folder / "caller"), Anpd(folder / "provider")
    more = ("--capabilities", str(folder / "caps.json"), "--expose", "*")
    reader = threading.Thread(target=agent.read, args=(provider.home,), daemon=True)
    with serving(agent) as url:
        try:
            provider.ok("attach", "inbox", "desk", *more)
            provider.ok("attach", "callback", url, "--name", "slow", *more)
            with (provider.home / "anpd.toml").open("a") as settings:
                settings.write('[fetch]\nallow = ["127.0.0.0/8"]\n')
            provider.start()
            caller.start()
            provider.ok("peers", "allow", caller.did)
            reader.start()
            yield Pair(folder, caller, provider), agent
        finally:
            agent.stopping.set()
            caller.kill()
            provider.kill()


def said(pair: Pair) -> list[str]:
    """Return the words about the task that the caller has, in order."""
    return [
        part["text"]
        for event in pair.events()
        if event["type"] == "task.message"
        and event["data"]["message"]["purpose"] == "communication"
        and event["data"]["message"]["by"] != pair.caller.did
        for part in event["data"]["message"]["parts"]
    ]


def was_heard_of(pair: Pair) -> bool:
    """Tell if the provider stored the caller's message before the task ended."""
    with pair.local() as local:
        wire = local._get(f"/v1/tasks/{pair.task}")["wire_id"]
    known = pair.provider.ok("tasks", "list", "--json").json()["tasks"]
    item = next(one["id"] for one in known if one["wire_id"] == wire)
    return "mind this" in pair.provider.ok("tasks", "watch", item, "--json").stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inbox", "callback", "notification"])
def test_a_kill_loses_no_word_of_an_agent_and_starts_nothing_twice(
    kind: str, place: tuple[Pair, Agent]
) -> None:
    pair, agent = place
    ends: Counter[str] = Counter()
    for number in range(KILLS):
        side = random.choice((CALLER, PROVIDER)) if KILLS == 1 else SIDES[number % 2]
        ends[f"{side} {one(pair, agent, kind, side)}"] += 1
        check_logs(pair.caller, pair.provider)
    print(f"\n{KILLS} kills with {kind}: {dict(ends)}")


SIDES = (CALLER, PROVIDER)


def one(pair: Pair, agent: Agent, kind: str, side: str) -> str:
    """Kill one side at a random point of a task; return how the task ended."""
    pair.count += 1
    name = f"{kind}{pair.count}"
    target = "slow.work" if kind == "callback" else "desk.work"
    with pair.local() as local:
        pair.task = local.start_task(
            pair.provider.address, target, {"name": name}, notify=kind == "notification"
        ).id
        local.answer(pair.task, "mind this")
    time.sleep(random.uniform(0, 2 * STEPS * PACE))
    pair.seen = pair.events()
    pair.kill(side)
    end = pair.wait_for(lambda found: is_terminal(found.state))
    about = (kind, side, end)
    assert end.state == "completed" or (side == PROVIDER and end.may_have_run), about
    assert agent.starts[name] <= 1, about
    assert len(agent.keys[name]) <= 1, about
    check_events(pair, kind)
    words = said(pair)
    # One may be stored whose acknowledgement was lost with the daemon.
    told = agent.told[name]
    assert words[: len(told)] == told, about
    assert len(words) <= len(told) + 1, about
    assert len(set(words)) == len(words), about
    if end.state == "completed" and target == "desk.work":
        pair.until(lambda: name in agent.heard)
        # It may come when all is over, if its own daemon was away.
        came = ["mind this"] if was_heard_of(pair) else []
        assert agent.heard[name] == came, about
    return str(end.state)
