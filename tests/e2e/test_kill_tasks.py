"""Killed with SIGKILL in every state of a task, either side.

`make kill` does thirty-five kills on each side; the ordinary tests three.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.states import TRANSITIONS, is_terminal
from tests.e2e.daemons import Anpd
from tests.e2e.proxy import CALLER, PROVIDER
from tests.e2e.test_kill import check_logs
from tests.e2e.test_run_and_clients import client

KILLS = int(os.environ.get("ANPD_TASK_KILLS", "3"))

PATIENCE = 45.0
"Seconds until a state has to be reached; generous, for busy machines."

AGENT = '''
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

FOLDER = Path({folder!r})


class Context(Protocol):
    """What this agent uses of a call's context."""


def note(name: str) -> None:
    with (FOLDER / f"{{name}}.starts").open("a") as file:
        file.write("started\\n")


def wait(name: str) -> None:
    while not (FOLDER / f"{{name}}.go").exists():
        time.sleep(0.01)


def hold(name: str) -> str:
    """Wait for a file."""
    note(name)
    wait(name)
    (FOLDER / f"{{name}}.done").touch()
    return f"done {{name}}"


def again(name: str) -> str:
    """Wait for a file; a second start does no harm."""
    note(name)
    wait(name)
    return f"done {{name}}"


def ask(name: str, context: Context) -> str:
    """Ask twice."""
    note(name)
    first = context.ask("First?")
    second = context.ask("Second?")
    return f"{{first}} {{second}}"


def stream(name: str, lines: int) -> Iterator[str]:
    """Yield lines, and wait in the middle."""
    note(name)
    for number in range(lines):
        if number == lines // 2:
            wait(name)
        yield f"{{number}} "


def stubborn(name: str, context: Context) -> str:
    """Go on although nobody wants it."""
    note(name)
    while not (FOLDER / f"{{name}}.go").exists():
        try:
            time.sleep(0.01)
            context.progress()
        except BaseException:
            (FOLDER / f"{{name}}.told").touch()
    return "done all the same"


def quick(name: str) -> str:
    """Return at once."""
    note(name)
    return f"done {{name}}"
