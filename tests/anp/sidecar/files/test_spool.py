"""Files on disk: sealed, gone on with after a kill, and within their room."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.interaction.elements import FILE_URN
from anp.sidecar.files.sealed_file import (
    BLOCK,
    OVERHEAD,
    DamagedFile,
    SealedWriter,
    read_blocks,
    read_blocks_at_once,
)
from anp.sidecar.files.spool import UPLOADS, FileRole, KeptFile, NoRoom, Spool

CIPHER = AESGCM(bytes(32))
MIB = 1024 * 1024


def spool_in(
    folder: Path, *, max_file: int = 4 * MIB, max_files: int = 64 * MIB
) -> Spool:
    spool = Spool(folder / "files", bytes(32), max_file=max_file, max_files=max_files)
    spool.load()
    return spool


def announced(content: bytes, **more: object) -> KeptFile:
    """Return a peer's file as it is announced."""
    kept = KeptFile(
        id=f"{FILE_URN}1",
        log="log",
        session="s",
        task="t",
        role=FileRole.RESULT,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        peer="did:key:zPeer",
    )
    return replace(kept, **more)  # type: ignore[arg-type]  # fields of all types


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_file_is_read_as_it_was_written(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    writer = SealedWriter(tmp_path / "file", CIPHER, "mark")
    for start in range(0, size, 100_000):
        writer.append(content[start : start + 100_000])
    assert writer.finish() == (size, hashlib.sha256(content).hexdigest())
    path = tmp_path / "file"
    assert path.stat().st_size == size + -(-size // BLOCK) * OVERHEAD
    assert path.stat().st_mode & 0o777 == 0o600
    blocks = range(-(-size // BLOCK))
    assert read_blocks(path, CIPHER, "mark", blocks) == content
    # It was just written, so that it is in memory where a system can tell.
    assert read_blocks_at_once(path, CIPHER, "mark", blocks) in (content, None)


def test_what_is_in_memory_is_no_less_checked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with SealedWriter(path, CIPHER, "mark") as writer:
        writer.append(os.urandom(BLOCK))
    if read_blocks_at_once(path, CIPHER, "mark", range(1)) is None:
        pytest.skip("this file system cannot tell what is in memory")
    for mark, numbers in (("other", range(1)), ("mark", range(1, 2))):
        with pytest.raises(DamagedFile):
            read_blocks_at_once(path, CIPHER, mark, numbers)


@pytest.mark.parametrize("fault", [BlockingIOError(), OSError(errno.EOPNOTSUPP), 5])
def test_what_is_not_in_memory_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError | int
) -> None:
    path = tmp_path / "file"
    with SealedWriter(path, CIPHER, "mark") as writer:
        writer.append(os.urandom(BLOCK))

    def read(*_: object) -> int:
        if isinstance(fault, OSError):
            raise fault
        return fault

    monkeypatch.setattr(os, "preadv", read, raising=False)
    assert read_blocks_at_once(path, CIPHER, "mark", range(1)) is None


@pytest.mark.parametrize("left", [0, 10, BLOCK, BLOCK + 28, BLOCK + 5_000])
def test_a_writer_goes_on_behind_the_last_whole_block(
    tmp_path: Path, left: int
) -> None:
    content = os.urandom(3 * BLOCK + 7)
    path = tmp_path / "file"
    with SealedWriter(path, CIPHER, "mark") as writer:
        writer.append(content)
    os.truncate(path, left)
    writer = SealedWriter(path, CIPHER, "mark")
    assert writer.size == (BLOCK if left >= BLOCK + 28 else 0)
    writer.append(content[writer.size :])
    assert writer.finish() == (len(content), hashlib.sha256(content).hexdigest())


def test_no_block_stands_for_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with SealedWriter(path, CIPHER, "mark") as writer:
        writer.append(os.urandom(2 * BLOCK))
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(data[half:] + data[:half])
    with pytest.raises(DamagedFile):
        read_blocks(path, CIPHER, "mark", range(1))
    path.write_bytes(data)
    with pytest.raises(DamagedFile):
        read_blocks(path, CIPHER, "other", range(1))


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        SealedWriter(tmp_path / "link", CIPHER, "mark")
    assert not (tmp_path / "target").exists()


def test_a_file_of_a_peer_is_whole_when_it_is_the_announced_one(
    tmp_path: Path,
) -> None:
    spool, content = spool_in(tmp_path), os.urandom(BLOCK + 5)
    kept = spool.expect(announced(content))
    assert kept is not None
    assert spool.expect(announced(content)) is None
    assert spool.wanted() == [kept]
    writer = spool.writer(kept)
    writer.append(content)
    assert not spool.is_whole(kept)
    assert spool.finish(kept, writer)
    assert spool.is_whole(kept)
    assert b"".join(spool.content(kept)) == content
    again = spool_in(tmp_path)
    assert again.find("log", "t", kept.id) == kept
    assert again.wanted() == []


@pytest.mark.parametrize("wrong", [b"", b"x", b"contenT", b"content and more"])
def test_other_bytes_are_no_file(tmp_path: Path, wrong: bytes) -> None:
    spool = spool_in(tmp_path)
    kept = spool.expect(announced(b"content"))
    assert kept is not None
    writer = spool.writer(kept)
    writer.append(wrong)
    assert not spool.finish(kept, writer)
    assert not spool.is_whole(kept)
    spool.fail(kept, "it is another one")
    found = spool_in(tmp_path).find("log", "t", kept.id)
    assert found is not None
    assert found.failed == "it is another one"


def test_a_peers_words_are_in_no_path(tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    evil = {"id": f"{FILE_URN}../../../a", "task": "../t", "name": "/etc/passwd"}
    kept = spool.expect(announced(b"x", **evil))
    assert kept is not None
    spool.writer(kept).close()
    found = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")]
    assert len(found) == 2
    assert all(str(path.parent) == "files/log" for path in found)
    assert all(path.stem.isalnum() for path in found)


def test_a_peer_cannot_take_the_place_of_a_file_of_ours(tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    begun, writer = spool.begin("log", task="t", name="a", media_type="text/plain")
    writer.append(b"ours")
    own = spool.keep(begun, writer)
    theirs = spool.expect(announced(b"theirs", id=own.id))
    assert theirs is not None
    assert spool.find("log", "t", own.id) == own
    assert b"".join(spool.content(own)) == b"ours"


def test_room_has_limits_in_all_and_for_each_sender(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, max_file=4 * MIB, max_files=16 * MIB)
    with pytest.raises(NoRoom) as caught:
        spool.expect(announced(b"", size=4 * MIB + 1))
    assert caught.value.too_large
    assert spool.expect(announced(b"", size=4 * MIB))
    # A quarter for one peer of the list.
    with pytest.raises(NoRoom) as caught:
        spool.expect(announced(b"", id=f"{FILE_URN}2", size=1))
    assert not caught.value.too_large
    assert spool.expect(announced(b"", id=f"{FILE_URN}2", size=1, peer="did:key:zB"))
    # A sixteenth for all others together.
    stranger = {"listed": False, "size": MIB}
    assert spool.expect(announced(b"", id=f"{FILE_URN}3", peer="did:1", **stranger))
    with pytest.raises(NoRoom):
        spool.expect(announced(b"", id=f"{FILE_URN}4", peer="did:2", **stranger))


def test_what_a_kill_left_of_uploads_is_removed(tmp_path: Path) -> None:
    spool = spool_in(tmp_path)
    kept, writer = spool.begin(name="a", media_type="text/plain")
    writer.append(os.urandom(BLOCK))
    _, output = spool.begin("log", task="t", name="a", media_type="text/plain")
    output.append(os.urandom(BLOCK))
    output.close()
    assert kept.log == UPLOADS
    spool_in(tmp_path)
    assert not list(tmp_path.glob("files/*/*"))


def test_an_upload_serves_several_tasks_and_goes_with_each_session(
    tmp_path: Path,
) -> None:
    spool = spool_in(tmp_path)
    begun, writer = spool.begin(name="a", media_type="text/plain")
    writer.append(b"content")
    upload = spool.keep(begun, writer)
    first = spool.give(upload, "log1", session="s", task="t1")
    second = spool.give(upload, "log2", session="s", task="t2")
    spool.drop("log1")
    assert spool.find("log1", "t1", first.id) is None
    assert not (tmp_path / "files" / "log1").exists()
    assert b"".join(spool.content(second)) == b"content"
