"""The folder of one call, with its files in clear for the owner's code.

An attached function gets the paths of the files that came with its task, and may give
back files that it wrote there. The folder is the owner's alone (0700), lives as long as
the call, and is the only place from which a path that code returns is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from anp.interaction.elements import Part, PartKind, Task
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.part_json import part_json
from anp.sidecar.attachments.requester import GivenFile
from anp.sidecar.files.sealed_file import BLOCK, DamagedFile
from anp.sidecar.files.spool import NoRoom, Spool
from anp.sidecar.files.transfers import FileFailed, FileTransfers
from anp.sidecar.offer.task_arguments import LaidFile

# Names of files that a peer gives: data, of which a plain name is made.


MAX_NAME = 120
"Most characters of a name."

MAX_BYTES = 200
"Most bytes of a name; what numbers and endings add is beside it."

MAX_SAME = 1_000
"Files of one name that are kept beside each other."


def plain_name(name: str) -> str:
    """Return a peer's name as that of a file in a folder.

    Of a path only its end counts, and dots at the beginning go. It may be empty.
    """
    base = name.replace("\\", "/").rpartition("/")[2]
    base = "".join(c for c in base if c.isprintable()).lstrip(". ")[-MAX_NAME:]
    plain = base.encode("utf-8", "replace")[-MAX_BYTES:].decode("utf-8", "ignore")
    return plain.lstrip(". ")


def names_for(name: str) -> Iterator[str]:
    """Yield the names to try for a file, the later ones with a number."""
    base = plain_name(name) or "content"
    stem, dot, ending = base.rpartition(".")
    if not stem:
        stem, dot, ending = base, "", ""
    for number in range(MAX_SAME):
        yield f"{stem}{f'-{number}' if number else ''}{dot}{ending}"


Value = dict[str, Any]


class CallFolders:
    """Makes a folder for each call, and removes it with everything in it."""

    def __init__(self, folder: Path, transfers: FileTransfers) -> None:
        self._folder = folder
        self._transfers = transfers

    def clear(self) -> None:
        """Remove what calls left that a kill ended."""
        shutil.rmtree(self._folder, ignore_errors=True)

    async def drop_inputs(self, log: str, task: Task) -> None:
        """Remove the files of a task that is over; its requester has them yet."""
        await self._transfers.forget(self._transfers.spool.inputs(log, task.id))

    @asynccontextmanager
    async def of_call(self, log: str, task: Task) -> AsyncIterator[CallFolder]:
        """Have a folder for the call of a task."""
        folder = CallFolder(self._folder, self._transfers, log, task)
        try:
            yield folder
        finally:
            # Shielded: a cancelled call leaves no files behind either.
            await asyncio.shield(asyncio.to_thread(folder.remove))


class CallFolder:
    """The folder of one call; it is made when it is needed."""

    def __init__(
        self, folder: Path, transfers: FileTransfers, log: str, task: Task
    ) -> None:
        self.path = folder / secrets.token_hex(12)
        self._transfers = transfers
        self._log, self._task = log, task

    @property
    def _spool(self) -> Spool:
        return self._transfers.spool

    async def fill(self, arguments: Value) -> Value:
        """Fetch the files of the task; return the arguments with them in their places.

        Raises:
            FileFailed: One did not come.
        """
        await asyncio.to_thread(self._make)
        return {name: await self._filled(value) for name, value in arguments.items()}

    async def _filled(self, value: Any) -> Any:
        if isinstance(value, list):
            return [await self._filled(one) for one in value]
        if not isinstance(value, LaidFile):
            return value
        if value.as_path:
            return await self.lay(value.part, task=value.task)
        blocks = await self._blocks(value.part, value.task)
        data = await asyncio.to_thread(lambda: b"".join(blocks))
        return part_json(replace(value.part, kind=PartKind.BYTES, content=data))

    async def lay(self, file: Part, *, task: str = "") -> str:
        """Write a file into the folder; return its path.

        Args:
            task: Id of the task whose it is; empty for that of the call.

        Raises:
            FileFailed: It did not come.
        """
        blocks = await self._blocks(file, task)
        return await asyncio.to_thread(self._write, file.name, blocks)

    async def send(self, file: GivenFile) -> Part:
        """Take a file that the call's code gives; return the part that announces it.

        Raises:
            ToolError: It lies elsewhere, or there is no room for it.
        """
        try:
            return await asyncio.to_thread(self._take, file)
        except NoRoom as exc:
            raise ToolError(413 if exc.too_large else 507, str(exc)) from exc
        except OSError as exc:
            words = f"a file of the capability's cannot be read: {exc.strerror}"
            raise ToolError(507, words) from exc

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def _blocks(self, file: Part, task: str) -> Iterable[bytes | memoryview]:
        if isinstance(file.content, bytes):
            return [file.content]
        kept = self._spool.find(self._log, task or self._task.id, str(file.content))
        if kept is None:
            raise FileFailed("the file is not kept any more")
        await self._transfers.whole(kept)
        return self._spool.content(kept)

    def _write(self, name: str, blocks: Iterable[bytes | memoryview]) -> str:
        for tried in names_for(name):
            path = self.path / tried
            try:
                with open(path, "xb", opener=_private) as file:
                    file.writelines(blocks)
            except FileExistsError:
                continue
            except DamagedFile as exc:
                raise FileFailed("the file is damaged here") from exc
            except OSError as exc:
                words = f"the file cannot be written here: {exc.strerror}"
                raise FileFailed(words) from exc
            return str(path)
        raise FileFailed("too many files have one name")

    def _take(self, given: GivenFile) -> Part:
        with contextlib.ExitStack() as stack:
            source = self._open(given.path)
            stack.callback(os.close, source)
            size = os.fstat(source).st_size
            self._spool.check(size)
            name = plain_name(given.name or os.path.basename(given.path))
            guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
            kept, writer = self._spool.begin(
                self._log,
                session=self._task.session,
                task=self._task.id,
                name=name,
                media_type=given.media_type or guessed,
            )
            stack.callback(self._spool.abandon, kept, writer)
            # Not more than it was checked for, should it grow meanwhile.
            while data := os.read(source, min(BLOCK, size - writer.size)):
                writer.append(data)
            return self._spool.keep(kept, writer).part

    def _open(self, told: str) -> int:
        """Open a path that code returned, if it is a plain file in the folder."""
        folder = os.path.realpath(self.path)
        path = os.path.realpath(told)
        inside = os.path.commonpath([folder, path]) == folder
        if os.path.isabs(told) and inside and path != folder:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(path, flags)
            if stat.S_ISREG(os.fstat(file).st_mode):
                return file
            os.close(file)
        raise ToolError(502, "the capability gave a path outside of its call's folder")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
