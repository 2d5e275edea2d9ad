"""Starts the process of a fork server, at will before there is an event loop."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen

from sandbox.processes.control import CONTROL_FD, Control, control_pair

PACKAGES = str(Path(__file__).resolve().parents[2])
"Folder of this package; under -I the fork server has to be told."

AHEAD = ("module", "schema")
"Kinds of fork servers that a daemon has."


@dataclass(frozen=True, slots=True)
class Launched:
    """The process of a fork server, which ends when its control socket is closed."""

    process: Popen[bytes]
    control: Control


_ahead: dict[str, Launched] = {}
"""Those that nobody has taken yet, by kind.

Of the process and not of a `ForkServer`, as they are started before the modules are
loaded that could pass them on.
"""


def launch_ahead() -> None:
    """Start the fork servers of the daemon that this process is about to become.

    They take as long to load what workers need as the daemon takes to load itself.
    Limits are no matter of the servers: they come with the request for each worker.
    """
    for kind in AHEAD:
        _ahead[kind] = launch(kind)


def launched(kind: str, without: Collection[str] = ()) -> Launched:
    """Return a fork server that was started ahead, once, or start one.

    Args:
        kind: See `sandbox.processes.forkserver.main`.
        without: Layers of the lock to leave out, for tests.
    """
    return (None if without else _ahead.pop(kind, None)) or launch(kind, without)


def launch(kind: str, without: Collection[str] = ()) -> Launched:
    """Start a fork server; see `launched`."""
    ours, theirs = control_pair()
    ours.setblocking(False)
    control = Control(ours)
    try:
        with theirs:
            process = Popen(
                _command(kind, theirs.fileno(), tuple(without)),
                pass_fds=(theirs.fileno(),),
                stdin=DEVNULL,
                stdout=DEVNULL,
                env={"LANG": "C.UTF-8"},
                start_new_session=True,
            )
    except BaseException:
        control.close()
        raise
    return Launched(process, control)


def _command(kind: str, descriptor: int, without: tuple[str, ...]) -> list[str]:
    """Return the command that starts a fork server with its control socket."""
    # -I keeps the environment and the current folder out of the import path.
    code = (
        f"import sys; sys.path.insert(0, {PACKAGES!r}); import os; "
        f"fd = {descriptor}; os.dup2(fd, {CONTROL_FD}); "
        f"fd == {CONTROL_FD} or os.close(fd); "
        "from sandbox.processes.forkserver import main; "
        f"main({kind!r}, {without!r})"
    )
    return [sys.executable, "-I", "-c", code]
