"""The control run: every attempt of the corpus works in plain Python.

`python -m tests.sandbox.corpus.control [PART_OF_NAME...]` runs each attempt in a
throw-away process without any layer but limits, asks the judge which effects it had,
and records them in `escapes/control.json`. Run it by hand after a change of the corpus;
the tests only compare the record with the files (SANDBOX.md, Pitfalls: keep the
unsandboxed run out of CI).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.sandbox.corpus import plain
from tests.sandbox.escapes import (
    CORPUS,
    ENV_NAME,
    Attempt,
    Outcome,
    Surroundings,
    attempts,
)

RECORD = CORPUS / "control.json"
"Where the effects seen are recorded."

WALL_CLOCK = 5.0
"Seconds an attempt may take."

SETTLE = 0.2
"Seconds that what an attempt left running has to show its effect."

MAX_OUTPUT = 16 * 1024 * 1024
"Largest answer of a worker, in bytes."

AT_A_TIME = 3
"Attempts that run at a time."


def main(parts: Iterable[str] = ()) -> int:
    """Run the attempts whose name holds one of `parts`; return an exit status."""
    chosen = [
        a for a in attempts() if not parts or any(part in a.name for part in parts)
    ]
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with (
        Surroundings() as surroundings,
        ThreadPoolExecutor(max_workers=AT_A_TIME) as threads,
    ):
        results = list(threads.map(lambda a: _judge(a, surroundings), chosen))
    failed = 0
    for attempt, (seen, outcome) in zip(chosen, results, strict=True):
        record[attempt.name] = {
            "sha256": attempt.sha256,
            "effect": attempt.effect,
            "seen": sorted(seen),
        }
        if attempt.effect not in seen:
            failed += 1
            found = ", ".join(sorted(seen)) or "none"
            print(f"{attempt.name}: no {attempt.effect} (seen: {found})", end=" ")
            print(outcome.text[:300].replace("\n", " "))
    names = {attempt.name for attempt in attempts()}
    kept = {name: record[name] for name in sorted(record) if name in names}
    RECORD.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{len(chosen) - failed} of {len(chosen)} attempts have their effect")
    return 1 if failed else 0


def _judge(attempt: Attempt, surroundings: Surroundings) -> tuple[set[str], Outcome]:
    with surroundings.probe() as probe:
        outcome = _run(attempt, probe.values, surroundings)
        time.sleep(SETTLE)
        return probe.effects(outcome), outcome


def _run(
    attempt: Attempt, values: dict[str, Any], surroundings: Surroundings
) -> Outcome:
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with ours, open(reading, "rb", buffering=0) as results:
        child = subprocess.Popen(
            [sys.executable, "-I", plain.__file__, str(writing), str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing, theirs.fileno(), surroundings.inherited),
            env={
                "LANG": "C.UTF-8",
                "PATH": os.environ.get("PATH", os.defpath),
                ENV_NAME: surroundings.token,
            },
            cwd=Path(values["folder"]).parent,
            start_new_session=True,
        )
        os.close(writing)
        theirs.close()
        ours.sendall(plain.REQUEST)
        assert child.stdin is not None
        request = json.dumps({"source": attempt.source, "probe": values})
        with contextlib.suppress(BrokenPipeError), child.stdin:
            child.stdin.write(request.encode())
        is_late = not _ends_within(child.pid, WALL_CLOCK)
        time.sleep(SETTLE)
        # The whole group, with all that it may have started. Nobody has waited for the
        # child yet, so its number is still its own.
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        text = _drain(os.dup(results.fileno())).decode()
        sent = _drain(ours.detach())
    # One that died, or became another program, never reports.
    is_finished = bool(text)
    report = json.loads(text) if is_finished else {}
    return Outcome(
        text=str(report.get("text")),
        value=report.get("value"),
        check=report.get("check"),
        exhausted=is_late
        or not is_finished
        or report.get("error") in {"MemoryError", "RecursionError"}
        or report.get("size", 0) > MAX_OUTPUT,
        channel=bool(report.get("channel"))
        or (sent != plain.MARK if is_finished else bool(sent)),
    )


def _ends_within(pid: int, seconds: float) -> bool:
    """Wait for a child's end without reaping it; False when it is late."""
    pidfd = os.pidfd_open(pid)
    try:
        return bool(select.select([pidfd], [], [], seconds)[0])
    finally:
        os.close(pidfd)


def _drain(fd: int) -> bytes:
    """Read what is there and close; another holder of the far end is not waited for."""
    os.set_blocking(fd, False)
    parts = []
    with open(fd, "rb", buffering=0) as source, contextlib.suppress(OSError):
        while part := source.read(65_536):
            parts.append(part)
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
