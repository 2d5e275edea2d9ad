"""Bodies that come event by event or line by line, as parts of a result. Pure.

Two forms are read: events that a server sends (`text/event-stream`, as the HTML
standard has it) and JSON values of which each has a line (NDJSON, JSON Lines).
"""

from __future__ import annotations

import re
from typing import Final

from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import ToolError
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

EVENTS: Final = "text/event-stream"

STREAM_TYPES: Final = frozenset(
    {EVENTS, "application/x-ndjson", "application/ndjson", "application/jsonl"}
)
"Media types whose bodies are passed on as they come."

EVENT: Final = "event"
"Entry of a part's metadata with the name of the event, where the service gave one."

MAX_EVENT_NAME: Final = 200
"Longest name of an event that is passed on, in characters."

LINE_FEED: Final = re.compile(rb"\n")
ANY_END: Final = re.compile(rb"\r\n|\n|\r")
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class _Lines:
    """Cuts bytes into lines, however they come; holds at most one line."""

    def __init__(self, end: re.Pattern[bytes], max_size: int) -> None:
        self._end = end
        self._max_size = max_size
        self._held: list[bytes] = []
        self._size = 0
        self._after_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in `data`, without their ends."""
        if self._after_return and data.startswith(b"\n"):
            # The second half of an end of which the first half ended a line already.
            data = data[1:]
            self._after_return = False
        if not data:
            return []
        self._after_return = self._end is ANY_END and data.endswith(b"\r")
        first, *rest = self._end.split(data)
        self._held.append(first)
        self._size += len(first)
        if self._size > self._max_size:
            raise _too_large("line", self._max_size)
        if not rest:
            return []
        lines = [b"".join(self._held), *rest[:-1]]
        self._held, self._size = [rest[-1]], len(rest[-1])
        if max(self._size, *map(len, lines)) > self._max_size:
            raise _too_large("line", self._max_size)
        return lines

    def rest(self) -> bytes:
        """Return what came after the last end of a line."""
        return b"".join(self._held)


class BodyStream:
    """A body of JSON values of which each has a line."""

    def __init__(self, max_size: int, *, end: re.Pattern[bytes] = LINE_FEED) -> None:
        """Begin to read.

        Args:
            max_size: Most bytes of one line, and of one event.
        """
        self._max_size = max_size
        self._lines = _Lines(end, max_size)

    def feed(self, data: bytes) -> list[Part]:
        """Return the parts that `data` completes.

        Raises:
            ToolError: 502, a line is endless or no text.
        """
        found = [self._take(line) for line in self._lines.feed(data)]
        return [part for part in found if part is not None]

    def end(self) -> list[Part]:
        """Return the parts that the end of the body completes.

        Raises:
            ToolError: 502, the body ends in the middle of something.
        """
        part = self._take(self._lines.rest())
        return [] if part is None else [part]

    def _take(self, line: bytes) -> Part | None:
        line = line.strip()
        return self._part(line) if line else None

    def _part(self, data: bytes, event: str = "") -> Part:
        metadata = {EVENT: event} if event else {}
        try:
            value = parse_json(data, max_size=self._max_size)
            return Part.value(value, metadata=metadata)
        except JsonError:
            return Part.text(_decoded(data), metadata=metadata)


class EventBody(BodyStream):
    """A body of events."""

    def __init__(self, max_size: int) -> None:
        super().__init__(max_size, end=ANY_END)
        self._data: list[bytes] = []
        self._size = 0
        self._event = ""
        self._begun = False

    def end(self) -> list[Part]:
        """See `BodyStream`."""
        if self._data or self._lines.rest().startswith(b"data"):
            # Whoever reads events drops one without its empty line, since the rest of
            # it may be missing. Half a result is no result.
            raise ToolError(502, "the service's stream ends within an event")
        return []

    def _take(self, line: bytes) -> Part | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line:
            return self._whole()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            if self._size > self._max_size:
                raise _too_large("event", self._max_size)
            self._data.append(value)
        elif name == b"event":
            self._event = _decoded(value)[:MAX_EVENT_NAME]
        # A comment, an id or the time for a reconnection: nobody asks for them here.
        return None

    def _whole(self) -> Part | None:
        """Return the event that an empty line completes; one without data is none."""
        data, event = self._data, self._event
        self._data, self._size, self._event = [], 0, ""
        return self._part(b"\n".join(data), event) if data else None


def stream_of(media_type: str, max_size: int) -> BodyStream | None:
    """Return a reader for a body of a media type; None if its bodies do not stream."""
    if media_type == EVENTS:
        return EventBody(max_size)
    return BodyStream(max_size) if media_type in STREAM_TYPES else None


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ToolError(502, "the service's stream is no text in UTF-8") from None


def _too_large(what: str, most: int) -> ToolError:
    return ToolError(502, f"one {what} of the service's stream is over {most} bytes")
