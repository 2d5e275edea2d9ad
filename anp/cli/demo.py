"""The demo: two daemons meet on this machine, through the commands of a user."""

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
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anp.cli.output import print_json
from anp.errors import CallError, ErrorKind

__all__ = ["run_demo"]

START_TIMEOUT = 60.0
"Seconds until a daemon has to be ready."

COMMIT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
"A commit that is the same on every machine."


def run_demo(*, as_json: bool, keep: bool) -> None:
    """Run the demo and print its timeline, or one JSON document.

    Raises:
        CallError: A step failed, with the kind and words of that step.
    """
    _check_tools()
    folder = Path(tempfile.mkdtemp(prefix="anpd-demo-"))
    say = _silent if as_json else _say
    try:
        result = _meet(folder, say)
    finally:
        if keep:
            say("kept", str(folder))
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        print_json(result)


def _check_tools() -> None:
    for module in ("mcp_server_time", "mcp_server_git"):
        if find_spec(module) is None:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE,
                f"the demo needs {module}; install it with: pip install 'anpd[demo]'",
            )
    if shutil.which("git") is None:
        raise CallError(ErrorKind.LOCAL_RESOURCE, "the demo needs git; install it")


def _meet(folder: Path, say: Any) -> dict[str, Any]:
    repository = _repository(folder / "repo")
    provider, caller = _Home(folder / "provider"), _Home(folder / "caller")
    say("agents", "a provider with tools, and a caller that wants their answers")
    _attach(provider)
    for name in ("time", "git", "catalogue"):
        say("attached", f"{name} to the provider, exposed to peers")
    tasks = _tasks(repository)
    calls: list[dict[str, Any]] = []
    port = 0
    for run in (1, 2):
        say("", "")
        say("start", "both daemons" if run == 1 else "both daemons again: restarted")
        with provider.up(port), caller.up(0):
            port = provider.port
            say("provider", provider.address)
            say("caller", caller.address)
            for task, data in tasks:
                calls.append(_call(caller, provider, task, data, run, say))
    wanted = ["negotiated"] * len(tasks) + ["agreement"] * len(tasks)
    if [call["source"] for call in calls] != wanted:
        raise CallError(
            ErrorKind.UNEXPECTED, "a second call did not go through its agreement"
        )
    first = sum(call["ms"] for call in calls[: len(tasks)])
    second = sum(call["ms"] for call in calls[len(tasks) :])
    say("", "")
    say(
        "done",
        f"{len(calls)} calls, no model asked; first contact {first:.0f} ms, "
        f"then {second:.0f} ms with links and workers started anew",
    )
    peers = {"provider": provider.did, "caller": caller.did}
    return {"peers": peers, "calls": calls}


def _tasks(repository: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        (
            "convert_time: what is this time in Tokyo?",
            {
                "source_timezone": "Europe/Paris",
                "time": "16:30",
                "target_timezone": "Asia/Tokyo",
            },
        ),
        ("get_product: name and price of a product", {"product_id": "P12345"}),
        ("git_log: the latest commits", {"repo_path": str(repository), "max_count": 2}),
    ]


def _attach(provider: _Home) -> None:
    for name in ("time", "git"):
        command = [sys.executable, "-m", f"mcp_server_{name}"]
        provider.run("attach", "mcp", "--name", name, "--expose", "*", "--", *command)
    provider.run(
        *("attach", "python", "--name", "catalogue", "--expose", "*"),
        *("--python", sys.executable, f"{_catalogue()}:get_product"),
    )


def _call(
    caller: _Home,
    provider: _Home,
    task: str,
    data: dict[str, Any],
    run: int,
    say: Any,
) -> dict[str, Any]:
    text = json.dumps(data)
    answer = json.loads(
        caller.run("call", provider.address, task, "-d", text, "--json")
    )
    say("call", f"{task}  {text if len(text) < 90 else text[:87] + '...'}")
    say("  verified", answer["peer_did"])
    for step in answer["timeline"]:
        say("  ", f"{step['ms']:>8.1f} ms  {step['what']}")
    if answer["source"] == "negotiated":
        say(
            "  agreed",
            f"{answer['protocol'][:16]} in {answer['rounds']} round(s), "
            f"{answer['negotiation_messages']} messages, our half tested in a worker",
        )
    else:
        say("  reused", f"{answer['protocol'][:16]}, not one negotiation message")
    say("  result", _short(answer["output"]))
    kept = ("source", "negotiation_messages", "llm_calls", "protocol", "output", "ms")
    return {"run": run, "task": task, **{name: answer[name] for name in kept}}


class _Home:
    """A home of the demo, driven through the command line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = self.did = ""

    @property
    def address(self) -> str:
        return f"{self.url}#{self.did}"

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def run(self, *args: str) -> str:
        """Run one command and return what it printed; CallError if it failed."""
        done = subprocess.run(
            self._command(*args),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=180,
            check=False,
            env=_environment(),
        )
        if done.returncode:
            line = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise CallError(ErrorKind.UNEXPECTED, f"{args[0]} failed: {line}")
        return done.stdout

    @contextlib.contextmanager
    def up(self, port: int) -> Iterator[None]:
        """Run the daemon for a block, and end it by its own id."""
        ready = self.path.with_suffix(".ready")
        ready.unlink(missing_ok=True)
        with self.path.with_suffix(".log").open("ab") as log:
            process = subprocess.Popen(
                self._command("up", "--port", str(port), "--ready-file", str(ready)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )
        try:
            limit = time.monotonic() + START_TIMEOUT
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > limit:
                    log_text = self.path.with_suffix(".log").read_text().strip()
                    last = (log_text.splitlines() or ["no message"])[-1]
                    raise CallError(ErrorKind.UNEXPECTED, f"up failed: {last}")
                time.sleep(0.02)
            found = json.loads(ready.read_text())
            self.url, self.did = found["url"], found["did"]
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "anp", "--home", str(self.path), *args]


def _repository(path: Path) -> Path:
    """Make a repository of two commits."""
    path.mkdir()
    environ = {**os.environ, **COMMIT}
    steps = [["init", "-q", "-b", "main"]]
    for number, words in enumerate(("A first step", "A second step"), start=1):
        (path / f"step{number}.txt").write_text(f"{words}\n")
        steps += [["add", "."], ["commit", "-q", "-m", words]]
        for step in steps:
            subprocess.run(["git", "-C", str(path), *step], env=environ, check=True)
        steps = []
    return path


def _catalogue() -> Path:
    """Return the example that is attached: of the checkout, or of the wheel."""
    here = Path(__file__).resolve()
    places = (here.parents[2] / "examples", here.parent / "examples")
    for place in places:
        if (place / "catalogue.py").exists():
            return place / "catalogue.py"
    raise CallError(ErrorKind.LOCAL_RESOURCE, "examples/catalogue.py is missing")


def _environment() -> dict[str, str]:
    # The owner's own settings have no say in the demo's homes.
    return {k: v for k, v in os.environ.items() if not k.startswith("ANPD_")}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:297]}..."


def _say(what: str, text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{what:<12}", style="bold cyan") + Text(text))


def _silent(what: str, text: str) -> None:
    """Say nothing: `--json` prints one document."""
