"""One call of an attached function, and the way of what it says before its answer."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import Progress
from anp.sidecar.attachments.part_json import BINARY, FOLDERS, MAX_NAME, bytes_of
from anp.sidecar.attachments.requester import (
    LAST_WAIT,
    GivenFile,
    Question,
    Requester,
    as_last,
)
from negotiation.errors import JsonError
from negotiation.strict_json import canonical_json, parse_json

HEADER = struct.Struct(">IQ")
"Length of the JSON, and the id of the call it belongs to."


class FunctionCall:
    """One call in flight, and the way of what it says before its answer.

    The child sends a bounded number of updates until it is allowed more, so the queue
    of its words is short.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        number: int,
        requester: Requester | None,
        report: Callable[[Progress], None] | None,
        max_size: int,
        leave: Callable[[object], None],
    ) -> None:
        self._write = write
        self._number = number
        self._requester = requester
        self._report = report
        self._max_size = max_size
        self._leave = leave
        # For the task that passes words on, which most calls do without.
        self._context = copy_context()
        self._notes: asyncio.Queue[bytes | None] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._ended: bytes | None = None
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[None] = loop.create_future()
        """Done when the answer is there, and all that came before it is passed on; the
        caller may give up. The loop holds it for as long as what waits for it runs, so
        it does not hold the answer."""

    def heard(self, data: bytes) -> None:
        """Take a message that came before the answer, and pass it on."""
        if self.answered.done() or (self._requester is None and self._report is None):
            return
        if self._notes is None:
            self._notes = asyncio.Queue()
            self._telling = asyncio.create_task(
                self._tell(self._notes), context=self._context
            )
            self._telling.add_done_callback(self._told)
        self._notes.put_nowait(data)

    def end(self, data: bytes) -> None:
        """Take the answer."""
        self._ended = data
        self._leave(None)
        if self._notes is not None:
            self._notes.put_nowait(None)
        elif not self.answered.done():
            self.answered.set_result(None)

    def take_answer(self) -> bytes:
        """Return the answer, once it is there; it is not held here any more."""
        answer, self._ended = self._ended, None
        assert answer is not None
        return answer

    def fail(self, error: Exception) -> None:
        """End the call, which gets no answer any more."""
        self._leave(None)
        if not self.answered.done():
            self.answered.set_exception(error)

    def give_up(self) -> None:
        """End the wait with a TimeoutError: the time is over."""
        if not self.answered.done():
            self.answered.set_exception(TimeoutError())

    async def close(self) -> None:
        """Pass nothing more on."""
        if not self.answered.cancel() and not self.answered.cancelled():
            # Nobody may have come to see it, and asyncio would complain.
            self.answered.exception()
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait({self._telling})

    def _told(self, telling: asyncio.Task[None]) -> None:
        if self.answered.done():
            return
        if telling.cancelled():
            self.answered.cancel()
        elif (error := telling.exception()) is not None:
            self.answered.set_exception(error)
        elif self._ended is not None:
            self.answered.set_result(None)

    async def _tell(self, notes: asyncio.Queue[bytes | None]) -> None:
        data = await notes.get()
        while data is not None:
            note = object_of(data, self._max_size)
            following: list[bytes | None] = []
            if "update" in note or "file" in note:
                # A function that ends does so at once after its last update. A slow
                # next update comes as late as it would without this wait.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST_WAIT):
                        following.append(await notes.get())
            ends_well = following == [None] and not _is_error(self._ended)
            await self._pass(note, is_last=ends_well)
            data = following[0] if following else await notes.get()

    async def _pass(self, note: dict[str, Any], *, is_last: bool) -> None:
        """Pass on what the function said.

        Args:
            is_last: It is part of the result, and the function has ended after it.
        """
        if "progress" in note and self._report is not None:
            self._report(_progress(note["progress"]))
        elif "update" in note and self._requester is not None:
            part = _part(note["update"])
            await self._requester.update([as_last(part) if is_last else part])
            self.say({"more": 1})
        elif "file" in note and self._requester is not None:
            await _pass_on(self._requester, note["file"], is_last=is_last)
            self.say({"more": 1})
        elif "ask" in note and self._requester is not None:
            reply = await self._requester.ask(_question(note["ask"]))
            given = reply.text if reply.value is None else reply.value
            told = {"action": reply.action, "value": given}
            if reply.files:
                told["files"] = await self._requester.lay(reply.files)
            self.say({"reply": told})

    def say(self, frame: dict[str, Any]) -> None:
        """Send a frame about the call; a child that is gone needs none."""
        self._write(pack(self._number, frame))


def _progress(told: Any) -> Progress:
    """Return what a function said of its progress; words and numbers only."""
    if not isinstance(told, dict):
        raise JsonError("the progress is no object")
    done, total = told.get("progress"), told.get("total")
    return Progress(
        None if not _is_number(done) else done,
        None if not _is_number(total) else total,
        str(told.get("message") or ""),
    )


def _is_error(answer: bytes | None) -> bool:
    """Return whether an answer of the child is that of a function that failed."""
    return answer is None or answer.startswith(b'{"error"')


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _part(value: Any) -> Part:
    return Part.text(value) if isinstance(value, str) else Part.value(value)


async def _pass_on(requester: Requester, told: Any, *, is_last: bool) -> None:
    """Pass on a file of a function's: bytes, or a path in the folder of its call."""
    if isinstance(told, dict) and "path" in told:
        words = [str(told.get(key) or "") for key in ("path", "name", "mediaType")]
        await requester.send_file(GivenFile(*words))
    else:
        part = _file(told)
        await requester.update([as_last(part) if is_last else part])


def _file(told: Any) -> Part:
    """Return bytes of a function's as a part."""
    try:
        data = bytes_of(told)
    except ValueError as exc:
        raise JsonError(str(exc)) from None
    media_type = str(told.get("mediaType"))[:MAX_NAME] or BINARY
    name = FOLDERS.sub("", str(told.get("name", "")))[:MAX_NAME]
    return Part.data(data, media_type=media_type, name=name)


def _question(told: Any) -> Question:
    """Return a question of a function's."""
    if not isinstance(told, dict):
        raise JsonError("the question is no object")
    schema = told.get("schema")
    return Question(
        text=str(told.get("text") or ""),
        schema=schema if isinstance(schema, dict) else None,
        url=str(told.get("url") or ""),
    )


def pack(number: int, frame: dict[str, Any]) -> bytes:
    """Return a frame about a call."""
    data = canonical_json(frame)
    return HEADER.pack(len(data), number) + data


def object_of(data: bytes, max_size: int) -> dict[str, Any]:
    """Return the JSON of a frame; JsonError if it is no object."""
    frame = parse_json(data, max_size=max_size)
    if not isinstance(frame, dict):
        raise JsonError("not an object")
    return frame
