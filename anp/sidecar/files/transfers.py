"""Files on their way from and to peers, piece by piece.

Who wants a file asks for one piece after the other, a few of them ahead; so a slow side
is never sent more than that, and after a break it asks from the byte at which it
stands. A piece is one frame, so whatever else goes over the link gets its turn between
two of them. The asks are `task.get` with a field `file`, which stores nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from anp.channel.stranger_work import counted
from anp.errors import AnpError, UnknownError
from anp.identity.dids import agent_name
from anp.interaction.elements import Message, Part, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    FilePiece,
    FileRange,
    Operation,
    RefusedOperation,
    Send,
    TaskGet,
)
from anp.sidecar.files.sealed_file import BLOCK, DamagedFile, SealedWriter
from anp.sidecar.files.spool import FileRole, KeptFile, NoRoom, Spool
from cache.parts.logs import Log

logger = logging.getLogger(__name__)

FIRST_REF: Final = 2**52
"Smallest number of our asks: no event of a session has one so high."

PIECE: Final = 2 * BLOCK
"""Bytes of a piece that is asked for first. It fits a frame of a MiB also as base64,
and on a slow line other frames do not wait for it for long."""

MOST_PIECE: Final = 4 * BLOCK
"Bytes of a piece on a fast line, where the work for each counts."

FAST: Final = 0.1
"Seconds after which a piece that was asked for is here, on a fast line."

WINDOW: Final = 4
"Pieces that are asked for ahead."

AT_ONCE: Final = 4
"Files that come at a time; the others wait."

LOOK: Final = 0.2
"Seconds between two looks for a line to a peer that has a file for us."

SILENCE: Final = 30
"Seconds after which a piece that did not come is asked for again."

ROOM_FOR_FIELDS: Final = 16 * 1024
"Bytes of a frame for what is around a piece."


class FileFailed(AnpError):
    """A file will not come; the words are for people."""


class PieceLine(Protocol):
    """A channel over which pieces are asked for and given."""

    @property
    def closed(self) -> bool:
        """True when nothing more comes over it."""

    @property
    def max_message(self) -> int:
        """Most bytes of a frame."""

    @property
    def gives_files(self) -> bool:
        """True when pieces of files can be asked for over it."""

    def answer(self, send: Send) -> None:
        """Send a frame that belongs to no event."""

    def give(self, send: Send) -> None:
        """Send a piece, when nothing else waits to be sent."""


class FileTransfers:
    """Fetches the files that peers announce, and gives out ours."""

    def __init__(
        self,
        spool: Spool,
        find_line: Callable[[KeptFile], PieceLine | None],
        head: Callable[[str], Awaitable[Log]],
        want: Callable[[str], Awaitable[None]],
        *,
        max_wait: float,
    ) -> None:
        """Begin without transfers.

        Args:
            find_line: Returns the line over which pieces of a file come, if there is
                one; InteractionError if its peer knows nothing of its session.
            head: Returns the head of a session; InteractionError if it is gone.
            want: Has a line made to the peer of a session of ours; the same error.
            max_wait: Seconds for which a file may not come any further.
        """
        self.spool = spool
        self._find_line = find_line
        self._head = head
        self._want = want
        self._max_wait = max_wait
        self._numbers = itertools.count(FIRST_REF + time.time_ns() // 1_000_000)
        self._asked: dict[int, asyncio.Future[FilePiece | None]] = {}
        self._coming: dict[KeptFile, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._is_closed = False

    # Announced files

    async def expect(
        self, log: str, parts: Sequence[Part], **more: str | bool
    ) -> list[KeptFile]:
        """Make room for the files that a peer announces; return those that are new.

        Raises:
            InteractionError: There is none; nothing was noted.
        """
        new: list[KeptFile] = []
        for part in parts:
            if not part.is_file:
                continue
            assert part.size is not None
            kept = KeptFile(
                id=str(part.content),
                log=log,
                name=part.name,
                media_type=part.media_type,
                size=part.size,
                sha256=part.sha256,
                **more,  # type: ignore[arg-type]  # session, task, role, peer and listed
            )
            try:
                found = await self._expect(kept)
            except NoRoom as exc:
                await self.forget(new)
                fault = InteractionFault
                code = fault.TOO_LARGE if exc.too_large else fault.TOO_MANY
                raise InteractionError(code, str(exc)) from exc
            if found is not None:
                new.append(found)
        return new

    async def _expect(self, kept: KeptFile) -> KeptFile | None:
        """Make room for a file, if need be at the cost of older ones of its sender."""
        older = self.spool.logs(peer=kept.peer)
        while True:
            try:
                return await asyncio.to_thread(self.spool.expect, kept)
            except NoRoom as exc:
                if exc.too_large or not older:
                    raise
            log = older.pop(0)
            if log != kept.log and not await self._is_busy(log):
                await self.forget_log(log)

    async def _is_busy(self, log: str) -> bool:
        """Return whether a session has something under way; False if it is gone."""
        try:
            return (await self._head(log)).busy
        except InteractionError:
            return False

    async def forget(self, files: Sequence[KeptFile]) -> None:
        """Remove files that nobody wants any more, whole or not."""
        for kept in files:
            coming = self._coming.get(kept)
            if coming is not None:
                coming.cancel()
                await asyncio.wait({coming})
            await asyncio.to_thread(self.spool.forget, kept)

    async def forget_log(self, log: str) -> None:
        """Remove the files of a session."""
        await self.forget([one for one in self._coming if one.log == log])
        await asyncio.to_thread(self.spool.drop, log)

    async def prune(self, *, before: float = 0.0, room: int = 0) -> None:
        """Remove the files of sessions that are gone or old, and the oldest for room.

        Args:
            room: Bytes that something new needs.
            before: Seconds since 1970; of sessions without open tasks that were
                changed last before, files go.
        """
        await asyncio.to_thread(self.spool.drop_uploads)
        for log in self.spool.logs():
            try:
                found = await self._head(log)
            except InteractionError:
                await self.forget_log(log)
                continue
            is_old = found.updated < before or self.spool.is_nearly_full(room)
            if is_old and not found.busy:
                await self.forget_log(log)

    def start(self, kept: KeptFile) -> asyncio.Task[None]:
        """Fetch a file, if that is not done already."""
        coming = self._coming.get(kept)
        if coming is None:
            coming = self._coming[kept] = asyncio.create_task(counted(self._come(kept)))
            coming.add_done_callback(lambda _: self._coming.pop(kept))
        return coming

    async def whole(self, kept: KeptFile) -> None:
        """Wait until a file is here.

        Raises:
            FileFailed: It will not come.
        """
        while not await asyncio.to_thread(self.spool.is_whole, kept):
            now = self.spool.find(kept.log, kept.task, kept.id)
            if now is None or now.failed:
                raise FileFailed(now.failed if now else "the file is not kept any more")
            if self._is_closed:
                raise FileFailed("the daemon stops")
            await asyncio.wait({self.start(now)})

    def comes_from(self, peer: str) -> bool:
        """Return whether a peer has a file for us that is not whole here."""
        agent = agent_name(peer)
        return any(
            one.role is FileRole.RESULT and agent_name(one.peer) == agent
            for one in self._coming
        )

    def resume(self) -> None:
        """Go on with the results that are not whole here."""
        for kept in self.spool.wanted():
            if kept.role is FileRole.RESULT:
                self.start(kept)

    async def close(self) -> None:
        """End what is under way; the next start goes on with it."""
        self._is_closed = True
        coming = list(self._coming.values())
        for one in coming:
            one.cancel()
        await asyncio.gather(*coming, return_exceptions=True)

    # Pieces for peers

    @asynccontextmanager
    async def giving(self, log: str, message: Message) -> AsyncIterator[None]:
        """Put uploads among the files of a task while a message announces them.

        Raises:
            UnknownError: There is no such upload, or not any more.
        """
        given: list[KeptFile] = []
        place = {"session": message.session, "task": message.task}
        try:
            for part in message.parts:
                if not part.is_file:
                    continue
                upload = self.spool.upload(str(part.content))
                if upload is None or upload.part != part:
                    raise UnknownError(f"there is no upload {str(part.content)[:80]}")
                given.append(
                    await asyncio.to_thread(self.spool.give, upload, log, **place)
                )
            yield
        except BaseException:
            await asyncio.shield(self.forget(given))
            raise

    async def give(
        self, line: PieceLine, log: str, task: Task, wanted: TaskGet, ref: int
    ) -> None:
        """Answer the ask of a peer for a piece.

        Raises:
            InteractionError: The file is not kept here.
        """
        assert wanted.file is not None
        kept = self.spool.find(log, task.id, wanted.file.id)
        if kept is None:
            raise _unknown("there is no such file")
        offset, length = wanted.file.offset, min(wanted.file.length, _most(line))
        try:
            data = self.spool.read_at_once(kept, offset, length)
            if data is None:
                data = await asyncio.to_thread(self.spool.read, kept, offset, length)
        except (DamagedFile, OSError) as exc:
            logger.warning("file cannot be given session=%s reason=%s", log, exc)
            raise _unknown("the file cannot be read any more") from exc
        piece = FilePiece(offset=offset, data=data)
        told = Acknowledgement(session=wanted.session, ref=ref, task=task, piece=piece)
        line.give(Send(to="", ref=0, operation=told))

    # Pieces of peers

    def take(self, operation: Operation) -> bool:
        """Take a peer's answer to an ask of ours; False if it is none."""
        if not isinstance(operation, Acknowledgement | RefusedOperation):
            return False
        if operation.ref < FIRST_REF:
            return False
        asked = self._asked.pop(operation.ref, None)
        if asked is None or asked.done():
            return True
        if isinstance(operation, RefusedOperation):
            if operation.code == InteractionFault.UNKNOWN_SESSION:
                # Another line may know it.
                asked.set_result(None)
                return True
            words = f"the peer does not give it: {operation.code}"
            asked.set_exception(FileFailed(words))
        elif operation.piece is None:
            asked.set_exception(FileFailed("the peer gives no files"))
        else:
            asked.set_result(operation.piece)
        return True

    async def _come(self, kept: KeptFile) -> None:
        reason = ""
        try:
            await self._fetch(kept)
        except FileFailed as exc:
            reason = str(exc)
        except InteractionError as exc:
            reason = f"its session is not there: {exc.text}"
        except OSError as exc:
            reason = f"it cannot be written here: {exc.strerror}"
        except Exception:
            logger.exception("a file failed session=%s", kept.log)
            reason = "an error of ours"
        if reason:
            logger.warning("file did not come session=%s reason=%s", kept.log, reason)
            await asyncio.to_thread(self.spool.fail, kept, reason)

    async def _fetch(self, kept: KeptFile) -> None:
        writer = await asyncio.to_thread(self.spool.writer, kept)
        with writer:
            clock = asyncio.get_running_loop().time
            size, since = writer.size, clock()
            while writer.size < kept.size:
                if writer.size > size:
                    size, since = writer.size, clock()
                elif clock() - since > self._max_wait:
                    raise FileFailed(f"it did not come for {self._max_wait:g} s")
                line = self._find_line(kept)
                if line is None:
                    if kept.role is FileRole.RESULT:
                        # Its task has ended, so that nothing else keeps up a line.
                        await self._want(kept.log)
                    await asyncio.sleep(LOOK)
                    continue
                if not line.gives_files:
                    raise FileFailed("the protocol with the peer has no files")
                async with self._places:
                    await self._pull(line, kept, writer)
            if not await asyncio.to_thread(self.spool.finish, kept, writer):
                raise FileFailed("its bytes are not those that were announced")
        logger.info("file came session=%s bytes=%d", kept.log, kept.size)

    async def _pull(
        self, line: PieceLine, kept: KeptFile, writer: SealedWriter
    ) -> None:
        """Fetch over one line until all is here, or nothing more comes over it.

        While one piece is written, the next ones come, and further ones are asked for.
        """
        asked: deque[_Ask] = deque()
        loop = asyncio.get_running_loop()
        writing: asyncio.Future[None] | None = None
        most = _most(line)
        here = ahead = writer.size
        step = min(PIECE, most)
        try:
            while here < kept.size:
                while len(asked) < WINDOW and ahead < kept.size:
                    length = min(step, kept.size - ahead)
                    asked.append(self._ask(line, kept, ahead, length))
                    ahead += length
                piece = await _answer(line, asked[0])
                if piece is None:
                    break
                wanted, length = asked.popleft(), len(piece.data)
                if piece.offset != here or not 0 < length <= wanted.length:
                    raise FileFailed("the peer gave another piece than was wanted")
                here += length
                if length < wanted.length:
                    # Its frames are smaller: what was asked for behind is not next.
                    self._drop(asked)
                    ahead, step, most = here, length, length
                elif loop.time() - wanted.at < FAST:
                    step = min(2 * step, most)
                if writing is not None:
                    await asyncio.shield(writing)
                writing = loop.run_in_executor(None, writer.append, piece.data)
            if writing is not None:
                await asyncio.shield(writing)
        finally:
            self._drop(asked)
            if writing is not None:
                # Before anybody closes or goes on with what it writes to.
                await asyncio.wait({writing})

    def _ask(self, line: PieceLine, kept: KeptFile, offset: int, length: int) -> _Ask:
        ref, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._asked[ref] = answer
        place = FileRange(id=kept.id, offset=offset, length=length)
        wanted = TaskGet(session=kept.session, task=kept.task, file=place)
        line.answer(Send(to=kept.peer, ref=ref, operation=wanted))
        return _Ask(ref, length, asyncio.get_running_loop().time(), answer)

    def _drop(self, asked: deque[_Ask]) -> None:
        for one in asked:
            self._asked.pop(one.ref, None)
            if not one.answer.cancel() and not one.answer.cancelled():
                # Read, so that asyncio does not complain about a refusal.
                one.answer.exception()
        asked.clear()


@dataclass(frozen=True, slots=True)
class _Ask:
    """A piece that was asked for."""

    ref: int
    length: int

    at: float
    "When it was asked for, on the clock of the loop."

    answer: asyncio.Future[FilePiece | None]


def _most(line: PieceLine) -> int:
    """Return the bytes of the largest piece that fits a frame, also as base64."""
    room = (line.max_message - ROOM_FOR_FIELDS) * 3 // 4
    return min(MOST_PIECE, room - room % BLOCK or room)


async def _answer(line: PieceLine, asked: _Ask) -> FilePiece | None:
    """Return the piece that was asked for; None if it does not come over this line."""
    for _ in range(SILENCE):
        await asyncio.wait({asked.answer}, timeout=1.0)
        if asked.answer.done():
            return asked.answer.result()
        if line.closed:
            break
    return None


def _unknown(text: str) -> InteractionError:
    return InteractionError(InteractionFault.UNKNOWN_FILE, text)
