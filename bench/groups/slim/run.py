"""Runs the group over SLIM and gives its figures.

`python -m bench.groups.slim` prints one line of JSON for each number of members: the
milliseconds from a post until all have answered, and the deliveries in a second.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
PYTHON: Final = ROOT / ".venvs" / "slim" / "bin" / "python"
HERE: Final = Path(__file__).parent
MEMBERS: Final = (2, 8, 32)
"Numbers of members that are measured."

READY: Final = 30.0
"Seconds for a process to end when it is asked to."


class SlimMissing(Exception):
    """Something is not installed that the comparison needs; says what to do."""


def measure(
    members: int,
    *,
    rounds: int = 200,
    deliveries: int = 16_000,
    size: int = 256,
    to_all: bool = False,
) -> dict[str, Any]:
    """Return the figures of one group.

    Args:
        members: Members besides the sender.
        rounds: Posts that are answered one after the other; the first tenth is not
            counted.
        deliveries: Deliveries in the test of throughput, over all members.
        size: Bytes of a post.
        to_all: Answers go to all members; else to the sender alone.

    Raises:
        SlimMissing: The environment or the compiler is not there.
    """
    if not PYTHON.exists():
        raise SlimMissing("SLIM is not installed; run: make slim-env")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = {**os.environ, "LD_PRELOAD": str(_preload(folder))}
        port = _free_port()
        stack.enter_context(_process(environment, "broker", port))
        stack.enter_context(_process(environment, "members", port, members))
        posts = max(1, deliveries // members)
        numbers = port, members, rounds, posts, size, int(to_all)
        with _process(environment, "sender", *numbers) as figures:
            return {"peer": "slim-bindings 3.3.8", "bytes": size, **figures}


def _preload(folder: Path) -> Path:
    """Compile what keeps TCP_NODELAY on."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SlimMissing("there is no C compiler `cc` for the preload of TCP_NODELAY")
    library = folder / "nodelay.so"
    source = HERE / "nodelay.c"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([*command, "-ldl"], check=True)
    return library


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def _process(
    environment: dict[str, str], role: str, *numbers: int
) -> Iterator[dict[str, Any]]:
    """Run one of the processes; give the line that it says first."""
    command = [str(PYTHON), str(HERE / "process.py"), role, *map(str, numbers)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            line = next((x for x in process.stdout if x.startswith(b"{")), b"")
            if not line:
                raise RuntimeError(f"SLIM's {role} ended with {process.wait()}")
            yield json.loads(line)
        finally:
            process.kill()
            process.wait(READY)
