"""The demo: two agents meet on this machine, through the commands a user types.

Nothing here negotiates, calls or stores: every step is a process of `anpd` with its
own arguments, and what is shown is what those processes printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anp.cli.demo.observer import DemoObserver
from anp.cli.demo.repair import BOOKING, SEATS, DemoCall, break_bundle, check_repair
from anp.errors import CallError, ErrorKind

__all__ = [
    "check_calls",
    "find_example",
    "run_demo",
]

READY_TIMEOUT = 60.0
"Seconds a daemon has to become ready."

STOP_TIMEOUT = 20.0
"Seconds a daemon has to end after SIGTERM."

COMMAND_TIMEOUT = 180.0
"Seconds any other command may take."

SERVERS = ("mcp_server_time", "mcp_server_git")
"The tool servers, by module."


def run_demo(*, as_json: bool, keep: bool) -> None:
    """Run the whole demo and print it.

    Raises:
        CallError: Something is missing here, or a step failed; nothing is left behind.
    """
    from anp.cli.demo.view import Timeline

    _require_programs()
    observer = DemoObserver() if as_json else Timeline()
    with _folder(keep) as folder, _signals_interrupt():
        document = _Demo(folder, observer).play()
    check_calls(document["calls"])
    check_repair(document["repair"])
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    elif isinstance(observer, Timeline):
        observer.end(document["calls"])


def check_calls(calls: Sequence[Mapping[str, Any]]) -> None:
    """Raise `CallError` unless the first run agreed and the second used that."""
    agreed: dict[str, str] = {}
    for call in calls:
        first = call["run"] == 1
        wanted = "negotiated" if first else "agreement"
        good = call["source"] == wanted and (call["negotiation_messages"] > 0) == first
        if first:
            agreed[call["tool"]] = call["protocol"]
        if not good or agreed.get(call["tool"]) != call["protocol"]:
            raise CallError(
                ErrorKind.UNEXPECTED,
                f"demo: {call['tool']} in run {call['run']} came from "
                f"{call['source']} after {call['negotiation_messages']} messages, "
                f"expected {wanted}",
            )


def find_example(name: str, package: Path | None = None) -> Path:
    """Return an example: beside us in a wheel, in `examples/` of a checkout.

    Raises:
        CallError: LOCAL_RESOURCE, it is in neither place.
    """
    here = package or Path(__file__).resolve().parent
    for path in (
        here / "examples" / name,
        here.parents[2] / "examples" / name,
    ):
        if path.is_file():
            return path
    raise CallError(
        ErrorKind.LOCAL_RESOURCE,
        f"demo: examples/{name} is missing; install anpd again",
    )


class _Demo:
    """One showing: two homes in a folder, and the processes that work on them."""

    def __init__(self, folder: Path, observer: DemoObserver) -> None:
        self._folder = folder
        self._observer = observer
        self._ports = {"provider": 0, "caller": 0}
        self._calls: list[dict[str, Any]] = []
        # Settings of the owner's own daemon are not those of the demo's.
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("ANPD_")
        }
        # The needs name tools whose schemas fit, so what the provider publishes would
        # serve them at once; what is shown here is how two agents come to an agreement.
        self._environ["ANPD_CONSENSUS__USE"] = "false"

    def play(self) -> dict[str, Any]:
        """Run both rounds of calls and return all as one document."""
        repository = self._make_repository()
        wanted = (
            DemoCall(
                "convert_time",
                "Use convert_time to convert 16:30 from Europe/Paris to Asia/Tokyo",
                {
                    "source_timezone": "Europe/Paris",
                    "time": "16:30",
                    "target_timezone": "Asia/Tokyo",
                },
            ),
            DemoCall(
                "get_product",
                "Use get_product to get name, description and price of a product",
                {"product_id": "P12345"},
            ),
            DemoCall(
                "git_log",
                "Use git_log to read the latest commits of a repository",
                {"repo_path": str(repository), "max_count": 2},
            ),
            BOOKING,
        )
        self._attach_all()
        peers: list[dict[str, Any]] = []
        for run in (1, 2):
            with (
                self._daemon("provider", run) as provider,
                self._daemon("caller", run) as caller,
            ):
                peers = [provider, caller]
                self._observer.run(run)
                address = f"{provider['url']}#{provider['did']}"
                for call in wanted:
                    self._call(address, call, run)
            self._observer.stopped()
        return {"peers": peers, "calls": self._calls, "repair": self._repair()}

    def _repair(self) -> dict[str, Any]:
        """Break the provider's half by an import, and call until it is repaired."""
        [booked, _] = [call for call in self._calls if call["tool"] == BOOKING.tool]
        digest = booked["protocol"]
        bundle, broken = self._folder / "bundle.json", self._folder / "broken.json"
        with (
            self._daemon("provider", 3) as provider,
            self._daemon("caller", 3),
        ):
            self._run(
                "provider", "protocols", "export", digest, "--role", "provider",
                "-o", str(bundle),
            )  # fmt: skip
            broken.write_bytes(break_bundle(bundle.read_bytes()))
            imported = self._json(
                "provider", "protocols", "import", str(broken), "--json"
            )
            self._observer.broken(imported)
            address = f"{provider['url']}#{provider['did']}"
            calls = []
            for seats in SEATS:
                data = json.dumps({"show": "Tosca", "seats": seats})
                words = ("call", address, BOOKING.need, "-d", data, "--json")
                result = self._json("caller", *words)
                self._observer.called({"need": f"{BOOKING.need}: {seats}", **result})
                calls.append(result)
            known = self._json("provider", "protocols", "show", digest, "--json")
            self._observer.repaired(known)
        self._observer.stopped()
        [agreement] = [one for one in known["agreements"] if one["role"] == "provider"]
        [half] = [
            one for one in known["code"] if one["revision"] == agreement["revision"]
        ]
        return {"imported": imported, "calls": calls, "origin": half["origin"]}

    def _attach_all(self) -> None:
        server = [sys.executable, "-m"]
        catalogue = f"{find_example('catalogue.py')}:get_product"
        booking = f"{find_example('booking.py')}:book_seats"
        kinds: dict[str, list[str]] = {
            "time": ["mcp", "--", *server, SERVERS[0]],
            "git": ["mcp", "--", *server, SERVERS[1]],
            "catalogue": [
                *("python", "--python", sys.executable),
                *("--read-only", "get_product", "--", catalogue),
            ],
            "booking": ["python", "--python", sys.executable, "--", booking],
        }
        for name, (kind, *rest) in kinds.items():
            options = ["--name", name, "--expose", "*", "--json"]
            found = self._json("provider", "attach", kind, *options, *rest)
            if found["problem"]:
                raise CallError(
                    ErrorKind.LOCAL_RESOURCE,
                    f"demo: {name} does not start: {found['problem']}",
                )
            self._observer.attached(name, found["exposed"])

    def _call(self, address: str, call: DemoCall, run: int) -> None:
        data = json.dumps(call.data, ensure_ascii=False)
        result = self._json("caller", "call", address, call.need, "-d", data, "--json")
        known = self._json("caller", "protocols", "show", result["protocol"], "--json")
        shown = {
            "run": run,
            "tool": call.tool,
            "need": call.need,
            "input": dict(call.data),
            **result,
            "tests": known["tests"],
        }
        self._calls.append(shown)
        self._observer.called(shown)

    @contextlib.contextmanager
    def _daemon(self, name: str, run: int) -> Iterator[dict[str, Any]]:
        """Have a daemon up, on the port it had before, and end it by its own id."""
        ready = self._folder / f"{name}-{run}.ready"
        log = self._folder / f"{name}-{run}.log"
        words = ["up", "--port", str(self._ports[name]), "--ready-file", str(ready)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(name, *words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                env=self._environ,
            )
        try:
            found = _wait_ready(process, ready, name, log)
            self._ports[name] = urlsplit(found["url"]).port or 0
            self._observer.up(name, found["did"], found["url"])
            yield {"name": name, "did": found["did"], "url": found["url"]}
        finally:
            _stop(process)

    def _run(self, name: str, *words: str) -> None:
        """Run a command that prints nothing of interest; its error becomes ours."""
        done = _run(self._command(name, *words), self._folder, self._environ)
        if done.returncode:
            raise CallError(
                ErrorKind.UNEXPECTED,
                f"demo: anpd {words[0]}: {_last_line(done.stderr)}",
            )

    def _json(self, name: str, *words: str) -> Any:
        """Run a command that prints JSON; its error becomes ours."""
        done = _run(self._command(name, *words), self._folder, self._environ)
        try:
            answer = json.loads(done.stdout)
            if done.returncode == 0:
                return answer
            kind, detail = ErrorKind(answer["kind"]), str(answer["detail"])
        except (ValueError, KeyError, TypeError):
            kind = ErrorKind.UNEXPECTED
            detail = f"it ended with {done.returncode}: {_last_line(done.stderr)}"
        raise CallError(kind, f"demo: anpd {words[0]}: {detail}")

    def _command(self, name: str, *words: str) -> list[str]:
        home = str(self._folder / name)
        return [sys.executable, "-m", "anp", "--home", home, *words]

    def _make_repository(self) -> Path:
        """Make a repository of two commits that are the same on every machine."""
        path = self._folder / "repository"
        path.mkdir()
        environ = {
            # The owner's hooks, templates and signing keys stay out of it.
            **{k: v for k, v in self._environ.items() if not k.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.com",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.com",
        }

        def git(*words: str) -> None:
            done = _run(["git", *words], path, environ)
            if done.returncode:
                raise CallError(
                    ErrorKind.LOCAL_RESOURCE,
                    f"demo: git {words[0]} failed: {_last_line(done.stderr)}",
                )

        git("init", "--quiet")
        for number, text in enumerate(("Begin the logbook", "Note the first meeting")):
            (path / "logbook.txt").write_text(f"{text}\n", encoding="utf-8")
            date = f"2026-01-0{number + 1}T12:00:00+00:00"
            environ |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
            git("add", "logbook.txt")
            git("commit", "--quiet", "--message", text)
        return path


def _require_programs() -> None:
    if shutil.which("git") is None:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE,
            "demo: git is not installed, and one of the tools reads a repository; "
            "install git",
        )
    missing = [name for name in SERVERS if find_spec(name) is None]
    if missing:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE,
            f"demo: {' and '.join(missing)} not installed; run: "
            f"{sys.executable} -m pip install 'anpd[demo]'",
        )


def _run(
    words: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    try:
        # Ended by its own id when its time is up or we are interrupted.
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder,
            env=environ,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise CallError(
            ErrorKind.TIMEOUT,
            f"demo: {Path(words[0]).name} took over {COMMAND_TIMEOUT:.0f} s",
        ) from exc


def _wait_ready(
    process: subprocess.Popen[bytes], ready: Path, name: str, log: Path
) -> Any:
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
    return json.loads(ready.read_bytes())


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    """Give a folder of our own, with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="anpd-"))
    try:
        yield folder
    finally:
        if keep:
            print(f"anpd: the demo's homes are kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder)


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
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


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("anpd: ") if lines else "it said nothing"
