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
import sys
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from anp.errors import LocalError
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    HandedBack,
    ToolError,
    report_progress,
)
from anp.sidecar.attachments.listing import Tool, read_tools
from anp.sidecar.attachments.python.function_call import HEADER, FunctionCall, object_of
from anp.sidecar.attachments.requester import current_requester, joins_updates
from anp.sidecar.attachments.spec import AttachmentSpec, read_environment
from anp.sidecar.attachments.supervisor import (
    OutputTail,
    SupervisedAttachment,
    child_environment,
)
from negotiation.errors import JsonError
from negotiation.long_texts import LONG
from negotiation.strict_json import canonical_json

logger = logging.getLogger(__name__)

RUNNER = Path(__file__).with_name("runner.py")

FINAL = (b'{"output":', b'{"error":', b'{"ready":', b'{"failed":')
"Beginnings of the frames that end a call; `runner.py` writes them so."

STOP_TIMEOUT = 3.0
"Seconds a child may take to end by itself after its channel was closed."


class _Child(asyncio.Protocol):
    """One living child with its channel, whose frames go to their calls as they come.

    Args:
        max_size: Bytes that a frame may have.
    """

    process: asyncio.subprocess.Process

    def __init__(self, max_size: int) -> None:
        self.numbers = itertools.count(1)
        "Ids of calls; never used twice in one life."
        self.calls: dict[int, FunctionCall] = {}
        "Calls not yet answered, also those nobody waits for any more."
        loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[bytes] = loop.create_future()
        "The first frame; EOFError: the child is gone; JsonError: it is too large."
        self.ended: asyncio.Future[AttachmentError | None] = loop.create_future()
        "The end of the channel, with the error if a frame was too large."
        self._max_size = max_size
        self._received = bytearray()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if not self.greeting.done():
            self.greeting.set_exception(EOFError())
        if not self.ended.done():
            self.ended.set_result(None)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        received = self._received
        received += data
        while len(received) >= HEADER.size and not self.ended.done():
            size, number = HEADER.unpack_from(received)
            if size > self._max_size:
                self._refuse(f"a frame of {size} bytes, at most {self._max_size}")
                return
            end = HEADER.size + size
            if len(received) < end:
                return
            frame = bytes(memoryview(received)[HEADER.size : end])
            del received[:end]
            self._take(number, frame)

    def write(self, data: bytes) -> None:
        """Send a frame; a child that is gone needs none."""
        if self._transport is not None:
            # A view, so that the part which has to wait is not copied twice.
            self._transport.write(memoryview(data))

    def send(self, number: int, data: bytes) -> None:
        """Send the JSON of a frame about a call."""
        header = HEADER.pack(len(data), number)
        if len(data) > LONG:
            self.write(header)
            self.write(data)
        else:
            self.write(header + data)

    def close(self) -> None:
        """Close the channel, by which the child ends."""
        if self._transport is not None:
            self._transport.close()

    def _take(self, number: int, data: bytes) -> None:
        if not self.greeting.done():
            self.greeting.set_result(data)
            return
        call = self.calls.get(number)
        if call is None:
            return
        if data.startswith(FINAL):
            del self.calls[number]
            call.end(data)
        else:
            call.heard(data)

    def _refuse(self, reason: str) -> None:
        if not self.greeting.done():
            self.greeting.set_exception(JsonError(reason))
        else:
            text = f"the Python child sent no frame: {reason}"
            self.ended.set_result(AttachmentError(text))


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
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
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
            data = canonical_json(
                {"call": tool, "arguments": arguments, "context": context}
            )
        except BaseException as exc:
            leave(None)
            if not isinstance(exc, JsonError):
                raise
            raise ToolError(400, str(exc), may_have_run=False) from exc
        # A function that hangs in a thread cannot be ended, so it keeps its place.
        call = FunctionCall(
            child.write, number, requester, report, self._limits.max_result, leave
        )
        child.calls[number] = call
        late = loop.call_at(deadline, call.give_up)
        try:
            child.send(number, data)
            # It may be long, and the answer may take long.
            del data
            await call.answered
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
            raise
        finally:
            late.cancel()
            await call.close()
        return _output(call.take_answer(), self._limits.max_result)

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
        environment = await asyncio.to_thread(read_environment, self._spec)
        ours, theirs = socket.socketpair()
        interpreter = self._spec.python or find_interpreter(os.environ)
        child = _Child(self._limits.max_result)
        try:
            # First, so that nothing is waited for between the start of the child and
            # the care for its end.
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: child, sock=ours)
            child.process = await asyncio.create_subprocess_exec(
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
                env=child_environment(environment),
                pass_fds=[theirs.fileno()],
                # Ctrl-C on the daemon's terminal is the daemon's; we end the child.
                start_new_session=True,
            )
        except BaseException as exc:
            # Nobody waits for its greeting any more.
            child.greeting.cancel()
            child.close()
            ours.close()
            if not isinstance(exc, OSError | ValueError):
                raise
            reason = getattr(exc, "strerror", None) or exc
            raise AttachmentError(
                f"cannot start {interpreter}: {reason}; check --python and the folder"
            ) from exc
        finally:
            theirs.close()
        return child

    async def _greet(
        self, child: _Child, output: OutputTail, drain: asyncio.Task[None]
    ) -> None:
        """Read what the child says about its functions."""
        limit = self._limits.supervisor.start_timeout
        try:
            async with asyncio.timeout(limit):
                data = await child.greeting
            frame = object_of(data, self._limits.max_result)
        except TimeoutError:
            raise AttachmentError(
                f"{self._spec.target} was not imported within {limit:g} s"
            ) from None
        except (EOFError, JsonError) as exc:
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
        """Wait until the child is gone or we are to stop."""
        stop = asyncio.create_task(self._stopping.wait())
        try:
            ends: set[asyncio.Future[Any]] = {child.ended, stop}
            await asyncio.wait(ends, return_when=FIRST_COMPLETED)
        finally:
            stop.cancel()
            await asyncio.wait({stop})
        if child.ended.done() and (error := child.ended.result()) is not None:
            raise error

    async def _end(self, child: _Child, drain: asyncio.Task[None]) -> None:
        """Close the channel, wait for the child, kill what stays, fail its calls."""
        for call in child.calls.values():
            call.fail(AttachmentError("the Python child ended", may_have_run=True))
        child.calls.clear()
        child.close()
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
        frame = object_of(data, max_size)
    except JsonError as exc:
        raise ToolError(502, f"the function's result: {exc}") from exc
    output, error = frame.get("output"), frame.get("error")
    if isinstance(output, dict):
        return output
    if isinstance(error, dict) and error.get("rejected") is True:
        raise HandedBack(str(error.get("message")))
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        raise ToolError(
            error["code"],
            str(error.get("message")),
            may_have_run=error.get("ran") is not False,
            private=error.get("meant") is not True,
        )
    raise ToolError(502, "the Python child's answer is no result")


def _printed(output: OutputTail) -> str:
    return f"; it printed: {output.last_line}" if output.last_line else ""
