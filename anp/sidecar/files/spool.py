"""The files that are kept here, and the room that they may have.

Each belongs to the folder of its session, below one folder of the home, and has a
sealed record beside it. No word of a peer's is in a path: names are hashes of ours. A
file is `NAME.part` until its length and its SHA-256 are those that were announced, and
`NAME.data` from then on. Uploads of local programs wait in a folder of their own until
a task takes them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.errors import AnpError
from anp.interaction.elements import FILE_URN, Part
from anp.sidecar.files.sealed_file import (
    BLOCK,
    SealedWriter,
    read_blocks,
    read_blocks_at_once,
)

logger = logging.getLogger(__name__)

PURPOSE: Final = b"anpd: files at rest"
"Purpose of the secret that seals files; see `PrivateKey.derive`."

UPLOADS: Final = "uploads"
"Folder of files that no task has taken yet."

LISTED_SHARE: Final = 4
"One peer on the owner's list may fill the room divided by this."

UNLISTED_SHARE: Final = 16
"All other peers together may fill the room divided by this."

LEAST: Final = 64 * 1024
"Bytes that a file counts at least, since its record takes room as well."

UPLOAD_LIFE: Final = 3600.0
"Seconds for which an upload waits for a task."


class NoRoom(AnpError):
    """A file is too large, or there is no room for it; the words are for its sender."""

    def __init__(self, text: str, *, too_large: bool = False) -> None:
        super().__init__(text)
        self.too_large = too_large


class FileRole(StrEnum):
    """The way in which a file came here."""

    OWN = "own"
    "Of this agent: it is given to a peer."

    INPUT = "input"
    "Of a peer, for a task of its that is done here."

    RESULT = "result"
    "Of a peer, from a task that it does for us."


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """The record of one file."""

    id: str
    "Its URI on the wire, as its sender made it."

    log: str
    "Our own id of its session; `UPLOADS` before it has one."

    session: str = ""
    "Id on the wire of its session."

    task: str = ""
    "Id on the wire of its task."

    role: FileRole = FileRole.OWN
    mark: str = ""
    "Names it in its blocks."

    name: str = ""
    "Its sender's name for it; data, never a path."

    media_type: str = "application/octet-stream"
    size: int = 0
    sha256: str = ""

    peer: str = ""
    "The peer that sends it; empty for our own."

    listed: bool = True
    "The peer stood on the owner's list when it came."

    at: float = 0.0
    "Seconds since 1970 at which it began."

    failed: str = ""
    "The reason for which it never came, in words."

    @property
    def key(self) -> str:
        """Its name in the folder of its session."""
        own = "own" if self.role is FileRole.OWN else "peer"
        return file_key(own, self.task, self.id)

    @property
    def part(self) -> Part:
        """The part of a message that announces it."""
        return Part.link(
            self.id,
            name=self.name,
            media_type=self.media_type,
            size=self.size,
            sha256=self.sha256,
        )

    @property
    def counted(self) -> int:
        """Bytes that it counts against the room."""
        return LEAST if self.failed else max(self.size, LEAST)


class Spool:
    """Keeps files; its methods block, and may be called in threads."""

    def __init__(
        self, folder: Path, secret: bytes, *, max_file: int, max_files: int
    ) -> None:
        """Use a folder; `load` reads what is there.

        Args:
            secret: 32 bytes that only this identity can derive.
            max_file: Most bytes of one file.
            max_files: Most bytes of all.
        """
        self._folder = folder
        self._cipher = AESGCM(secret)
        self.max_file = max_file
        self._max_files = max_files
        self._kept: dict[tuple[str, str], KeptFile] = {}
        self._lock = threading.Lock()

    # Look-ups

    def load(self) -> None:
        """Read the records of all files, and remove the remains of uploads."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(self._folder / UPLOADS, ignore_errors=True)
        for path in self._folder.glob("*/*.about"):
            try:
                kept = self._open(path.read_bytes(), path.stem)
            except (OSError, ValueError, InvalidTag, TypeError, KeyError) as exc:
                logger.warning("record of a file is damaged path=%s: %s", path, exc)
                continue
            if kept.log == path.parent.name and kept.key == path.stem:
                self._kept[kept.log, kept.key] = kept
        for path in self._folder.glob("*/*"):
            if (path.parent.name, path.stem) not in self._kept:
                # A kill left it while it was written.
                path.unlink(missing_ok=True)

    def find(self, log: str, task: str, uri: str) -> KeptFile | None:
        """Return a file of a task by its URI, ours before a peer's."""
        for own in ("own", "peer"):
            kept = self._kept.get((log, file_key(own, task, uri)))
            if kept is not None:
                return kept
        return None

    def upload(self, uri: str) -> KeptFile | None:
        """Return an upload by its URI."""
        return self._kept.get((UPLOADS, file_key("own", "", uri)))

    def is_whole(self, kept: KeptFile) -> bool:
        """Return whether all of it is here."""
        return self._path(kept, "data").exists()

    def progress(self, kept: KeptFile) -> int:
        """Return the bytes of it that are here, roughly."""
        try:
            return min(self._path(kept, "part").stat().st_size, kept.size)
        except OSError:
            return kept.size if self.is_whole(kept) else 0

    def wanted(self) -> list[KeptFile]:
        """Return the files of peers that are not whole, and may still come."""
        return [
            one
            for one in list(self._kept.values())
            if one.role is not FileRole.OWN
            and not one.failed
            and not self.is_whole(one)
        ]

    @property
    def used(self) -> int:
        """Bytes that all files count."""
        return sum(one.counted for one in list(self._kept.values()))

    def is_nearly_full(self, more: int = 0) -> bool:
        """Return whether the oldest files have to go, for so many bytes more."""
        return self.used + more >= self._max_files * 9 // 10

    def logs(self, *, peer: str = "") -> list[str]:
        """Return the sessions that have files, those with the oldest ones first.

        Args:
            peer: Only those with files of this peer; empty for all.
        """
        newest: dict[str, float] = {}
        for one in list(self._kept.values()):
            if one.log != UPLOADS and peer in ("", one.peer):
                newest[one.log] = max(one.at, newest.get(one.log, 0.0))
        return sorted(newest, key=lambda log: newest[log])

    def inputs(self, log: str, task: str) -> list[KeptFile]:
        """Return the files that a peer gave for a task that is done here."""
        return [
            one
            for one in list(self._kept.values())
            if (one.log, one.task, one.role) == (log, task, FileRole.INPUT)
        ]

    # Room

    def check(self, size: int, *, peer: str = "", listed: bool = True) -> None:
        """Check that there is room for one more file.

        Args:
            peer: The peer that sends it; empty for our own.
            listed: Whether the peer stands on the owner's list.

        Raises:
            NoRoom: There is none.
        """
        if size > self.max_file:
            raise NoRoom(
                f"a file has at most {self.max_file} bytes here", too_large=True
            )
        kept = list(self._kept.values())
        most, used = self._max_files, sum(one.counted for one in kept)
        if used + size > most:
            raise NoRoom("there is no room for more files here")
        if peer and listed:
            most //= LISTED_SHARE
            used = sum(one.counted for one in kept if one.peer == peer)
        elif peer:
            most //= UNLISTED_SHARE
            used = sum(one.counted for one in kept if one.peer and not one.listed)
        if used + size > most:
            raise NoRoom("there is no room for more files of this sender here")

    # Files of peers

    def expect(self, kept: KeptFile) -> KeptFile | None:
        """Note a file that a peer announced, and return it; None if it is known.

        Raises:
            NoRoom: It may not come.
        """
        with self._lock:
            if (kept.log, kept.key) in self._kept:
                return None
            self.check(kept.size, peer=kept.peer, listed=kept.listed)
            kept = replace(kept, mark=secrets.token_hex(16), at=time.time())
            try:
                self._note(kept)
            except OSError as exc:
                raise NoRoom(f"the disk takes no files here: {exc.strerror}") from exc
            return kept

    def writer(self, kept: KeptFile) -> SealedWriter:
        """Return what goes on with a file where it was left."""
        kept = self._kept[kept.log, kept.key]
        return SealedWriter(self._path(kept, "part"), self._cipher, kept.mark)

    def finish(self, kept: KeptFile, writer: SealedWriter) -> bool:
        """Keep a file that has come; False, and it is gone, if it is another one."""
        size, sha256 = writer.finish()
        if (size, sha256) != (kept.size, kept.sha256):
            self._path(kept, "part").unlink(missing_ok=True)
            return False
        self._path(kept, "part").rename(self._path(kept, "data"))
        return True

    def fail(self, kept: KeptFile, reason: str) -> None:
        """Note that a file will never come."""
        with self._lock:
            key = kept.log, kept.key
            if key not in self._kept:
                return
            self._kept[key] = failed = replace(self._kept[key], failed=reason)
            self._path(kept, "part").unlink(missing_ok=True)
            # A full disk does not take this either; the next start tries again then.
            with contextlib.suppress(OSError):
                self._note(failed)

    def forget(self, kept: KeptFile) -> None:
        """Remove one file."""
        with self._lock:
            self._kept.pop((kept.log, kept.key), None)
            for ending in ("about", "part", "data"):
                self._path(kept, ending).unlink(missing_ok=True)

    # Files of our own

    def begin(
        self,
        log: str = UPLOADS,
        *,
        session: str = "",
        task: str = "",
        name: str,
        media_type: str,
    ) -> tuple[KeptFile, SealedWriter]:
        """Begin a file of ours, whose size and hash are known at its end."""
        mark = secrets.token_hex(16)
        kept = KeptFile(
            id=f"{FILE_URN}{mark}",
            log=log,
            session=session,
            task=task,
            mark=mark,
            name=name,
            media_type=media_type,
            at=time.time(),
        )
        path = self._path(kept, "part")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return kept, SealedWriter(path, self._cipher, mark)

    def keep(self, kept: KeptFile, writer: SealedWriter) -> KeptFile:
        """Keep a file of ours that is written; NoRoom if it is too much."""
        size, sha256 = writer.finish()
        kept = replace(kept, size=size, sha256=sha256)
        with self._lock:
            self.check(size)
            self._path(kept, "part").rename(self._path(kept, "data"))
            self._note(kept)
        return kept

    def abandon(self, kept: KeptFile, writer: SealedWriter) -> None:
        """Remove a file of ours that did not get whole."""
        writer.close()
        self._path(kept, "part").unlink(missing_ok=True)

    def give(self, upload: KeptFile, log: str, *, session: str, task: str) -> KeptFile:
        """Put an upload among the files of a task; the upload stays for others."""
        kept = replace(upload, log=log, session=session, task=task, at=time.time())
        with self._lock:
            path = self._path(kept, "data")
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.link(self._path(upload, "data"), path)
            self._note(kept)
        return kept

    # Content

    def read(self, kept: KeptFile, offset: int, length: int) -> memoryview:
        """Return at most so many bytes of a whole file, none behind its end.

        Raises:
            DamagedFile: They are not what was written.
            OSError: They cannot be read.
        """
        data = self._read(read_blocks, kept, offset, length)
        assert data is not None, "the disk was waited for"
        return data

    def read_at_once(
        self, kept: KeptFile, offset: int, length: int
    ) -> memoryview | None:
        """Return what `read` does, or None if the disk would have to be waited for.

        Most files that are given out were written a moment ago and are in memory; and
        another thread would hold the interpreter while it opens them.
        """
        return self._read(read_blocks_at_once, kept, offset, length)

    def _read(
        self,
        read: Callable[[Path, AESGCM, str, range], bytearray | None],
        kept: KeptFile,
        offset: int,
        length: int,
    ) -> memoryview | None:
        if offset >= kept.size:
            return memoryview(b"")
        path, end = self._path(kept, "data"), min(offset + length, kept.size)
        numbers = range(offset // BLOCK, -(-end // BLOCK))
        data = read(path, self._cipher, kept.mark, numbers)
        return None if data is None else memoryview(data)[offset % BLOCK :][:length]

    def content(self, kept: KeptFile) -> Iterator[memoryview]:
        """Yield the content of a whole file, block by block; see `read`."""
        for offset in range(0, kept.size, BLOCK):
            yield self.read(kept, offset, BLOCK)

    # Removal

    def drop(self, log: str) -> None:
        """Remove all files of a session."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == log]:
                del self._kept[key]
            shutil.rmtree(self._folder / log, ignore_errors=True)

    def drop_uploads(self) -> None:
        """Remove the uploads for which no task came."""
        since = time.time() - UPLOAD_LIFE
        for kept in list(self._kept.values()):
            if kept.log == UPLOADS and kept.at < since:
                self.forget(kept)

    # Records

    def _note(self, kept: KeptFile) -> None:
        path = self._path(kept, "about")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        nonce = os.urandom(12)
        text = json.dumps(asdict(kept)).encode()
        written = path.with_suffix(".new")
        sealed = nonce + self._cipher.encrypt(nonce, text, f"about/{kept.key}".encode())
        with os.fdopen(
            os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(sealed)
        written.rename(path)
        self._kept[kept.log, kept.key] = kept

    def _open(self, sealed: bytes, key: str) -> KeptFile:
        text = self._cipher.decrypt(sealed[:12], sealed[12:], f"about/{key}".encode())
        value = json.loads(text)
        return KeptFile(**{**value, "role": FileRole(value["role"])})

    def _path(self, kept: KeptFile, ending: str) -> Path:
        return self._folder / kept.log / f"{kept.key}.{ending}"


def file_key(own: str, task: str, uri: str) -> str:
    """Return the name on disk of a file; our own ones never clash with a peer's."""
    name = "\0".join((own, task, uri)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(name).hexdigest()[:32]
