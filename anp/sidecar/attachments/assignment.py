"""A call that an agent answers later, by updates of its own instead of one answer."""

from __future__ import annotations

import asyncio
import contextvars
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from anp.errors import ConflictError
from anp.interaction.elements import Message, Part, PartKind
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    HandedBack,
    Progress,
    ToolError,
    report_progress,
)
from anp.sidecar.attachments.part_json import listed, part_json
from anp.sidecar.attachments.requester import (
    Question,
    Reply,
    ReplyAction,
    as_last,
    current_requester,
)

T = TypeVar("T")

MAX_HEARD = 32
"Messages of the requester that are kept for its agent; of more only the newest are."

MAX_HEARD_TEXT = 256 * 1024
"Characters that they may have together."

MAX_CODE = 599
"Highest code of a failure; codes are those of HTTP."


@dataclass(slots=True, eq=False)
class HeardMessage:
    """Something that the requester said besides the arguments and the answers."""

    number: int
    "1 for the first in this call."

    parts: list[dict[str, Any]]
    "As JSON; a file has its `path` in the call's folder, or the `problem` with it."

    size: int


class Assignment:
    """One call of a capability, as the agent has it that answers by updates.

    The attachment makes it, and waits; whoever reads what the agent sends calls the
    other methods. They raise `ConflictError` when the call is over.
    """

    def __init__(
        self,
        capability: str,
        arguments: Mapping[str, Any],
        *,
        caller: str,
        deadline: float,
        max_result: int,
    ) -> None:
        """Take the call at hand, with its requester.

        Args:
            capability: Full name.
            caller: DID of the peer.
            deadline: Unix time after which nobody waits.
            max_result: Most bytes of parts that a call of one turn collects.
        """
        self.id = secrets.token_hex(12)
        self.capability = capability
        self.arguments = arguments
        self.caller = caller
        self.deadline = deadline
        self.question: Question | None = None
        "The question that waits for the requester's answer."

        self.reply: Reply | None = None
        "The answer to the last question."

        self.answered: list[dict[str, Any]] = []
        "The parts of that answer, as those of `heard`."

        self.heard: deque[HeardMessage] = deque()
        "Everything else that the requester said, as far as it is kept."

        self.ending = ""
        "`completed`, `failed`, `rejected`, `canceled` or `expired`; empty while open."

        self.changed = asyncio.Event()
        "Set, and replaced by another, whenever the requester did something."

        self.on_change: Callable[[Assignment], None] = lambda _: None
        "Told of the same; it does not wait."

        self.on_heard: Callable[[], None] = lambda: None
        "Told when there is something new in `heard`."

        self._laying: set[asyncio.Task[None]] = set()
        self._requester = current_requester.get()
        self._report = report_progress.get()
        self._context = contextvars.copy_context()
        self._outcome: asyncio.Future[dict[str, Any]] = (
            asyncio.get_running_loop().create_future()
        )
        self._max_result = max_result
        self._parts: list[Part] = []
        self._size = 0
        self._asking: asyncio.Task[Reply] | None = None
        self._timer = asyncio.timeout(None)
        self._time = 0.0

    @property
    def key(self) -> str:
        """Key of this start, by which an agent drops repeats; empty for a call."""
        return "" if self._requester is None else self._requester.key

    @property
    def is_task(self) -> bool:
        """True for a task that lasts, whose requester sees updates and is asked."""
        return self._requester is not None

    # The attachment's side.

    async def begin(self) -> bool:
        """Report that the agent is asked now; return True if it was asked before.

        The time for the work of a task begins with it.
        """
        if self._requester is None:
            return False
        was_asked = await self._do(self._requester.begin())
        self.deadline = time.time() + self._time
        if self._timer.when() is not None and not self._timer.expired():
            self._timer.reschedule(asyncio.get_running_loop().time() + self._time)
        return was_asked

    async def wait(
        self, timeout: float, *, to_begin: float | None = None
    ) -> dict[str, Any]:
        """Return the output when the agent has given it.

        Args:
            timeout: Seconds for the work.
            to_begin: Seconds until `begin`; None when it has begun.

        Raises:
            ToolError: It failed, or gave none in time.
        """
        self._time = timeout
        first = timeout if to_begin is None else to_begin
        self._timer = asyncio.timeout(None if math.isinf(first) else first)
        try:
            async with self._timer:
                return await asyncio.shield(self._outcome)
        except TimeoutError:
            self.end("expired")
            raise ToolError(504, "the agent gave no answer in time") from None
        except asyncio.CancelledError:
            self.end("canceled")
            raise

    def end(self, ending: str) -> None:
        """End it, since nobody waits any more; what the agent still says is refused."""
        if not self.ending:
            self._outcome.cancel()
            self._over(ending)

    async def listen(self) -> None:
        """Hear from now on what the requester says, and has said, besides."""
        if self._requester is not None:
            await self._do(self._requester.listen(self._hear))

    def _hear(self, message: Message) -> None:
        if self.ending:
            return
        number = self.heard[-1].number + 1 if self.heard else 1
        parts = [*map(_shown, message.parts)]
        size = sum(len(str(one)) for one in parts)
        self.heard.append(HeardMessage(number, parts, size))
        while len(self.heard) > 1 and (
            len(self.heard) > MAX_HEARD
            or sum(one.size for one in self.heard) > MAX_HEARD_TEXT
        ):
            self.heard.popleft()
        if not any(map(_is_file, message.parts)):
            self._tell_heard()
            return
        laying = self._start(self._lay_heard(message.parts, parts))
        self._laying.add(laying)
        laying.add_done_callback(self._laying.discard)

    async def _lay_heard(
        self, parts: Sequence[Part], shown: list[dict[str, Any]]
    ) -> None:
        await self._lay(parts, shown)
        self._tell_heard()

    def _tell_heard(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        self.on_heard()

    async def _lay(self, parts: Sequence[Part], shown: list[dict[str, Any]]) -> None:
        """Lay the files among parts in the folder of the call."""
        assert self._requester is not None
        for part, one in zip(parts, shown, strict=True):
            if _is_file(part):
                try:
                    (one["path"],) = await self._requester.lay([part])
                except ToolError as exc:
                    one["problem"] = exc.message

    # The agent's side.

    def progress(self, told: Progress) -> None:
        """Pass on how far the work is."""
        self.check_open()
        if self._report is not None:
            self._report(told)

    async def say(self, parts: Sequence[Part]) -> None:
        """Pass on a message that is no part of the result.

        In a call of one turn its texts are progress in words.
        """
        self.check_open()
        if self._requester is not None:
            await self._do(self._requester.say(parts))
        else:
            texts = [one.content for one in parts if isinstance(one.content, str)]
            self.progress(Progress(message=" ".join(texts)))

    async def add(self, parts: Sequence[Part]) -> None:
        """Pass on parts of the result; a call of one turn gets them joined at the end.

        Raises:
            ToolError: They are too large together.
        """
        self.check_open()
        if self._requester is not None:
            await self._do(self._requester.update(parts))
            return
        self._size += sum(len(str(part_json(one))) for one in parts)
        if self._size > self._max_result:
            raise ToolError(413, f"the parts have over {self._max_result} bytes")
        self._parts += parts

    def ask(self, question: Question) -> None:
        """Ask the requester; the answer is `reply`, some time after.

        A call of one turn has nobody to ask, so its questions are declined.

        Raises:
            ConflictError: Another question waits for its answer.
        """
        self.check_open()
        if self.question is not None:
            raise ConflictError("another question waits for its answer")
        if self._requester is None:
            self.reply = Reply(action=ReplyAction.DECLINE)
            self._tell()
            return
        self.question, self.reply = question, None
        self._asking = self._start(self._ask(question))
        self._asking.add_done_callback(self._answered)

    async def _ask(self, question: Question) -> Reply:
        assert self._requester is not None
        reply = await self._requester.ask(question)
        self.answered = [*map(_shown, reply.parts)]
        await self._lay(reply.parts, self.answered)
        return reply

    def _answered(self, asking: asyncio.Task[Reply]) -> None:
        self.question = self._asking = None
        if not asking.cancelled() and asking.exception() is None:
            self.reply = asking.result()
        self._tell()

    async def complete(self, output: Any = None) -> None:
        """Give the result, and end it.

        Args:
            output: The output; None when the parts before are all. What is no object
                is wrapped as `{"result": …}`.
        """
        self.check_open()
        if output is not None and not isinstance(output, dict):
            output = {"result": output}
        requester = self._requester
        if requester is not None and requester.was_told:
            if output is not None:
                await self._do(requester.update([as_last(Part.value(output))]))
            output = {}
        elif output is None:
            output = _joined(self._parts)
        elif self._parts and "parts" not in output:
            output = output | {"parts": [part_json(one) for one in self._parts]}
        self._over("completed")
        self._outcome.set_result(output)

    def fail(self, code: int, message: str) -> None:
        """End it with an error, whose words the requester reads.

        Args:
            code: As of HTTP, from 400 to 599; others count as 500.
        """
        self.check_open()
        self._over("failed")
        code = code if 400 <= code <= MAX_CODE else 500
        self._outcome.set_exception(ToolError(code, message))
        # The one who waited may be gone; nobody has to hear of it then.
        self._outcome.exception()

    def hand_back(self, reason: str) -> None:
        """End it undone, so that the requester asks another agent (GBZ-62).

        Args:
            reason: The agent's words for the requester.

        Raises:
            ConflictError: A part of the result was given, or its requester has gone.
        """
        self.check_open()
        told = self._requester is not None and self._requester.was_told
        if told or self._parts:
            raise ConflictError(
                "a part of the result was given, so the task cannot be handed back; "
                "end it as failed"
            )
        self._over("rejected")
        self._outcome.set_exception(HandedBack(reason))
        # The one who waited may be gone; nobody has to hear of it then.
        self._outcome.exception()

    def break_off(self, reason: BaseException) -> None:
        """End it, since the agent could not be asked."""
        if not self.ending:
            self._over("canceled")
            if isinstance(reason, asyncio.CancelledError):
                reason = AttachmentError("it was not begun")
            self._outcome.set_exception(reason)
            self._outcome.exception()

    def check_open(self) -> None:
        """Raise `ConflictError` when nobody waits any more."""
        if self.ending or self._outcome.done():
            raise ConflictError(
                f"this has ended ({self.ending or 'canceled'}); nobody waits for it"
            )

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return self.deadline - time.time()

    def _over(self, ending: str) -> None:
        self._stop(ending)
        self._tell()

    def _stop(self, ending: str) -> None:
        self.ending = ending
        for one in (self._asking, *self._laying):
            if one is not None:
                one.cancel()

    def _tell(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        self.on_change(self)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        # As work for the peer, whoever brought what the agent said.
        return asyncio.create_task(work, context=self._context)

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.shield(self._start(work))


def _is_file(part: Part) -> bool:
    return part.kind is PartKind.BYTES or part.is_file


def _shown(part: Part) -> dict[str, Any]:
    """Return a part as JSON; of a file what is said about it."""
    if part.kind is PartKind.JSON:
        return {"mediaType": part.media_type, "value": part.content}
    if _is_file(part):
        return {"mediaType": part.media_type, "name": part.name}
    return {**part_json(part)}


def _joined(parts: Sequence[Part]) -> dict[str, Any]:
    """Return parts as the one output of a call of one turn."""
    if all(one.kind is PartKind.JSON for one in parts):
        values = [one.content for one in parts]
        return {"result": values[0] if len(values) == 1 else values} if parts else {}
    text = "".join(str(one.content) for one in parts if one.kind is PartKind.TEXT)
    others = listed(parts, values=True)
    return {"text": text, "parts": others} if others else {"result": text}
