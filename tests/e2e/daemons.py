"""Daemons as real processes, run through the same commands as a user's."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.forks import Fork, fork

START_TIMEOUT = 60.0
"Seconds until a daemon has to be ready; generous, for busy machines."


@dataclass(frozen=True, slots=True)
class Ended:
    """The output and exit code of a command."""

    code: int
    "Its exit code."

    stdout: str
    "What it printed."

    stderr: str
    "What it complained of."

    def json(self) -> Any:
        """Return its standard output as JSON."""
        return json.loads(self.stdout)


class Anpd:
    """One home, and the daemon that may run in it."""

    def __init__(self, home: Path, **settings: str) -> None:
        """Take a home.

        Args:
            settings: Settings as the environment gives them, such as
                `consensus__use="true"`. Calls negotiate unless a test says otherwise.
        """
        self.home = home
        self._settings = {"consensus__use": "false", **settings}
        self.url = ""
        self.did = ""
        self.process: Fork | None = None

    @property
    def address(self) -> str:
        """The address `up` prints to be copied."""
        return f"{self.url}#{self.did}"

    def run(self, *args: str, cwd: Path | None = None, stdin: str = "") -> Ended:
        """Run one command on this home."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as printed,
            tempfile.TemporaryFile() as complained,
        ):
            given.write(stdin.encode())
            given.seek(0)
            process = fork(
                ["--home", str(self.home), *args],
                cwd=cwd,
                env=self._environment(),
                streams=(given, printed, complained),
            )
            try:
                code = process.wait(timeout=120)
            finally:
                process.kill()
            said = []
            for stream in (printed, complained):
                stream.seek(0)
                said.append(stream.read().decode())
        return Ended(code, *said)

    def ok(self, *args: str, cwd: Path | None = None) -> Ended:
        """Run one command that has to succeed."""
        ended = self.run(*args, cwd=cwd)
        assert ended.code == 0, f"{args}: {ended.code}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def start(self, *args: str, port: int = 0) -> None:
        """Start `anpd up` and wait until peers can connect."""
        ready = self.home.parent / f"{self.home.name}.ready"
        ready.unlink(missing_ok=True)
        log = self.home.parent / f"{self.home.name}.log"
        with log.open("ab") as written, Path(os.devnull).open("rb") as nothing:
            self.process = fork(
                [
                    *("--home", str(self.home), "up", "--port", str(port)),
                    *("--ready-file", str(ready), *args),
                ],
                env=self._environment(),
                streams=(nothing, written, written),
            )
        limit = time.monotonic() + START_TIMEOUT
        while not ready.exists():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < limit, f"not ready\n{self.log()}"
            time.sleep(0.02)
        found = json.loads(ready.read_text())
        self.url, self.did = found["url"], found["did"]

    def log(self) -> str:
        """Return what the daemon wrote so far."""
        path = self.home.parent / f"{self.home.name}.log"
        return path.read_text() if path.exists() else ""

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.url.rsplit(":", 1)[1].strip("/"))

    def kill(self) -> None:
        """End the daemon with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End the daemon as a service manager would; return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(number)
        return process.wait(timeout=30)

    @contextlib.contextmanager
    def up(self, *args: str, port: int = 0) -> Iterator[Anpd]:
        """Run the daemon for a block."""
        self.start(*args, port=port)
        try:
            yield self
        finally:
            self.stop()

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ANPD_", "XDG_"))
        }
        ours = {f"ANPD_{name.upper()}": v for name, v in self._settings.items()}
        return {**kept, **ours, "NO_COLOR": "1"}
