"""logs, stop, and `up --background`: a daemon that has no terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from click import Context

from anp.cli.client import home_of
from anp.cli.grammar import Commands, Option
from anp.cli.options import Json
from anp.cli.output import print_bytes, print_one
from anp.errors import CallError, ErrorKind
from anp.sidecar.home.home import Home

MAX_LOG: Final = 10 * 1024 * 1024
"Bytes of a log that the next start in the background still appends to."

READY_TIMEOUT: Final = 60.0
"Seconds in which a daemon has to become ready."

LOOK: Final = 0.1
"Seconds between two looks at a file or a process."

MAX_SHOWN: Final = 1024 * 1024
"Bytes at the end of a log in which the last lines are looked for."


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.command("stop")(stop)
    app.command("logs")(logs)


def stop(
    context: Context,
    timeout: Annotated[
        float, Option(min=0, help="Seconds to wait for its end.")
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Stop the daemon, after the calls that are under way."""
    home, _ = home_of(context.obj)
    pid = find_daemon(home)
    began = time.monotonic()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while home.is_running():
        if time.monotonic() - began > timeout:
            raise CallError(
                ErrorKind.TIMEOUT,
                f"the daemon of {home.path} still finishes calls after {timeout:g} s; "
                "it ends when they do, at the latest after operation.stop_timeout",
            )
        time.sleep(LOOK)
    cut = home.calls_cut()
    lost = f"; {cut} calls were cut off" if cut else ""
    print_one(
        {"stopped": pid, "calls_cut": cut},
        [f"stopped the daemon of {home.path}{lost}"],
        as_json=as_json,
    )


def find_daemon(home: Home) -> int:
    """Return the process that holds a home.

    Raises:
        CallError: No daemon runs, or none that this machine shows to this user.
    """
    pid = home.read_api().pid
    folder, lock = Path(f"/proc/{pid}/fd"), home.lock_file.resolve()
    # The number is one of another machine when the daemon runs in a container.
    with suppress(OSError):
        for one in folder.iterdir():
            with suppress(OSError):
                if one.resolve() == lock:
                    return pid
    raise CallError(
        ErrorKind.DAEMON_UNREACHABLE,
        f"the daemon of {home.path} runs in a container or as another user; stop it "
        "there",
    )


def logs(
    context: Context,
    follow: Annotated[
        bool, Option("--follow", "-f", help="Go on until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int, Option("--lines", "-n", min=0, help="Last lines that are printed.")
    ] = 50,
    as_json: Annotated[
        bool, Option("--json", help="Print the path of the file as JSON.")
    ] = False,
) -> None:
    """Print the log of a daemon that was started with `up --background`."""
    home, _ = home_of(context.obj)
    try:
        file = home.log_file.open("rb")
    except FileNotFoundError:
        raise CallError(
            ErrorKind.USAGE,
            f"{home.path} has no log: a daemon writes it in its own terminal, or its "
            "service keeps it (journalctl --user -u anpd); "
            "`anpd up --background` keeps one here",
        ) from None
    if as_json:
        file.close()
        print_one({"path": str(home.log_file)}, [], as_json=True)
        return
    with file:
        print_bytes(_last(file, lines))
        if not follow:
            return
    for piece in followed(home.log_file):
        print_bytes(piece)


def _last(file: BinaryIO, lines: int) -> bytes:
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - MAX_SHOWN))
    found = file.read().splitlines(keepends=True)
    return b"".join(found[len(found) - lines :] if lines < len(found) else found)


def followed(
    path: Path, sleep: Callable[[float], None] = time.sleep
) -> Iterator[bytes]:
    """Give what is added to a file, also after another file took its place.

    Args:
        sleep: Waits between two looks.
    """
    file = path.open("rb")
    file.seek(0, os.SEEK_END)
    try:
        while True:
            if piece := file.read():
                yield piece
                continue
            with suppress(FileNotFoundError):
                if path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                    file.close()
                    file = path.open("rb")
                    continue
            sleep(LOOK)
    finally:
        file.close()


def start_in_background(
    home: Home, arguments: Sequence[str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Start a daemon that outlives this terminal; return what `up --json` prints.

    Args:
        arguments: Words of the command, without `--background`.
        environ: Further variables of its environment.

    Raises:
        CallError: It did not become ready; the text is the last line of its log.
    """
    if home.is_running():
        raise CallError(
            ErrorKind.LOCAL_RESOURCE,
            f"home {home.path} is in use by another daemon; `anpd status` shows it, "
            "`anpd stop` ends it",
        )
    home.create()
    log = home.log_file
    if log.exists() and log.stat().st_size > MAX_LOG:
        log.replace(log.with_suffix(".log.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with tempfile.TemporaryFile() as said, os.fdopen(descriptor, "ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "anp", *arguments, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=output,
            env={**os.environ, **environ},
            start_new_session=True,
        )
        return _ready(process, said, log, begin)


def _ready(
    process: subprocess.Popen[bytes], said: BinaryIO, log: Path, begin: int
) -> dict[str, Any]:
    """Return the first line that the daemon says, as soon as it is whole."""
    deadline = time.monotonic() + READY_TIMEOUT
    while True:
        ended = process.poll() is not None
        line = os.pread(said.fileno(), 1 << 16, 0)
        found: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        # One that fails says so in the same form, before it ends.
        if not ended and "url" in found:
            return {**found, "pid": process.pid, "log": str(log)}
        if ended:
            raise _failure(line, log, begin)
        if time.monotonic() > deadline:
            process.terminate()
            raise CallError(
                ErrorKind.TIMEOUT,
                f"the daemon was not ready within {READY_TIMEOUT:g} s; see {log}",
            )
        time.sleep(LOOK / 4)


def _failure(line: bytes, log: Path, begin: int) -> CallError:
    """Return the error with which a daemon ended that never became ready."""
    try:
        problem = json.loads(line)
        return CallError(ErrorKind(problem["kind"]), str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        written = log.read_bytes()[begin:].decode(errors="replace").strip()
        last = written.splitlines()[-1] if written else "it said nothing"
        return CallError(ErrorKind.UNEXPECTED, f"the daemon did not start: {last}")
