"""Measures the start of `anpd up` with 1,000 agreements, and its memory when idle.

`python -m bench.ready` prints ratios measured in one run: the time until peers can
connect, over that of importing the libraries that any such server needs; and the memory
of the daemon and of its sandbox (proportional set size, so that shared pages count
once). It ends with 1 when the ratio is over the goal.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.sidecar.home.home import Home
from cache.records.records import AgreementRecord, DocumentRecord, HalfRecord
from cache.store import Store

AGREEMENTS = 1_000
ROUNDS = 5
GOAL = 8.0

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


def compiled(folder: Path) -> dict[str, str]:
    """Return an environment in which Python keeps what it compiled, in `folder`.

    As it does where packages are installed; a checkout may be set up not to, and then
    compiling would be most of what is measured.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def seconds_of_imports(environment: dict[str, str]) -> float:
    """Return the seconds of a process that imports the libraries and ends."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=environment)
    return time.perf_counter() - began


class Running:
    """`anpd up` in a process of its own, with the time until it was ready."""

    def __init__(self, home: Home, folder: Path, environment: dict[str, str]) -> None:
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "anp", "--home", str(home.path), "up"]
        command += ["--port", "0", "--ready-file", str(ready)]
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        while not ready.exists():
            if self.process.poll() is not None:
                raise SystemExit("bench: anpd up ended before it was ready")
            time.sleep(0.002)
        self.seconds = time.perf_counter() - began

    def end(self) -> None:
        """Stop it as a service manager would."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)


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
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    imports, starts = [], []
    daemon = sandbox = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = Home(folder / "home")
        fill(home, wanted.agreements)
        environment = compiled(folder / "compiled")
        for number in range(wanted.rounds + 1):
            imports.append(seconds_of_imports(environment))
            running = Running(home, folder, environment)
            try:
                starts.append(running.seconds)
                if number == wanted.rounds:
                    time.sleep(2.0)
                    daemon = memory_of(running.process.pid)
                    below = children_of(running.process.pid)
                    sandbox = sum(memory_of(pid) for pid in below)
            finally:
                running.end()
    # The first one compiles and fills the page cache.
    ratio = median(starts[1:]) / median(imports[1:])
    found = {
        "agreements": wanted.agreements,
        "ratio": round(ratio, 2),
        "goal": GOAL,
        "imports_s": round(median(imports[1:]), 3),
        "ready_s": round(median(starts[1:]), 3),
        "daemon_mib": round(daemon / 2**20, 1),
        "sandbox_mib": round(sandbox / 2**20, 1),
        "sandbox_processes": len(below),
        "cpus": os.cpu_count(),
    }
    if wanted.json:
        print(json.dumps(found))
    else:
        print(f"ready with {wanted.agreements} agreements: {ratio:.2f} x imports")
        print(f"  goal at most {GOAL:g}; {found['ready_s']} s, {found['imports_s']} s")
        print(f"idle: daemon {found['daemon_mib']} MiB")
        print(f"      sandbox {found['sandbox_mib']} MiB, {len(below)} processes")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
