"""One HTTP server of the owner's: what is sent to it, and how much is taken back."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import httpx

from anp.channel.dial_errors import dial_problem
from anp.errors import ConfigError
from anp.identity.web.fetcher import client_tls
from anp.sidecar.attachments.attachment import AttachmentError, ToolError
from anp.sidecar.attachments.spec import AttachmentSpec, Credentials, read_credentials
from anp.sidecar.attachments.urls import Url, join_url, parse_url
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

__all__ = [
    "CALLER_HEADER",
    "DEADLINE_HEADER",
    "HttpAnswer",
    "CallContext",
    "HttpEndpoint",
    "NOT_SENT",
    "TooLargeError",
    "deadline_text",
    "is_json",
    "tls_of",
]

CALLER_HEADER = "Anpd-Caller"
"Header with the DID of the peer a call is made for."

DEADLINE_HEADER = "Anpd-Deadline"
"Header with the time, in RFC 3339, after which nobody waits for the answer."

CONNECT_TIMEOUT = 5.0
"Seconds until a connection has to stand."

MAX_REDIRECTS = 3
"Redirects followed, all within one origin."

KEEPS_METHOD = frozenset({307, 308})
REDIRECTS = frozenset({301, 302, 303}) | KEEPS_METHOD

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"Failures before a byte of the request has gone."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The circumstances of a call that the agent learns besides its arguments."""

    call_id: str
    "Made up for this call; never used twice."

    caller: str
    "DID of the peer."

    deadline: float
    "Unix time after which nobody waits."


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of a server, read to its end."""

    status: int
    "HTTP status."

    content_type: str
    "Media type in lower case without parameters; empty if none was said."

    charset: str
    "Character set that was said, or `utf-8`."

    body: bytes
    "At most as large as was asked for."

    @property
    def phrase(self) -> str:
        """The status in words."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    def json(self) -> Any:
        """Return the JSON in the body.

        Raises:
            JsonError: It is none.
        """
        return parse_json(self.body, max_size=len(self.body))

    def text(self) -> str:
        """Return the body as text.

        Raises:
            CapabilityError: 502, it is none.
        """
        try:
            return self.body.decode(self.charset)
        except (LookupError, UnicodeDecodeError):
            raise ToolError(502, "the service's answer is no text") from None

    def reason(self) -> str:
        """Return in one line what an answer that is no success says."""
        try:
            said = self.json() if is_json(self.content_type) else None
        except JsonError:
            said = None
        return _words(said) or f"the service answered {self.phrase}"


