"""The streamable HTTP transport of `mcp`, with our limits, secrets and bounds."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.http.endpoint import tls_of
from anp.sidecar.attachments.spec import AttachmentSpec, Credentials, read_credentials
from anp.sidecar.attachments.urls import parse_url

# Imported where it is used, as `mcp` itself is.
if TYPE_CHECKING:
    import httpx2

NOT_SENT = f"not sent {secrets.token_hex(8)}: "
"""Beginning of our words for a request that nobody took, so that nothing has run. No
server can know them, while any code may be one of its own."""

CONNECTION_CLOSED = -32000
"JSON-RPC error code of the library: the server is gone."

OVERHEAD = 64 * 1024
"Bytes that an answer may have besides the result it holds."

CONNECT_TIMEOUT = 5.0
"Seconds until a connection has to stand."


@asynccontextmanager
async def http_transport(
    spec: AttachmentSpec, limits: AttachmentLimits, *, on_silence: Callable[[], None]
) -> AsyncIterator[Any]:
    """Give a transport to the server of `spec.url` that has not been opened yet.

    Args:
        on_silence: Called when the server takes no connections.

    Raises:
        AttachmentError: A secret or a certificate cannot be read.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    credentials = await asyncio.to_thread(read_credentials, spec)
    tls = await asyncio.to_thread(tls_of, spec)
    inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False)
    bound = _bound(spec, inner, credentials, limits.max_result + OVERHEAD, on_silence)
    async with httpx2.AsyncClient(
        transport=bound,
        trust_env=False,
        follow_redirects=False,
        # A call's own deadline covers all but the connection.
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
        headers={"User-Agent": "anpd", "Accept-Encoding": "identity"},
    ) as client:
        yield streamable_http_client(
            parse_url(spec.url).text,
            http_client=client,
            max_sse_event_size=limits.max_result + OVERHEAD,
        )


def _bound(
    spec: AttachmentSpec,
    inner: httpx2.AsyncHTTPTransport,
    credentials: Credentials,
    max_answer: int,
    on_silence: Callable[[], None],
) -> httpx2.AsyncBaseTransport:
    """Return a transport that stays within the origin and never breaks the client.

    An exception of one request would end the client's task group, and with it every
    other call; so it becomes an answer to that request alone.
    """
    import httpx2

    url = parse_url(spec.url)

    class Capped(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream, most: float) -> None:
            self._stream = stream
            self._left = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._stream:
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise httpx2.StreamError(f"it is over {max_answer} bytes")
                    yield chunk
            except httpx2.TransportError as exc:
                raise httpx2.StreamError(str(exc) or type(exc).__name__) from exc

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Bound(httpx2.AsyncBaseTransport):
        async def handle_async_request(
            self, request: httpx2.Request
        ) -> httpx2.Response:
            if parse_url(str(request.url)).origin != url.origin:
                return _failed(request, CONNECTION_CLOSED, "it leads to another host")
            request.headers.update(credentials.headers)
            if credentials.query:
                merged = request.url.copy_merge_params(dict(credentials.query))
                request.url = merged
            try:
                response = await inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
                on_silence()
                why = f"cannot connect to {url.origin}: {exc or 'no answer'}"
                return _failed(request, CONNECTION_CLOSED, NOT_SENT + why)
            except httpx2.TransportError as exc:
                return _failed(request, CONNECTION_CLOSED, str(exc))
            # The stream of notifications goes on for as long as we live.
            endless = request.method == "GET"
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            most = float("inf") if endless else max_answer
            if response.headers.get("content-encoding", "identity") != "identity":
                # A small body can be a large one in disguise.
                await response.aclose()
                return _failed(
                    request, CONNECTION_CLOSED, "the answer is compressed, unasked"
                )
            response.stream = Capped(response.stream, most)
            return response

        async def aclose(self) -> None:
            await inner.aclose()

    def _failed(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
        error = {"code": code, "message": message[:300]}
        return httpx2.Response(
            503,
            headers={"content-type": "application/json"},
            content=json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode(),
            request=request,
        )

    return Bound()
