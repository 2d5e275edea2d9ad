"""Answers of a service as results: whole, streamed, or to be fetched later."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2

from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import HandedBack, ToolError
from anp.sidecar.attachments.http.answers import HttpAnswer, OpenAnswer, is_json
from anp.sidecar.attachments.http.bodies import MEDIA_TYPE
from anp.sidecar.attachments.http.declared import wrap
from anp.sidecar.attachments.http.endpoint import HttpEndpoint
from anp.sidecar.attachments.http.operations import HttpOperation
from anp.sidecar.attachments.http.streams import BodyStream, stream_of
from anp.sidecar.attachments.requester import (
    LAST_WAIT,
    Requester,
    as_last,
    joins_updates,
)
from anp.sidecar.attachments.tool_errors import error_in
from anp.sidecar.attachments.urls import Url
from negotiation.errors import JsonError

MAX_JOINED: Final = 100_000
"Most events that are joined for a call of one turn."

FIRST_PAUSE: Final = 0.5
"Seconds before a result is asked for, where the service tells none; then it doubles."

MAX_PAUSE: Final = 10.0
"Longest of these pauses, in seconds."

LEAST_PAUSE: Final = 0.1
"Shortest pause that a service can tell, in seconds."

LONGEST_PAUSE: Final = 3600.0
"Longest pause that a service can tell, in seconds."


class ResultReader:
    """Makes the result of one call from the answer of its service.

    A requester gets the parts of a stream as they come, and bytes as they are. Without
    one a stream is read to its end, and bytes are laid into an object.
    """

    def __init__(
        self, operation: HttpOperation, requester: Requester | None, max_size: int
    ) -> None:
        """Prepare for one answer.

        Args:
            max_size: Most bytes of one event, of bytes, and of all that is joined.
        """
        self._operation = operation
        self._requester = requester
        self._joins = requester is None or joins_updates.get()
        self._max_size = max_size

    async def read(self, answer: OpenAnswer) -> dict[str, Any]:
        """Return the output; an empty one if all of it went to the requester.

        Raises:
            ToolError: The service answered with an error, or with no result.
        """
        if answer.status >= 300:
            raise error_of(await answer.read())
        stream = stream_of(answer.content_type, self._max_size)
        if stream is not None:
            return await self._streamed(answer, stream)
        whole = await answer.read()
        if whole.body and not _is_words(whole.content_type):
            return await self._bytes(whole)
        output = wrap(_value(whole), self._operation.wrapped)
        if output is None:
            raise ToolError(502, "the service's answer is no object")
        return output

    async def _streamed(self, answer: OpenAnswer, stream: BodyStream) -> dict[str, Any]:
        joined: list[Any] = []
        told, size = False, 0
        async with aclosing(_held(answer.chunks(), stream)) as coming:
            async for data, parts, is_end in coming:
                if self._joins:
                    size += data
                    self._join(joined, parts, size)
                if parts and self._requester is not None:
                    # Nothing more is read until the requester has room again.
                    told = True
                    await self._tell(parts, is_end=is_end)
        return {} if told and not self._joins else {"result": joined}

    async def _tell(self, parts: list[Part], *, is_end: bool) -> None:
        assert self._requester is not None
        for number, part in enumerate(parts, 1):
            is_last = is_end and number == len(parts)
            await self._requester.update([as_last(part) if is_last else part])

    def _join(self, joined: list[Any], parts: list[Part], size: int) -> None:
        joined += [part.content for part in parts]
        if size > self._max_size:
            raise ToolError(502, f"the answer is over {self._max_size} bytes")
        if len(joined) > MAX_JOINED:
            raise ToolError(502, f"the answer has over {MAX_JOINED} events")

    async def _bytes(self, answer: HttpAnswer) -> dict[str, Any]:
        said = answer.content_type
        if said.startswith("multipart/") or not MEDIA_TYPE.fullmatch(said):
            raise ToolError(
                502, f"the service answered with {said[:60]}, not with JSON"
            )
        if len(answer.body) > self._max_size:
            raise ToolError(502, f"the answer is over {self._max_size} bytes")
        if self._requester is not None and not self._joins:
            await self._tell([Part.data(answer.body, media_type=said)], is_end=True)
            return {}
        return {
            "mediaType": said,
            "data": base64.b64encode(answer.body).decode(),
            "size": len(answer.body),
        }


async def _held(
    chunks: AsyncIterator[bytes], stream: BodyStream
) -> AsyncGenerator[tuple[int, list[Part], bool], None]:
    """Yield the parts of a body as they come, and hold each for a moment.

    Yields:
        The bytes that were read since the last time, the parts in them, and True with
        the end of the body. A body that breaks off has no end.
    """
    size, parts = 0, list[Part]()
    coming = asyncio.ensure_future(anext(chunks, None))
    try:
        while True:
            if parts:
                await asyncio.wait({coming}, timeout=LAST_WAIT)
            if parts and not coming.done():
                yield size, parts, False
                size, parts = 0, []
            data = await coming
            more = stream.end() if data is None else stream.feed(data)
            if data is None:
                yield size, parts + more, True
                return
            if parts:
                yield size, parts, False
                size = 0
            size, parts = size + len(data), more
            coming = asyncio.ensure_future(anext(chunks, None))
    except (ToolError, httpx2.HTTPError):
        yield size, parts, False
        raise
    finally:
        coming.cancel()
        await asyncio.wait({coming})


class Later:
    """The way to a result that a service has later: it is asked again and again."""

    def __init__(self, url: Url) -> None:
        self.url = url
        "The URL to ask next."
        self.began = False
        "True when the service said that it has taken the call."
        self.pause = 0.0
        "Seconds to wait before the next question."
        self._own_pause = FIRST_PAUSE

    def holds(self, answer: OpenAnswer, endpoint: HttpEndpoint) -> bool:
        """Return whether an answer is not yet the result; then it says where to ask.

        A service that is asked for the result says 202 as long as it works. That it is
        busy just then ends nothing, if it says when it is not.

        Raises:
            ToolError: 502, the result is at another host, or at no URL.
        """
        if self.began:
            busy = answer.status in {429, 503} and answer.retry_after
            waits = answer.status == 202 or busy
        else:
            waits = answer.status == 202 and answer.location
        if not waits:
            return False
        if answer.status == 202 and answer.location:
            self.url = endpoint.within(answer.url, answer.location, does="points")
        self.began = True
        told = _seconds(answer.retry_after)
        if told is None:
            self.pause = self._own_pause
            self._own_pause = min(self._own_pause * 2, MAX_PAUSE)
        else:
            self.pause = min(max(told, LEAST_PAUSE), LONGEST_PAUSE)
        return True


def _seconds(retry_after: str) -> float | None:
    """Return the seconds that a `Retry-After` means; None if it says nothing."""
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None


def _is_words(media_type: str) -> bool:
    return not media_type or media_type.startswith("text/") or is_json(media_type)


def error_of(answer: HttpAnswer) -> ToolError:
    """Return what a peer is told of an answer that is no success."""
    status = answer.status
    if answer.hands_back and 400 <= status < 500:
        return HandedBack(answer.reason(), code=status)
    if status in {401, 407}:
        # Whose secrets are wrong is no business of a peer.
        return ToolError(502, "the service did not accept the owner's secrets")
    if not 400 <= status < 600:
        return ToolError(502, f"the service answered {answer.phrase}")
    told = _deliberate(answer)
    if told is not None:
        code, words = told
        return ToolError(code or status, words or answer.reason())
    return ToolError(status, answer.reason(), private=status >= 500)


def _deliberate(answer: HttpAnswer) -> tuple[int | None, str] | None:
    """Return code and words of a body that is `{"error": {"code", "message"}}`.

    Frameworks write their exceptions into all other bodies of a 5xx.
    """
    try:
        said = answer.json() if is_json(answer.content_type) else None
    except JsonError:
        return None
    error = said.get("error") if isinstance(said, dict) else None
    meant = isinstance(error, dict) and "code" in error and "message" in error
    return error_in(said) if meant else None


def _value(answer: HttpAnswer) -> Any:
    """Return what an answer holds."""
    if not answer.body:
        return None
    if is_json(answer.content_type):
        try:
            return answer.json()
        except JsonError as exc:
            raise ToolError(502, f"the service's answer: {exc}") from None
    return answer.text()
