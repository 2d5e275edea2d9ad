"""Writes `constraints.txt` anew: every pinned distribution with the hashes of its files.

The versions are those that stand in the file; change one there, then run `make
constraints`. The index is the one that pip uses on this machine; its name is not
written. Hashes of every file of a version are taken, so that other platforms and
versions of Python install from the same list.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

__all__ = ["hashes_of", "main", "pins_of", "render"]

FILE = Path(__file__).parents[2] / "constraints.txt"

HEAD = (
    "# The exact versions this project is tested with, and the SHA-256 of every file of "
    "them.\n# `make venv` installs these and nothing else; `make constraints` writes "
    "the hashes anew.\n"
)

DEFAULT_INDEX = "https://pypi.org/simple"

PIN = re.compile(r"(?m)^([A-Za-z0-9._-]+)==([^\s\\;]+)")

JSON = "application/vnd.pypi.simple.v1+json"


def pins_of(text: str) -> list[tuple[str, str]]:
    """Return the names and versions in a file of constraints, in its order."""
    return PIN.findall(text)


def hashes_of(page: bytes, name: str, version: str) -> list[str]:
    """Return the SHA-256 of every file of a version, from the index's JSON page.

    Raises:
        ValueError: The index has no file of it.
    """
    wanted = re.compile(
        rf"{_spelled(name)}-{re.escape(version)}(-.*\.whl|\.tar\.gz|\.zip)", re.I
    )
    found = {
        file["hashes"]["sha256"]
        for file in json.loads(page)["files"]
        if wanted.fullmatch(file["filename"]) and "sha256" in file["hashes"]
    }
    if not found:
        raise ValueError(f"the index has no file of {name} {version} with a hash")
    return sorted(found)


def render(pins: list[tuple[str, str, list[str]]]) -> str:
    """Return the file for pins with their hashes."""
    lines = [HEAD]
    for name, version, hashes in sorted(pins, key=lambda pin: pin[0].lower()):
        options = "".join(f" \\\n    --hash=sha256:{digest}" for digest in hashes)
        lines.append(f"{name}=={version}{options}\n")
    return "".join(lines)


def main() -> None:
    """Write the file."""
    index = _index()
    pins = []
    for name, version in pins_of(FILE.read_text()):
        normal = re.sub(r"[-_.]+", "-", name).lower()
        request = Request(f"{index}/{normal}/", headers={"Accept": JSON})
        with urlopen(request, timeout=60) as answer:
            pins.append((name, version, hashes_of(answer.read(), name, version)))
    FILE.write_text(render(pins))
    print(f"{len(pins)} distributions, {sum(len(one[2]) for one in pins)} hashes")


def _spelled(name: str) -> str:
    """Return a pattern for a name as file names spell it."""
    return r"[-_.]+".join(re.escape(part) for part in re.split(r"[-_.]+", name))


def _index() -> str:
    """Return the URL of the index that pip uses."""
    asked = os.environ.get("PIP_INDEX_URL")
    if not asked:
        ended = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
            capture_output=True,
            text=True,
            check=False,
        )
        asked = ended.stdout.strip()
    return (asked or DEFAULT_INDEX).rstrip("/")


if __name__ == "__main__":
    main()
