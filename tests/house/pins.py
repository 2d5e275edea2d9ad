"""Writes `constraints.txt` anew: all pinned versions with the hashes of their files.

The parts of it that the image and `make install` need are files of their own.

The versions are those that stand in the file; change one there, then run `make
constraints`. The index is the one that pip uses on this machine; its name is not
written. Hashes of every file of a version are taken, so that other platforms and
versions of Python install from the same list.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from urllib.request import Request, urlopen

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILE = Path(__file__).parents[2] / "constraints.txt"

IMAGE = FILE.parent / "deploy" / "container" / "requirements.txt"

HEAD = """\
# The exact versions this project is tested with, and the SHA-256 of every file of them.
# `make venv` installs these and nothing else; `make constraints` writes the hashes.
"""

IMAGE_HEAD = "# What the image needs of constraints.txt; see `make constraints`.\n"

LOCAL = [
    (
        FILE.parent / "deploy" / "local" / f"{name}.txt",
        f"# What `make {command}` needs of constraints.txt; see `make constraints`.\n",
        extras,
    )
    for name, command, extras in (
        ("requirements", "install", ("all", "demo")),
        ("demo", "demo", ("demo",)),
    )
]
"Files of the two local installations: the whole, and the demo's alone."

BUILD = ("hatchling", "editables")
"What installs the project itself in place."

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


def needed_by(lines: Iterable[str]) -> set[str]:
    """Return the normal names of all that requirements need, themselves included.

    What is needed on some platform or version of Python only is among it, as far as it
    is installed here.
    """
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(line) for line in lines]
    while waiting:
        one = waiting.pop()
        name, extras = canonicalize_name(one.name), frozenset(one.extras)
        if (name, extras) in found:
            continue
        found.add((name, extras))
        with contextlib.suppress(metadata.PackageNotFoundError):
            for line in metadata.requires(name) or ():
                needed = Requirement(line)
                of = re.findall(r'extra == "([^"]+)"', str(needed.marker or ""))
                if not of or extras.intersection(of):
                    waiting.append(needed)
    return {name for name, _ in found}


def render(head: str, pins: list[tuple[str, str, list[str]]]) -> str:
    """Return the file for pins with their hashes."""
    lines = [head]
    for name, version, hashes in sorted(pins, key=lambda pin: pin[0].lower()):
        options = "".join(f" \\\n    --hash=sha256:{digest}" for digest in hashes)
        lines.append(f"{name}=={version}{options}\n")
    return "".join(lines)


def main() -> None:
    """Write the file."""
    index = _index()
    pins = []
    for name, version in pins_of(FILE.read_text()):
        page = f"{index}/{canonicalize_name(name)}/"
        request = Request(page, headers={"Accept": JSON})
        with urlopen(request, timeout=60) as answer:
            pins.append((name, version, hashes_of(answer.read(), name, version)))
    FILE.write_text(render(HEAD, pins))
    IMAGE.write_text(render(IMAGE_HEAD, _only(pins, needed_with("all"))))
    for file, head, extras in LOCAL:
        needed = needed_with(*extras) | needed_by(BUILD)
        file.write_text(render(head, _only(pins, needed)))
    print(f"{len(pins)} distributions, {sum(len(one[2]) for one in pins)} hashes")


def needed_with(*extras: str) -> set[str]:
    """Return the normal names of all that the project needs with some extras."""
    project = tomllib.loads((FILE.parent / "pyproject.toml").read_text())["project"]
    further = [one for name in extras for one in project["optional-dependencies"][name]]
    return needed_by([*project["dependencies"], *further])


def _only(
    pins: list[tuple[str, str, list[str]]], needed: set[str]
) -> list[tuple[str, str, list[str]]]:
    return [pin for pin in pins if canonicalize_name(pin[0]) in needed]


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
