"""Adds to a transport of `mcp` what we need to know about the server."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["Watched"]


class Watched:
    """A transport that says when the server's side has ended.

    Without it an idle client would learn of a dead server at its next call.
    """

    def __init__(self, transport: Any, *, on_end: Callable[[], None]) -> None:
        self._transport = transport
        self._on_end = on_end

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._transport.__aenter__()
        return _WatchedStream(read, self._on_end), write

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        suppressed: bool | None = await self._transport.__aexit__(
            exc_type, exc_val, exc_tb
        )
        return suppressed


class _WatchedStream:
    """The read half of a transport; calls `on_end` when it ends."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        """The context of the request whose connection the last message came over."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return _with_content(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return _with_content(await self._stream.__anext__())
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> _WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        suppressed: bool | None = await self._stream.__aexit__(
            exc_type, exc_val, exc_tb
        )
        return suppressed


def _with_content(item: Any) -> Any:
    """Return a message of the server so that the client reads it.

    The client knows no tasks: it refuses the answer to a tool call that began a task,
    for the lack of the content that comes at its end.
    """
    result = getattr(getattr(item, "message", None), "result", None)
    if isinstance(result, dict) and isinstance(result.get("task"), dict):
        result.setdefault("content", [])
    return item
