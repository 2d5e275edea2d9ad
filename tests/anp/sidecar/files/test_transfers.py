"""Files between two sides whose lines break, refuse and lie."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from anp.interaction.elements import Message, Part, SenderRole, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    FilePiece,
    Operation,
    RefusedOperation,
    Send,
    TaskGet,
)
from anp.sidecar.files import transfers
from anp.sidecar.files.sealed_file import BLOCK, SealedWriter
from anp.sidecar.files.spool import FileRole, KeptFile, Spool
from anp.sidecar.files.transfers import (
    MOST_PIECE,
    PIECE,
    WINDOW,
    FileFailed,
    FileTransfers,
)
from tests.anp.sidecar.files import idle, unreached
from tests.waiting import until

MIB = 1024 * 1024
TASK = Task(id="t", session="s", requester="did:a", executor="did:b")


@dataclass(eq=False)
class Line:
    """A line to the other side, which answers at the next turn of the loop."""

    other: Callable[[Operation, int, Line], None]
    closed: bool = False
    gives_files: bool = True
    max_message: int = 768 * 1024
    asked: list[int] = field(default_factory=list)
    told: list[Operation] = field(default_factory=list)

    def give(self, send: Send) -> None:
        self.answer(send)

    def answer(self, send: Send) -> None:
        if self.closed:
            return
        if isinstance(send.operation, TaskGet):
            assert send.operation.file is not None
            self.asked.append(send.operation.file.offset)
        else:
            self.told.append(send.operation)
        loop = asyncio.get_running_loop()
        loop.call_soon(self.other, send.operation, send.ref, self)


@dataclass
class Two:
    """One side that has a file, and one that wants it."""

    giver: FileTransfers
    taker: FileTransfers
    content: bytes
    kept: KeptFile
    lines: list[Line] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    giving: set[asyncio.Task[None]] = field(default_factory=set)
    tamper: Callable[[Acknowledgement], Operation | None] = lambda told: told
    want: Callable[[str], Awaitable[None]] = unreached

    def line(self, *, max_message: int = 768 * 1024) -> Line:
        made = Line(self.given, max_message=max_message)
        self.lines.append(made)
        return made

    def find(self, peer: str) -> Line | None:
        return next((one for one in reversed(self.lines) if not one.closed), None)

    def given(self, operation: Operation, ref: int, line: Line) -> None:
        """Take an ask at the giver."""
        assert isinstance(operation, TaskGet)

        async def give() -> None:
            # One ask after the other, as on a line.
            async with self.turn:
                await answer()

        async def answer() -> None:
            back = Line(lambda told, _, __: self.take(told, line))
            back.max_message = line.max_message
            try:
                await self.giver.give(back, "log", TASK, operation, ref)
            except InteractionError as exc:
                told = RefusedOperation(
                    session="s", ref=ref, code=exc.code, text=exc.text
                )
                self.take(told, line)

        task = asyncio.create_task(give())
        self.giving.add(task)
        task.add_done_callback(self.giving.discard)

    def take(self, told: Operation, line: Line) -> None:
        if isinstance(told, Acknowledgement):
            tampered = self.tamper(told)
            if tampered is None:
                return
            told = tampered
        if not line.closed:
            assert self.taker.take(told)

    def has_it(self) -> bool:
        spool = self.taker.spool
        found = spool.find("log", "t", self.kept.id)
        assert found is not None
        return spool.is_whole(found) and b"".join(spool.content(found)) == self.content


def left(folder: Path) -> set[str]:
    """Return the endings of the files that the taker has."""
    return {path.suffix for path in folder.glob("taker/log/*")}


async def two_in(
    folder: Path,
    *,
    size: int = 5 * BLOCK + 17,
    wait: float = 60,
    role: FileRole = FileRole.INPUT,
) -> Two:
    spools = [
        Spool(folder / name, bytes(32), max_file=64 * MIB, max_files=999 * MIB)
        for name in ("giver", "taker")
    ]
    content = os.urandom(size)
    begun, writer = spools[0].begin(name="a", media_type="text/plain")
    writer.append(content)
    upload = spools[0].keep(begun, writer)
    giver = FileTransfers(spools[0], lambda kept: None, idle, unreached, max_wait=wait)
    message = Message(
        id="m",
        session="s",
        task="t",
        sender="did:a",
        role=SenderRole.REQUESTER,
        parts=(upload.part,),
    )
    async with giver.giving("log", message):
        pass
    two: list[Two] = []
    taker = FileTransfers(
        spools[1],
        lambda kept: two[0].find(kept.peer),
        idle,
        lambda log: two[0].want(log),
        max_wait=wait,
    )
    [kept] = await taker.expect(
        "log", message.parts, session="s", task="t", role=role, peer="did:a"
    )
    two.append(Two(giver, taker, content, kept))
    return two[0]


async def test_a_file_comes_with_few_pieces_on_their_way(tmp_path: Path) -> None:
    two = await two_in(tmp_path)
    line = two.line()
    most = 0

    def look(told: Acknowledgement) -> Operation:
        nonlocal most
        most = max(most, len(two.taker._asked))
        return told

    two.tamper = look
    await two.taker.whole(two.kept)
    assert two.has_it()
    assert line.asked == [n * PIECE for n in range(3)]
    assert most <= WINDOW
    assert not two.taker._asked


@pytest.mark.parametrize("is_fast", [True, False])
async def test_pieces_grow_on_a_fast_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_fast: bool
) -> None:
    """On a slow one other frames would wait for them for too long."""
    two = await two_in(tmp_path, size=12 * MIB)
    line = two.line(max_message=16 * MIB)
    monkeypatch.setattr(transfers, "FAST", 60 if is_fast else 0)
    await two.taker.whole(two.kept)
    assert two.has_it()
    steps = {b - a for a, b in zip(line.asked, line.asked[1:], strict=False)}
    assert steps == ({PIECE, MOST_PIECE} if is_fast else {PIECE})


async def test_a_peer_with_smaller_pieces_is_asked_for_those(tmp_path: Path) -> None:
    """Such as a daemon from before pieces grew."""
    two = await two_in(tmp_path, size=12 * MIB)
    line = two.line(max_message=16 * MIB)

    def cut(told: Acknowledgement) -> Operation:
        piece = told.piece
        assert piece is not None
        return replace(told, piece=replace(piece, data=piece.data[:PIECE]))

    two.tamper = cut
    await two.taker.whole(two.kept)
    assert two.has_it()
    # One window is asked for in vain, and not one for each piece.
    assert len(line.asked) <= 12 * MIB // PIECE + 2 * WINDOW


async def test_the_next_piece_is_asked_for_while_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = await two_in(tmp_path, size=12 * BLOCK)
    line, writing, go_on = two.line(), threading.Event(), threading.Event()
    before = SealedWriter.append

    def slow(writer: SealedWriter, data: bytes) -> None:
        writing.set()
        assert go_on.wait(10)
        before(writer, data)

    monkeypatch.setattr(SealedWriter, "append", slow)
    coming = asyncio.create_task(two.taker.whole(two.kept))
    # The window, and one for the piece that is being written.
    await until(lambda: writing.is_set() and len(line.asked) == WINDOW + 1)
    go_on.set()
    await coming
    assert two.has_it()


async def test_a_piece_that_is_not_in_memory_is_read_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = await two_in(tmp_path)
    two.line()
    threads: set[str] = set()
    before = Spool.read

    def read(spool: Spool, kept: KeptFile, offset: int, length: int) -> memoryview:
        threads.add(threading.current_thread().name)
        return before(spool, kept, offset, length)

    monkeypatch.setattr(Spool, "read", read)
    monkeypatch.setattr(Spool, "read_at_once", lambda *_: None)
    await two.taker.whole(two.kept)
    assert threads
    assert threading.main_thread().name not in threads
    assert two.has_it()


async def test_a_stop_waits_for_the_piece_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread would write to a file that is closed, or to the next one opened."""
    two = await two_in(tmp_path)
    two.line()
    writing, go_on = threading.Event(), threading.Event()
    before = SealedWriter.append
    written: list[int] = []

    def slow(writer: SealedWriter, data: bytes) -> None:
        writing.set()
        assert go_on.wait(10)
        before(writer, data)
        written.append(writer.size)

    monkeypatch.setattr(SealedWriter, "append", slow)
    two.taker.start(two.kept)
    await until(writing.is_set)
    closing = asyncio.create_task(two.taker.close())
    await asyncio.sleep(0)
    assert not closing.done()
    go_on.set()
    await closing
    assert written == [PIECE]


