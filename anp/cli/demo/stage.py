"""The processes of the demo: commands, and daemons that run for a while."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anp.errors import CallError, ErrorKind

READY_TIMEOUT = 60.0
"Seconds a daemon has to become ready."

STOP_TIMEOUT = 20.0
"Seconds a daemon has to end after SIGTERM."

COMMAND_TIMEOUT = 180.0
"Seconds any other command may take."

DemoPeer = Mapping[str, str]
"Name, DID and URL of a daemon that runs."


class Stage:
    """A folder with one home for each agent, and the processes that work on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports: dict[str, int] = {}
        self._starts = 0
        # Settings of the owner's own daemon are not those of the demo's.
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("ANPD_")
        }
        # The needs name tools whose schemas fit, so what the provider publishes would
        # serve them at once; what is shown here is how two agents come to an agreement.
        self._environ["ANPD_CONSENSUS__USE"] = "false"

    def home(self, name: str) -> Path:
        """Return the home of one agent."""
        return self.folder / name

    def write(self, name: str, value: Any) -> str:
        """Write JSON to a file of the folder, and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(value), "utf-8")
        return str(path)

    def output(self, name: str, *words: str) -> bytes:
        """Run a command and return its output as it is; its error becomes ours."""
        done = self._run(name, words)
        if done.returncode:
            detail = _last_line(done.stderr)
            raise CallError(ErrorKind.UNEXPECTED, f"demo: anpd {words[0]}: {detail}")
        return done.stdout

    def json(self, name: str, *words: str) -> Any:
        """Run a command that prints JSON; its error becomes ours."""
        # The words behind `--` are a command of their own.
        end = [*words, "--"].index("--")
        done = self._run(name, [*words[:end], "--json", *words[end:]])
        try:
            answer = json.loads(done.stdout)
            if done.returncode == 0:
                return answer
            kind, detail = ErrorKind(answer["kind"]), str(answer["detail"])
        except (ValueError, KeyError, TypeError):
            kind = ErrorKind.UNEXPECTED
            detail = f"it ended with {done.returncode}: {_last_line(done.stderr)}"
        raise CallError(kind, f"demo: anpd {words[0]}: {detail}")

    @contextlib.contextmanager
    def daemons(self, *names: str) -> Iterator[list[DemoPeer]]:
        """Have daemons up, each on the port it had before, until this ends."""
        self._starts += 1
        running = [(name, *self._start(name)) for name in names]
        try:
            yield [self._ready(*one) for one in running]
        finally:
            with ThreadPoolExecutor() as pool:
                list(pool.map(_stop, [process for _, process, *_ in running]))

    def _start(self, name: str) -> tuple[subprocess.Popen[bytes], Path, Path]:
        place = self.folder / f"{name}-{self._starts}"
        ready, log = place.with_suffix(".ready"), place.with_suffix(".log")
        port = str(self._ports.get(name, 0))
        words = ["up", "--port", port, "--ready-file", str(ready)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(name, words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=self._environ,
            )
        return process, ready, log

    def _ready(
        self, name: str, process: subprocess.Popen[bytes], ready: Path, log: Path
    ) -> DemoPeer:
        """Return what the ready file says, as soon as it is there."""
        deadline = time.monotonic() + READY_TIMEOUT
        while not ready.exists():
            if process.poll() is not None:
                raise CallError(
                    ErrorKind.LOCAL_RESOURCE,
                    f"demo: the {name} did not start: {_last_line(log.read_bytes())}",
                )
            if time.monotonic() > deadline:
                raise CallError(
                    ErrorKind.TIMEOUT,
                    f"demo: the {name} was not ready in {READY_TIMEOUT:.0f} s: "
                    f"{_last_line(log.read_bytes())}",
                )
            time.sleep(0.02)
        found = json.loads(ready.read_bytes())
        self._ports[name] = urlsplit(found["url"]).port or 0
        return {"name": name, "did": found["did"], "url": found["url"]}

    def _run(
        self, name: str, words: Sequence[str]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            # Ended by its own id when its time is up or we are interrupted.
            return subprocess.run(
                self._command(name, words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=self.folder,
                env=self._environ,
                timeout=COMMAND_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise CallError(
                ErrorKind.TIMEOUT,
                f"demo: anpd {words[0]} took over {COMMAND_TIMEOUT:.0f} s",
            ) from exc

    def _command(self, name: str, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "anp", "--home", str(self.home(name)), *words]


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end us as Ctrl-C does, so that all is cleaned up."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    wanted = (signal.SIGTERM, signal.SIGHUP)
    before: list[Callable[[int, Any], Any] | int | None] = [
        signal.signal(number, interrupt) for number in wanted
    ]
    try:
        yield
    finally:
        for number, handler in zip(wanted, before, strict=True):
            signal.signal(number, handler)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("anpd: ") if lines else "it said nothing"
