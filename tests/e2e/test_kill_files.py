"""Killed with SIGKILL while a file is under way.

`make kill-files` does ten kills with a file of 256 MiB; the ordinary tests three with
a small one. After each, the file comes all the same or there is a clear error.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from tests.e2e.daemons import Anpd
from tests.e2e.test_kill import check_logs
from tests.e2e.test_run_and_clients import client

KILLS = int(os.environ.get("ANPD_FILE_KILLS", "3"))
SIZE = int(os.environ.get("ANPD_FILE_SIZE", str(16 * 1024 * 1024)))

PATIENCE = 60.0 + SIZE / 1e6
"Seconds until a file has to be there; generous, for busy machines."

AGENT = """
from pathlib import Path
from typing import Any

def back(book: Path) -> Path:
    return book
"""

ENDS = {"interrupted", "file_failed"}
"Codes with which a task may fail whose executor was killed."


def until(happened: Callable[[], bool], *, pause: float = 0.002) -> None:
    limit = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < limit
        time.sleep(pause)


def come(home: Path, before: Collection[str] = ()) -> dict[str, int]:
    """Return the bytes of each file that came, or is on its way, to a home.

    Args:
        before: Names of those that were there already; they may be deleted meanwhile.
    """
    found = {}
    for path in home.glob("files/*/*"):
        if path.suffix in (".part", ".data") and path.parent.name != "uploads":
            with contextlib.suppress(FileNotFoundError):
                if path.stem not in before:
                    found[path.stem] = path.stat().st_size
    return found


def save(local: Any, task: str, number: str, path: Path) -> None:
    """Save a file of a task as soon as it is here."""
    limit = time.monotonic() + PATIENCE
    while not path.exists():
        try:
            local.save_artifact(task, number, path)
        except client.AnpdError as exc:
            if exc.retry_after is None or time.monotonic() > limit:
                raise


def test_a_kill_makes_no_wrong_file(tmp_path: Path) -> None:
    (tmp_path / "file_agent.py").write_text(AGENT)
    source = tmp_path / "source.bin"
    source.write_bytes(os.urandom(SIZE))
    provider, caller = Anpd(tmp_path / "provider"), Anpd(tmp_path / "caller")
    attach = ("attach", "python", "--name", "agent", "--expose", "*", "file_agent")
    provider.ok(*attach, cwd=tmp_path)
    provider.start()
    caller.start()
    ended: Counter[str] = Counter()
    try:
        caller_did = caller.did
        provider.ok("peers", "allow", caller_did)
        for number in range(KILLS):
            receiver = (provider, caller)[number % 2]
            victim = random.choice((provider, caller))
            ended[one(provider, caller, receiver, victim, source, tmp_path)] += 1
        check_logs(caller, provider)
    finally:
        caller.kill()
        provider.kill()
    print(f"\n{KILLS} kills with a file of {SIZE} bytes: {dict(ended)}")


def one(
    provider: Anpd, caller: Anpd, receiver: Anpd, victim: Anpd, source: Path, at: Path
) -> str:
    """Kill one side when a random part of the file has come; say how it ended."""
    before, wanted = come(receiver.home), random.randrange(SIZE)
    if receiver is caller:
        # It has a link to what it sends, too.
        wanted += SIZE
    with client.Anpd(caller.home) as local:
        task = local.start_task(
            provider.address, "agent.back", files={"book": source}
        ).id
        # What the caller sent is gone from its home with the end of the task.
        until(
            lambda: (
                sum(come(receiver.home, before).values()) >= wanted
                or local.task(task).ended
            )
        )
    port = victim.port
    victim.kill()
    victim.start(port=port)
    name = "caller" if victim is caller else "provider"
    way = "there" if receiver is provider else "back"
    saved = at / "saved.bin"
    with client.Anpd(caller.home) as local:
        until(lambda: local.task(task).ended, pause=0.05)
        found = local.task(task)
        if found.state != "completed":
            assert (found.state, found.code in ENDS) == ("failed", True), found
            return f"{name} {way}: {found.code}"
        [part] = [part for one in found.messages for part in one["parts"]]
        save(local, task, part["artifact"], saved)
    assert saved.read_bytes() == source.read_bytes()
    saved.unlink()
    return f"{name} {way}: went on"
