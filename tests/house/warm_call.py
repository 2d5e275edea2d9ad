"""The project files that one warm call enters in the two daemons.

Two daemons run as processes of their own, with one Python function attached to the
provider. The first call negotiates, and three more warm the channel. Then single calls
through the local API of the caller are traced.

Work that the call causes after its answer, such as its journal, belongs to it, so each
traced interval goes on a little after the answer. Timers may fire in between, so
functions that are entered in an idle interval of the same length are taken away, and so
is every file that is not entered by each of the traced calls. Worker processes are not
traced.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

LAUNCHER = Path(__file__).with_name("traced_daemon.py")

WARM_CALLS = 3
"Calls over the agreement before the first that is traced."

ROUNDS = 3
"Calls that are traced, one by one."

SETTLE = 0.3
"Seconds that an interval goes on after the answer."

START_TIMEOUT = 120.0
"Seconds until a daemon has to be ready; tracing makes it slow, and machines are busy."

FUNCTION = """
def double(number: int, text: str) -> dict[str, str]:
    return {"text": text, "number": str(number * 2)}
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """The functions that one daemon entered between two marks."""

    functions: tuple[tuple[str, str], ...]
    "File and name of each function, in order of first entry."

    before_send: int | None
    "Number of functions entered before the first frame was sent; None without one."


@dataclass(frozen=True, slots=True)
class CallFiles:
    """The files that a warm call enters, in order, each with the function it enters."""

    before: dict[str, str]
    "In the caller, until the request's frame is handed to websockets."

    after: dict[str, str]
    "In the caller from then on, without those in `before`."

    provider: dict[str, str]
    "In the provider."

    @property
    def both(self) -> set[str]:
        """All files, each once."""
        return {*self.before, *self.after, *self.provider}