'''

LINES = 60


@dataclass
class Pair:
    """Two daemons, and one task of one at the other."""

    folder: Path
    caller: Anpd
    provider: Anpd
    count: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)
    task: str = ""

    @property
    def name(self) -> str:
        return f"task{self.count}"

    def start(self, function: str, **more: Any) -> None:
        """Start a task of a new name."""
        self.count += 1
        self.seen = []
        data = {"name": self.name, **more}
        with self.local() as local:
            found = local.start_task(self.provider.address, f"agent.{function}", data)
        self.task = found.id

    @contextlib.contextmanager
    def local(self) -> Iterator[Any]:
        with client.Anpd(self.caller.home) as local:
            yield local

    def state(self) -> Any:
        with self.local() as local:
            return local.task(self.task)

    def wait_for(self, reached: Any) -> Any:
        """Wait until the task is so; return how it is."""
        limit = time.monotonic() + PATIENCE
        while not reached(found := self.state()):
            assert time.monotonic() < limit, (found, self.provider.log()[-3000:])
            time.sleep(0.02)
        return found

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the events of the task until now."""
        last = self.state()
        with self.local() as local:
            found = []
            path = f"/v1/sessions/{last.session}"
            newest = local._get(path)["events"]
            if newest <= after:
                return []
            for event in local.task_events(self.task, after):
                if event["number"]:
                    found.append(event)
                if event["number"] >= newest:
                    break
        return found

    def go(self) -> None:
        """Let the function go on."""
        (self.folder / f"{self.name}.go").touch()

    def go_on(self, seconds: float) -> None:
        """Let the function go on for a while."""
        self.go()
        time.sleep(seconds)

    @property
    def starts(self) -> int:
        path = self.folder / f"{self.name}.starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def until(self, happened: Any) -> None:
        limit = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < limit, self.provider.log()[-3000:]
            time.sleep(0.01)

    def kill(self, side: str, *, between: Any = None) -> None:
        """Kill one side, and start it again."""
        victim = self.caller if side == CALLER else self.provider
        port = victim.port
        victim.kill()
        if between is not None:
            between()
        victim.start(port=port)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("kills")
    (folder / "kill_agent.py").write_text(AGENT.format(folder=str(folder)))
    caller, provider = Anpd(folder / "caller"), Anpd(folder / "provider")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "kill_agent")
    provider.ok(*attach, "--idempotent", "again", cwd=folder)
    provider.start()
    caller.start()
    try:
        yield Pair(folder, caller, provider)
    finally:
        caller.kill()
        provider.kill()


def tell(daemon: Anpd, number: signal.Signals) -> None:
    """Send a signal to a daemon that runs."""
    assert daemon.process is not None
    daemon.process.send_signal(number)


# Each brings a task into its state, has the side killed, and says how it has to end.


def requested(pair: Pair, side: str) -> str:
    """The provider does not know of it yet."""
    tell(pair.provider, signal.SIGSTOP)
    try:
        pair.start("quick")
    finally:
        if side == CALLER:
            pair.kill(side)
            tell(pair.provider, signal.SIGCONT)
        else:
            pair.kill(side)
    return "completed"


def working(pair: Pair, side: str) -> str:
    pair.start("hold")
    pair.wait_for(lambda found: found.state == "working" and pair.starts)
    pair.seen = pair.events()
    pair.kill(side)
    pair.go()
    return "completed" if side == CALLER else "failed"


def repeatable(pair: Pair, side: str) -> str:
    pair.start("again")
    pair.wait_for(lambda found: found.state == "working" and pair.starts)
    pair.seen = pair.events()
    pair.kill(side)
    pair.go()
    return "completed"


def asking(pair: Pair, side: str) -> str:
    pair.start("ask")
    pair.wait_for(lambda found: found.question is not None)
    with pair.local() as local:
        local.answer(pair.task, "one")
    # The first answer is acknowledged.
    pair.wait_for(lambda found: found.question and "Second" in found.question["text"])
    pair.seen = pair.events()
    pair.kill(side)
    if side == CALLER:
        pair.wait_for(lambda found: found.question is not None)
        with pair.local() as local:
            local.answer(pair.task, "two")
    return "completed" if side == CALLER else "failed"


def answered(pair: Pair, side: str) -> str:
    """The answer is acknowledged by our own daemon, and may be under way."""
    pair.start("ask")
    pair.wait_for(lambda found: found.question is not None)
    with pair.local() as local:
        local.answer(pair.task, "one")
    pair.kill(side)
    if side == PROVIDER:
        return "failed"
    pair.wait_for(lambda found: found.question and "Second" in found.question["text"])
    with pair.local() as local:
        local.answer(pair.task, "two")
    return "completed"


def streaming(pair: Pair, side: str) -> str:
    pair.start("stream", lines=LINES)
    pair.until(lambda: len(pair.events()) > random.randrange(4, LINES // 2))
    pair.seen = pair.events()
    if side == CALLER:
        # It goes on while the caller is away.
        pair.kill(side, between=lambda: pair.go_on(0.3))
    else:
        pair.kill(side)
        pair.go()
    return "completed" if side == CALLER else "failed"


def cancelled(pair: Pair, side: str) -> str:
    pair.start("stubborn")
    pair.wait_for(lambda found: found.state == "working" and pair.starts)
    tell(pair.provider, signal.SIGSTOP)
    try:
        with pair.local() as local:
            local.cancel_task(pair.task)
    finally:
        if side == CALLER:
            pair.kill(side)
            tell(pair.provider, signal.SIGCONT)
        else:
            pair.kill(side)
    return "canceled" if side == CALLER else "failed"


def ended(pair: Pair, side: str) -> str:
    """It is completed, and the caller has not acknowledged that."""
    pair.start("hold")
    pair.wait_for(lambda found: found.state == "working" and pair.starts)

    def finish() -> None:
        pair.go()
        pair.until((pair.folder / f"{pair.name}.done").exists)
        # Its provider stores the end now; nobody here can see that.
        time.sleep(1)

    if side == CALLER:
        pair.kill(side, between=finish)
        return "completed"
    tell(pair.caller, signal.SIGSTOP)
    try:
        finish()
        pair.kill(side)
    finally:
        tell(pair.caller, signal.SIGCONT)
    return "completed"


STATES = {
    one.__name__: one
    for one in (
        requested,
        working,
        repeatable,
        asking,
        answered,
        streaming,
        cancelled,
        ended,
    )
}


def chosen() -> list[str]:
    """Return a random state for each kill; with enough kills every one occurs."""
    states = list(STATES)
    random.shuffle(states)
    return [states[i % len(states)] for i in range(KILLS)]


def check_events(pair: Pair, state: str) -> None:
    """Nothing that was seen is lost, nothing came twice, and all states are legal."""
    events = pair.events()
    numbers = [event["number"] for event in events]
    assert numbers == sorted(set(numbers)), state
    assert events[: len(pair.seen)] == pair.seen, f"{state}: what was seen has changed"
    if pair.seen:
        rest = pair.events(after=pair.seen[-1]["number"])
        assert rest == events[len(pair.seen) :], f"{state}: the rest is another"
    before = "x-requested"
    for event in events:
        now = event["data"].get("state")
        if event["type"] != "task.state" or now is None:
            continue
        row = before if before in TRANSITIONS else "x-"
        wanted = now if now in TRANSITIONS else "x-"
        assert wanted in TRANSITIONS[row], f"{state}: {before} became {now}"
        before = now
    ids = [
        (event["data"]["message"]["id"], event["data"]["message"]["chunk"])
        for event in events
        if event["type"] == "task.message"
    ]
    assert len(set(ids)) == len(ids), f"{state}: a message came twice"


def texts(pair: Pair) -> str:
    return "".join(
        part.get("text", "")
        for event in pair.events()
        if event["type"] == "task.message"
        and event["data"]["message"]["purpose"] == "result"
        for part in event["data"]["message"]["parts"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("side", [CALLER, PROVIDER])
def test_a_kill_in_any_state_of_a_task_loses_nothing_and_starts_nothing_twice(
    side: str, pair: Pair
) -> None:
    hit: Counter[str] = Counter()
    for state in chosen():
        expected = STATES[state](pair, side)
        hit[state] += 1
        end = pair.wait_for(lambda found: is_terminal(found.state))
        assert end.state == expected, (state, end, pair.provider.log()[-3000:])
        if expected == "failed":
            assert end.may_have_run, (state, end)
        assert pair.starts <= (2 if state == "repeatable" else 1), state
        check_events(pair, state)
        if state == "streaming" and side == CALLER:
            assert texts(pair) == "".join(f"{number} " for number in range(LINES))
        check_logs(pair.caller, pair.provider)
    print(f"\n{side} killed {sum(hit.values())} times: {dict(hit)}")
