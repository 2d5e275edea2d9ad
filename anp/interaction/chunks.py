"""Chunks of messages: put together in any order, within limits (GBZ-Q7).

All chunks of one message share its id, sender, session and task, and have the numbers
0, 1, 2…; exactly the highest one says that it is the last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from anp.interaction.elements import Chunk, Message, Part, PartKind
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.stored import element_size, fingerprint

MAX_CONTENT: Final = 512 * 1024
"Bytes of content in one frame; larger texts and bytes go in chunks."

MAX_REMEMBERED: Final = 1024
"Messages whose chunks came too late that are remembered."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Limits on what is held in memory of messages whose chunks are under way."""

    max_chunks: int = 4096
    "Chunks of one message."

    max_bytes: int = 64 * 1024 * 1024
    "Bytes of all incomplete messages of one session together."

    max_messages: int = 64
    "Incomplete messages of one session."

    max_age: float = 300.0
    "Seconds from the first chunk of a message to its last."


@dataclass(slots=True)
class _Incomplete:
    first: Message
    since: float
    chunks: dict[int, Message]
    marks: dict[int, bytes]
    size: int = 0
    end: int | None = None
    "Index of the last chunk, once it is known."


class ChunkAssembler:
    """Holds the incomplete messages of one session. `now` is monotonic seconds."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        self._limits = limits or ChunkLimits()
        self._open: dict[str, _Incomplete] = {}
        self._expired: OrderedDict[str, None] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return self._size

    def add(self, message: Message, *, now: float) -> Message | None:
        """Take one chunk; return the whole message when it was the missing one.

        An equal repeat changes nothing.

        Raises:
            InteractionError: The chunk does not fit the others or is over a limit; what
                was held before is held on.
        """
        if message.chunk is None:
            raise InteractionError(InteractionFault.INVALID, "the message is no chunk")
        self.expire(now=now)
        if message.id in self._expired:
            raise InteractionError(
                InteractionFault.EXPIRED, "the other chunks came too long ago"
            )
        known = self._open.get(message.id)
        if known is None:
            if len(self._open) >= self._limits.max_messages:
                raise InteractionError(
                    InteractionFault.TOO_MANY, "too many incomplete messages"
                )
            known = _Incomplete(message, now, {}, {})
        mark = fingerprint(message)
        index = message.chunk.index
        if index in known.chunks:
            if known.marks[index] != mark:
                raise InteractionError(
                    InteractionFault.CONFLICT, f"chunk {index} was another one before"
                )
            return None
        size = element_size(message)
        self._check(known, message, size)
        known.chunks[index] = message
        known.marks[index] = mark
        known.size += size
        self._size += size
        if message.chunk.last:
            known.end = index
        self._open[message.id] = known
        if known.end is None or len(known.chunks) <= known.end:
            return None
        self._drop(message.id)
        return _whole(known)

    def expire(self, *, now: float) -> list[str]:
        """Drop the messages whose time is over; return their ids."""
        gone = [
            name
            for name, one in self._open.items()
            if now - one.since > self._limits.max_age
        ]
        for name in gone:
            self._drop(name)
            self._expired[name] = None
        while len(self._expired) > MAX_REMEMBERED:
            self._expired.popitem(last=False)
        return gone

    def next_expiry(self) -> float | None:
        """Return when `expire` is due, or None."""
        times = [one.since for one in self._open.values()]
        return min(times) + self._limits.max_age if times else None

    def _check(self, known: _Incomplete, message: Message, size: int) -> None:
        assert message.chunk is not None
        index, first = message.chunk.index, known.first
        ours = (message.sender, message.session, message.task)
        if ours != (first.sender, first.session, first.task):
            raise InteractionError(
                InteractionFault.CONFLICT, "the chunks of one message share their task"
            )
        if not 0 <= index < self._limits.max_chunks:
            raise InteractionError(
                InteractionFault.TOO_MANY,
                f"a message has at most {self._limits.max_chunks} chunks",
            )
        highest = max(known.chunks, default=-1)
        if (known.end is not None and (message.chunk.last or index > known.end)) or (
            message.chunk.last and index < highest
        ):
            raise InteractionError(
                InteractionFault.CONFLICT, "only the highest chunk is the last one"
            )
        if self._size + size > self._limits.max_bytes:
            raise InteractionError(
                InteractionFault.TOO_LARGE,
                f"incomplete messages have at most {self._limits.max_bytes} bytes",
            )

    def _drop(self, name: str) -> None:
        self._size -= self._open.pop(name).size


def _whole(known: _Incomplete) -> Message:
    chunks = [known.chunks[index] for index in sorted(known.chunks)]
    parts = join_parts(part for chunk in chunks for part in chunk.parts)
    # `final` and the metadata of the whole are read on the last chunk.
    return replace(chunks[-1], parts=tuple(parts), chunk=None)


def join_parts(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of several chunks, with those made one that were cut.

    Parts that were not cut stay apart, however much alike they are.
    """
    held: list[Part] = []
    for part in parts:
        if held and part.kind is not held[0].kind:
            # The peer said that a text goes on, and sent something else.
            yield _joined(held)
            held = []
        held.append(part)
        if not part.continued or part.kind not in (PartKind.TEXT, PartKind.BYTES):
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return replace(parts[0], continued=False)
    if parts[0].kind is PartKind.TEXT:
        content: str | bytes = "".join(str(part.content) for part in parts)
    else:
        content = b"".join(
            part.content for part in parts if isinstance(part.content, bytes)
        )
    return replace(parts[0], content=content, continued=False)


def split_message(message: Message, *, max_content: int) -> Iterator[Message]:
    """Yield a message as it is, or as chunks whose content has at most so many bytes.

    Texts and bytes are cut between characters and bytes; a JSON value or a URI is never
    cut, since half of it is none.

    Raises:
        InteractionError: Such a value is too large for one chunk.
    """
    pieces: list[tuple[Part, ...]] = []
    room = 0
    for part in message.parts:
        for piece in _pieces(part, max_content):
            size = element_size(piece)
            if pieces and size <= room and not pieces[-1][-1].continued:
                pieces[-1] = (*pieces[-1], piece)
            else:
                pieces.append((piece,))
                room = max_content
            room -= size
    if len(pieces) == 1:
        yield message
        return
    for index, parts in enumerate(pieces):
        last = index == len(pieces) - 1
        yield replace(
            message,
            parts=parts,
            chunk=Chunk(index=index, last=last),
            final=message.final if last else None,
        )


def _pieces(part: Part, max_content: int) -> Iterator[Part]:
    content = part.content
    if isinstance(content, bytes):
        step = max(1, max_content * 3 // 4)
    elif isinstance(content, str) and part.kind is PartKind.TEXT:
        # A character has at most six bytes of JSON.
        step = max(1, max_content // 6)
    elif element_size(part) > max_content:
        raise InteractionError(
            InteractionFault.TOO_LARGE, f"a value has at most {max_content} bytes"
        )
    else:
        yield part
        return
    for start in range(0, max(1, len(content)), step):
        is_cut = start + step < len(content) or part.continued
        yield replace(part, content=content[start : start + step], continued=is_cut)
