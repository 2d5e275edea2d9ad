"""Adds to a transport of `mcp` what we need to know about the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

# Imported where it is used, as `mcp` itself is.
if TYPE_CHECKING:
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp.shared.transport_context import TransportContext


@asynccontextmanager
async def watched_dispatcher(
    transport: Any, *, on_end: Callable[[], None]
) -> AsyncIterator[JSONRPCDispatcher[TransportContext]]:
    """Open a transport, and give what talks over it.

    Args:
        on_end: Called when the server's side has ended. Without it an idle session
            would learn of a dead server at its next call.
    """
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

    async with transport as (read, write):
        yield JSONRPCDispatcher(_WatchedStream(read, on_end), write)


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
        return _seen(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return _seen(await self._stream.__anext__())
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


def _seen(item: Any) -> Any:
    with_content(getattr(getattr(item, "message", None), "result", None))
    return item


def with_content(result: object) -> None:
    """Change a result of the server so that the session reads it.

    The session knows no tasks: it refuses the answer to a tool call that began a task,
    for the lack of the content that comes at its end.
    """
    if isinstance(result, dict) and isinstance(result.get("task"), dict):
        result.setdefault("content", [])
