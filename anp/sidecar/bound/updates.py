"""Updates before an answer, on a channel with a negotiated protocol (WIRE).

A document may describe them. They leave only for a requester that said before its
request that it takes them, in the order in which the capability gave them, and the
answer has the whole result all the same.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anp.interaction.elements import Message, Part, PartKind
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.part_json import part_json
from anp.sidecar.attachments.requester import GivenFile, Question, Reply
from negotiation.errors import NegotiationError

MAX_UPDATES: Final = 100_000
"Updates of one call."

MAX_BYTES: Final = 64 * 1024 * 1024
"Bytes of all updates of one call."

BURST: Final = 1_000
"Updates that may come at once; the requester counts them with some grace."

PER_SECOND: Final = 1_000.0
"Updates of one call that may come in a second, after that."

GRACE: Final = 2
"The requester allows so many times of what a provider of ours sends."


class UpdatesWrong(NegotiationError):
    """Updates of one call are over a limit, or come when none may come."""


@dataclass(slots=True)
class _Count:
    """Counts the updates of one call, on either side."""

    grace: int = 1
    "Factor on all limits."

    number: int = 0
    size: int = 0
    _room: float = BURST
    _at: float = 0.0

    def add(self, size: int) -> None:
        """Count an update of so many bytes.

        Raises:
            UpdatesWrong: It is one too many, or too much.
        """
        self.number += 1
        self.size += size
        if self.number > MAX_UPDATES * self.grace:
            raise UpdatesWrong(f"more than {MAX_UPDATES} updates of one call")
        if self.size > MAX_BYTES * self.grace:
            raise UpdatesWrong(f"updates of one call with more than {MAX_BYTES} bytes")

    def wait(self, now: float) -> float:
        """Return the seconds to wait until the next update may leave, or might have."""
        rate = PER_SECOND * self.grace
        most = float(BURST * self.grace)
        self._room = min(most, self._room + (now - self._at) * rate)
        self._at = now
        self._room -= 1
        return 0.0 if self._room >= 0 else -self._room / rate


@dataclass(slots=True)
class UpdateSink:
    """Whatever wants the updates of one call of ours, with what became of them."""

    take: Callable[[Any], Awaitable[None]]
    "Takes each, in order; nothing more is read of the channel before it returns."

    taken: int = 0
    "Updates that were taken."

    lost: bool = False
    "Some are missing: the link was lost, or the call was sent again."

    @property
    def whole(self) -> bool:
        """True when the updates were all of the result."""
        return self.taken > 0 and not self.lost


class UpdateTaker:
    """Takes the updates of one request of ours, within the limits."""

    def __init__(self, sink: UpdateSink | None) -> None:
        """Begin; a further request of the same call passes nothing on."""
        self._sink = sink
        self._count = _Count(grace=GRACE)
        if sink is not None and (sink.taken or sink.lost):
            sink.lost, self._sink = True, None

    async def take(self, value: Any, size: int) -> None:
        """Pass an update on, if anybody wants it.

        Raises:
            UpdatesWrong: It is one too many, or nobody can take it.
        """
        if self._sink is None:
            return
        self._count.add(size)
        if self._count.wait(time.monotonic()):
            raise UpdatesWrong("more updates a second than may come")
        self._sink.taken += 1
        await self._sink.take(value)


class UpdateTeller:
    """The requester of a call whose updates are told; see `Requester`."""

    def __init__(
        self,
        key: str,
        write: Callable[[Any], Awaitable[bytes]],
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """Take a call.

        Args:
            key: The key of its start.
            write: Has our half write an update of a value.
            send: Sends it, if the peer can still be reached.
        """
        self.key = key
        self._write = write
        self._send = send
        self._count = _Count()

    @property
    def folder(self) -> str:
        """See `Requester`: a protocol that was negotiated has no files."""
        return ""

    async def send_file(self, file: GivenFile) -> None:
        """See `Requester`."""
        raise ToolError(400, "nobody takes files in a call")

    async def lay(self, files: Sequence[Part]) -> list[str]:
        """See `Requester`; a call has no answers, and so no files of them."""
        raise ToolError(400, "nobody gives files in a call")

    async def listen(self, hear: Callable[[Message], None]) -> None:
        """See `Requester`; a call has nothing besides its arguments."""

    @property
    def was_told(self) -> bool:
        """See `Requester`; the answer has everything, too."""
        return False

    @property
    def said(self) -> Sequence[Part]:
        """See `Requester`; a call of one turn has arguments alone."""
        return ()

    async def begin(self) -> bool:
        """See `Requester`; a call of one turn begins with its request."""
        return False

    async def say(self, parts: Sequence[Part]) -> None:
        """See `Requester`; a call of one turn has no place for it."""

    async def update(self, parts: Sequence[Part]) -> None:
        """See `Requester`."""
        for part in parts:
            await asyncio.sleep(self._count.wait(time.monotonic()))
            data = await self._write(value_of(part))
            try:
                self._count.add(len(data))
            except UpdatesWrong as exc:
                raise ToolError(413, str(exc)) from exc
            await self._send(data)

    async def ask(self, question: Question) -> Reply:
        """See `Requester`; a call of one turn has nobody to answer."""
        raise ToolError(400, "nobody answers questions in a call of one turn")


def value_of(part: Part) -> Any:
    """Return a part as the value of an update."""
    if part.kind in (PartKind.TEXT, PartKind.JSON):
        return part.content
    return part_json(part)


def part_of(value: Any) -> Part:
    """Return the value of an update as a part."""
    if isinstance(value, str):
        return Part.text(value)
    if isinstance(value, dict) and value.keys() <= {"mediaType", "name", "data"}:
        media_type, data = value.get("mediaType"), value.get("data")
        if isinstance(media_type, str) and isinstance(data, str):
            name = value.get("name")
            with contextlib.suppress(ValueError):
                content = base64.b64decode(data, validate=True)
                name = name if isinstance(name, str) else ""
                return Part.data(content, media_type=media_type, name=name)
    return Part.value(value)
