"""Requests of A2A over one channel of ours, and the responses to each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed
from anp.interaction.errors import InteractionFault
from anp.protocols.a2a.calls import request_frame
from anp.protocols.a2a.words import A2aMethod, A2aVersion, method_name
from anp.wire.frames import ProtocolType
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

logger = logging.getLogger(__name__)

PATIENCE: Final = 60.0
"Seconds until a request has its first response."

UNANSWERED: Final = "timeout"
"Code of a request that has none in that time."


class Refused(Exception):
    """The peer answered a request with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class A2aRequests:
    """Sends requests, and gives each the responses with its number; see `read`."""

    def __init__(self, channel: Channel, version: A2aVersion) -> None:
        self._channel = channel
        self._version = version
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Queue[dict[str, Any]]] = {}

    async def read(self) -> None:
        """Take responses until the channel ends."""
        with contextlib.suppress(ChannelClosed):
            while True:
                frame = (await self._channel.receive()).frame
                if frame.protocol_type is not ProtocolType.APPLICATION:
                    continue
                try:
                    body = parse_json(frame.data, max_size=self._channel.max_payload)
                except JsonError:
                    body = None
                number = body.get("id") if isinstance(body, dict) else None
                waiting = self._open.get(number) if isinstance(number, int) else None
                if waiting is None or not isinstance(body, dict):
                    logger.debug("a response to nothing")
                    continue
                await waiting.put(body)

    async def ask(
        self, method: A2aMethod, params: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Send a request and yield its results; only a stream has more than one.

        The caller knows which of a stream is the last.

        Raises:
            Refused: The peer answered with an error, or not at all.
        """
        number = next(self._numbers)
        waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue(64)
        self._open[number] = waiting
        try:
            data = request_frame(number, method_name(self._version, method), params)
            if len(data) > self._channel.max_payload:
                raise Refused(
                    InteractionFault.TOO_LARGE, "it fits no frame of the peer's"
                )
            await self._channel.send(ProtocolType.APPLICATION, data)
            is_first = True
            while is_first or method.is_stream:
                try:
                    async with asyncio.timeout(PATIENCE if is_first else None):
                        body = await waiting.get()
                except TimeoutError:
                    raise Refused(UNANSWERED, "the peer answers nothing") from None
                is_first = False
                error = body.get("error")
                if error is not None:
                    told = error if isinstance(error, dict) else {}
                    raise Refused(
                        str(told.get("code"))[:20], str(told.get("message"))[:500]
                    )
                yield body.get("result")
        finally:
            del self._open[number]
