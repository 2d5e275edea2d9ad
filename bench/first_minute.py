"""Times the first minute of somebody new: install, demo, help, a first call.

    python -m bench.first_minute [--against DIR]

Each checkout is copied as its last commit has it, and installed by what its `make demo`
needs, without pip's cache. The first call begins with nothing: a program is attached,
two daemons start, and one calls the other. `--against` times another checkout in the
same run, step by step in turn.
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
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

INSTALLS = (".venv/.demo", "install", "venv")
"Targets of make that install what the demo needs; the first that a checkout has."

READY_TIMEOUT = 60.0
"Seconds a daemon has to become ready."


class Newcomer:
    """Somebody who has just got a copy of a checkout, and nothing else."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._tree = folder / "clone"
        self._homes = folder / "homes"
        for one in (self._tree, self._homes):
            one.mkdir(parents=True)
        told = {"PIP_NO_CACHE_DIR": "1", "HOME": str(folder)}
        ours = ("ANPD_", "PYTHONPATH", "VIRTUAL_ENV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        self._environment = kept | told
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=tree, capture_output=True, check=True
        )
        words = ["tar", "-x", "-C", str(self._tree)]
        subprocess.run(words, input=archive.stdout, check=True)

    def steps(self) -> Mapping[str, Callable[[], None]]:
        """Return all that is timed, in order."""
        anpd = self._anpd()
        return {
            "install": partial(self._run, "make", self._target()),
            "first demo": partial(self._run, "make", "demo"),
            "second demo": partial(self._run, "make", "demo"),
            "help": partial(self._run, anpd, "--help"),
            "first call": self._call,
        }

    def _anpd(self) -> str:
        return str(self._tree / ".venv" / "bin" / "anpd")

    def _target(self) -> str:
        def is_there(name: str) -> bool:
            done = subprocess.run(
                ["make", "-n", name], cwd=self._tree, capture_output=True, check=False
            )
            return done.returncode == 0

        return next(filter(is_there, INSTALLS))

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            words,
            cwd=self._tree,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"{' '.join(words)}:\n{done.stdout}{done.stderr}"[-4000:]
            )

    def _call(self) -> None:
        shop, buyer = (str(self._homes / name) for name in ("shop", "buyer"))
        anpd = self._anpd()
        program = str(self._tree / "examples" / "catalogue.py")
        self._run(anpd, "--home", shop, "attach", "python", program, "--expose", "*")
        with ExitStack() as stack:
            for home in (shop, buyer):
                stack.enter_context(self._daemon(home))
            address = _waited(Path(shop + ".ready"))
            _waited(Path(buyer + ".ready"))
            data = '{"product_id": "P12346"}'
            words = ("call", address, "get_product", "-d", data)
            self._run(anpd, "--home", buyer, *words)

    def _daemon(self, home: str) -> ExitStack:
        ready = ("--ready-file", f"{home}.ready")
        process = subprocess.Popen(
            [self._anpd(), "--home", home, "up", "--port", "0", *ready],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack = ExitStack()
        stack.callback(process.wait)
        stack.callback(process.send_signal, signal.SIGTERM)
        return stack


def _waited(ready: Path) -> str:
    """Return the address in a ready file, as soon as it is there."""
    deadline = time.monotonic() + READY_TIMEOUT
    while not ready.exists():
        if time.monotonic() > deadline:
            raise RuntimeError("no daemon")
        time.sleep(0.02)
    found = json.loads(ready.read_bytes())
    return f"{found['url']}#{found['did']}"


def _cpu() -> float:
    """Return the seconds of processor time that all ended children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure and print a table in Markdown: seconds, and those of processors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--against", type=Path, help="another checkout")
    other = parser.parse_args().against
    trees = {"now": Path(__file__).parents[1]}
    if other is not None:
        trees = {"before": other.resolve(), **trees}
    with tempfile.TemporaryDirectory() as folder:
        newcomers = [Newcomer(tree, Path(folder, name)) for name, tree in trees.items()]
        all_steps = [one.steps() for one in newcomers]
        print(f"| | {' | '.join(trees)} |")
        print("|---" * (len(trees) + 1) + "|")
        for name in all_steps[0]:
            cells = []
            for steps in all_steps:
                began, used = time.perf_counter(), _cpu()
                steps[name]()
                took = time.perf_counter() - began
                cells.append(f"{took:.1f} s ({_cpu() - used:.1f})")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
