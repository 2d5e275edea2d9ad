"""Killed with SIGKILL in a call under a kept key: nothing twice, and it goes on."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.proxy import CALLER, PROVIDER, Hold, Proxy
from tests.e2e.test_kill import Calling
from tests.e2e.test_wire_table import check_counters

FUNCTION = '''
import time
from pathlib import Path

FOLDER = Path({folder!r})


def multiply(number: int) -> int:
    """Multiply by seven, and wait while a file says so."""
    with (FOLDER / "runs").open("a") as runs:
        runs.write(f"{{number}}\\n")
    while (FOLDER / "wait").exists():
        time.sleep(0.01)
    return number * 7
'''

STATES: dict[str, Hold | None] = {
    "request sent": Hold(CALLER, 0),
    "capability running": None,
    "answer sent": Hold(PROVIDER, 0),
}
"Which frame of the resumed link is held; None: the capability waits by itself."


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy().running() as proxy:
        yield proxy


def runs(folder: Path) -> Counter[int]:
    path = folder / "runs"
    text = path.read_text() if path.exists() else ""
    return Counter(int(line) for line in text.split())


def wait_until_held(state: str, number: int, proxy: Proxy, folder: Path) -> None:
    limit = time.monotonic() + 60
    while not (proxy.held.is_set() if STATES[state] else runs(folder)[number]):
        assert time.monotonic() < limit, state
        time.sleep(0.01)


@pytest.mark.slow
@clause("ANP-Q20")
@pytest.mark.parametrize("side", [CALLER, PROVIDER])
def test_a_kill_in_a_resumed_call_runs_nothing_twice_and_uses_no_counter_twice(
    side: str, tmp_path: Path, proxy: Proxy
) -> None:
    (tmp_path / "made.py").write_text(FUNCTION.format(folder=str(tmp_path)))
    caller = Anpd(tmp_path / "caller", channels__resumption="true")
    provider = Anpd(tmp_path / "provider", channels__resumption="true")
    provider.ok(
        *("attach", "python", "made:multiply", "--expose", "*", "--name", "m"),
        cwd=tmp_path,
    )
    provider.start()
    caller.start()
    ports = provider.port, caller.port
    proxy.target = provider.url
    address = f"ws://127.0.0.1:{proxy.port}/#{provider.did}"
    try:
        assert Calling(caller, address, "multiply", 0).ended().code == 0
        for number, state in enumerate(STATES, start=1):
            for daemon, port in zip((provider, caller), ports, strict=True):
                daemon.stop()
                daemon.start(port=port)
            if state == "capability running":
                (tmp_path / "wait").touch()
            links = proxy.connections
            proxy.hold(STATES[state])
            calling = Calling(caller, address, "multiply", number)
            wait_until_held(state, number, proxy, tmp_path)
            victim, port = (
                (caller, ports[1]) if side == CALLER else (provider, ports[0])
            )
            victim.kill()
            ended = calling.ended()
            (tmp_path / "wait").unlink(missing_ok=True)
            proxy.hold(None)
            # The call was the first frame of its link, or this would show nothing.
            first = next(one for one in proxy.seen if one.connection == links)
            assert (first.side, first.type) == (CALLER, "message"), state
            assert ended.code in {4, 12}, f"{state}: {ended.stdout} {ended.stderr}"
            victim.start(port=port)
            again = Calling(caller, address, "multiply", 100 + number).ended()
            assert again.code == 0, f"{state}: {again.stderr}\n{victim.log()}"
            assert json.loads(again.stdout)["output"] == {"result": 700 + number * 7}
            assert json.loads(again.stdout)["source"] == "agreement"
    finally:
        caller.kill()
        provider.kill()
    assert max(runs(tmp_path).values()) == 1
    assert {100 + number for number in range(1, 4)} <= runs(tmp_path).keys()
    assert "Traceback" not in caller.log() + provider.log()
    check_counters(proxy)
