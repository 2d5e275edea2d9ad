"""Files of tasks in the local API: uploaded before a task, and given out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from anp.errors import BusyError, CallError, ErrorKind
from anp.sidecar.api.connections import CONNECTION
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.table import BYTES_TYPE, LocalScope, Query, check_type, post
from anp.sidecar.daemon import Daemon
from anp.sidecar.files.sealed_file import BLOCK, SealedWriter
from anp.sidecar.files.spool import KeptFile, NoRoom, Spool
from anp.sidecar.files.transfers import FileFailed, FileTransfers

MAX_UPLOADS: Final = 8
"Uploads that are taken at a time."

SMALL: Final = 4 * 1024
"Bytes below which pieces of a body are put together as they come."

PIECE: Final = 4 * BLOCK
"Bytes of an upload that are written at once."

PATIENCE: Final = 20.0
"Seconds for which a request waits for a file that is on its way here."


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadView:
    """A file that a part of a task or message may name as its `file`."""

    id: str
    "Id for `file`."

    name: str
    media_type: str

    size: int
    "Bytes."

    sha256: str
    "SHA-256 of its bytes, 64 hex characters."


class FileOperations:
    """Operations on files."""

    tag = "tasks"

    def __init__(self, daemon: Daemon) -> None:
        self._files = daemon.tasks.files
        self._spool = self._files.spool
        self._uploads = 0

    @post(
        "/v1/files",
        UploadView,
        upload=True,
        query=(
            Query(
                name="name",
                text="Name for people; the peer gets it.",
                schema={"type": "string", "minLength": 1, "maxLength": 255},
            ),
            Query(
                name="media_type",
                text="Its format; without it that of bytes.",
                schema={"type": "string", "minLength": 1, "maxLength": 200},
            ),
        ),
        problems=(411, 413, 429, 507),
        scope=LocalScope.AGENT,
    )
    async def upload_file(self, request: Request) -> UploadView:
        """Take a file for a task; it is kept for an hour until one takes it."""
        check_type(request, BYTES_TYPE)
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise ApiError(411, "send the length of the file as Content-Length")
        if self._uploads >= MAX_UPLOADS:
            raise BusyError(f"{MAX_UPLOADS} uploads are being taken", retry_after=1)
        self._uploads += 1
        try:
            return await self._take(request, int(length[:15]))
        except NoRoom as exc:
            raise _no_room(exc) from exc
        except OSError as exc:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE, f"the file cannot be kept: {exc.strerror}"
            ) from exc
        finally:
            self._uploads -= 1

    async def _take(self, request: Request, length: int) -> UploadView:
        if self._spool.is_nearly_full(length):
            await self._files.prune(room=length)
        self._spool.check(length)
        kept, writer = await asyncio.to_thread(
            self._spool.begin,
            name=request.query_params.get("name", ""),
            media_type=request.query_params.get("media_type", BYTES_TYPE),
        )
        try:
            await _write(request, writer)
            kept = await asyncio.to_thread(self._spool.keep, kept, writer)
        finally:
            # Of one that did not get whole nothing is left.
            self._spool.abandon(kept, writer)
        return UploadView(
            id=kept.id,
            name=kept.name,
            media_type=kept.media_type,
            size=kept.size,
            sha256=kept.sha256,
        )


async def file_answer(
    files: FileTransfers, kept: KeptFile | None, headers: dict[str, str]
) -> Response:
    """Return the bytes of a file, when all of them are here and right.

    Raises:
        CallError: It did not come, or is on its way yet.
    """
    if kept is None:
        raise ApiError(404, "the file is not kept any more")
    try:
        async with asyncio.timeout(PATIENCE):
            await files.whole(kept)
    except TimeoutError:
        here = await asyncio.to_thread(files.spool.progress, kept)
        raise BusyError(
            f"the file is on its way: {here} of {kept.size} bytes are here",
            retry_after=1,
        ) from None
    except FileFailed as exc:
        raise CallError(
            ErrorKind.APPLICATION_ERROR, f"the file did not come: {exc}"
        ) from exc
    return StreamingResponse(
        _blocks(files.spool, kept),
        headers={**headers, "Content-Length": str(kept.size)},
    )


async def _blocks(spool: Spool, kept: KeptFile) -> AsyncIterator[memoryview]:
    for offset in range(0, kept.size, BLOCK):
        yield await asyncio.to_thread(spool.read, kept, offset, BLOCK)


async def _write(request: Request, writer: SealedWriter) -> None:
    """Write a body; while one piece of it is written, the next one comes."""
    loop = asyncio.get_running_loop()
    writing: asyncio.Future[None] | None = None
    try:
        async for piece in _pieces(request):
            if writing is not None:
                await asyncio.shield(writing)
            writing = loop.run_in_executor(None, writer.append, piece)
        if writing is not None:
            await asyncio.shield(writing)
    finally:
        if writing is not None:
            # Before anybody closes what it writes to.
            await asyncio.wait({writing})


async def _pieces(request: Request) -> AsyncIterator[memoryview]:
    """Yield a body in pieces of whole blocks, and its rest.

    A slow client has its time for each block.
    """
    connection = request.scope.get("state", {}).get(CONNECTION)
    came: list[bytes | bytearray] = []
    size = 0
    async for data in request.stream():
        if came and len(data) < SMALL:
            # Each alone would take many times its bytes.
            if not isinstance(came[-1], bytearray):
                came.append(bytearray())
            came[-1] += data
        else:
            came.append(data)
        before, size = size, size + len(data)
        if connection is not None and before // BLOCK < size // BLOCK:
            connection.took_piece()
        if size >= PIECE:
            whole = b"".join(came)
            end = size // BLOCK * BLOCK
            yield memoryview(whole)[:end]
            came, size = [whole[end:]], size - end
    yield memoryview(b"".join(came))


def _no_room(exc: NoRoom) -> CallError:
    if exc.too_large:
        return ApiError(413, str(exc))
    return CallError(ErrorKind.LOCAL_RESOURCE, str(exc))
