"""The corpus of escapes and its judge, shared by the control run and the tests.

An attempt is a file `corpus/escapes/<category>/<name>.py` whose first line names the
effect it is after. The judge sets up what an attempt may reach for (a probe), and looks
from outside, afterwards, which effects there were.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import platform
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CORPUS = Path(__file__).parent / "corpus" / "escapes"
"Where the attempts are."

EFFECTS = {
    "leak": "the token came back",
    "write": "something in the folder was created, changed, renamed or removed",
    "network": "a listener was reached",
    "signal": "another process was signalled, limited or traced",
    "escaped": "the attempt saw a forbidden operation succeed",
    "channel": "the channel carried something else than the answer",
    "exhaust": "time, memory or output had no bound, or the process died",
    "state": "another run met what this one left behind",
}
"Effects an attempt may have, and what each means."

ENV_NAME = "ANPD_TEST_TOKEN"
"Environment variable that holds the token."

# What an attacker looks for at the daemon's: a token in its environment, in its memory
# and behind a descriptor. Where the kernel asks for consent to be traced it is given,
# so that nothing but the sandbox stops an attempt.
_STAND_IN = """
import ctypes, sys
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
kept = open(sys.argv[1], "rb")
token = kept.read()
print("ready", flush=True)
sys.stdin.read()
"""

_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of the corpus."""

    name: str
    "Path below `CORPUS`: `<category>/<file>.py`."

    effect: str
    "The effect it is after, a key of `EFFECTS`."

    note: str
    "What is special about it; may be empty."

    source: str
    "The whole text."

    @property
    def sha256(self) -> str:
        """Hash of the text in hex, by which the control run names it."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def is_generator(self) -> bool:
        """True if it is run as a generator that yields capability calls."""
        return "yield call(" in self.source


def attempts() -> list[Attempt]:
    """Return the corpus in the order of names; ValueError for a malformed file."""
    found = []
    for path in sorted(CORPUS.glob("*/*.py")):
        source = path.read_text("utf-8")
        name = path.relative_to(CORPUS).as_posix()
        head = [*source.split("\n", 2), ""]
        effect = head[0].removeprefix("# effect: ")
        if effect not in EFFECTS:
            raise ValueError(f"{name}: its first line names no effect: {head[0]!r}")
        note = head[1].removeprefix("# note: ") if head[1].startswith("# note:") else ""
        found.append(Attempt(name, effect, note, source))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one attempt."""

    text: str = ""
    "Everything that came back, as text: the value or the report of its failure."

    value: Any = None
    "The value it returned."

    check: Any = None
    "The value of `check`, of an attempt on shared state."

    exhausted: bool = False
    "Whether time, memory or output had no bound, or the process died."

    channel: bool = False
    "Whether the channel carried something else than the answer."


