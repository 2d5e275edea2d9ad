"""Measures the start of `anpd up` with 1,000 agreements, and its memory when idle.

    python -m bench.ready [--against DIR]

It prints ratios measured in one run: the time until peers can connect, over that of
importing the libraries that any such server needs; the CPU of both; the time of a stop;
and the memory of the daemon and of its sandbox (proportional set size, so that shared
pages count once). `--against` measures another checkout by turns. It ends with 1 when
the ratio is over its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.sidecar.home.home import Home
from cache.records.records import AgreementRecord, DocumentRecord, HalfRecord
from cache.store import Store

AGREEMENTS = 1_000
ROUNDS = 5
GOAL = 3.0
MOST = 8.0
"The ratio with which it ends with 1, so that the start gets no slower."

IMPORTS = "import pydantic, starlette, uvicorn, websockets"

SOURCE = """import json


def encode_request(message_id, arguments):
    return json.dumps({"messageId": message_id, "input": arguments}).encode()


def decode_response(data):
    answer = json.loads(data)
    return {"message_id": answer["messageId"], "result": answer["output"]}
"""


def fill(home: Home, count: int) -> None:
    """Put agreements into a home, each with its document and half, as calls would."""
    home.create()
    key = PrivateKey.create(home.key_file)
    own = Identities.of_method(key, "did:key").canonical
    store = Store(home.store)
    try:
        for number in range(count):
            document = DocumentRecord.of(f"# Protocol {number}\n" + "words " * 400)
            half = HalfRecord.from_json(
                {
                    "hash": document.hash,
                    "role": "requester",
                    "revision": 0,
                    "source": SOURCE,
                    "origin": "rules",
                    "capabilities": {},
                    "created": 1.0,
                }
            )
            agreement = AgreementRecord.from_json(
                {
                    "own_did": own,
                    "peer_did": f"did:wba:peer-{number % 100}.example",
                    "role": "requester",
                    "need_key": f"{number:064x}",
                    "hash": document.hash,
                    "revision": 0,
                    "need": {"requirement": f"task {number}"},
                    "samples": "full",
                    "tests": {"acceptance": "passed"},
                    "negotiation_id": f"{number:016x}",
                    "created": 1.0,
                }
            )
            store.save_agreement(document, half, agreement)
    finally:
        store.close()


FILL = """
import sys
from pathlib import Path
from bench import ready
ready.fill(ready.Home(Path(sys.argv[1])), int(sys.argv[2]))
"""
"Run by the measured checkout: its own store knows how an agreement is kept."


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of a start of a process."""

    seconds: float

    cpu: float
    "Seconds of processors, those of its children with it."