async def test_it_goes_on_from_its_byte_when_a_line_breaks(tmp_path: Path) -> None:
    two = await two_in(tmp_path)
    first = two.line()

    def cut(told: Acknowledgement) -> Operation | None:
        is_third = told.piece is not None and told.piece.offset == 2 * BLOCK
        if is_third and not first.closed:
            first.closed = True
            two.line()
        return told

    two.tamper = cut
    await two.taker.whole(two.kept)
    assert two.has_it()
    assert two.lines[-1].asked[0] == 2 * BLOCK


async def test_it_goes_on_from_its_byte_after_a_restart(tmp_path: Path) -> None:
    two = await two_in(tmp_path)
    kept = two.kept
    with two.taker.spool.writer(kept) as writer:
        writer.append(two.content[: 3 * BLOCK + 1])
    line = two.line()
    await two.taker.whole(kept)
    assert two.has_it()
    assert line.asked[0] == 3 * BLOCK


async def test_a_line_of_small_frames_carries_it(tmp_path: Path) -> None:
    two = await two_in(tmp_path, size=BLOCK + 1)
    line = two.line(max_message=64 * 1024)
    await two.taker.whole(two.kept)
    assert two.has_it()
    assert len(line.asked) < 20


@pytest.mark.parametrize("fault", ["bytes", "offset", "nothing", "empty", "long"])
async def test_a_peer_that_lies_gives_no_file(tmp_path: Path, fault: str) -> None:
    two = await two_in(tmp_path)
    two.line()

    def lie(told: Acknowledgement) -> Operation:
        piece = told.piece
        assert piece is not None
        lies = {
            "bytes": replace(piece, data=bytes(len(piece.data))),
            "offset": replace(piece, offset=piece.offset + 1),
            "nothing": None,
            "empty": replace(piece, data=b""),
            "long": FilePiece(offset=piece.offset, data=bytes(piece.data) + b"x"),
        }
        return replace(told, piece=lies[fault])

    two.tamper = lie
    with pytest.raises(FileFailed):
        await two.taker.whole(two.kept)
    assert left(tmp_path) == {".about"}


