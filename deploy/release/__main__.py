"""Makes a release in a folder: wheel, sdist, list of packages, signed checksums.

    python -m deploy.release build/release [KEY]

KEY is the file of an Ed25519 private key (PEM); without it a new one signs, which
nobody knows. Wheel and sdist are built twice, from two copies of the last commit in two
folders, and have to be the same bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.release.bill import bill_of
from deploy.release.notes import ReleaseError, version_of
from deploy.release.signing import PUBLIC, new_key, sign, verify

PROJECT = Path(__file__).resolve().parents[2]


def main(words: Sequence[str]) -> None:
    """Make the release."""
    folder = Path(words[0]).absolute()
    key = Path(words[1]).read_bytes() if len(words) > 1 else new_key()
    try:
        _make(folder, key)
    except (ReleaseError, ValueError) as exc:
        sys.exit(f"release: {exc}")
    if len(words) < 2:
        print("signed by a new key, which is gone; give one with RELEASE_KEY=FILE")


def _make(folder: Path, key: bytes) -> None:
    at = int(_git("log", "-1", "--format=%ct"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        first, second = _build(Path(one), at), _build(Path(two), at)
        version, is_dated = version_of(Path(one) / "source")
        if first != second:
            different = {name for name in first if first[name] != second.get(name)}
            raise ReleaseError(f"two builds differ: {', '.join(sorted(different))}")
        for name, data in first.items():
            (folder / name).write_bytes(data)
        bill = f"anpd-{version}.cdx.json"
        (folder / bill).write_text(bill_of(Path(one) / "source", at=at), "utf-8")
    sign(folder, [*first, bill], key)
    verify(folder, (folder / PUBLIC).read_bytes())
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.relative_to(Path.cwd())}")
    print(f"built twice, the same bytes; version {version}")
    if not is_dated:
        print("a draft: CHANGELOG.md calls this version unreleased")


def _build(folder: Path, at: int) -> dict[str, bytes]:
    """Build the last commit in a folder; return the files by their names."""
    source = folder / "source"
    source.mkdir()
    tree = subprocess.run(
        ["git", "archive", "HEAD"], cwd=PROJECT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(source)], input=tree.stdout, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(at)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"the build failed: {(done.stdout + done.stderr)[-2000:]}")
    return {path.name: path.read_bytes() for path in folder.glob("anpd-*")}


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