def files_of(
    interval: Interval, idle: Set[tuple[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files entered before the first frame was sent, and those after.

    Each comes with the function that was entered first.

    Args:
        idle: Functions that do not count, as they are entered without a call.
    """
    sent = interval.before_send or 0
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for index, (file, name) in enumerate(interval.functions):
        if (file, name) in idle:
            continue
        if index < sent:
            before.setdefault(file, name)
        elif file not in before:
            after.setdefault(file, name)
    return before, after


def summarised(
    callers: Sequence[Interval],
    providers: Sequence[Interval],
    idle_callers: Sequence[Interval],
    idle_providers: Sequence[Interval],
) -> CallFiles:
    """Return the files that every one of the traced calls entered."""
    idle_caller = {one for interval in idle_callers for one in interval.functions}
    idle_provider = {one for interval in idle_providers for one in interval.functions}
    calling = [files_of(one, idle_caller) for one in callers]
    # The provider's answer is a frame too, but its files are told as one list.
    serving = [files_of(one, idle_provider) for one in providers]
    before = _in_all([before for before, _ in calling])
    whole = _in_all([before | after for before, after in calling])
    after = {file: name for file, name in whole.items() if file not in before}
    return CallFiles(
        before, after, _in_all([before | after for before, after in serving])
    )


def _in_all(found: Sequence[dict[str, str]]) -> dict[str, str]:
    return {
        file: name
        for file, name in found[0].items()
        if all(file in one for one in found)
    }


class _Traced:
    """One daemon under `traced_daemon`."""

    def __init__(self, tree: Path, home: Path) -> None:
        self._tree = tree
        self._home = home
        self._log = home.with_suffix(".log")
        own = tree / ".venv" / "bin" / "python"
        self._python = str(own) if own.exists() else sys.executable
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ANPD_", "XDG_", "PYTHON"))
        }
        self._environment = {
            **kept,
            "PYTHONPATH": str(tree),
            "NO_COLOR": "1",
            "ANPD_CONSENSUS__USE": "false",
        }

    def run(self, *arguments: str, cwd: Path) -> None:
        """Run one command on this home.

        Raises:
            RuntimeError: It failed.
        """
        command = [self._python, "-m", "anp", "--home", str(self._home), *arguments]
        done = subprocess.run(
            command,
            cwd=cwd,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"anpd {' '.join(arguments)}: {done.stderr.strip()}")

    @contextlib.contextmanager
    def up(self) -> Iterator[_Running]:
        """Run the daemon for a block."""
        marks = self._home.with_suffix(".marks")
        ready = self._home.with_suffix(".ready")
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [
                    *(self._python, "-P", str(LAUNCHER), str(self._tree), str(marks)),
                    *("--home", str(self._home), "up", "--port", "0"),
                    *("--ready-file", str(ready)),
                ],
                cwd=self._home.parent,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait(process, ready)
            known = json.loads(ready.read_text())
            api = json.loads((self._home / "api.json").read_text())["socket"]
            with (
                socket.socket(socket.AF_UNIX) as connection,
                httpx.Client(
                    transport=httpx.HTTPTransport(uds=api),
                    base_url="http://anpd",
                    timeout=60.0,
                ) as client,
            ):
                connection.connect(str(marks))
                with connection.makefile("rw", encoding="utf-8") as stream:
                    address = f"{known['url']}#{known['did']}"
                    renamed = (self._tree / "negotiation" / "need.py").exists()
                    need = "need" if renamed else "task"
                    yield _Running(address, client, stream, need=need)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait(self, process: subprocess.Popen[bytes], ready: Path) -> None:
        limit = time.monotonic() + START_TIMEOUT
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"no daemon:\n{self._log.read_text()}")
            time.sleep(0.05)


class _Running:
    """A daemon that is up, and its marks."""

    def __init__(
        self, address: str, client: httpx.Client, stream: Any, *, need: str
    ) -> None:
        self.address = address
        # The field of a call that says what is wanted; it was `task` once.
        self._need = need
        self._client = client
        self._stream = stream

    def call(self, peer: str) -> str:
        """Call the peer's function and return where the protocol came from.

        Raises:
            RuntimeError: There was no result, or a wrong one.
        """
        body = {
            "peer": peer,
            self._need: "double",
            "input": {"number": 21, "text": "same bytes both ways"},
        }
        answer = self._client.post("/v1/calls", json=body)
        found = answer.json()
        if answer.status_code != 200 or found["output"].get("number") != "42":
            raise RuntimeError(f"the call failed: {answer.status_code} {found}")
        return str(found["source"])

    def begin(self) -> None:
        """Set the first mark."""
        self._tell("begin")

    def end(self) -> Interval:
        """Set the second mark and return the functions between the two."""
        found = self._tell("end")
        functions = tuple((file, name) for file, name in found["functions"])
        return Interval(functions, found["before_send"])

    def _tell(self, mark: str) -> Any:
        self._stream.write(mark + "\n")
        self._stream.flush()
        return json.loads(self._stream.readline())


def measure_warm_call(tree: Path) -> CallFiles:
    """Start two daemons of the checkout `tree` and trace warm calls between them.

    Raises:
        RuntimeError: A daemon did not start, or a call failed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="house") as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        (folder / "made.py").write_text(FUNCTION)
        serving = _Traced(tree.resolve(), folder / "provider")
        calling = _Traced(tree.resolve(), folder / "caller")
        serving.run(
            *("attach", "python", "made:double", "--expose", "*", "--name", "b"),
            cwd=folder,
        )
        provider = stack.enter_context(serving.up())
        caller = stack.enter_context(calling.up())

        def call() -> str:
            return caller.call(provider.address)

        call()
        sources = [call() for _ in range(WARM_CALLS)]
        if set(sources) != {"agreement"}:
            raise RuntimeError(f"the calls are not warm: {sources}")
        time.sleep(SETTLE)
        busy, idle = [], []
        for _ in range(ROUNDS):
            started = time.monotonic()
            busy.append(_between(caller, provider, call))
            length = time.monotonic() - started - SETTLE
            idle.append(_between(caller, provider, partial(time.sleep, length)))
    return summarised(
        [ours for ours, _ in busy],
        [theirs for _, theirs in busy],
        [ours for ours, _ in idle],
        [theirs for _, theirs in idle],
    )


def _between(
    caller: _Running, provider: _Running, work: Callable[[], object]
) -> tuple[Interval, Interval]:
    caller.begin()
    provider.begin()
    work()
    time.sleep(SETTLE)
    return caller.end(), provider.end()
