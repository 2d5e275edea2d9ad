"""The owner's Python functions, run by the owner's interpreter in a child process.

A frame is a header, big-endian: four bytes of length and eight of call id, and then
that many bytes of JSON. To the child: `{"call", "arguments", "context"}` and
`{"cancel"}`; from it: `{"ready": [tools]}` or `{"failed": reason}` once, with id 0,
then `{"output"}` or `{"error": {"code", "message", "meant", "ran"}}`, where `meant`
says that the words are for the caller and `ran` that the function was called. Before
that it may send `{"progress"}`, and where somebody takes it `{"update": value}` or
`{"file": {"mediaType", "name", "data" or "path"}}`, of which `{"more": number}` allows
further ones, and `{"ask"}`, answered by `{"reply"}`.
The id is outside of the JSON, so that an answer that cannot be read ends no other call.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anp.errors import LocalError
from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    Progress,
    ToolError,
    report_progress,
)
from anp.sidecar.attachments.listing import Tool, read_tools
from anp.sidecar.attachments.part_json import BINARY, FOLDERS, MAX_NAME, bytes_of
from anp.sidecar.attachments.requester import (
    GivenFile,
    Question,
    Requester,
    current_requester,
    joins_updates,
)
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.supervisor import (
    OutputTail,
    SupervisedAttachment,
    child_environment,
)
from negotiation.errors import JsonError
from negotiation.strict_json import canonical_json, parse_json

__all__ = ["PythonAttachment", "find_interpreter"]

logger = logging.getLogger(__name__)

RUNNER = Path(__file__).with_name("runner.py")

HEADER = struct.Struct(">IQ")
"Length of the JSON, and the id of the call it belongs to."

FINAL = (b'{"output":', b'{"error":', b'{"ready":', b'{"failed":')
"Beginnings of the frames that end a call; `runner.py` writes them so."

STOP_TIMEOUT = 3.0
"Seconds a child may take to end by itself after its channel was closed."


@dataclass(slots=True)
class _Child:
    """One living child with its channel."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    "Ids of calls; never used twice in one life."

    calls: dict[int, _Call] = field(default_factory=dict)
    "Calls not yet answered, also those nobody waits for any more."


class _Call:
    """One call in flight, and the way of what it says before its answer.

    The child sends a bounded number of updates until it is allowed more, so the queue
    of its words is short.
    """

    def __init__(
        self,
        child: _Child,
        number: int,
        requester: Requester | None,
        report: Callable[[Progress], None] | None,
        max_size: int,
        leave: Callable[[object], None],
    ) -> None:
        self._child = child
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
        self.answer: asyncio.Future[bytes] = loop.create_future()
        "The answer when all that came before it is passed on; the caller may give up."

    def heard(self, data: bytes) -> None:
        """Take a message that came before the answer, and pass it on."""
        if self.answer.done() or (self._requester is None and self._report is None):
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
        elif not self.answer.done():
            self.answer.set_result(data)

    def fail(self, error: Exception) -> None:
        """End the call, which gets no answer any more."""
        self._leave(None)
        if not self.answer.done():
            self.answer.set_exception(error)

    async def close(self) -> None:
        """Pass nothing more on."""
        if not self.answer.cancel() and not self.answer.cancelled():
            # Nobody may have come to see it, and asyncio would complain.
            self.answer.exception()
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait({self._telling})

    def _told(self, telling: asyncio.Task[None]) -> None:
        if self.answer.done():
            return
        if telling.cancelled():
            self.answer.cancel()
        elif (error := telling.exception()) is not None:
            self.answer.set_exception(error)
        elif self._ended is not None:
            self.answer.set_result(self._ended)

    async def _tell(self, notes: asyncio.Queue[bytes | None]) -> None:
        while (data := await notes.get()) is not None:
            note = _object(data, self._max_size)
            if "progress" in note and self._report is not None:
                self._report(_progress(note["progress"]))
            elif "update" in note and self._requester is not None:
                await self._requester.update([_part(note["update"])])
                self.say({"more": 1})
            elif "file" in note and self._requester is not None:
                await _pass_on(self._requester, note["file"])
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
        with suppress(ConnectionError):
            self._child.writer.write(_pack(self._number, frame))


