"""The daemon under attack as a process, and its memory, files and log."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.ready import children_of
from tests.attacks.children import pin
from tests.attacks.kinds.base import Target

FILES = 1024
"Files that the daemon may open: the soft limit of a login or of systemd."

START_TIMEOUT = 60.0

FUNCTIONS = '''
import time


def double(number: int, text: str) -> dict[str, str]:
    """Double a number."""
    return {"text": text, "number": str(number * 2)}


def wait(seconds: float) -> dict[str, float]:
    """Wait for some time."""
    time.sleep(min(seconds, 60.0))
    return {"waited": seconds}


def echo(text: str) -> dict[str, str]:
    """Return a text as it is."""
    return {"text": text}
'''


@dataclass(frozen=True, slots=True)
class Figures:
    """What a daemon and the processes below it hold at one moment."""

    memory: int
    "Resident memory of the daemon's own process, in bytes."

    memory_below: int
    "That of the processes below it, in bytes."

    processes: int
    "Processes below it."

    files: int
    "Open files of the daemon."

    cpu: float
    "Seconds of CPU time, all processes."

    log: int
    "Bytes of its log."

    store: int
    "Bytes of its store."


class Victim:
    """A home, and `anpd up` in it on one core."""

    def __init__(
        self,
        folder: Path,
        home: Path,
        settings: Mapping[str, object],
        *,
        listed: Sequence[str] = (),
    ) -> None:
        """Take a home, whose configuration becomes these settings.

        Args:
            settings: Values by dotted name; plain values, which TOML writes as JSON
                does.
            listed: DIDs of peers that the owner wrote into the configuration.
        """
        self._listed = listed
        self.folder = folder
        self.home = home
        self.log = folder / "victim.log"
        self._settings = {"listen.api_port": 0, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self.target = Target("", "", "")

    @property
    def address(self) -> str:
        """The address as peers write it."""
        return f"{self.target.url}#{self.target.did}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def port(self) -> int:
        """The port that peers connect to."""
        return self.target.place[1]

    def start(self, core: int | None, port: int = 0) -> None:
        """Start it and wait until peers can connect."""
        lines = [f"{key} = {json.dumps(one)}" for key, one in self._settings.items()]
        for number, did in enumerate(self._listed):
            lines += ["[[peer]]", f'name = "new{number}"', f'did = "{did}"']
        (self.home / "anpd.toml").write_text("\n".join([*lines, ""]))
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)

        def set_up() -> None:
            pin(core)
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))

        with self.log.open("ab") as written:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "anp", "--home", str(self.home), "up"),
                    *("--port", str(port), "--ready-file", str(ready)),
                ],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                preexec_fn=set_up,
            )
        limit = time.monotonic() + START_TIMEOUT
        while not ready.exists():
            if not self.alive or time.monotonic() > limit:
                raise RuntimeError(f"no daemon:\n{self.log.read_text()[-2_000:]}")
            time.sleep(0.02)
        found = json.loads(ready.read_text())
        api = json.loads((self.home / "api.json").read_text())["api_url"]
        self.target = Target(found["url"], found["did"], api)

    def stop(self) -> None:
        """End it as a service manager would, so that its home can be copied."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=30)

    def kill(self) -> None:
        """End it with SIGKILL; its home is of no use any more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def figures(self) -> Figures:
        """Return what it holds now."""
        return figures_of(self.pid, log=self.log, store=self.home / "store")


def figures_of(pid: int, *, log: Path, store: Path) -> Figures:
    """Return what a daemon and the processes below it hold now."""
    below = children_of(pid)
    return Figures(
        memory=_memory(pid),
        memory_below=sum(map(_memory, below)),
        processes=len(below),
        files=_files(pid),
        cpu=cpu_of(pid),
        log=_size(log),
        store=sum(map(_size, store.glob("*"))),
    )


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process and of all below it."""
    return sum(map(_cpu, [pid, *children_of(pid)]))


def busy(core: int | None) -> float:
    """Return the CPU seconds that a core worked since the machine started.

    Args:
        core: None is all cores.
    """
    name = "cpu" if core is None else f"cpu{core}"
    for line in Path("/proc/stat").read_text("ascii").splitlines():
        found, *times = line.split()
        if found == name:
            # All but idle and waiting for disks; time of guests is in `user` already.
            user, nice, system, _, _, irq, softirq, steal = map(int, times[:8])
            ticks = user + nice + system + irq + softirq + steal
            return ticks / os.sysconf("SC_CLK_TCK")
    return 0.0


def make_home(folder: Path) -> Path:
    """Make the home that every run copies, with what good peers call attached."""
    (folder / "victim_functions.py").write_text(FUNCTIONS)
    home = folder / "home"
    attach = ["attach", "python", "victim_functions", "--name", "good"]
    subprocess.run(
        [
            *(sys.executable, "-m", "anp", "--home", str(home), *attach),
            *("--expose", "*", "--read-only", "echo"),
        ],
        cwd=folder,
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return home


def allow(home: Path, did: str) -> None:
    """Have the owner allow a peer."""
    subprocess.run(
        [sys.executable, "-m", "anp", "--home", str(home), "peers", "allow", did],
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
    )


def copy_home(home: Path, to: Path) -> Path:
    """Copy a home whose daemon does not run."""
    shutil.copytree(home, to, symlinks=True)
    return to


def environment() -> dict[str, str]:
    """Return the environment of a daemon, without settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANPD_", "XDG_"))
    }
    return {**kept, "NO_COLOR": "1"}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # not there, or gone meanwhile
        return 0


def _memory(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except OSError:
        return 0
    return int(fields[1]) * resource.getpagesize()


def _files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def _cpu(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
