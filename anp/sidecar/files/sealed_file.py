"""One file on disk as encrypted blocks, written and read block by block.

A block is a nonce, the encrypted bytes and a tag, sealed for its file and its place.
All blocks but the last have `BLOCK` bytes, so that any piece is found at once; one that
was torn by a kill cannot be opened, and is written again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_AT_ONCE: Final = getattr(os, "RWF_NOWAIT", None)
"Has a read give only what is in the system's memory; not every system has it."

BLOCK: Final = 256 * 1024
"Bytes of a block; also of a piece on the wire."

NONCE: Final = 12
OVERHEAD: Final = NONCE + 16

_ROW: Final = BLOCK + OVERHEAD
"Bytes of a whole block on disk."


class DamagedFile(Exception):
    """A block on disk is not what was written there."""


class SealedWriter:
    """Writes one file from its beginning, or from where a kill left it."""

    def __init__(self, path: Path, cipher: AESGCM, mark: str) -> None:
        """Open the file, and read again what it has already.

        Args:
            mark: Names the file, so that no block of another can stand in it.
        """
        self._path, self._cipher, self._mark = path, cipher, mark
        self._hash = hashlib.sha256()
        self._blocks = 0
        self._rest = bytearray()
        self._sealed = bytearray(OVERHEAD + BLOCK)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes of content so far."""
        return self._blocks * BLOCK + len(self._rest)

    def append(self, data: bytes | memoryview) -> None:
        """Write the next bytes; OSError if the disk does not take them."""
        view = memoryview(data)
        if self._rest:
            begin = BLOCK - len(self._rest)
            self._rest += view[:begin]
            view = view[begin:]
            if len(self._rest) < BLOCK:
                return
            self._write(self._rest)
            self._rest = bytearray()
        end = len(view) // BLOCK * BLOCK
        self._write(view[:end])
        self._rest += view[end:]

    def finish(self) -> tuple[int, str]:
        """Write the last block; return the size and the SHA-256 of the content."""
        size = self.size
        if self._rest:
            self._write(self._rest)
            self._rest.clear()
        os.fsync(self._file)
        self.close()
        return size, self._hash.hexdigest()

    def close(self) -> None:
        """Let go of the file; what is no whole block is lost."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        """Write in a block, which closes the file."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def _write(self, data: bytearray | memoryview) -> None:
        """Write whole blocks, or a shorter one, which is the last of the file."""
        # At once, since each call lets go of the interpreter and has to wait for it.
        self._hash.update(data)
        view = memoryview(data)
        for begin in range(0, len(view), BLOCK):
            content = view[begin : begin + BLOCK]
            # Each block is sealed into the same memory, which no cache has to fetch.
            sealed = memoryview(self._sealed)[: OVERHEAD + len(content)]
            sealed[:NONCE] = nonce = os.urandom(NONCE)
            place = _place(self._mark, self._blocks)
            self._cipher.encrypt_into(nonce, content, place, sealed[NONCE:])
            at = self._blocks * _ROW
            while sealed:
                written = os.pwrite(self._file, sealed, at)
                sealed, at = sealed[written:], at + written
            self._blocks += 1

    def _recover(self) -> None:
        while True:
            blocks = self._blocks
            try:
                data = _read(
                    self._file, self._cipher, self._mark, range(blocks, blocks + 1)
                )
            except DamagedFile:
                break
            if len(data) < BLOCK:
                break
            self._hash.update(data)
            self._blocks += 1
        os.ftruncate(self._file, self._blocks * _ROW)


def read_blocks(path: Path, cipher: AESGCM, mark: str, numbers: range) -> bytearray:
    """Return the content of blocks that follow one another.

    Raises:
        DamagedFile: One of them is not what was written, or not there.
        OSError: The file cannot be read.
    """
    with _opened(path) as file:
        return _read(file, cipher, mark, numbers)


def read_blocks_at_once(
    path: Path, cipher: AESGCM, mark: str, numbers: range
) -> bytearray | None:
    """Return what `read_blocks` does, or None if the disk would have to be waited for.

    Raises:
        DamagedFile, OSError: As there.
    """
    if _AT_ONCE is None:
        return None
    with _opened(path) as file:
        at = numbers.start * _ROW
        size = max(0, min(len(numbers) * _ROW, os.fstat(file).st_size - at))
        sealed = bytearray(size)
        try:
            if os.preadv(file, [sealed], at, _AT_ONCE) != size:
                return None
        except OSError:
            # It is not in memory, or the file system cannot tell.
            return None
    return _unsealed(sealed, cipher, mark, numbers)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def _read(file: int, cipher: AESGCM, mark: str, numbers: range) -> bytearray:
    sealed = os.pread(file, len(numbers) * _ROW, numbers.start * _ROW)
    return _unsealed(sealed, cipher, mark, numbers)


def _unsealed(
    data: bytes | bytearray, cipher: AESGCM, mark: str, numbers: range
) -> bytearray:
    sealed = memoryview(data)
    # Each block is opened into its place, so that nothing is put together afterwards.
    content = bytearray(max(0, len(sealed) - len(numbers) * OVERHEAD))
    room = memoryview(content)
    for index in numbers:
        block, sealed = sealed[:_ROW], sealed[_ROW:]
        into, room = room[: max(0, len(block) - OVERHEAD)], room[BLOCK:]
        try:
            cipher.decrypt_into(block[:NONCE], block[NONCE:], _place(mark, index), into)
        except (InvalidTag, ValueError):
            raise DamagedFile(f"block {index} cannot be opened") from None
    return content


def _place(mark: str, index: int) -> bytes:
    return f"file/{mark}/{index}".encode()
