"""One HTTP request to an OpenAI-compatible server, through the `openai` package.

Only what the owner configured is sent: the package would add headers from the
environment and about the machine, and repeat requests that nobody counts.
"""

from __future__ import annotations

import email.utils
import ipaddress
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from negotiation.errors import JsonError
from negotiation.llm.asking.requests import (
    MAX_BODY,
    ModelServerError,
    Reply,
    read_error,
    read_reply,
)

if TYPE_CHECKING:
    import httpx2

NO_KEY: Final = "none"
"Passed to the package when there is no key; it is never sent."

KEPT_HEADERS: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type"}
    | {"host", "user-agent"}
)
"Headers of the package that are sent; others reveal the machine or its owner."

CONNECT_TIMEOUT: Final = 5.0
"Seconds for making a connection."


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A successful status with a body that is no chat completion."""

    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """No complete answer came."""

    outcome: str
    "A stable word: `unreachable`, `broken` or `too_large`."

    reason: str

    sent: bool
    "True if the request may have arrived."


Outcome = Reply | ModelServerError | Unreadable | Trouble
"The possible results of a request."


class ModelConnection:
    """Connections to one server.

    Args:
        base_url: Address of the API.
        api_key: The key, or None to send none.
        headers: Additional headers for every request.
        timeout: Seconds of silence after which a request fails.
        clean: Removes secrets from a server's message, which may repeat them.
        transport: Replaces the network, for tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str],
        timeout: float,
        clean: Callable[[str], str],
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        # Imported here, so that only daemons with a model spend half a second on it.
        import httpx2
        import openai

        self._place = base_url
        self._clean = clean
        self._kept = KEPT_HEADERS | {name.lower() for name in headers}
        if api_key is not None:
            self._kept |= {"authorization"}
        # No compressed answers are requested: a small one could fill the memory.
        own = {"User-Agent": "anpd", "Accept-Encoding": "identity", **headers}
        silence = httpx2.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout))
        self._client = openai.AsyncOpenAI(
            api_key=api_key or NO_KEY,
            base_url=base_url,
            max_retries=0,
            timeout=silence,
            default_headers=own,
            http_client=httpx2.AsyncClient(
                transport=transport,
                timeout=silence,
                # A proxy from the environment cannot reach a server on this machine.
                trust_env=not _is_loopback(base_url),
                event_hooks={"request": [self._strip], "response": [_cap]},
            ),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(self, body: Mapping[str, Any]) -> Outcome:
        """Request one chat completion; every fault is returned, not raised."""
        import httpx2
        import openai

        try:
            # The raw response, since the package does not validate its own types.
            response = await self._client.post(
                "/chat/completions", cast_to=httpx2.Response, body=dict(body)
            )
        except openai.APIStatusError as exc:
            return self._server_error(exc.response)
        except openai.APIConnectionError as exc:
            return self._trouble(exc.__cause__)
        except _BodyTooLarge:
            return _too_large()
        if len(response.content) > MAX_BODY:
            return _too_large()
        try:
            return read_reply(response.content, clean=self._clean)
        except JsonError as exc:
            kind = response.headers.get("content-type", "no type").partition(";")[0]
            return Unreadable(f"{kind[:40]!r}, {exc}")

    def _trouble(self, cause: BaseException | None) -> Trouble:
        import httpx2

        name = type(cause).__name__
        unsent = (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.PoolTimeout,
            httpx2.ProxyError,
            httpx2.UnsupportedProtocol,
        )
        if isinstance(cause, unsent):
            return Trouble(
                "unreachable",
                f"the model's server at {self._place} cannot be reached ({name}); "
                "does it run, and is llm.base_url right?",
                sent=False,
            )
        if isinstance(cause, httpx2.TimeoutException):
            reason = f"the model's server at {self._place} fell silent ({name})"
            return Trouble("silent", reason, sent=True)
        reason = f"the connection to {self._place} broke ({name})"
        return Trouble("broken", reason, sent=True)

    def _server_error(self, response: httpx2.Response) -> ModelServerError:
        again = response.headers.get("x-should-retry")
        return ModelServerError(
            response.status_code,
            read_error(response.content[:MAX_BODY], clean=self._clean),
            retry_after=_retry_after(response.headers),
            may_retry=None if again is None else again == "true",
        )

    async def _strip(self, request: httpx2.Request) -> None:
        for name in list(request.headers):
            if name.lower() not in self._kept:
                del request.headers[name]


class _BodyTooLarge(Exception):
    """The body exceeded its limit; internal to this module."""


async def _cap(response: httpx2.Response) -> None:
    """Read at most `MAX_BODY` bytes of a body into memory."""
    import httpx2

    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.RemoteProtocolError("a compressed body was not asked for")

    class Capped(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MAX_BODY:
                    raise _BodyTooLarge
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = Capped(response.stream)


def _too_large() -> Trouble:
    reason = f"the model's server sent more than {MAX_BODY} bytes"
    return Trouble("too_large", reason, sent=True)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait, in any of the header's forms."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if seconds >= 0:  # False for NaN too
            return seconds
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
