"""Starts the agents of this folder as processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@dataclass(slots=True)
class Agent:
    """A running agent."""

    url: str
    "Where it is, without a slash at its end."

    process: subprocess.Popen[str]
    "Its process."

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def running(
    script: str, *args: str, python: str = sys.executable, port: int = 0, **env: str
) -> Iterator[Agent]:
    """Run an agent of this folder for a block."""
    process = subprocess.Popen(
        [python, "-P", str(HERE / script), str(port), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **env},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), f"{script} did not start"
        yield Agent(url, process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