class Surroundings:
    """The token, and a process in the daemon's place that holds it; for many probes."""

    def __enter__(self) -> Self:
        self.token = f"anpd-secret-{secrets.token_hex(16)}"
        self._folder = Path(tempfile.mkdtemp(prefix="anpd-escapes-"))
        # Workers run as another user, and permissions are not what must stop them.
        self._folder.chmod(0o777)
        file = self._folder / "kept"
        file.write_text(self.token)
        self._before = os.environ.get(ENV_NAME)
        os.environ[ENV_NAME] = self.token
        # A descriptor that a careless start of the fork server would hand on; above
        # the few that a worker or the control run put in their own places.
        found = os.open(file, os.O_RDONLY)
        self.inherited = fcntl.fcntl(found, fcntl.F_DUPFD, 50)
        os.close(found)
        self._stand_in = subprocess.Popen(
            [sys.executable, "-I", "-c", _STAND_IN, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._stand_in.stdout is not None
        assert self._stand_in.stdout.readline() == b"ready\n"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stand_in.kill()
        self._stand_in.communicate()
        os.close(self.inherited)
        if self._before is None:
            os.environ.pop(ENV_NAME, None)
        else:
            os.environ[ENV_NAME] = self._before
        shutil.rmtree(self._folder)

    def probe(self) -> Probe:
        """Return a new probe, to be used in a `with` statement."""
        return Probe(self.token, self._stand_in.pid)


class Probe:
    """The targets of one attempt, and the judge of its success."""

    def __init__(self, token: str, daemon: int) -> None:
        self._token = token
        self._daemon = daemon

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._root = Path(tempfile.mkdtemp(prefix="anpd-probe-"))
            stack.callback(shutil.rmtree, self._root)
            self._set_up(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _set_up(self, stack: contextlib.ExitStack) -> None:
        folder, secret = self._root / "folder", self._root / "secret"
        folder.mkdir()
        secret.write_text(self._token)
        (folder / f"named-{self._token}").touch()
        for path, mode in ((self._root, 0o777), (folder, 0o777), (secret, 0o666)):
            path.chmod(mode)
        unix_path = str(self._root / "socket")
        abstract = f"\0anpd-probe-{secrets.token_hex(8)}"
        tcp = stack.enter_context(socket.socket())
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        unix.bind(unix_path)
        Path(unix_path).chmod(0o777)
        hidden.bind(abstract)
        self._listeners = {"tcp": tcp, "unix": unix, "abstract": hidden}
        for listener in self._listeners.values():
            listener.listen()
            listener.setblocking(False)
        udp.setblocking(False)
        self._udp = udp
        self._victim = subprocess.Popen(
            ["sleep", "60"], stdin=subprocess.DEVNULL, start_new_session=True
        )
        stack.callback(self._victim.wait)
        stack.callback(self._victim.kill)
        self.values: dict[str, Any] = {
            "secret_file": str(secret),
            "folder": str(folder),
            "write_file": str(folder / "written"),
            "env": ENV_NAME,
            "host": "127.0.0.1",
            "tcp_port": tcp.getsockname()[1],
            "udp_port": udp.getsockname()[1],
            "unix_path": unix_path,
            "abstract": abstract,
            "victim": self._victim.pid,
            "daemon": self._daemon,
        }
        self._files_before = self._files()
        self._victim_before = self._victim_state()

    def effects(self, outcome: Outcome) -> set[str]:
        """Return the effects that can be seen now; keys of `EFFECTS`."""
        seen = {
            "leak": self._token in outcome.text,
            "write": self._files() != self._files_before,
            "network": self._was_reached(),
            "signal": self._victim_state() != self._victim_before,
            "escaped": _is_escaped(outcome.value),
            "state": _is_escaped(outcome.check),
            "channel": outcome.channel,
            "exhaust": outcome.exhausted,
        }
        return {effect for effect, is_seen in seen.items() if is_seen}

    def _files(self) -> dict[str, tuple[int, ...]]:
        """Return what is known of each file; the change time covers all the rest."""
        found: dict[str, tuple[int, ...]] = {}
        for path in [self._root, *self._root.rglob("*")]:
            status = path.lstat()
            found[str(path)] = (
                status.st_ino,
                status.st_mode,
                status.st_uid,
                status.st_gid,
                status.st_nlink,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
            )
        return found

    def _was_reached(self) -> bool:
        for listener in self._listeners.values():
            with contextlib.suppress(BlockingIOError):
                connection, _ = listener.accept()
                connection.close()
                return True
        with contextlib.suppress(BlockingIOError):
            self._udp.recv(1)
            return True
        return False

    def _victim_state(self) -> tuple[object, ...]:
        pid = self._victim.pid
        if self._victim.poll() is not None:
            return ("ended", self._victim.returncode)
        folder = Path(f"/proc/{pid}")
        status = (folder / "status").read_text()
        state = _field(status, "State")[0]
        kinds = [getattr(resource, k) for k in dir(resource) if k.startswith("RLIMIT_")]
        return (
            state if state in "TtZX" else "runs",
            _field(status, "TracerPid"),
            [resource.prlimit(pid, kind) for kind in kinds],
            os.getpriority(os.PRIO_PROCESS, pid),
            os.sched_getaffinity(pid),
            os.sched_getscheduler(pid),
            _io_priority(pid),
            (folder / "oom_score_adj").read_text(),
        )


def _field(status: str, name: str) -> str:
    return next(
        line.split()[1] for line in status.splitlines() if line.startswith(name + ":")
    )


def _io_priority(pid: int) -> int:
    number = _IOPRIO_GET.get(platform.machine())
    if number is None:
        return 0
    return int(ctypes.CDLL(None).syscall(number, 1, pid))


def _is_escaped(value: object) -> bool:
    return type(value) is str and value == "escaped"
