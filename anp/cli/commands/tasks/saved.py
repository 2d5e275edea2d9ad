"""Files of tasks in a folder of the user's, under the names that peers gave."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from anp.errors import CallError, ErrorKind
from anp.sidecar.files.names import names_for


def save_file(
    folder: Path,
    name: str,
    data: Iterable[bytes],
    *,
    size: int | None = None,
    sha256: str = "",
) -> Path:
    """Write a file under a peer's name for it, and return its path.

    The name is data: of a path only its end counts, dots at the beginning go, and a
    file or link that is there already is left alone; the new one gets a number. It has
    its name only when all of it is there.

    Args:
        size: Bytes that it has to have; None if that is not known.
        sha256: Its SHA-256; empty if that is not known.

    Raises:
        CallError: It cannot be written, or is another one.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f".{secrets.token_hex(8)}.part"
        try:
            _write(written, data, size=size, sha256=sha256)
            return _named(written, name)
        finally:
            written.unlink(missing_ok=True)
    except OSError as exc:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"cannot save in {folder}: {exc.strerror}"
        ) from exc


def _write(path: Path, data: Iterable[bytes], *, size: int | None, sha256: str) -> None:
    found, hashed = 0, hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o666), "wb") as stream:
        for piece in data:
            stream.write(piece)
            found += len(piece)
            hashed.update(piece)
    if (size is not None and size != found) or sha256 not in ("", hashed.hexdigest()):
        raise CallError(
            ErrorKind.UNEXPECTED, "what came is not the file that was announced"
        )


def _named(written: Path, name: str) -> Path:
    """Give a file its name, or the next one that is free."""
    for tried in names_for(name):
        path = written.parent / tried
        try:
            # Other than a move, this takes no name that is in use.
            os.link(written, path)
        except FileExistsError:
            continue
        return path
    raise CallError(
        ErrorKind.LOCAL_RESOURCE, f"{written.parent} has too many files of one name"
    )
