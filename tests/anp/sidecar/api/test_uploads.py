"""The bytes of an upload on their way from a request to the disk."""

from __future__ import annotations

import asyncio
import os
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.sidecar.api.operations import files
from anp.sidecar.api.operations.files import PIECE
from anp.sidecar.files.sealed_file import BLOCK, SealedWriter, read_blocks
from tests.waiting import until

CIPHER = AESGCM(bytes(32))


class Upload:
    """A request whose body comes in some pieces, and may then go on for ever."""

    scope: dict[str, Any]

    def __init__(self, pieces: list[bytes], *, ends: bool = True) -> None:
        self.scope = {}
        self._pieces = pieces
        self._ends = ends

    async def stream(self) -> AsyncIterator[bytes]:
        """Give the pieces."""
        for one in self._pieces:
            yield one
        if not self._ends:
            await asyncio.Event().wait()
        yield b""


def cut(content: bytes, step: int) -> Iterator[bytes]:
    return (content[at : at + step] for at in range(0, len(content), step))


@pytest.mark.parametrize("size", [0, 1, BLOCK, PIECE, PIECE + 1, 3 * PIECE - 1])
@pytest.mark.parametrize("step", [1000, 65_536, PIECE + BLOCK + 7])
async def test_a_body_is_written_as_it_comes(
    tmp_path: Path, size: int, step: int
) -> None:
    content = os.urandom(size)
    writer = SealedWriter(tmp_path / "file", CIPHER, "mark")
    await files._write(Upload([*cut(content, step)]), writer)  # type: ignore[arg-type]  # a fake
    assert writer.finish()[0] == size
    blocks = range(-(-size // BLOCK))
    assert read_blocks(tmp_path / "file", CIPHER, "mark", blocks) == content


async def test_a_body_in_tiny_pieces_takes_its_own_size(tmp_path: Path) -> None:
    """Each piece alone would take some fifty bytes."""
    upload = Upload([b"ab"] * (PIECE // 2 - 1))
    with SealedWriter(tmp_path / "file", CIPHER, "mark") as writer:
        tracemalloc.start()
        try:
            await files._write(upload, writer)  # type: ignore[arg-type]  # a fake
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert writer.finish()[0] == PIECE - 2
    assert most < 8 * PIECE


async def test_an_upload_that_is_given_up_waits_for_what_is_written(
    tmp_path: Path,
) -> None:
    """Its thread would write to a file that is closed, or to the next one opened."""
    begun, go_on, written = threading.Event(), threading.Event(), list[int]()

    class Slow(SealedWriter):
        def append(self, data: bytes | memoryview) -> None:
            begun.set()
            assert go_on.wait(10)
            super().append(data)
            written.append(len(data))

    upload = Upload([bytes(PIECE)], ends=False)
    with Slow(tmp_path / "file", CIPHER, "mark") as writer:
        writing = asyncio.create_task(files._write(upload, writer))  # type: ignore[arg-type]  # a fake
        await until(begun.is_set)
        writing.cancel()
        done, _ = await asyncio.wait({writing}, timeout=0.05)
        assert not done
        go_on.set()
        await asyncio.wait({writing})
        assert written == [PIECE]
