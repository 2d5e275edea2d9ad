"""The largest answer of an agent: of all of it, or of each event of a stream.

A stream may last for hours, so that only what has to be held at a time is limited.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

import httpx2

from anp.sidecar.attachments.http.endpoint import TooLargeError

UNLIMITED: Final = 2**63
"Most bytes of an answer that is limited here and nowhere else."

EVENT_END: Final = re.compile(rb"\n\r?\n|\r\r")
"The blank line after a server-sent event."

END_SIZE: Final = 3
"Most bytes of it."


def limit_events(client: httpx2.AsyncClient, most: int) -> None:
    """Limit the answers that a client reads.

    Args:
        most: Bytes of an answer, or of one event where events are streamed.
    """

    async def limit(response: httpx2.Response) -> None:
        media_type = response.headers.get("content-type", "").partition(";")[0]
        streams = media_type.strip().lower() == "text/event-stream"
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _Limited(stream, most, per_event=streams)

    client.event_hooks = {"request": [], "response": [limit]}


class _Limited(httpx2.AsyncByteStream):
    def __init__(
        self, inner: httpx2.AsyncByteStream, most: int, *, per_event: bool
    ) -> None:
        self._inner = inner
        self._most = most
        self._per_event = per_event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, tail = 0, b""
        async for chunk in self._inner:
            size += len(chunk)
            if self._per_event:
                seen = tail + chunk
                ends = [found.end() for found in EVENT_END.finditer(seen)]
                if ends:
                    size = len(seen) - ends[-1]
                tail = seen[-END_SIZE:]
            if size > self._most:
                raise TooLargeError(f"the answer is over {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