async def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    two = await two_in(tmp_path)
    two.line()
    two.giver.spool.drop("log")
    with pytest.raises(FileFailed, match=InteractionFault.UNKNOWN_FILE):
        await two.taker.whole(two.kept)


async def test_a_file_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    two = await two_in(tmp_path, wait=0.05)
    with pytest.raises(FileFailed, match=r"0\.05 s"):
        await two.taker.whole(two.kept)


async def test_a_result_has_a_line_made_when_there_is_none(tmp_path: Path) -> None:
    """Nothing else keeps one up: the task has ended, and its peer came up again."""
    two = await two_in(tmp_path, role=FileRole.RESULT)

    async def dial(log: str) -> None:
        assert log == "log"
        two.line()

    two.want = dial
    await two.taker.whole(two.kept)
    assert two.has_it()


async def test_an_input_waits_for_the_line_of_its_sender(tmp_path: Path) -> None:
    two = await two_in(tmp_path, wait=0.05)

    async def dial(log: str) -> None:
        two.line()

    two.want = dial
    with pytest.raises(FileFailed, match="did not come"):
        await two.taker.whole(two.kept)


async def test_a_file_of_a_session_that_is_gone_fails(tmp_path: Path) -> None:
    two = await two_in(tmp_path, role=FileRole.RESULT)

    async def gone(log: str) -> None:
        raise InteractionError(InteractionFault.UNKNOWN_SESSION, "no such session here")

    two.want = gone
    with pytest.raises(FileFailed, match="no such session"):
        await two.taker.whole(two.kept)


async def test_a_full_disk_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = await two_in(tmp_path)
    two.line()
    before = SealedWriter.append

    def full(writer: SealedWriter, data: bytes) -> None:
        if writer.size >= 2 * BLOCK:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        before(writer, data)

    monkeypatch.setattr(SealedWriter, "append", full)
    with pytest.raises(FileFailed, match="No space"):
        await two.taker.whole(two.kept)
    assert left(tmp_path) == {".about"}


async def test_only_uploads_are_announced(tmp_path: Path) -> None:
    two = await two_in(tmp_path)
    sha256 = hashlib.sha256(b"x").hexdigest()
    foreign = Part.link("urn:anpd:file:1", size=1, sha256=sha256)
    message = Message(
        id="m",
        session="s",
        sender="did:a",
        role=SenderRole.REQUESTER,
        parts=(foreign,),
    )
    with pytest.raises(Exception, match="no upload"):
        async with two.giver.giving("log", message):
            raise AssertionError


async def test_a_stopped_daemon_begins_no_transfer(tmp_path: Path) -> None:
    two = await two_in(tmp_path)
    waiting = asyncio.create_task(two.taker.whole(two.kept))
    await asyncio.sleep(0.01)
    await two.taker.close()
    with pytest.raises(FileFailed, match="stops"):
        await waiting
    # It is wanted yet, so that the next start goes on with it.
    assert two.taker.spool.wanted() == [two.kept]


async def test_older_files_of_a_sender_make_room_for_a_new_one(tmp_path: Path) -> None:
    two = await two_in(tmp_path, size=MIB)
    spool = two.taker.spool
    spool._max_files = 8 * MIB
    part = replace(two.kept.part, content="urn:anpd:file:2", size=2 * MIB)
    more = {"session": "s", "task": "t2", "role": "input"}
    # Its quarter is used up, and what is there is of the same session.
    with pytest.raises(InteractionError):
        await two.taker.expect("log", [part], peer="did:a", **more)
    assert await two.taker.expect("log2", [part], peer="did:a", **more)
    assert spool.logs() == ["log2"]
    # Nobody makes room at the cost of another sender.
    spool._max_files = 3 * MIB
    with pytest.raises(InteractionError):
        await two.taker.expect("log3", [part], peer="did:b", **more)
    assert spool.logs() == ["log2"]
