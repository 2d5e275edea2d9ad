"""Makes an environment with anpd and the pinned packages it needs, and says how far.

Runs with the system's Python and nothing else:

    python3 deploy/local .venv          # anpd with all extras
    python3 deploy/local .venv demo     # what the demo needs, and no more
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off")

OLDEST = (3, 11)
"The oldest version of Python that runs anpd."

EVERY = 5.0
"Seconds between two lines of progress where no terminal shows them."


def main(words: Sequence[str]) -> None:
    """Make the environment in the folder that is named, from a list of packages."""
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(
            f"anpd needs Python 3.11 to 3.14, and {sys.executable} is {version}; "
            "with another one: make demo PYTHON=python3.12"
        )
    folder = Path(words[0] if words else ".venv")
    python = folder / "bin" / "python"
    listed = HERE / f"{words[1] if len(words) > 1 else 'requirements'}.txt"
    packages = listed.read_text("utf-8").count("==")
    with _step(1, f"makes {folder}, an environment of its own", "5 s"):
        if not python.exists():
            _run([sys.executable, "-m", "venv", str(folder)], {})
    title = f"installs {packages} packages, all pinned by their hashes"
    with _step(2, title, "half a minute, and as long as 60 MB take to download"):
        needed = ["--require-hashes", "--no-deps", "--no-compile"]
        marks = {"Collecting ": "fetched", "Installing collected": "unpacks them"}
        _run([str(python), *PIP, *needed, "-r", str(listed)], marks, of=packages)
    with _step(3, "installs anpd from this folder", "3 s"):
        own = ["--no-deps", "--no-build-isolation", "-e", str(PROJECT)]
        _run([str(python), *PIP, "-q", *own], {})


@contextmanager
def _step(number: int, title: str, about: str) -> Iterator[None]:
    print(f"{number}/3  {title} (about {about})", flush=True)
    began = time.monotonic()
    yield
    print(f"     took {time.monotonic() - began:.0f} s", flush=True)


def _run(words: Sequence[str], marks: dict[str, str], *, of: int = 0) -> None:
    """Run a command; its output is shown when it fails.

    Args:
        marks: Beginnings of its lines, each with the progress that it means.
        of: Number of lines of the first mark.
    """
    kept: list[str] = []
    seen, shown = 0, time.monotonic()
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            kept.append(line)
            told = [text for mark, text in marks.items() if line.startswith(mark)]
            if not told:
                continue
            counts = told[0] == next(iter(marks.values()))
            seen += counts
            text = f"     {seen} of {of} {told[0]}" if counts else f"     {told[0]}"
            if sys.stdout.isatty():
                print(f"\r{text}\x1b[K", end="", flush=True)
            elif not counts or time.monotonic() - shown > EVERY:
                shown = time.monotonic()
                print(text, flush=True)
    if marks and sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)
    if process.returncode:
        print("".join(kept[-20:]), end="", file=sys.stderr)
        sys.exit(
            f"this failed: {' '.join(words)}\nmake it again: what is there is kept"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