class PythonAttachment(SupervisedAttachment):
    """Python functions in a child process (SIDECAR.md, "Attaching an agent")."""

    def __init__(
        self,
        spec: AttachmentSpec,
        *,
        limits: AttachmentLimits,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(spec, limits=limits, on_change=on_change)
        self._child: _Child | None = None

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """Call a function; many calls may be in flight."""
        deadline = asyncio.get_running_loop().time() + timeout
        leave = await self._places.take(self._limits.max_calls, timeout=timeout)
        try:
            await self._wait_ready(capability, timeout)
            child = self._child
            if child is None:
                raise LocalError(f"attachment {self.name} is ready without a child")
            number = next(child.numbers)
            tool = self._tool_of(capability)
            requester, report = current_requester.get(), report_progress.get()
            context = {
                "live": requester is not None,
                "joins": joins_updates.get(),
                "caller": caller,
                "deadline": time.time() + timeout,
                "key": "" if requester is None else requester.key,
                "folder": "" if requester is None else requester.folder,
            }
            data = _pack(
                number, {"call": tool, "arguments": arguments, "context": context}
            )
        except BaseException as exc:
            leave(None)
            if not isinstance(exc, JsonError):
                raise
            raise ToolError(400, str(exc), may_have_run=False) from exc
        # A function that hangs in a thread cannot be ended, so it keeps its place.
        call = _Call(child, number, requester, report, self._limits.max_result, leave)
        child.calls[number] = call
        try:
            async with asyncio.timeout_at(deadline):
                child.writer.write(data)
                await child.writer.drain()
                found = await call.answer
        except BaseException as exc:
            # Whatever ended the wait: the function ends, and its answer is counted off.
            call.say({"cancel": True})
            match exc:
                case TimeoutError():
                    text = f"no answer within {timeout:g} s"
                    raise ToolError(504, text) from None
                case JsonError():
                    text = f"the function said something else: {exc}"
                    raise ToolError(502, text) from exc
                case ConnectionError():
                    text = "the Python child ended"
                    raise AttachmentError(text, may_have_run=True) from None
            raise
        finally:
            await call.close()
        return _output(found, self._limits.max_result)

    async def _live(self) -> None:
        """Run one life of the child, from its start to its death."""
        output = OutputTail(self.name)
        child = await self._spawn()
        assert child.process.stdout is not None
        drain = asyncio.create_task(output.drain(child.process.stdout))
        try:
            await self._greet(child, output, drain)
            self._child = child
            self._opened()
            await self._serve(child)
        finally:
            self._lost()
            self._child = None
            # Not through the supervisor's own cancellation either may a child stay.
            await asyncio.shield(self._end(child, drain))
        if not self._stopping.is_set():
            raise AttachmentError(
                f"the Python child ended with {child.process.returncode}"
                f"{_printed(output)}"
            )

    async def _spawn(self) -> _Child:
        """Start the child with its channel."""
        ours, theirs = socket.socketpair()
        interpreter = self._spec.python or find_interpreter(os.environ)
        try:
            process = await asyncio.create_subprocess_exec(
                interpreter,
                # No bytecode files: two versions of a source that were written within a
                # second and have the same size would be taken for one.
                "-B",
                RUNNER,
                str(theirs.fileno()),
                str(self._limits.max_result),
                self._spec.target,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self._spec.cwd,
                env=child_environment(self._spec.env),
                pass_fds=[theirs.fileno()],
                # Ctrl-C on the daemon's terminal is the daemon's; we end the child.
                start_new_session=True,
            )
        except BaseException as exc:
            ours.close()
            if not isinstance(exc, OSError | ValueError):
                raise
            reason = getattr(exc, "strerror", None) or exc
            raise AttachmentError(
                f"cannot start {interpreter}: {reason}; check --python and the folder"
            ) from exc
        finally:
            theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        return _Child(process, reader, writer)

    async def _greet(
        self, child: _Child, output: OutputTail, drain: asyncio.Task[None]
    ) -> None:
        """Read what the child says about its functions."""
        limit = self._limits.supervisor.start_timeout
        try:
            async with asyncio.timeout(limit):
                _, data = await _read(child.reader, self._limits.max_result)
            frame = _object(data, self._limits.max_result)
        except TimeoutError:
            raise AttachmentError(
                f"{self._spec.target} was not imported within {limit:g} s"
            ) from None
        except (EOFError, ConnectionError, JsonError) as exc:
            # What it printed says why, and may still be on its way.
            await asyncio.wait({drain}, timeout=0.5)
            raise AttachmentError(
                f"the Python child did not start{_printed(output)}"
            ) from exc
        if "failed" in frame:
            raise AttachmentError(
                f"cannot load {self._spec.target}: {str(frame['failed'])[:400]}"
            )
        self._listing = read_tools(self._spec, _tools(frame), self._limits)
        for reason in self._listing.skipped:
            logger.warning("function left out attachment=%s %s", self.name, reason)

    async def _serve(self, child: _Child) -> None:
        """Pass answers on until the child is gone or we are to stop."""
        answers = asyncio.create_task(self._answers(child))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({answers, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answers.cancel()
            stop.cancel()
            await asyncio.wait({answers, stop})
        if not answers.cancelled() and (error := answers.exception()) is not None:
            raise error

    async def _answers(self, child: _Child) -> None:
        try:
            while True:
                number, data = await _read(child.reader, self._limits.max_result)
                final = data.startswith(FINAL)
                call = child.calls.get(number)
                if call is not None and final:
                    del child.calls[number]
                    call.end(data)
                elif call is not None:
                    call.heard(data)
        except (EOFError, ConnectionError):
            return
        except JsonError as exc:
            raise AttachmentError(f"the Python child sent no frame: {exc}") from exc

    async def _end(self, child: _Child, drain: asyncio.Task[None]) -> None:
        """Close the channel, wait for the child, kill what stays, fail its calls."""
        for call in child.calls.values():
            call.fail(AttachmentError("the Python child ended", may_have_run=True))
        child.calls.clear()
        child.writer.close()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await child.process.wait()
        except TimeoutError:
            logger.warning("python child killed attachment=%s", self.name)
            # Also the processes it started: it leads a session of its own.
            with suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)
            await child.process.wait()
        await asyncio.wait({drain}, timeout=0.2)
        drain.cancel()
        await asyncio.wait({drain})


def find_interpreter(environ: dict[str, str] | os._Environ[str]) -> Path:
    """Return the interpreter of the active environment, else our own."""
    if active := environ.get("VIRTUAL_ENV"):
        found = Path(active) / "bin" / "python"
        if found.exists():
            return found
    return Path(sys.executable)


def _tools(frame: dict[str, Any]) -> list[Tool]:
    found = frame.get("ready")
    if not isinstance(found, list):
        raise AttachmentError("the Python child did not say what it can do")
    return [
        Tool(
            name=str(each.get("name")),
            description=str(each.get("description") or ""),
            input_schema=each.get("input_schema"),
            output_schema=each.get("output_schema"),
            updates=each.get("updates"),
        )
        for each in found
        if isinstance(each, dict)
    ]


def _output(data: bytes, max_size: int) -> dict[str, Any]:
    """Return the output in an answer, or raise the error in it."""
    try:
        frame = _object(data, max_size)
    except JsonError as exc:
        raise ToolError(502, f"the function's result: {exc}") from exc
    output, error = frame.get("output"), frame.get("error")
    if isinstance(output, dict):
        return output
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        raise ToolError(
            error["code"],
            str(error.get("message")),
            may_have_run=error.get("ran") is not False,
            private=error.get("meant") is not True,
        )
    raise ToolError(502, "the Python child's answer is no result")


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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _part(value: Any) -> Part:
    return Part.text(value) if isinstance(value, str) else Part.value(value)


async def _pass_on(requester: Requester, told: Any) -> None:
    """Pass on a file of a function's: bytes, or a path in the folder of its call."""
    if isinstance(told, dict) and "path" in told:
        words = [str(told.get(key) or "") for key in ("path", "name", "mediaType")]
        await requester.send_file(GivenFile(*words))
    else:
        await requester.update([_file(told)])


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


def _pack(number: int, frame: dict[str, Any]) -> bytes:
    data = canonical_json(frame)
    return HEADER.pack(len(data), number) + data


async def _read(reader: asyncio.StreamReader, max_size: int) -> tuple[int, bytes]:
    """Read one frame as its call id and its bytes.

    Raises:
        EOFError: The child is gone.
        JsonError: It is too large.
    """
    size, number = HEADER.unpack(await reader.readexactly(HEADER.size))
    if size > max_size:
        raise JsonError(f"a frame of {size} bytes, at most {max_size}")
    return number, await reader.readexactly(size)


def _object(data: bytes, max_size: int) -> dict[str, Any]:
    frame = parse_json(data, max_size=max_size)
    if not isinstance(frame, dict):
        raise JsonError("not an object")
    return frame


def _printed(output: OutputTail) -> str:
    return f"; it printed: {output.last_line}" if output.last_line else ""
