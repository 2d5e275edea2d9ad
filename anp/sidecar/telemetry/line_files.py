"""Files of lines that only grow at their end, bounded by size and age.

A series has one file that is written, `NAME.jsonl`, and older ones with a number,
`NAME-000001.jsonl`. Every line has a place, the number of its file and the offset in
it, which stays the same when the file is renamed. All methods block; threads may share
a series.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

Place = tuple[int, int]
"Number of a file, and the offset in it in bytes."

PARTS: Final = 8
"Files that a full series has; the oldest goes as a whole."

BLOCK: Final = 64 * 1024
"Bytes that are read at a time; the memory for reading does not grow with a file."


class LineFiles:
    """One series of files."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        max_size: int,
        keep: float,
        time_of: Callable[[bytes], float | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Look at what is there; nothing is made before the first line.

        Args:
            max_size: Bytes of all files together.
            keep: Seconds after which a line may go; it goes with its file, at most an
                eighth of this later.
            time_of: Returns the time of a line, in seconds since 1970; None for one
                that is damaged.
        """
        self._folder = folder
        self._name = name
        self._max_size = max_size
        self._keep = keep
        self._time_of = time_of
        self._clock = clock
        self._lock = threading.Lock()
        self._current = folder / f"{name}.jsonl"
        self._number = max(self._numbered(), default=0) + 1
        self._began: float | None = None

    def append(self, lines: list[bytes]) -> None:
        """Write lines, each with its line end.

        Raises:
            OSError: Not all of them could be written.
        """
        with self._lock:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            size, waiting = self._size(), bytearray()
            for line in lines:
                if size and size + len(line) > self._max_size // PARTS:
                    self._write(waiting)
                    self._rotate()
                    size, waiting = 0, bytearray()
                waiting += line
                size += len(line)
            self._write(waiting)

    def prune(self) -> None:
        """Delete what is too old or too much.

        Raises:
            OSError: A file cannot be deleted or looked at.
        """
        with self._lock:
            if self._size() and self._age() > self._keep / PARTS:
                self._rotate()
            self._prune()

    def end(self) -> Place:
        """Return the place after the last line."""
        with self._lock:
            return self._number, self._size()

    def backwards(self, place: Place) -> Iterator[tuple[bytes, Place]]:
        """Give the lines before a place, the newest first, each with its own place."""
        most, offset = place
        for number in sorted({*self._numbered(), self._number}, reverse=True):
            if number > most:
                continue
            try:
                stream = self._open(number)
            except OSError:
                # Deleted meanwhile, not yet made, or not to be read.
                continue
            with stream:
                end = stream.seek(0, os.SEEK_END)
                if number == most:
                    end = min(end, offset)
                for line, start in _lines_before(stream, end):
                    yield line, (number, start)

    def _open(self, number: int) -> BinaryIO:
        with self._lock:
            return self._path(number).open("rb")

    def _path(self, number: int) -> Path:
        if number == self._number:
            return self._current
        return self._folder / f"{self._name}-{number:06d}.jsonl"

    def _numbered(self) -> list[int]:
        """Return the numbers of the files that are written no more."""
        form = re.compile(rf"{re.escape(self._name)}-(\d{{6,12}})\.jsonl")
        try:
            found = [form.fullmatch(name) for name in os.listdir(self._folder)]
        except OSError:
            return []
        return sorted(int(one[1]) for one in found if one)

    def _size(self) -> int:
        try:
            return self._current.stat().st_size
        except OSError:
            return 0

    def _age(self) -> float:
        """Return for how long the current file has been written, in seconds."""
        if self._began is None:
            # Of an earlier run of the daemon.
            with self._current.open("rb") as stream:
                began = self._time_of(stream.readline(BLOCK))
            self._began = 0.0 if began is None else began
        return self._clock() - self._began

    def _write(self, data: bytearray) -> None:
        if not data:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        opened = os.open(self._current, flags, 0o600)
        with open(opened, "r+b", buffering=0) as stream:
            size = stream.seek(0, os.SEEK_END)
            if not size:
                self._began = self._clock()
            else:
                stream.seek(size - 1)
                if stream.read(1) != b"\n":
                    # The daemon or the disk ended in the middle of a line.
                    data = bytearray(b"\n") + data
            stream.write(data)

    def _rotate(self) -> None:
        old, self._number = self._number, self._number + 1
        self._current.rename(self._path(old))
        self._began = None
        self._prune()

    def _prune(self) -> None:
        oldest = self._clock() - self._keep
        # Room for the current file to grow until it is full.
        room = self._max_size - self._max_size // PARTS
        for number in reversed(self._numbered()):
            path = self._path(number)
            status = path.stat()
            room -= status.st_size
            if room < 0 or status.st_mtime < oldest:
                path.unlink()


def _lines_before(stream: BinaryIO, end: int) -> Iterator[tuple[bytes, int]]:
    """Give the whole lines before an offset, the last first, with their offsets."""
    rest = b""
    while end > 0:
        start = max(0, end - BLOCK)
        stream.seek(start)
        rest = stream.read(end - start) + rest
        end = start
        while (cut := rest.rfind(b"\n", 0, len(rest) - 1)) >= 0:
            yield rest[cut + 1 :], start + cut + 1
            rest = rest[: cut + 1]
        if len(rest) > BLOCK:
            # No line of ours is so long, so this is damage and left out.
            rest = b""
    if rest:
        yield rest, 0