class HttpEndpoint:
    """Sends requests below one URL of the owner's, with the owner's secrets.

    Nothing goes to another origin: not by a redirect, and not by what a document says.
    """

    def __init__(self, url: Url, spec: AttachmentSpec, *, max_answer: int) -> None:
        self.url = url
        self._spec = spec
        self._max_answer = max_answer
        self._client: httpx.AsyncClient | None = None

    @property
    def secret_names(self) -> frozenset[tuple[str, str]]:
        """Places that the owner's secrets take, such as `("header", "x-api-key")`."""
        spec = self._spec
        names = {("header", name.lower()) for name in spec.headers}
        names |= {("query", name) for name in spec.query}
        if spec.bearer or spec.basic:
            names.add(("header", "authorization"))
        return frozenset(names)

    @property
    def client(self) -> httpx.AsyncClient:
        """The client, for libraries that make their own requests.

        It adds the secrets, and refuses what is not within the origin.
        """
        if self._client is None:
            raise AttachmentError("the attachment is closed")
        return self._client

    async def open(self) -> None:
        """Read the secrets and make the client.

        Raises:
            AttachmentError: A secret or a certificate cannot be read.
        """
        # The secrets are read with every start, so that a new one needs no new daemon.
        self._client = await asyncio.to_thread(
            _client, self.url, self._spec, self._max_answer
        )

    async def close(self) -> None:
        """Close every connection; idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def ask(
        self,
        method: str,
        url: Url,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> HttpAnswer:
        """Send a request and read the whole answer; the caller sets the deadline.

        Raises:
            AttachmentError: There was no answer; `may_have_run` tells the rest.
            CapabilityError: 502, the answer is too large or leads elsewhere.
        """
        for asked in range(MAX_REDIRECTS + 1):
            try:
                answer, location = await self._ask_once(method, url, headers, content)
            except AttachmentError as exc:
                # Nobody knows what the service did before it sent us elsewhere.
                exc.may_have_run = exc.may_have_run or asked > 0
                raise
            if location is None:
                return answer
            url, method, content = self._follow(url, method, content, answer, location)
        raise ToolError(502, "the service redirects too often")

    async def reach(self) -> None:
        """Connect and hang up: what stands there may do something at any request.

        Raises:
            AttachmentError: Nobody takes connections there.
        """
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, writer = await asyncio.open_connection(self.url.host, self.url.port)
        except (OSError, TimeoutError) as exc:
            where = self.url.origin
            why = dial_problem(exc, where, waited=CONNECT_TIMEOUT, service="it")
            raise AttachmentError(f"cannot connect to {where}: {why}") from None
        writer.close()

    def _follow(
        self, url: Url, method: str, content: bytes | None, answer: HttpAnswer, to: str
    ) -> tuple[Url, str, bytes | None]:
        try:
            target = join_url(url, to)
        except ValueError:
            raise ToolError(502, "the service redirects to no URL") from None
        if target.origin != url.origin:
            raise ToolError(
                502, f"the service redirects to {target.origin}, another host"
            )
        if answer.status in KEEPS_METHOD or method in {"GET", "HEAD"}:
            return target, method, content
        raise ToolError(502, f"the service redirects a {method} elsewhere")

    async def _ask_once(
        self,
        method: str,
        url: Url,
        headers: Mapping[str, str] | None,
        content: bytes | None,
    ) -> tuple[HttpAnswer, str | None]:
        try:
            async with self.client.stream(
                method, url.text, headers=headers, content=content
            ) as response:
                location = response.headers.get("location")
                if response.status_code not in REDIRECTS:
                    location = None
                body = b"" if location else await response.aread()
                return _answer(response, body), location
        except NOT_SENT as exc:
            why = dial_problem(exc, url.origin, waited=CONNECT_TIMEOUT, service="it")
            raise AttachmentError(f"cannot connect to {url.origin}: {why}") from None
        except TooLargeError as exc:
            raise ToolError(502, str(exc)) from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as exc:
            raise AttachmentError(
                f"{url.origin} broke off: {_why(exc)}", may_have_run=True
            ) from None


class TooLargeError(httpx.TransportError):
    """An answer is larger than its limit, or larger than it seems."""


class CappedTransport(httpx.AsyncBaseTransport):
    """Reads at most so many bytes of every answer."""

    def __init__(self, inner: httpx.AsyncBaseTransport, max_answer: int) -> None:
        self._inner = inner
        self._max_answer = max_answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its answer's stream counts what is read."""
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            # A small body can be a large one in disguise.
            raise TooLargeError("the answer is compressed, which was not asked for")
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _CappedStream(response.stream, self._max_answer)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _CappedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, max_size: int) -> None:
        self._inner = inner
        self._left = self._max_size = max_size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise TooLargeError(f"the answer is over {self._max_size} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundTransport(httpx.AsyncBaseTransport):
    """Adds the owner's secrets, and sends nothing anywhere else."""

    def __init__(
        self, inner: httpx.AsyncBaseTransport, url: Url, credentials: Credentials
    ) -> None:
        self._inner = inner
        self._url = url
        self._credentials = credentials

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request if it stays within the origin."""
        try:
            origin = parse_url(str(request.url)).origin
        except ValueError:
            origin = "no URL"
        if origin != self._url.origin:
            raise httpx.UnsupportedProtocol(f"{origin} is not {self._url.origin}")
        # A request of our own, since the library logs the URL of the other one. What
        # the owner gave comes last: nothing a peer said can stand in its place.
        sent = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        sent.headers.update(self._credentials.headers)
        if self._credentials.query:
            sent.url = sent.url.copy_merge_params(dict(self._credentials.query))
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


def _client(url: Url, spec: AttachmentSpec, max_answer: int) -> httpx.AsyncClient:
    """Return a client that takes nothing from the environment; may block.

    Raises:
        AttachmentError: A secret or a certificate cannot be read.
    """
    inner = httpx.AsyncHTTPTransport(
        verify=tls_of(spec),
        trust_env=False,
        limits=httpx.Limits(max_connections=128, max_keepalive_connections=16),
    )
    capped = CappedTransport(inner, max_answer)
    transport = BoundTransport(capped, url, read_credentials(spec))
    # The cookies of one peer's call are not for another's.
    nobody = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    return httpx.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        # A call's own deadline covers all but the connection.
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
        headers={"User-Agent": "anpd", "Accept-Encoding": "identity"},
        cookies=nobody,
    )


def tls_of(spec: AttachmentSpec) -> ssl.SSLContext:
    """Return how certificates are checked; may block.

    Raises:
        AttachmentError: `ca_file` cannot be read.
    """
    ca_file = None
    if spec.ca_file is not None:
        ca_file = str((spec.cwd or Path()) / spec.ca_file.expanduser())
    try:
        return client_tls(ca_file)
    except ConfigError:
        raise AttachmentError(f"{ca_file} holds no PEM certificates") from None


def deadline_text(context: CallContext) -> str:
    """Return a call's deadline in RFC 3339."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(context.deadline))
    return f"{whole}.{int(context.deadline % 1 * 1000):03d}Z"


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON."""
    return media_type == "application/json" or media_type.endswith("+json")


def _answer(response: httpx.Response, body: bytes) -> HttpAnswer:
    said = response.headers.get("content-type", "")
    media_type, _, rest = said.partition(";")
    charset = rest.partition("charset=")[2].partition(";")[0].strip(" \"'")
    return HttpAnswer(
        response.status_code, media_type.strip().lower(), charset or "utf-8", body
    )


def _words(said: Any) -> str:
    """Return the message in an error's JSON, as many services write it."""
    if isinstance(said, str):
        return said
    if not isinstance(said, dict):
        return ""
    for name in ("detail", "message", "error", "error_description", "title"):
        found = said.get(name)
        if isinstance(found, str) and found.strip():
            return found
        if isinstance(found, dict) and (inner := _words(found)):
            return inner
        if isinstance(found, list):
            # FastAPI: one entry for each argument that does not fit.
            return "; ".join(_finding(each) for each in found[:5])
    return ""


def _finding(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)[:100]
    where = entry.get("loc")
    place = ".".join(str(part) for part in where) if isinstance(where, list) else ""
    text = str(entry.get("msg") or entry.get("message") or "does not fit")
    return f"{place}: {text}"[:200] if place else text[:200]


def _why(exc: Exception) -> str:
    return (str(exc).partition("\n")[0] or type(exc).__name__)[:200]
