"""The walk of docs/groups.md as it stands there, with a person at the dashboard."""

from __future__ import annotations

import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.clauses import clause
from tests.documents import ROOT, blocks
from tests.e2e.daemons import Anpd
from tests.e2e.terminals import Terminal, reader_environ, type_all, with_free_ports

TITLE = "A walk: a planner with three specialists"
FILE = re.compile(r" as `([a-z.]+)`:\n\n```python\n(.*?)^```$", re.M | re.S)
CLIENT = ROOT / "clients" / "python" / "anpd_client.py"


def accept_at_the_dashboard(home: Path) -> None:
    """Do what the pages do when a person signs in and accepts the call that waits."""
    link = httpx.URL(Anpd(home).ok("dashboard").stdout.strip())
    origin = f"http://{link.host}:{link.port}"
    code = link.fragment.removeprefix("code=")
    with httpx.Client(base_url=origin, headers={"X-Anpd-Page": "1"}) as page:
        signed = page.post("/dashboard/session", json={"code": code})
        assert signed.status_code == 204, signed.text
        limit = time.monotonic() + 30
        while not (waiting := page.get("/v1/approvals").json()["negotiations"]):
            assert time.monotonic() < limit
            time.sleep(0.05)
        (call,) = waiting
        assert call["about"] == "costs.check"
        done = page.post(f"/v1/approvals/{call['id']}/accept", json={})
        assert done.status_code == 200, done.text


@pytest.mark.slow
@clause("GBZ-11")
def test_a_planner_asks_three_specialists_and_a_person(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "groups.md").read_text("utf-8")
    text = with_free_ports(document, 8790, 8791, 8792, 8793, 8794)
    files = FILE.findall(text)
    assert [name for name, _ in files] == [
        *("weather.py", "trains.py", "costs.py", "planner.py")
    ]
    for name, source in files:
        (tmp_path / name).write_text(source, "utf-8")
    shutil.copy(CLIENT, tmp_path)
    environ = reader_environ(tmp_path)
    # As after `. .venv/bin/activate`.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    typed = [
        one for one in blocks(text) if one.heading == TITLE and one.kind == "console"
    ]
    *daemons, group, answers = typed
    assert len(daemons) == 4
    terminals = [Terminal(tmp_path, environ) for _ in [*daemons, group]]
    try:
        # Each has a terminal of its own, and none waits for another.
        with ThreadPoolExecutor() as readers:
            list(readers.map(type_all, daemons, terminals))
        type_all(group, terminals[-1])
        accept_at_the_dashboard(tmp_path / "costs")
        type_all(answers, terminals[-1])
    finally:
        for terminal in reversed(terminals):
            terminal.close()
