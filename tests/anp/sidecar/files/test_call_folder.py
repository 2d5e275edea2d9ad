"""The folder of a call: files in it in clear, and only files from it go out."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from anp.interaction.elements import Part, Task
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.requester import GivenFile
from anp.sidecar.files.call_folder import CallFolder, CallFolders
from anp.sidecar.files.spool import Spool
from anp.sidecar.files.transfers import FileTransfers
from anp.sidecar.offer.task_arguments import LaidFile
from tests.anp.sidecar.files import idle, unreached


@asynccontextmanager
async def folder_in(path: Path, **limits: int) -> AsyncIterator[CallFolder]:
    spool = Spool(
        path / "files", bytes(32), **{"max_file": 1000, "max_files": 10**7, **limits}
    )
    folders = CallFolders(
        path / "calls",
        FileTransfers(spool, lambda kept: None, idle, unreached, max_wait=1),
    )
    task = Task(id="t", session="s", requester="did:a", executor="did:b")
    async with folders.of_call("log", task) as folder:
        yield folder


async def test_files_are_there_while_the_call_is(tmp_path: Path) -> None:
    files = [Part.data(b"one", name="../a.txt"), Part.data(b"two", name="a.txt")]
    async with folder_in(tmp_path) as folder:
        laid = [LaidFile(one, as_path=True) for one in files]
        found = await folder.fill({"n": 1, "book": laid[0], "more": laid[1:]})
        assert found == {
            "n": 1,
            "book": str(folder.path / "a.txt"),
            "more": [str(folder.path / "a-1.txt")],
        }
        book = folder.path / "a.txt"
        assert book.read_bytes() == b"one"
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert book.stat().st_mode & 0o777 == 0o600
    assert not folder.path.exists()


async def test_an_agent_that_takes_objects_gets_base64(tmp_path: Path) -> None:
    async with folder_in(tmp_path) as folder:
        file = Part.data(b"one", name="a.txt", media_type="text/plain")
        laid = LaidFile(file, as_path=False)
        assert await folder.fill({"files": [laid]}) == {
            "files": [{"mediaType": "text/plain", "name": "a.txt", "data": "b25l"}]
        }


async def test_a_file_in_the_folder_goes_out(tmp_path: Path) -> None:
    async with folder_in(tmp_path) as folder:
        await folder.fill({})
        (folder.path / "in").mkdir()
        (folder.path / "in" / "b.txt").write_bytes(b"content")
        part = await folder.send(GivenFile(str(folder.path / "in" / "b.txt")))
        assert part.is_file
        assert (part.name, part.media_type, part.size) == ("b.txt", "text/plain", 7)
        named = GivenFile(str(folder.path / "in" / "b.txt"), "../c.pdf")
        assert (await folder.send(named)).name == "c.pdf"


@pytest.mark.parametrize(
    "kind",
    ["elsewhere", "above", "link", "linked folder", "relative", "folder", "pipe"],
)
async def test_nothing_else_goes_out(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    async with folder_in(tmp_path) as folder:
        await folder.fill({})
        (folder.path / "link").symlink_to(secret)
        (folder.path / "up").symlink_to(tmp_path)
        os.mkfifo(folder.path / "pipe")
        path = {
            "elsewhere": str(secret),
            "above": f"{folder.path}/../../secret",
            "link": str(folder.path / "link"),
            "linked folder": str(folder.path / "up" / "secret"),
            "relative": "secret",
            "folder": str(folder.path),
            "pipe": str(folder.path / "pipe"),
        }[kind]
        with pytest.raises(ToolError) as caught:
            await folder.send(GivenFile(path))
        assert caught.value.code == 502
    assert not (tmp_path / "files").exists()


async def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with folder_in(tmp_path) as folder:
        await folder.fill({})
        (folder.path / "big").write_bytes(bytes(1001))
        with pytest.raises(ToolError) as caught:
            await folder.send(GivenFile(str(folder.path / "big")))
        assert caught.value.code == 413
        with pytest.raises(ToolError) as caught:
            await folder.send(GivenFile(str(folder.path / "none")))
        assert caught.value.code == 507


async def test_what_a_kill_left_in_clear_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "calls" / "old"
    left.mkdir(parents=True)
    (left / "a").write_bytes(b"in clear")
    spool = Spool(tmp_path / "files", bytes(32), max_file=1, max_files=1)
    transfers = FileTransfers(spool, lambda kept: None, idle, unreached, max_wait=1)
    CallFolders(tmp_path / "calls", transfers).clear()
    assert not left.exists()