@dataclass
class Checkout:
    """A checkout with a home of its own, and its figures."""

    tree: Path
    folder: Path
    imports: list[Spent] = field(default_factory=list)
    starts: list[Spent] = field(default_factory=list)

    stops: list[float] = field(default_factory=list)
    "Seconds from the signal until the process had ended."

    daemon: int = 0
    "Bytes of memory of an idle daemon."

    workers: Sequence[int] = ()
    "The same of each process below it."

    def prepare(self, agreements: int) -> None:
        """Fill the home with agreements."""
        self.folder.mkdir()
        self._run("-c", FILL, str(self.folder / "home"), str(agreements))

    def measure(self, *, idle: bool) -> None:
        """Import and start once.

        Args:
            idle: Measure the memory of the idle daemon, too.
        """
        before, began = _cpu_of_ended(), time.perf_counter()
        self._run("-c", IMPORTS)
        took = time.perf_counter() - began
        self.imports.append(Spent(took, _cpu_of_ended() - before))
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        words = ["-m", "anp", "--home", str(self.folder / "home"), "up"]
        words += ["--port", "0", "--ready-file", str(ready)]
        began = time.perf_counter()
        process = subprocess.Popen(
            [self._python, *words],
            cwd=self.tree,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise SystemExit("bench: anpd up ended before it was ready")
                time.sleep(0.002)
            took = time.perf_counter() - began
            self.starts.append(Spent(took, cpu_of(process.pid)))
            if idle:
                time.sleep(2.0)
                self.daemon = memory_of(process.pid)
                self.workers = [memory_of(pid) for pid in children_of(process.pid)]
        finally:
            began = time.perf_counter()
            # As a service manager would.
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            self.stops.append(time.perf_counter() - began)

    def found(self) -> dict[str, float]:
        """Return the medians; the first of each compiles and fills the page cache."""
        imports, starts = self.imports[1:], self.starts[1:]
        ready_s = median(one.seconds for one in starts)
        imports_s = median(one.seconds for one in imports)
        return {
            "ratio": round(ready_s / imports_s, 2),
            "imports_s": round(imports_s, 3),
            "imports_cpu_s": round(median(one.cpu for one in imports), 3),
            "ready_s": round(ready_s, 3),
            "ready_cpu_s": round(median(one.cpu for one in starts), 3),
            "stop_s": round(median(self.stops[1:]), 3),
            "daemon_mib": round(self.daemon / 2**20, 1),
            "sandbox_mib": round(sum(self.workers) / 2**20, 1),
            "sandbox_processes": len(self.workers),
        }

    @property
    def _python(self) -> str:
        own = self.tree / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def _environment(self) -> Mapping[str, str]:
        # Python keeps what it compiled, as it does where packages are installed; a
        # checkout may be set up not to, and compiling would be most of the time.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPYCACHEPREFIX": str(self.folder / "compiled")}

    def _run(self, *words: str) -> None:
        subprocess.run(
            [self._python, *words], check=True, cwd=self.tree, env=self._environment
        )


def _cpu_of_ended() -> float:
    """Return the seconds of processors that all ended children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(pid: int) -> float:
    """Return the seconds of processors of a process and all below it (Linux)."""
    ticks = 0
    for one in (pid, *children_of(pid)):
        try:
            stat = Path(f"/proc/{one}/stat").read_text("utf-8", errors="replace")
        except OSError:  # it ended meanwhile
            continue
        # Its own and those of its ended children: fields 14 to 17.
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int:
    """Return the proportional set size of a process, in bytes (Linux)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    line = next(line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024


def children_of(pid: int) -> list[int]:
    """Return all processes below one, found in /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text("utf-8", errors="replace")
            except OSError:  # it ended meanwhile
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        below = [child for child, of in parents.items() if of == parent]
        found += below
        waiting += below
    return found


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agreements", type=int, default=AGREEMENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    trees = {"now": Path(__file__).resolve().parents[1]}
    if wanted.against is not None:
        trees["against"] = wanted.against.resolve()
    with tempfile.TemporaryDirectory() as name:
        checkouts = {
            key: Checkout(tree, Path(name, key)) for key, tree in trees.items()
        }
        for one in checkouts.values():
            one.prepare(wanted.agreements)
        for number in range(wanted.rounds + 1):
            for one in checkouts.values():
                one.measure(idle=number == wanted.rounds)
    results = {key: one.found() for key, one in checkouts.items()}
    now = results["now"]
    if wanted.json:
        told = {"agreements": wanted.agreements, "goal": GOAL, "cpus": os.cpu_count()}
        print(json.dumps({**told, **results}))
    else:
        for key, found in results.items():
            print(
                f"{key}: ready with {wanted.agreements} agreements "
                f"{found['ratio']} x imports (goal at most {GOAL:g})\n"
                f"  ready {found['ready_s']} s, {found['ready_cpu_s']} of processors; "
                f"imports {found['imports_s']} s, {found['imports_cpu_s']} "
                "of processors\n"
                f"  stop {found['stop_s']} s; idle: daemon {found['daemon_mib']} MiB, "
                f"sandbox {found['sandbox_mib']} MiB in "
                f"{found['sandbox_processes']} processes"
            )
    return 0 if now["ratio"] <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
