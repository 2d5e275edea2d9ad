"""Killed with SIGKILL in a named state, either side.

`make kill` does fifty kills on each side; the ordinary tests five.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd, Ended
from tests.e2e.proxy import CALLER, PROVIDER, Hold, Proxy

KILLS = int(os.environ.get("ANPD_KILLS", "5"))

# Frames of a first call: the caller sends sourceHello, finished, the proposal,
# codeGeneration, the request; the provider destinationHello, finished, the verdict,
# codeGeneration, the answer.
STATES: dict[str, Hold | None] = {
    "hello sent": Hold(CALLER, 0),
    "proposal received": Hold(PROVIDER, 2),
    "verdict sent": Hold(CALLER, 3),
    "module stored": Hold(PROVIDER, 3),
    "request sent": Hold(CALLER, 4),
    "capability running": None,
}
"Which frame is held so that the state lasts; None: the capability waits by itself."

FUNCTION = '''
import time
from pathlib import Path

FOLDER = Path({folder!r})


def multiply(number: int) -> int:
    """Multiply by seven, and wait while a file says so."""
    while (FOLDER / "wait").exists():
        (FOLDER / "runs").touch()
        time.sleep(0.01)
    return number * 7
'''


class Calling:
    """A call under way in a process of its own."""

    def __init__(
        self, daemon: Anpd, address: str, need: str, number: int, *options: str
    ) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "anp", "--home", str(daemon.home), "call"),
                *(address, need, "-d", json.dumps({"number": number}), "--json"),
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self) -> Ended:
        """Wait for its end."""
        out, err = self._process.communicate(timeout=60)
        return Ended(self._process.returncode, out, err)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy().running() as proxy:
        yield proxy


def chosen_states() -> list[str]:
    """Return a random state for each kill; with enough kills every one occurs."""
    states = list(STATES)
    random.shuffle(states)
    return [states[i % len(states)] for i in range(KILLS)]


def number_up_to(most: int) -> dict[str, object]:
    """Return the schema of the caller's data."""
    number = {"type": "integer", "minimum": -1_000, "maximum": most}
    return {"type": "object", "properties": {"number": number}, "required": ["number"]}


@pytest.mark.slow
@clause("ANP-84")
@pytest.mark.parametrize("side", [CALLER, PROVIDER])
def test_a_killed_daemon_harms_neither_the_other_nor_its_own_cache(
    side: str, tmp_path: Path, proxy: Proxy
) -> None:
    (tmp_path / "made.py").write_text(FUNCTION.format(folder=str(tmp_path)))
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    provider.ok(
        *("attach", "python", "made:multiply", "--expose", "*", "--name", "m"),
        cwd=tmp_path,
    )
    provider.start()
    caller.start()
    hit: Counter[str] = Counter()
    try:
        for count, state in enumerate(chosen_states()):
            proxy.target = provider.url
            address = f"ws://127.0.0.1:{proxy.port}/#{provider.did}"
            # A need of its own, so that the call negotiates.
            schema = tmp_path / f"{count}.json"
            schema.write_text(json.dumps(number_up_to(1_000 + count)))
            wanted = ("multiply", count, "--input-schema", str(schema))
            cut(proxy, caller)
            reach(state, proxy, tmp_path)
            calling = Calling(caller, address, *wanted)
            wait_for(state, proxy, tmp_path)
            hit[state] += 1
            victim = caller if side == CALLER else provider
            port = victim.port
            victim.kill()
            ended = calling.ended()
            check_report(side, state, ended)
            (tmp_path / "wait").unlink(missing_ok=True)
            proxy.hold(None)
            victim.start(port=port)
            assert provider.ok("protocols", "list", "--json").json() is not None
            assert caller.ok("protocols", "list", "--json").json() is not None
            again = Calling(caller, address, *wanted).ended()
            assert again.code == 0, f"{state}: {again.stderr}\n{victim.log()}"
            assert json.loads(again.stdout)["output"] == {"result": count * 7}
            check_logs(caller, provider)
    finally:
        caller.kill()
        provider.kill()
    print(f"\n{side} killed {sum(hit.values())} times: {dict(hit)}")


def cut(proxy: Proxy, caller: Anpd) -> None:
    """End the links, so that the frames of the next call count from 0."""
    proxy.cut()
    limit = time.monotonic() + 30
    while caller.ok("doctor", "--json").json()["info"]["connections"]:
        assert time.monotonic() < limit, "a link stays"


def reach(state: str, proxy: Proxy, folder: Path) -> None:
    """Prepare what makes `state` last."""
    (folder / "runs").unlink(missing_ok=True)
    if state == "capability running":
        (folder / "wait").touch()
    proxy.hold(STATES[state])


def wait_for(state: str, proxy: Proxy, folder: Path) -> None:
    """Wait until `state` is reached."""
    if state != "capability running":
        assert proxy.held.wait(30), f"{state} was not reached: {proxy.counts}"
        # What was forwarded before has arrived; give the other side its turn with it.
        threading.Event().wait(0.2)
        return
    limit = time.monotonic() + 30
    while not (folder / "runs").exists():
        assert time.monotonic() < limit, "the capability did not start"
        time.sleep(0.01)


def check_report(side: str, state: str, ended: Ended) -> None:
    """The other side says clearly what happened: one line and its exit code."""
    expected = 4 if side == CALLER else 12
    assert ended.code == expected, f"{state}: {ended.code} {ended.stderr}"
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stderr


def check_logs(*daemons: Anpd) -> None:
    """Nobody logged a traceback."""
    for daemon in daemons:
        assert "Traceback" not in daemon.log(), daemon.log()
